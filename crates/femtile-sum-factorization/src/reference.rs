use femtile_device::Scalar;

use super::{Factor, Mapped, Metric};

/// [`super::contract`] with `lanes` tensors side by side, by plain loops.
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

/// [`super::separable`] with `lanes` cubes side by side, by plain loops.
pub fn separable<T: Scalar>(matrices: [&Factor<T>; 2], lanes: usize, coefficients: &[T], x: &mut [T]) {
    let plainly = |factor: &Factor<T>, inner, x: &[T], y: &mut [T]| contract(factor, (inner, lanes), x, y);
    separable_by(matrices, lanes, coefficients, x, plainly);
}

/// [`super::gradient`] with `lanes` cubes side by side, by plain loops.
pub fn gradient<T: Scalar>(slopes: [&Factor<T>; 2], lanes: usize, metric: Metric<'_, T>, u: &mut [T]) {
    let plainly = |factor: &Factor<T>, inner, x: &[T], y: &mut [T]| contract(factor, (inner, lanes), x, y);
    let sizes = (slopes[0].n_rows, lanes);
    gradient_by(slopes, u, plainly, |g, u| act(sizes, &metric, g, u));
}

/// Applies four terms, one after another, by products along an axis.
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

/// Applies each step to all points before the next, by products along an axis; `act` applies the metric.
pub(crate) fn gradient_by<T: Scalar>(
    [slope, transposed]: [&Factor<T>; 2],
    u: &mut [T],
    contract: impl Fn(&Factor<T>, usize, &[T], &mut [T]),
    act: impl FnOnce([&mut [T]; 3], &mut [T]),
) {
    let n = slope.n_rows;
    let mut slopes: [Vec<T>; 3] = std::array::from_fn(|axis| {
        let mut found = vec![T::ZERO; u.len()];
        contract(slope, n.pow(axis as u32), u, &mut found);
        found
    });
    act(slopes.each_mut().map(|slopes| &mut slopes[..]), u);
    let mut product = vec![T::ZERO; u.len()];
    for (axis, slopes) in slopes.iter().enumerate() {
        contract(transposed, n.pow(axis as u32), slopes, &mut product);
        u.iter_mut().zip(&product).for_each(|(u, product)| *u += *product);
    }
}

/// Applies the metric at all points of all lanes.
pub(crate) fn act<T: Scalar>(
    (n, lanes): (usize, usize),
    metric: &Metric<'_, T>,
    g: [&mut [T]; 3],
    u: &mut [T],
) {
    for (i, u) in u.iter_mut().enumerate() {
        let (tensor, mass) = entries(metric, n, lanes, i / lanes, i % lanes);
        let at = [g[0][i], g[1][i], g[2][i]];
        for a in 0..3 {
            g[a][i] = tensor[a][0] * at[0] + tensor[a][1] * at[1] + tensor[a][2] * at[2];
        }
        *u = mass * *u;
    }
}

/// Returns G by row and column, and μ, at a point of a lane.
fn entries<T: Scalar>(
    metric: &Metric<'_, T>,
    n: usize,
    lanes: usize,
    point: usize,
    lane: usize,
) -> ([[T; 3]; 3], T) {
    let (of_point, weight, has_mass) = match *metric {
        Metric::Constant { entries, weights, has_mass } => {
            (entries, weights[point % n] * weights[point / n % n] * weights[point / (n * n)], has_mass)
        }
        Metric::Stored { entries, has_mass } => {
            let width = (6 + usize::from(has_mass)) * lanes;
            (&entries[point * width..(point + 1) * width], T::ONE, has_mass)
        }
        Metric::Mapped(ref metric) => return mapped_entries(metric, lanes, point, lane),
    };
    let entry = |place: usize| weight * of_point[place * lanes + lane];
    let mass = if has_mass { entry(6) } else { T::ZERO };
    (symmetric(std::array::from_fn(entry)), mass)
}

/// Expands xx, yy, zz, yz, xz, xy into a tensor by row and column.
fn symmetric<T: Copy>([xx, yy, zz, yz, xz, xy]: [T; 6]) -> [[T; 3]; 3] {
    [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
}

/// Returns the same as [`entries`] for a mapped metric, by the definition.
fn mapped_entries<T: Scalar>(
    metric: &Mapped<'_, T>,
    lanes: usize,
    point: usize,
    lane: usize,
) -> ([[T; 3]; 3], T) {
    let (inverse, volume) = inverse(metric, lanes, point, lane);
    let sigma = match metric.sigma.len() / lanes {
        0 => [T::ZERO; 6],
        1 => std::array::from_fn(|entry| if entry < 3 { metric.sigma[lane] } else { T::ZERO }),
        _ => std::array::from_fn(|entry| metric.sigma[entry * lanes + lane]),
    };
    let sigma = symmetric(sigma);
    let mut tensor = [[T::ZERO; 3]; 3];
    for (a, b) in (0..9).map(|at| (at / 3, at % 3)) {
        for (i, j) in (0..9).map(|at| (at / 3, at % 3)) {
            tensor[a][b] += volume * inverse[a][i] * sigma[i][j] * inverse[b][j];
        }
    }
    (tensor, metric.lambda.get(lane).map_or(T::ZERO, |&lambda| volume * lambda))
}

/// Returns $J^{-1}$ by rows, and $w \det J$.
fn inverse<T: Scalar>(metric: &Mapped<'_, T>, lanes: usize, point: usize, lane: usize) -> ([[T; 3]; 3], T) {
    let n = metric.weights.len();
    let at = [point % n, point / n % n, point / (n * n)];
    let (coefficients, k, tables) = (metric.coefficients, metric.order + 1, metric.tables);
    let mut jacobian = [[T::ZERO; 3]; 3];
    for c in 0..k * k * k {
        for axis in 0..3 {
            let factor = |a: usize| tables[usize::from(a == axis)][at[a] * k + c / k.pow(a as u32) % k];
            let product = factor(0) * factor(1) * factor(2);
            for i in 0..3 {
                jacobian[i][axis] += product * coefficients[(3 * c + i) * lanes + lane];
            }
        }
    }
    let column = |a: usize| jacobian.map(|row| row[a]);
    let cross = |a: [T; 3], b: [T; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let rows = [cross(column(1), column(2)), cross(column(2), column(0)), cross(column(0), column(1))];
    let determinant: T = (0..3).map(|i| column(0)[i] * rows[0][i]).sum();
    let weight = at.iter().fold(T::ONE, |weight, &at| weight * metric.weights[at]);
    (rows.map(|row| row.map(|entry| entry / determinant)), weight * determinant)
}
