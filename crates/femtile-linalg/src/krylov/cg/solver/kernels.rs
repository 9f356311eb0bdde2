use femtile_device::{Buffer, Device, DeviceError, Scalar};

use super::CgKernels;
use crate::krylov::cg::CgScalars;
use crate::{LinalgError, error::need};

/// The passes of a solve before its first and after its last iteration; all numbers stay on the device.
///
/// # Errors
/// [`LinalgError::Length`] when vectors of one call differ in length, or [`CgSums`] belong to shorter ones.
pub trait CgSolverKernels<T: Scalar>: CgKernels<T> {
    /// Returns the number of partial sums that these passes need for vectors of `n` entries.
    fn cg_sum_partials(&self, _n: usize) -> usize {
        0
    }

    /// $r = q + w(q - q_0)$, $x \leftarrow x + w(x - x_0)$, $x_0 \leftarrow x$, $q_0 \leftarrow q$, all with the values
    /// before: two solutions and their products become the next guess and its product.
    ///
    /// # Cost
    /// Reads and writes four vectors.
    fn cg_extrapolate(&self, vectors: CgExtrapolate<'_, T, Self>, weight: T) -> Result<(), LinalgError>;

    /// Computes $r = b - q$ from r, which holds $q = A x$; $s = x$; and $p = M^{-1} r$ if $M^{-1}$ is
    /// diagonal. Leaves the sums [`CgSums::B_DOT_B`] to [`CgSums::B_NORM`] in [`CgSums::first`].
    ///
    /// # Cost
    /// Reads q, b, x and the diagonals, writes r, s and, with a diagonal, p.
    fn cg_begin(
        &self,
        vectors: CgBegin<'_, T, Self>,
        diagonals: CgDiagonals<'_, T, Self>,
        sums: &mut CgSums<Self>,
    ) -> Result<(), LinalgError>;

    /// Leaves $x^\mathsf{T} y$ at a place of [`CgSums::first`].
    fn cg_sum_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        sums: &mut CgSums<Self>,
    ) -> Result<(), LinalgError>;

    /// Sets `scalars` to the start of a solve by the first sums and the settings: the threshold, and whether the method runs,
    /// has converged, or does not begin as a norm is out of its range; copies the first sums to
    /// [`CgScalars::FIRST_SUMS`].
    fn cg_decide(&self, scalars: &mut CgScalars<Self>, sums: &CgSums<Self>) -> Result<(), LinalgError>;

    /// Leaves [`CgSums::last`] of the iterate x, with $q = A x$ and $r = b - q$; z is the last preconditioned
    /// residual.
    ///
    /// # Cost
    /// Reads q, b, x, z and the diagonal.
    fn cg_finish(&self, vectors: CgFinish<'_, T, Self>, sums: &mut CgSums<Self>) -> Result<(), LinalgError>;
}

/// The vectors of [`CgSolverKernels::cg_extrapolate`].
pub struct CgExtrapolate<'a, T: Scalar, D: Device> {
    /// The last solution x on entry, the next guess on return.
    pub x: &'a mut Buffer<T, D>,
    /// The solution before, $x_0$.
    pub previous_x: &'a mut Buffer<T, D>,
    /// The product $q = A x$.
    pub q: &'a Buffer<T, D>,
    /// The product $q_0 = A x_0$.
    pub previous_q: &'a mut Buffer<T, D>,
    /// The product of A and the guess, on return.
    pub r: &'a mut Buffer<T, D>,
}

/// The vectors of [`CgSolverKernels::cg_begin`].
pub struct CgBegin<'a, T: Scalar, D: Device> {
    /// $A x$ on entry, the residual on return.
    pub r: &'a mut Buffer<T, D>,
    /// The first direction.
    pub p: &'a mut Buffer<T, D>,
    /// The copy of x.
    pub start: &'a mut Buffer<T, D>,
    /// The right side.
    pub b: &'a Buffer<T, D>,
    /// The first guess.
    pub x: &'a Buffer<T, D>,
}

/// Diagonals that the passes of a solve know.
pub struct CgDiagonals<'a, T: Scalar, D: Device> {
    /// The diagonal of $M^{-1}$, if it is diagonal.
    pub m: Option<&'a Buffer<T, D>>,
    /// The diagonal by which residuals are tested.
    pub test: Option<&'a Buffer<T, D>>,
}

/// The vectors of [`CgSolverKernels::cg_finish`].
pub struct CgFinish<'a, T: Scalar, D: Device> {
    /// $A x$.
    pub q: &'a Buffer<T, D>,
    /// The right side.
    pub b: &'a Buffer<T, D>,
    /// The iterate.
    pub x: &'a Buffer<T, D>,
    /// The preconditioned residual, if it is stored.
    pub z: Option<&'a Buffer<T, D>>,
    /// The diagonal by which residuals are tested.
    pub test: Option<&'a Buffer<T, D>>,
}

