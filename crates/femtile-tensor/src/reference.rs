use femtile_device::Scalar;

use super::{Factor, Metric};

/// As [`super::contract`] with `lanes` tensors side by side, by plain loops.
#[inline(always)]
pub fn contract<T: Scalar>(factor: &Factor<T>, (inner, lanes): (usize, usize), x: &[T], y: &mut [T]) {
    let stripe = inner * lanes;
    let tensors = x.chunks_exact(factor.n_cols * stripe).zip(y.chunks_exact_mut(factor.n_rows * stripe));
    for (x, y) in tensors {
        for row in 0..factor.n_rows {
            for at in 0..stripe {
                let mut sum = T::ZERO;
                for column in 0..factor.n_cols {
                    sum += factor.entries[row * factor.n_cols + column] * x[column * stripe + at];
                }
                y[row * stripe + at] = sum;
            }
        }
    }
}

/// As [`super::separable`] with `lanes` cubes side by side, by plain loops.
pub fn separable<T: Scalar>(matrices: [&Factor<T>; 2], lanes: usize, coefficients: &[T], x: &mut [T]) {
    let plainly = |factor: &Factor<T>, inner, x: &[T], y: &mut [T]| contract(factor, (inner, lanes), x, y);
    separable_by(matrices, lanes, coefficients, x, plainly);
}

/// As [`super::gradient`] with `lanes` cubes side by side, by plain loops.
pub fn gradient<T: Scalar>(slopes: [&Factor<T>; 2], lanes: usize, metric: Metric<'_, T>, u: &mut [T]) {
    let plainly = |factor: &Factor<T>, inner, x: &[T], y: &mut [T]| contract(factor, (inner, lanes), x, y);
    gradient_by(slopes, lanes, metric, u, plainly);
}

/// Four terms, one after another, by products along an axis.
pub(crate) fn separable_by<T: Scalar>(
    [mass, stiffness]: [&Factor<T>; 2],
    lanes: usize,
    coefficients: &[T],
    x: &mut [T],
    contract: impl Fn(&Factor<T>, usize, &[T], &mut [T]),
) {
    let n = mass.n_rows;
    let mut sum = vec![T::ZERO; x.len()];
    for term in 0..4 {
        let mut product = x.to_vec();
        for axis in 0..3 {
            let factor = if axis == term { stiffness } else { mass };
            let from = std::mem::replace(&mut product, vec![T::ZERO; x.len()]);
            contract(factor, n.pow(axis as u32), &from, &mut product);
        }
        for (i, (sum, product)) in sum.iter_mut().zip(product).enumerate() {
            *sum += coefficients[term * lanes + i % lanes] * product;
        }
    }
    x.copy_from_slice(&sum);
}

/// Each step for all points before the next, by products along an axis.
pub(crate) fn gradient_by<T: Scalar>(
    [slope, transposed]: [&Factor<T>; 2],
    lanes: usize,
    metric: Metric<'_, T>,
    u: &mut [T],
    contract: impl Fn(&Factor<T>, usize, &[T], &mut [T]),
) {
    let n = slope.n_rows;
    let mut slopes: Vec<Vec<T>> = (0..3)
        .map(|axis| {
            let mut found = vec![T::ZERO; u.len()];
            contract(slope, n.pow(axis as u32), u, &mut found);
            found
        })
        .collect();
    for (i, u) in u.iter_mut().enumerate() {
        let (point, lane) = (i / lanes, i % lanes);
        let (entry, mass) = entries(&metric, n, lanes, point, lane);
        let g = [slopes[0][i], slopes[1][i], slopes[2][i]];
        for a in 0..3 {
            slopes[a][i] = entry(a, 0) * g[0] + entry(a, 1) * g[1] + entry(a, 2) * g[2];
        }
        *u = mass * *u;
    }
    let mut product = vec![T::ZERO; u.len()];
    for (axis, slopes) in slopes.iter().enumerate() {
        contract(transposed, n.pow(axis as u32), slopes, &mut product);
        u.iter_mut().zip(&product).for_each(|(u, product)| *u += *product);
    }
}

/// G by row and column, and μ, at a point of a lane.
fn entries<'a, T: Scalar>(
    metric: &Metric<'a, T>,
    n: usize,
    lanes: usize,
    point: usize,
    lane: usize,
) -> (impl Fn(usize, usize) -> T + use<'a, T>, T) {
    let (of_point, weight, has_mass) = match *metric {
        Metric::Constant { entries, weights, has_mass } => {
            (entries, weights[point % n] * weights[point / n % n] * weights[point / (n * n)], has_mass)
        }
        Metric::Stored { entries, has_mass } => {
            let width = (6 + usize::from(has_mass)) * lanes;
            (&entries[point * width..(point + 1) * width], T::ONE, has_mass)
        }
    };
    // By row plus column: xx, yy, zz on the diagonal, then yz, xz, xy.
    let place = |a: usize, b: usize| if a == b { a } else { 6 - a - b };
    let entry = move |a, b| weight * of_point[place(a, b) * lanes + lane];
    (entry, if has_mass { weight * of_point[6 * lanes + lane] } else { T::ZERO })
}
