//! Plain loops over one line at a time: the oracle.

use femtile_device::{Buffer, HostDevice, Reference, Scalar};
use femtile_linalg::LinalgError;

use super::hybrid::reference::hybrid;
use super::pcr::reference::{cr, pcr};
use super::periodic::reference::periodic;
use super::pivoted::reference::pivoted;
use super::thomas::reference::thomas;
use super::{Algorithm, Bands, BatchProblem, Ends, Stability, TridiagonalKernels, Work};

impl<T: Scalar> TridiagonalKernels<T> for Reference {
    fn tridiagonal_algorithms(&self) -> &'static [Algorithm] {
        &HOST_ALGORITHMS
    }

    fn tridiagonal_choice(&self, problem: &BatchProblem) -> Result<Algorithm, LinalgError> {
        host_choice(problem)
    }

    fn tridiagonal_work_bytes(&self, problem: &BatchProblem) -> Result<u64, LinalgError> {
        host_choice(problem)?;
        Ok(bytes_by_line::<T>(problem, 1))
    }

    fn tridiagonal_solve(
        &self,
        problem: &BatchProblem,
        u: &mut Buffer<T, Self>,
        bands: Bands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        host_choice(problem)?;
        if problem.check(u, bands, d, work)? {
            solve_lines(problem, u, bands, d, work);
        }
        Ok(())
    }
}

/// Values a row that solving one line at a time holds at most: copies of bands and right side, and rows reduced twice.
const VALUES_BY_LINE: u64 = 10;

/// Bytes that solving this many lines at once, each by itself, takes.
pub(crate) fn bytes_by_line<T>(problem: &BatchProblem, at_once: usize) -> u64 {
    let n_lines = problem.lines.n_lines().min(at_once) as u64;
    let values = (problem.lines.length as u64).saturating_mul(VALUES_BY_LINE).saturating_mul(n_lines);
    values.saturating_mul(size_of::<T>() as u64)
}

/// The algorithms that plain loops implement.
pub(crate) const HOST_ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Thomas, Algorithm::Pcr, Algorithm::Cr, Algorithm::Hybrid];

/// The algorithm for a batch on the host: elimination, unless another one was asked for.
pub(crate) fn host_choice(problem: &BatchProblem) -> Result<Algorithm, LinalgError> {
    refuse_pivoted_periodic(problem)?;
    let refused = |message| Err(LinalgError::Setting { field: "algorithm", message });
    match (problem.algorithm, problem.ends, problem.stability) {
        (Algorithm::Auto | Algorithm::Thomas, _, _) => Ok(Algorithm::Thomas),
        (other, _, _) if !HOST_ALGORITHMS.contains(&other) => {
            let names = HOST_ALGORITHMS.map(Algorithm::name).join(", ");
            refused(format!("`{other}` runs on a GPU; choose one of: {names}"))
        }
        (other, Ends::Open, Stability::Unpivoted) => Ok(other),
        (other, _, _) => {
            refused(format!("`{other}` solves open systems without pivoting here; choose `thomas`"))
        }
    }
}

/// Line by line.
pub(crate) fn solve_lines<T: Scalar, D: HostDevice>(
    problem: &BatchProblem,
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
    problem: &BatchProblem,
    a: &[T],
    b: &[T],
    c: &[T],
    d: &[T],
) -> Result<Vec<T>, usize> {
    match (problem.algorithm, problem.ends, problem.stability) {
        (Algorithm::Pcr, _, _) => pcr(a, b, c, d),
        (Algorithm::Cr, _, _) => cr(a, b, c, d),
        (Algorithm::Hybrid, _, _) => hybrid(a, b, c, d),
        (_, Ends::Periodic, _) => periodic(a, b, c, d),
        (_, Ends::Open, Stability::PartialPivoting) => pivoted(a, b, c, d),
        (_, Ends::Open, Stability::Unpivoted) => thomas(a, b, c, d),
    }
}

/// Pivoting between the ends of a ring would fill the whole matrix; no device offers it.
pub(crate) fn refuse_pivoted_periodic(problem: &BatchProblem) -> Result<(), LinalgError> {
    if problem.ends == Ends::Periodic && problem.stability == Stability::PartialPivoting {
        let message = "periodic systems are solved without pivoting only: leave pivoting out".into();
        return Err(LinalgError::Setting { field: "stability", message });
    }
    Ok(())
}

/// The bands of one line.
pub(crate) fn bands_of_line<T: Scalar, D: HostDevice>(
    problem: &BatchProblem,
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
