use femtile_device::{Buffer, Reference, Scalar};

use super::{Csr, CsrKernels};
use crate::LinalgError;
use crate::hooks::Hook;
use crate::vector::sum::BLOCK;

impl<T: Scalar> CsrKernels<T> for Reference {
    fn csr_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Csr<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let (n, x) = (a.n_rows(), x.as_slice());
        let y = y.as_mut_slice();
        if a.n_cols() == n {
            hook.pre(0..n);
        }
        for (row, y) in y.iter_mut().enumerate() {
            *y = a.row(row).map(|(column, value)| value * x[column]).sum();
        }
        if a.n_cols() == n {
            for start in (0..n).step_by(BLOCK) {
                let rows = start..(start + BLOCK).min(n);
                hook.post(rows.clone(), &x[rows.clone()], &y[rows]);
            }
        }
        Ok(())
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
