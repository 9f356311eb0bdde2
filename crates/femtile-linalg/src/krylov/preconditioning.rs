use femtile_device::{Buffer, Device, Scalar};

use crate::vector::VectorKernels;
use crate::{LinalgError, Preconditioner};

/// The kind of a preconditioner, for methods that fuse a diagonal into their passes.
#[derive(Debug)]
pub enum Preconditioning<'a, T: Scalar, D: Device> {
    /// $M = I$: nothing is read.
    Identity,
    /// The diagonal of $M^{-1}$.
    Diagonal(&'a Buffer<T, D>),
    /// Anything else.
    General,
}

/// The kind of a preconditioner without its data, in the order in which kernels number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreconditioningKind {
    /// [`Preconditioning::Identity`].
    Identity,
    /// [`Preconditioning::Diagonal`].
    Diagonal,
    /// [`Preconditioning::General`].
    General,
}

impl<T: Scalar, D: Device> Clone for Preconditioning<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, D: Device> Copy for Preconditioning<'_, T, D> {}

impl<'a, T: Scalar, D: VectorKernels<T>> Preconditioning<'a, T, D> {
    /// Recognizes a diagonal of ones. Its entries are copied to the host only if their sum allows for it.
    pub(super) fn of(m: &'a dyn Preconditioner<T, D>) -> Result<Self, LinalgError> {
        let Some(d) = m.diagonal() else { return Ok(Self::General) };
        let is_identity = d.device().sum(d)? == d.len() as f64 && d.to_host()?.iter().all(|d| *d == T::ONE);
        Ok(if is_identity { Self::Identity } else { Self::Diagonal(d) })
    }
}
