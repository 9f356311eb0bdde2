//! Plain loops over one line at a time: the oracle.

use femtile_device::{Buffer, HostDevice, Reference, Scalar};

use super::periodic::reference::periodic;
use super::pivoted::reference::pivoted;
use super::thomas::reference::thomas;
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
        let values = solve_line(problem, &a, &b, &c, &d).unwrap_or_else(|row| {
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

/// Solves one system; `Err` is the row that fails.
pub(crate) fn solve_line<T: Scalar>(
    problem: &Problem,
    a: &[T],
    b: &[T],
    c: &[T],
    d: &[T],
) -> Result<Vec<T>, usize> {
    match (problem.ends, problem.stability) {
        (Ends::Periodic, _) => periodic(a, b, c, d),
        (Ends::Open, Stability::PartialPivoting) => pivoted(a, b, c, d),
        (Ends::Open, Stability::Unpivoted) => thomas(a, b, c, d),
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
