use std::sync::{Mutex, PoisonError};

use femtile_device::Cpu;
use femtile_device::cpu::zeroed_vec;
use femtile_sum_factorization::SumFactorization;

use crate::grid::BoxGrid;
use crate::operator::BoxOperator;
use crate::rows::RowTransfer;

/// Transfers by rows with the residual of the fine grid.
#[derive(Debug)]
pub struct BoxTransfer<T> {
    rows: RowTransfer<T>,
    operator: BoxOperator<T>,
    residual: Mutex<Vec<T>>,
}

impl<T: Clone> Clone for BoxTransfer<T> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), operator: self.operator.clone(), residual: Mutex::default() }
    }
}

impl<T: SumFactorization> BoxTransfer<T> {
    /// Creates the transfer; each axis of `fine` has the same number of cells as that of `coarse`, or twice
    /// the number.
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, fine: &BoxGrid) -> Self {
        Self {
            rows: RowTransfer::new(cpu, coarse, fine),
            operator: BoxOperator::new(cpu, fine),
            residual: Mutex::default(),
        }
    }

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$.
    pub fn prolongate(&self, fine: &mut [T], coarse: &[T]) {
        self.rows.prolongate(fine, coarse);
    }

    /// $b_{\ell-1} = I^\mathsf{T} b_\ell$ on unknowns.
    pub fn restrict(&self, coarse: &mut [T], b: &[T]) {
        self.rows.restrict(coarse, b);
    }

    /// $b_{\ell-1} = I^\mathsf{T} (b_\ell - A x_\ell)$ on unknowns.
    pub fn restrict_residual(&self, coarse: &mut [T], b: &[T], x: &[T]) {
        let mut r = self.residual.lock().unwrap_or_else(PoisonError::into_inner);
        if r.len() != b.len() {
            *r = zeroed_vec(b.len());
        }
        self.operator.residual(&mut r, b, x);
        self.rows.restrict(coarse, &r);
    }
}
