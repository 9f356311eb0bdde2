//! The vectors of the passes before the first and after the last iteration.

use femtile_device::{Buffer, Device, Scalar};

use crate::{LinalgError, error::need};

/// The vectors of [`super::CgKernels::cg_extrapolate`].
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

/// The vectors of [`super::CgKernels::cg_begin`].
pub struct CgBegin<'a, T: Scalar, D: Device> {
    /// $A x$ on entry, the residual on return.
    pub r: &'a mut Buffer<T, D>,
    /// The first direction.
    pub p: &'a mut Buffer<T, D>,
    /// A copy of x, if one is asked for.
    pub start: Option<&'a mut Buffer<T, D>>,
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

/// The vectors of [`super::CgKernels::cg_finish`].
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
        need("start", n, self.start.as_ref().map_or(n, |start| start.len()))?;
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
