//! Operators and preconditioners, as Krylov methods take them.
//!
//! Methods take `&dyn LinearOperator` and `&dyn Preconditioner`. A virtual call costs nothing beside a product, and
//! a new operator does not recompile the methods. Only kernels are generic.

use std::sync::Arc;

use femtile_device::{Buffer, Device, Scalar};

use crate::LinalgError;
use crate::hooks::{Hook, MergedOperator, MergedRows};

/// A linear map $y = A x$ between vectors on one device, stored or computed on the fly.
pub trait LinearOperator<T: Scalar, D: Device>: Send + Sync {
    /// Returns the length of $y$.
    fn n_rows(&self) -> usize;

    /// Returns the length of $x$.
    fn n_cols(&self) -> usize;

    /// Returns the device that holds the operator.
    fn device(&self) -> &D;

    /// Computes $y = A x$; every entry of `y` is overwritten.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    fn apply(&self, y: &mut Buffer<T, D>, x: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.apply_with(y, x, &crate::hooks::NoHook)
    }

    /// Computes $y = A x$ for a square operator, with `hook` called around ranges of rows as [`Hook`] promises.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;

    /// Returns the reciprocals of the diagonal $a_{ii}$, or none if the operator does not have them.
    ///
    /// # Errors
    /// [`LinalgError::Diagonal`] naming the first row whose entry is not positive.
    fn inverse_diagonal(&self) -> Result<Option<Buffer<T, D>>, LinalgError> {
        Ok(None)
    }

    /// Returns the operator with vector updates merged into its loop, if it supports this.
    fn merged(&self) -> Option<&dyn MergedOperator<T, D>> {
        None
    }
}

/// The owned rows of a distributed linear operator, with ghost values in a separate vector.
pub trait GhostedOperator<T: Scalar, D: Device>: Send + Sync {
    /// Returns the length of $y$ and of $x$.
    fn n_owned(&self) -> usize;

    /// Returns the number of ghosts.
    fn n_ghosts(&self) -> usize;

    /// Returns the device that holds the operator.
    fn device(&self) -> &D;

    /// Computes the rows $y = A (x, g)$ for ghosts $g$; every entry of `y` is overwritten.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when vectors do not fit.
    fn apply_ghosted(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        ghosts: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;

    /// Returns the rows with vector updates merged into their loop, if they support this.
    fn merged(&self) -> Option<&dyn MergedRows<T, D>> {
        None
    }
}

/// An approximate inverse $z = M^{-1} r$; CG needs it to be symmetric and positive definite.
pub trait Preconditioner<T: Scalar, D: Device>: Send + Sync {
    /// Computes $z = M^{-1} r$; every entry of `z` is overwritten.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `z` or `r` do not fit.
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError>;

    /// Returns the diagonal of $M^{-1}$ if M is diagonal: a Krylov method then fuses it into its own passes.
    fn diagonal(&self) -> Option<&Buffer<T, D>> {
        None
    }

    /// Returns the diagonal of $M^{-1}$ if each entry applies to the same number of consecutive rows, as for
    /// components of a vector field: the entries and that number.
    fn shared_diagonal(&self) -> Option<(&Buffer<T, D>, usize)> {
        self.diagonal().map(|diagonal| (diagonal, 1))
    }

    /// Returns whether $M^{-1}$ is the same linear map in every application. If it is not, conjugate
    /// gradients use the flexible $\beta$.
    fn is_fixed(&self) -> bool {
        true
    }

    /// Receives the norm of the initial residual of a solve. Levels in lower precision scale their vectors by
    /// it.
    fn set_residual_norm(&self, _norm: f64) {}
}

/// A preconditioner with several owners.
impl<T: Scalar, D: Device, P: Preconditioner<T, D> + ?Sized> Preconditioner<T, D> for Arc<P> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.as_ref().apply(z, r)
    }

    fn diagonal(&self) -> Option<&Buffer<T, D>> {
        self.as_ref().diagonal()
    }

    fn shared_diagonal(&self) -> Option<(&Buffer<T, D>, usize)> {
        self.as_ref().shared_diagonal()
    }

    fn is_fixed(&self) -> bool {
        self.as_ref().is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.as_ref().set_residual_norm(norm);
    }
}

/// A grid transfer between a level of multigrid and the next coarser one, given by an interpolation $I$.
pub trait Transfer<T: Scalar, D: Device>: Send + Sync {
    /// Returns the length of vectors on the finer level.
    fn n_fine(&self) -> usize;

    /// Returns the length of vectors on the coarser level.
    fn n_coarse(&self) -> usize;

    /// Prolongates and corrects: $x \leftarrow x + I e$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `x` or `e` do not fit.
    fn prolongate(&self, x: &mut Buffer<T, D>, e: &Buffer<T, D>) -> Result<(), LinalgError>;

    /// Restricts: $b = I^\mathsf{T} r$; every entry of `b` is overwritten.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `b` or `r` do not fit.
    fn restrict(&self, b: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError>;
}