/// The sums of a solve before its first and after its last iteration, and its settings.
///
/// $t$ is the diagonal by which residuals are tested.
pub struct CgSums<D: Device> {
    /// The sums at the start.
    pub first: Buffer<f64, D>,
    /// The sums of the last iterate.
    pub last: Buffer<f64, D>,
    /// The settings, in the order of the constants of this type.
    pub settings: Buffer<f64, D>,
    /// Memory for partial sums, if the device needs it.
    pub partials: Buffer<f64, D>,
    /// Counts blocks that are done; zero between kernels.
    pub counter: Buffer<u32, D>,
}

impl<D: Device> CgSums<D> {
    /// Place in the first sums of $b^\mathsf{T} b$.
    pub const B_DOT_B: usize = 0;
    /// Index of $r^\mathsf{T} r$ in the first and in the last sums.
    pub const R_DOT_R: usize = 1;
    /// Place in the first sums of $r^\mathsf{T} M^{-1} r$.
    pub const R_DOT_Z: usize = 2;
    /// Place in the first sums of $b^\mathsf{T} t b$.
    pub const B_RHO: usize = 3;
    /// Place in the first sums of $\|t b\|^2$.
    pub const B_NORM: usize = 4;
    /// Index in the first sums of $\|M^{-1} r\|^2$, if $M^{-1}$ is not diagonal.
    pub const Z_DOT_Z: usize = 5;
    /// Number of first sums.
    pub const N_FIRST: usize = 6;

    /// Place in the last sums of $r^\mathsf{T} t r$.
    pub const R_RHO: usize = 0;
    /// Place in the last sums of $\|t r\|^2$.
    pub const R_NORM: usize = 2;
    /// Place in the last sums of $x^\mathsf{T} b$.
    pub const X_DOT_B: usize = 3;
    /// Place in the last sums of $x^\mathsf{T} r$.
    pub const X_DOT_R: usize = 4;
    /// Place in the last sums of $z^\mathsf{T} z$.
    pub const LAST_Z: usize = 5;
    /// Number of last sums.
    pub const N_LAST: usize = 6;

    /// Place in the settings of the tolerance.
    pub const TOLERANCE: usize = 0;
    /// Place in the settings of the norm that it is relative to; 0 for $\|b\|$.
    pub const SIZE: usize = 1;
    /// Index in the settings of a bound relative to the first residual; 0 for none.
    pub const REDUCTION: usize = 2;
    /// Place in the settings of the maximum number of iterations.
    pub const LIMIT: usize = 3;
    /// Place in the settings of the range of $\|b\|$.
    pub const B_RANGE: usize = 4;
    /// Place in the settings of the range of the norm of the first residual.
    pub const R_RANGE: usize = 6;
    /// Index in the settings of the norm of rounding errors in b; 0 if b is exact.
    pub const ROUNDING: usize = 8;
    /// Number of settings.
    pub const SETTINGS: usize = 9;

    /// Zeros, with room for `n_partials` partial sums.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &D, n_partials: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            first: Buffer::zeros(device, Self::N_FIRST)?,
            last: Buffer::zeros(device, Self::N_LAST)?,
            settings: Buffer::zeros(device, Self::SETTINGS)?,
            partials: Buffer::zeros(device, n_partials)?,
            counter: Buffer::zeros(device, 1)?,
        })
    }

    /// Refuses indices that do not belong to a sum.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check_place(place: usize) -> Result<(), LinalgError> {
        need("place", place.min(Self::N_FIRST - 1), place)
    }

    /// Refuses arrays of other lengths.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check(&self, n_partials: usize) -> Result<(), LinalgError> {
        need("first", Self::N_FIRST, self.first.len())?;
        need("last", Self::N_LAST, self.last.len())?;
        need("settings", Self::SETTINGS, self.settings.len())?;
        need("counter", 1, self.counter.len())?;
        need("partials", n_partials, self.partials.len().min(n_partials))
    }
}

impl<T: Scalar, D: Device> CgExtrapolate<'_, T, D> {
    /// Refuses vectors of different lengths.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check(&self) -> Result<(), LinalgError> {
        let n = self.x.len();
        need("previous_x", n, self.previous_x.len())?;
        need("q", n, self.q.len())?;
        need("previous_q", n, self.previous_q.len())?;
        need("r", n, self.r.len())
    }
}

impl<'a, T: Scalar, D: Device> CgBegin<'a, T, D> {
    /// Refuses vectors of different lengths.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check(&self, diagonals: &CgDiagonals<'a, T, D>) -> Result<(), LinalgError> {
        let n = self.r.len();
        need("p", n, self.p.len())?;
        need("start", n, self.start.len())?;
        need("b", n, self.b.len())?;
        need("x", n, self.x.len())?;
        need("m", n, diagonals.m.map_or(n, Buffer::len))?;
        need("test", n, diagonals.test.map_or(n, Buffer::len))
    }
}

impl<T: Scalar, D: Device> CgFinish<'_, T, D> {
    /// Refuses vectors of different lengths.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check(&self) -> Result<(), LinalgError> {
        let n = self.q.len();
        need("b", n, self.b.len())?;
        need("x", n, self.x.len())?;
        need("z", n, self.z.map_or(n, Buffer::len))?;
        need("test", n, self.test.map_or(n, Buffer::len))
    }
}
