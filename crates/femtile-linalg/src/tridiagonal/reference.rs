//! Plain loops over one line at a time: the oracle.

use femtile_device::{Buffer, HostDevice, Reference, Scalar};

use super::{Algorithm, Bands, Ends, Problem, Stability, TridiagonalKernels, Work};
use crate::LinalgError;

impl<T: Scalar> TridiagonalKernels<T> for Reference {
    fn tridiagonal_choice(&self, problem: &Problem) -> Result<Algorithm, LinalgError> {
        refuse_pivoted_periodic(problem)?;
        match problem.algorithm {
            Algorithm::Auto | Algorithm::Thomas => Ok(Algorithm::Thomas),
            other => Err(LinalgError::Setting {
                field: "algorithm",
                message: format!("the reference device has `thomas` alone, not `{other}`"),
            }),
        }
    }

    fn tridiagonal_solve(
        &self,
        problem: &Problem,
        u: &mut Buffer<T, Self>,
        bands: Bands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        solve_lines(problem, u, bands, d, work);
        Ok(())
    }
}

/// Line by line.
pub(crate) fn solve_lines<T: Scalar, D: HostDevice>(
    problem: &Problem,
    u: &mut Buffer<T, D>,
    bands: Bands<'_, T, D>,
    d: Option<&Buffer<T, D>>,
    work: &mut Work<T, D>,
) {
    let n = problem.lines.length;
    for line in 0..problem.lines.n_lines() {
        let start = problem.lines.start(line);
        let place = |row: usize| start + row * problem.lines.stride;
        let right: &[T] = d.unwrap_or(u).as_slice();
        let d: Vec<T> = (0..n).map(|row| right[place(row)]).collect();
        let [a, b, c] = bands_of_line(problem, bands, line);
        let solved = match (problem.ends, problem.stability) {
            (Ends::Open, Stability::Unpivoted) => thomas(&a, &b, &c, &d),
            (Ends::Open, Stability::PartialPivoting) => pivoted(&a, &b, &c, &d),
            (Ends::Periodic, _) => periodic(&a, &b, &c, &d),
        };
        let values = solved.unwrap_or_else(|row| {
            let status = work.status.as_mut_slice();
            status[0] += 1;
            status[1] = status[1].min((line * n + row) as u64);
            vec![T::from_f64(f64::NAN); n]
        });
        for (row, value) in values.into_iter().enumerate() {
            u.as_mut_slice()[place(row)] = value;
        }
    }
}

/// Pivoting between the ends of a ring would fill the whole matrix; no device offers it.
pub(crate) fn refuse_pivoted_periodic(problem: &Problem) -> Result<(), LinalgError> {
    if problem.ends == Ends::Periodic && problem.stability == Stability::PartialPivoting {
        let message =
            "periodic systems are solved without pivoting only: choose `Stability::Unpivoted`".into();
        return Err(LinalgError::Setting { field: "stability", message });
    }
    Ok(())
}

/// The bands of one line.
pub(crate) fn bands_of_line<T: Scalar, D: HostDevice>(
    problem: &Problem,
    bands: Bands<'_, T, D>,
    line: usize,
) -> [Vec<T>; 3] {
    let n = problem.lines.length;
    match bands {
        Bands::Arrays { lower, diagonal, upper } => {
            let start = problem.lines.band_start(line);
            [lower, diagonal, upper].map(|band| {
                (0..n).map(|row| band.as_slice()[start + row * problem.lines.band_stride]).collect()
            })
        }
        Bands::Rule(rule) => {
            let mut bands = [vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]];
            let [lower, diagonal, upper] = &mut bands;
            rule.fill(line..line + 1, 0..n, lower, diagonal, upper);
            bands
        }
    }
}

/// Whether a pivot and the value behind it can be trusted: more than the rounding of the entry it came from.
pub(crate) fn is_sound<T: Scalar>(pivot: T, diagonal: T, value: T) -> bool {
    pivot.abs() > T::EPSILON * diagonal.abs() && pivot.is_finite() && value.is_finite()
}

/// `[laszlo2016]`, Alg. 1; `Err` is the row whose pivot fails.
fn thomas<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let n = b.len();
    let (mut c_star, mut u) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    for i in 0..n {
        let (pivot, value) =
            if i == 0 { (b[0], d[0]) } else { (b[i] - a[i] * c_star[i - 1], d[i] - a[i] * u[i - 1]) };
        u[i] = value / pivot;
        if !is_sound(pivot, b[i], u[i]) {
            return Err(i);
        }
        c_star[i] = if i + 1 < n { c[i] / pivot } else { T::ZERO };
    }
    for i in (0..n.saturating_sub(1)).rev() {
        u[i] = u[i] - c_star[i] * u[i + 1];
    }
    Ok(u)
}

/// The last unknown is set apart: the others are $p - w q$ with $w = u_{N-1}$, which the last row then gives.
fn periodic<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let last = b.len() - 1;
    if last == 0 {
        let pivot = a[0] + b[0] + c[0];
        let u = d[0] / pivot;
        return if is_sound(pivot, b[0], u) { Ok(vec![u]) } else { Err(0) };
    }
    let mut column = vec![T::ZERO; last];
    column[0] += a[0];
    column[last - 1] += c[last - 1];
    let p = thomas(&a[..last], &b[..last], &c[..last], &d[..last])?;
    let q = thomas(&a[..last], &b[..last], &c[..last], &column)?;
    let pivot = b[last] - c[last] * q[0] - a[last] * q[last - 1];
    let w = (d[last] - c[last] * p[0] - a[last] * p[last - 1]) / pivot;
    if !is_sound(pivot, b[last], w) {
        return Err(last);
    }
    let mut u: Vec<T> = p.iter().zip(&q).map(|(&p, &q)| p - w * q).collect();
    u.push(w);
    Ok(u)
}

/// Gaussian elimination with scaled partial pivoting between a row and the next; a second upper band fills in.
fn pivoted<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let n = b.len();
    let largest = |x: T, y: T| if x.abs() > y.abs() { x.abs() } else { y.abs() };
    let upper = |i: usize| if i + 1 < n { c[i] } else { T::ZERO };
    let (mut diagonal, mut first, mut second, mut u) =
        (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
    let (mut now, mut size) = ([b[0], upper(0), d[0]], largest(b[0], upper(0)));
    for i in 0..n {
        let mut beyond = T::ZERO;
        if i + 1 < n {
            let below = [a[i + 1], b[i + 1], upper(i + 1), d[i + 1]];
            let size_below = largest(largest(below[0], below[1]), below[2]);
            let [pivot, next, value] = now;
            if below[0].abs() * size > pivot.abs() * size_below {
                let factor = pivot / below[0];
                beyond = below[2];
                now = [next - factor * below[1], -(factor * below[2]), value - factor * below[3]];
                (diagonal[i], first[i], u[i]) = (below[0], below[1], below[3]);
            } else {
                let factor = below[0] / pivot;
                now = [below[1] - factor * next, below[2], below[3] - factor * value];
                (diagonal[i], first[i], u[i]) = (pivot, next, value);
                size = size_below;
            }
        } else {
            (diagonal[i], u[i]) = (now[0], now[2]);
        }
        second[i] = beyond;
        if diagonal[i] == T::ZERO || !diagonal[i].is_finite() || !u[i].is_finite() {
            return Err(i);
        }
    }
    for i in (0..n).rev() {
        let mut value = u[i];
        if i + 1 < n {
            value -= first[i] * u[i + 1];
        }
        if i + 2 < n {
            value -= second[i] * u[i + 2];
        }
        u[i] = value / diagonal[i];
    }
    Ok(u)
}
