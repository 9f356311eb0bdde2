//! One matrix for all right sides, on a CPU eliminated once.
//!
//! $$ d^*_i = (d_i - a_i d^*_{i-1}) r_i, \qquad u_i = d^*_i - c^*_i u_{i+1}, \qquad r_i = 1 / (b_i - a_i c^*_{i-1}) $$

#[allow(unsafe_code)]
pub(super) mod cpu;
mod kernels;

use femtile_device::cuda::Cuda;
use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::LinalgError;

use super::kernels::at_least;
use super::reference::solve_line;
use super::solver::FRESH;
use super::{Algorithm, BatchLayout, BatchProblem, Ends, Stability, Work};
use femtile_linalg::need;
pub use kernels::{FactoredKernels, Factors};

impl<T: Scalar> FactoredKernels<T> for Reference {}
impl<T: Scalar> FactoredKernels<T> for Cuda {}

/// Solves systems that all have the same matrix.
///
/// # Cost
/// Reads one value a row and writes one: $2/5$ of what varying coefficients take. On a CPU systems with open ends are
/// eliminated once, at construction; the others read the matrix from a cache.
/// # Source
/// `[laszlo2016]`, Alg. 1. Differs: coefficients that depend on the matrix alone are computed on the host at construction; a GPU
/// and rings take the matrix itself.
#[derive(Debug)]
pub struct FactoredTridiagonal<T: Scalar, D: FactoredKernels<T>> {
    device: D,
    layout: BatchLayout,
    problem: BatchProblem,
    factors: Factors<T, D>,
    work: Work<T, D>,
}

impl<T: Scalar, D: FactoredKernels<T>> FactoredTridiagonal<T, D> {
    /// Takes the matrix of all lines along `axis` from its bands.
    ///
    /// # Shapes
    /// `lower`, `diagonal`, `upper`: one value a row; with open ends the first of `lower` and the last of `upper` are
    /// not read.
    /// # Errors
    /// [`LinalgError::Length`] when a band has not one value a row; [`LinalgError::Setting`] when there is no such
    /// axis, or a pivot is zero, lost to rounding or not finite.
    pub fn new(
        device: &D,
        layout: &BatchLayout,
        axis: usize,
        ends: Ends,
        [lower, diagonal, upper]: [&[T]; 3],
    ) -> Result<Self, LinalgError> {
        let mut lines = layout.lines(axis)?;
        lines.band_stride = 1;
        lines.axes.iter_mut().for_each(|axis| axis.band_stride = 0);
        let n = lines.length;
        for (field, band) in [("lower", lower), ("diagonal", diagonal), ("upper", upper)] {
            need(field, n, band.len())?;
        }
        let (algorithm, stability) = (Algorithm::Auto, Stability::Unpivoted);
        let mut problem = BatchProblem { lines, algorithm, ends, stability };
        if n > 0 {
            check(&problem, [lower, diagonal, upper])?;
        }
        let [inverse, c_star] = match ends {
            Ends::Open => eliminate([lower, diagonal, upper]),
            Ends::Periodic => [vec![], vec![]],
        };
        problem.algorithm = device.tridiagonal_choice(&problem)?;
        let factors = Factors {
            lower: Buffer::from_host(device, lower)?,
            diagonal: Buffer::from_host(device, diagonal)?,
            upper: Buffer::from_host(device, upper)?,
            inverse: Buffer::from_vec(device, inverse)?,
            c_star: Buffer::from_vec(device, c_star)?,
        };
        let work = Work { status: Buffer::from_host(device, &FRESH)?, scratch: None };
        Ok(Self { device: device.clone(), layout: layout.clone(), problem, factors, work })
    }

    /// The same with constant coefficients.
    ///
    /// # Errors
    /// Those of [`FactoredTridiagonal::new`].
    pub fn constant(
        device: &D,
        layout: &BatchLayout,
        axis: usize,
        ends: Ends,
        coefficients: [T; 3],
    ) -> Result<Self, LinalgError> {
        let n = layout.lines(axis)?.length;
        let bands = coefficients.map(|value| vec![value; n]);
        Self::new(device, layout, axis, ends, bands.each_ref().map(Vec::as_slice))
    }

    /// Solves into `u` for the right sides `d`, without waiting for a GPU; a line whose right side is not finite gives
    /// one that is not.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when an array is too short; errors of the device.
    pub fn solve(&mut self, u: &mut Buffer<T, D>, d: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.at_least("d", d.len())?;
        self.solve_any(u, Some(d))
    }

    /// Solves, `u` holding the right sides before, without waiting for a GPU.
    ///
    /// # Errors
    /// As [`FactoredTridiagonal::solve`].
    pub fn solve_in_place(&mut self, u: &mut Buffer<T, D>) -> Result<(), LinalgError> {
        self.solve_any(u, None)
    }

    fn solve_any(&mut self, u: &mut Buffer<T, D>, d: Option<&Buffer<T, D>>) -> Result<(), LinalgError> {
        self.at_least("u", u.len())?;
        if self.layout.n_entries() == 0 {
            return Ok(());
        }
        self.device.factored_solve(&self.problem, &self.factors, u, d, &mut self.work)
    }

    fn at_least(&self, field: &'static str, found: usize) -> Result<(), LinalgError> {
        at_least(field, self.layout.required_len(), found)
    }
}

/// Refuses a matrix that elimination does not solve.
fn check<T: Scalar>(problem: &BatchProblem, [lower, diagonal, upper]: [&[T]; 3]) -> Result<(), LinalgError> {
    let zeros = vec![T::ZERO; diagonal.len()];
    let Err(row) = solve_line(problem, lower, diagonal, upper, &zeros) else { return Ok(()) };
    let advice = match problem.ends {
        Ends::Open => "check that row, or solve with partial pivoting, without factors that are kept",
        Ends::Periodic => "check that row: rings are solved without pivoting",
    };
    let message = format!("the pivot of row {row} is zero, lost to rounding or not finite: {advice}");
    Err(LinalgError::Setting { field: "diagonal", message })
}

/// $r_i$ and $c^*_i$ of a matrix that was checked.
fn eliminate<T: Scalar>([lower, diagonal, upper]: [&[T]; 3]) -> [Vec<T>; 2] {
    let (mut inverse, mut c_star) = (Vec::with_capacity(diagonal.len()), Vec::with_capacity(diagonal.len()));
    for (i, &diagonal) in diagonal.iter().enumerate() {
        let pivot = if i == 0 { diagonal } else { diagonal - lower[i] * c_star[i - 1] };
        inverse.push(T::ONE / pivot);
        c_star.push(upper[i] * inverse[i]);
    }
    [inverse, c_star]
}
