use femtile_device::{Buffer, HostDevice, Scalar};

use crate::Preconditioner;

/// The kind of a preconditioner, for methods that fuse a diagonal into their passes.
#[derive(Debug)]
pub enum Preconditioning<'a, T: Scalar, D: HostDevice> {
    /// $M = I$: nothing is read.
    Identity,
    /// The diagonal of $M^{-1}$.
    Diagonal(&'a Buffer<T, D>),
    /// Anything else.
    General,
}

impl<T: Scalar, D: HostDevice> Clone for Preconditioning<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, D: HostDevice> Copy for Preconditioning<'_, T, D> {}

impl<'a, T: Scalar, D: HostDevice> Preconditioning<'a, T, D> {
    /// Reads the diagonal once to recognize one of ones.
    pub(super) fn of(m: &'a dyn Preconditioner<T, D>) -> Self {
        match m.diagonal() {
            Some(d) if d.as_slice().iter().all(|d| *d == T::ONE) => Self::Identity,
            Some(d) => Self::Diagonal(d),
            None => Self::General,
        }
    }
}
