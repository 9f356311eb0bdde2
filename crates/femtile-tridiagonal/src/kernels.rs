use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;

use femtile_linalg::need;

use super::{Algorithm, Bands, Ends, Lines, Stability};

/// A batch as kernels see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchProblem {
    /// The systems.
    pub lines: Lines,
    /// The algorithm; never [`Algorithm::Auto`] once a device has chosen.
    pub algorithm: Algorithm,
    /// Boundary of a system: the couplings beyond the first and the last row.
    pub ends: Ends,
    /// The treatment of small pivots.
    pub stability: Stability,
}

impl BatchProblem {
    /// Refuses arrays that the lines reach beyond; says whether there is anything to solve.
    ///
    /// # Errors
    /// [`LinalgError::Length`] with the first array that is too short, [`LinalgError::Setting`] for lines that cannot be.
    pub(crate) fn check<T: Scalar, D: Device>(
        &self,
        u: &Buffer<T, D>,
        bands: Bands<'_, T, D>,
        d: Option<&Buffer<T, D>>,
        work: &Work<T, D>,
    ) -> Result<bool, LinalgError> {
        need("status", 2, work.status.len())?;
        let Some([array_len, band_len]) = self.lines.required_len()? else { return Ok(false) };
        at_least("u", array_len, u.len())?;
        at_least("d", array_len, d.map_or(array_len, Buffer::len))?;
        if let Bands::Arrays { lower, diagonal, upper } = bands {
            at_least("lower", band_len, lower.len())?;
            at_least("diagonal", band_len, diagonal.len())?;
            at_least("upper", band_len, upper.len())?;
        }
        Ok(true)
    }
}

/// Refuses an array that is too short.
pub(crate) fn at_least(field: &'static str, required: usize, found: usize) -> Result<(), LinalgError> {
    if found < required { need(field, required, found) } else { Ok(()) }
}

/// Where a solver keeps what lasts from call to call.
#[derive(Debug)]
pub struct Work<T: Scalar, D: Device> {
    /// Lines that failed so far, and the least `line * length + row` among them, at first [`u64::MAX`].
    pub status: Buffer<u64, D>,
    /// Workspace for intermediate values, allocated at first use.
    pub scratch: Option<Buffer<T, D>>,
}

/// The kernels that solve batches of tridiagonal systems.
pub trait TridiagonalKernels<T: Scalar>: Device {
    /// The algorithms that this device has; some may refuse some batches.
    fn tridiagonal_algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::Thomas]
    }

    /// The algorithm for a batch: the requested one, or the fastest for [`Algorithm::Auto`].
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when this device has no such algorithm for such a batch.
    fn tridiagonal_choice(&self, problem: &BatchProblem) -> Result<Algorithm, LinalgError>;

    /// Returns the bytes of the host's memory that a solve in place takes beyond its arrays, where no line fails.
    ///
    /// # Errors
    /// Those of [`TridiagonalKernels::tridiagonal_choice`]; [`LinalgError::Setting`] for lines that cannot be.
    fn tridiagonal_work_bytes(&self, _problem: &BatchProblem) -> Result<u64, LinalgError> {
        // A device with memory of its own takes none of the host's.
        Ok(0)
    }

    /// Queues the solution of all lines into `u`, whose values are the right sides where `d` is none.
    ///
    /// Lines that fail are filled with NaN and noted in `work.status`.
    ///
    /// # Shapes
    /// `u`, `d` and the bands hold what `problem.lines` reaches.
    /// # Cost
    /// Reads 4 values a row from arrays, or 1 with a rule; writes 1.
    /// # Errors
    /// [`LinalgError::Length`] when an array is too short; those of [`TridiagonalKernels::tridiagonal_choice`]; what the
    /// device reports.
    fn tridiagonal_solve(
        &self,
        problem: &BatchProblem,
        u: &mut Buffer<T, Self>,
        bands: Bands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError>;
}
