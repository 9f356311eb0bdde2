use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;

use super::kernels::at_least;
use super::{
    Algorithm, Bands, BatchLayout, BatchProblem, LineFailure, TridiagonalConfig, TridiagonalKernels,
    TridiagonalOutcome, Work,
};

/// Solves batches of tridiagonal systems that stand as lines in an array.
///
/// $$ a_i u_{i-1} + b_i u_i + c_i u_{i+1} = d_i, \qquad i = 0, …, N-1 $$
///
/// # Shapes
/// `u`, `d` and the bands share one [`BatchLayout`]; [`Tridiagonal::with_band_strides`] gives the bands strides of their
/// own, 0 where values repeat: one matrix for all lines, one for several right sides, or constants.
/// # Source
/// `[laszlo2016]`, sections 2 to 6.
#[derive(Debug)]
pub struct Tridiagonal<T: Scalar, D: TridiagonalKernels<T>> {
    device: D,
    layout: BatchLayout,
    bands: BatchLayout,
    axis: usize,
    problem: BatchProblem,
    work: Work<T, D>,
}

impl<T: Scalar, D: TridiagonalKernels<T>> Tridiagonal<T, D> {
    /// A solver for arrays with this layout, along one axis.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when there is no such axis, or the device lacks the algorithm.
    pub fn new(
        device: &D,
        layout: &BatchLayout,
        axis: usize,
        config: TridiagonalConfig,
    ) -> Result<Self, LinalgError> {
        let (ends, stability) = (config.ends, config.stability);
        let mut problem =
            BatchProblem { lines: layout.lines(axis)?, algorithm: config.algorithm, ends, stability };
        problem.algorithm = device.tridiagonal_choice(&problem)?;
        let work = Work { status: Buffer::from_host(device, &FRESH)?, scratch: None };
        Ok(Self {
            device: device.clone(),
            layout: layout.clone(),
            bands: layout.clone(),
            axis,
            problem,
            work,
        })
    }

    /// Gives the bands strides of their own; 0 repeats values along an axis.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when their number is wrong.
    pub fn with_band_strides(mut self, strides: &[usize]) -> Result<Self, LinalgError> {
        self.bands = BatchLayout::repeating(self.layout.shape(), strides)?;
        self.problem.lines = self.layout.lines_with_bands(self.axis, strides)?;
        Ok(self)
    }

    /// The algorithm that solves.
    pub fn algorithm(&self) -> Algorithm {
        self.problem.algorithm
    }

    /// Returns the bytes of the host's memory that a solve in place takes beyond its arrays, where no line fails.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when entries are too many to count.
    pub fn work_bytes(&self) -> Result<u64, LinalgError> {
        self.device.tridiagonal_work_bytes(&self.problem)
    }

    /// Solves, `u` holding the right sides before; does not wait for a GPU.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when an array is too short; errors of the device.
    pub fn queue_in_place(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: Bands<'_, T, D>,
    ) -> Result<(), LinalgError> {
        self.queue_any(u, bands, None)
    }

    /// Solves into `u` for the right sides `d`; does not wait for a GPU.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when an array is too short; errors of the device.
    pub fn queue(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: Bands<'_, T, D>,
        d: &Buffer<T, D>,
    ) -> Result<(), LinalgError> {
        self.queue_any(u, bands, Some(d))
    }

    /// Waits for the solves queued since the last call and returns their outcome.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn outcome(&mut self) -> Result<TridiagonalOutcome, LinalgError> {
        let status = self.work.status.to_host()?;
        let (n_failed, key) = (status[0], status[1]);
        if n_failed == 0 {
            return Ok(TridiagonalOutcome { n_failed, first: None });
        }
        self.work.status.upload(&FRESH)?;
        let length = self.problem.lines.length.max(1);
        let (line, row) = ((key / length as u64) as usize, (key % length as u64) as usize);
        let index = self.layout.index(self.axis, line, row);
        Ok(TridiagonalOutcome { n_failed, first: Some(LineFailure { line, row, index }) })
    }

    /// [`Tridiagonal::queue_in_place`], then [`Tridiagonal::outcome`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn solve_in_place(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: Bands<'_, T, D>,
    ) -> Result<TridiagonalOutcome, LinalgError> {
        self.queue_in_place(u, bands)?;
        self.outcome()
    }

    /// [`Tridiagonal::queue`], then [`Tridiagonal::outcome`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn solve(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: Bands<'_, T, D>,
        d: &Buffer<T, D>,
    ) -> Result<TridiagonalOutcome, LinalgError> {
        self.queue(u, bands, d)?;
        self.outcome()
    }

    fn queue_any(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: Bands<'_, T, D>,
        d: Option<&Buffer<T, D>>,
    ) -> Result<(), LinalgError> {
        at_least("u", self.layout.required_len(), u.len())?;
        if let Some(d) = d {
            at_least("d", self.layout.required_len(), d.len())?;
        }
        if let Bands::Arrays { lower, diagonal, upper } = bands {
            at_least("lower", self.bands.required_len(), lower.len())?;
            at_least("diagonal", self.bands.required_len(), diagonal.len())?;
            at_least("upper", self.bands.required_len(), upper.len())?;
        }
        if self.layout.n_entries() == 0 {
            return Ok(());
        }
        self.device.tridiagonal_solve(&self.problem, u, bands, d, &mut self.work)
    }
}

/// The status before anything failed.
pub(super) const FRESH: [u64; 2] = [0, u64::MAX];
