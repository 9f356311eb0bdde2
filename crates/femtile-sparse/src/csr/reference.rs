use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::{Hook, hook_rows};

use super::{Csr, CsrKernels};

impl<T: Scalar> CsrKernels<T> for Reference {
    fn csr_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Csr<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        hook_rows(hook, y, x, |y| {
            for (row, y) in y.as_mut_slice().iter_mut().enumerate() {
                *y = a.row(row).map(|(column, value)| value * x.as_slice()[column]).sum();
            }
            Ok(())
        })
    }

    fn csr_inverse_diagonal(&self, d: &mut Buffer<T, Self>, a: &Csr<T, Self>) -> Result<(), LinalgError> {
        for (row, d) in d.as_mut_slice().iter_mut().enumerate() {
            let entry = a.row(row).find(|&(column, _)| column == row).map_or(T::ZERO, |(_, value)| value);
            if !(entry > T::ZERO && entry.is_finite()) {
                return Err(LinalgError::Diagonal { row, value: entry.to_f64() });
            }
            *d = T::ONE / entry;
        }
        Ok(())
    }
}
