//! Preconditioners that need no more than the matrix.

mod by_component;
mod level_precision;
mod mean_free;
pub mod polynomial;
mod residual_size;

use femtile_device::{Buffer, Device, HostDevice, Scalar};

use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, Preconditioner, error::need};
pub use by_component::ByComponent;
pub use level_precision::LevelPrecision;
pub use mean_free::MeanFree;
pub use residual_size::ResidualSize;

/// A diagonal preconditioner $z_i = d_i r_i$: Jacobi's, or none at all.
#[derive(Debug)]
pub struct Diagonal<T: Scalar, D: VectorKernels<T>> {
    inverse: Buffer<T, D>,
}

/// The name under which [`Diagonal`] is known when it holds the inverse diagonal of a matrix.
pub type Jacobi<T, D> = Diagonal<T, D>;

impl<T: Scalar, D: VectorKernels<T>> Diagonal<T, D> {
    /// Jacobi's preconditioner $d_i = 1 / a_{ii}$.
    ///
    /// # Errors
    /// [`LinalgError::Diagonal`] naming the first row whose diagonal entry is not positive;
    /// [`LinalgError::Setting`] if the operator gives no diagonal ([`LinearOperator::inverse_diagonal`]).
    pub fn new(a: &impl LinearOperator<T, D>) -> Result<Self, LinalgError> {
        let no_diagonal = || LinalgError::Setting {
            field: "preconditioner",
            message: "the operator gives no diagonal: choose a preconditioner that needs none".into(),
        };
        Ok(Self { inverse: a.inverse_diagonal()?.ok_or_else(no_diagonal)? })
    }

    /// Jacobi's preconditioner from the diagonal $a_{ii}$ itself, as operators without a matrix give it.
    ///
    /// # Errors
    /// [`LinalgError::Diagonal`] naming the first row whose entry is not positive.
    pub fn of_entries(device: &D, entries: Vec<T>) -> Result<Self, LinalgError> {
        Ok(Self { inverse: inverse_diagonal(device, entries)? })
    }

    /// With $d$ itself.
    pub fn from_inverse(inverse: Buffer<T, D>) -> Self {
        Self { inverse }
    }

    /// Returns $d$.
    pub fn inverse(&self) -> &Buffer<T, D> {
        &self.inverse
    }

    /// No preconditioning: $d_i = 1$.
    pub fn identity(device: &D, n: usize) -> Result<Self, LinalgError> {
        let mut inverse = Buffer::zeros(device, n)?;
        device.fill(&mut inverse, T::ONE)?;
        Ok(Self { inverse })
    }
}

/// The reciprocals of the diagonal $a_{ii}$ of an operator.
///
/// # Errors
/// [`LinalgError::Diagonal`] naming the first row whose entry is not positive.
pub fn inverse_diagonal<T: Scalar, D: Device>(
    device: &D,
    mut entries: Vec<T>,
) -> Result<Buffer<T, D>, LinalgError> {
    for (row, entry) in entries.iter_mut().enumerate() {
        let value = entry.to_f64();
        if !(value > 0.0 && value.is_finite()) {
            return Err(LinalgError::Diagonal { row, value });
        }
        *entry = T::ONE / *entry;
    }
    Ok(Buffer::from_vec(device, entries)?)
}

impl<T: Scalar, D: VectorKernels<T>> Preconditioner<T, D> for Diagonal<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        need("z", self.inverse.len(), z.len())?;
        let device = z.device().clone();
        device.scale_by(z, &self.inverse, r)
    }

    fn diagonal(&self) -> Option<&Buffer<T, D>> {
        Some(&self.inverse)
    }
}

/// A diagonal preconditioner with one entry for several consecutive rows, such as the components of a field
/// at one node.
#[derive(Debug)]
pub struct SharedDiagonal<T: Scalar, D: VectorKernels<T>> {
    inverse: Buffer<T, D>,
    repeats: usize,
}

impl<T: Scalar, D: VectorKernels<T>> SharedDiagonal<T, D> {
    /// With entries of the inverse, each of `repeats` rows.
    ///
    /// # Panics
    /// When `repeats` is zero.
    pub fn new(inverse: Buffer<T, D>, repeats: usize) -> Self {
        assert!(repeats > 0, "every entry stands for one row at least");
        Self { inverse, repeats }
    }
}

impl<T: Scalar, D: VectorKernels<T> + HostDevice> Preconditioner<T, D> for SharedDiagonal<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        let n = self.inverse.len() * self.repeats;
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        let rows =
            z.as_mut_slice().chunks_exact_mut(self.repeats).zip(r.as_slice().chunks_exact(self.repeats));
        for ((z, r), &factor) in rows.zip(self.inverse.as_slice()) {
            z.iter_mut().zip(r).for_each(|(z, &r)| *z = factor * r);
        }
        Ok(())
    }

    fn shared_diagonal(&self) -> Option<(&Buffer<T, D>, usize)> {
        Some((&self.inverse, self.repeats))
    }
}
