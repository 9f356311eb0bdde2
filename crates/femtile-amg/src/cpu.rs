//! The kernels of a cycle on the CPU.

use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;
use femtile_sparse::csr::{Csr, Offsets};

use crate::kernels::{AmgKernels, Sweep, Swept};

/// Input of a sweep.
struct BlockRows<'a, H> {
    offsets: &'a [u32],
    columns: &'a [u32],
    values: &'a [H],
    b: &'a [H],
    inverse_diagonal: &'a [H],
    before: &'a [H],
}

impl<H: Scalar> BlockRows<'_, H> {
    fn sweep(&self, sweep: Sweep, range: Range<usize>, x: &mut [H]) {
        match sweep {
            Sweep::ForwardFromZero => range.clone().for_each(|row| self.first(row, range.start, x)),
            Sweep::Forward | Sweep::Backward => {
                x.copy_from_slice(&self.before[range.clone()]);
                if sweep == Sweep::Forward {
                    range.clone().for_each(|row| self.relax(row, range.clone(), x));
                } else {
                    range.clone().rev().for_each(|row| self.relax(row, range.clone(), x));
                }
            }
        }
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (usize, H)> {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        self.columns[range.clone()]
            .iter()
            .map(|&column| column as usize)
            .zip(self.values[range].iter().copied())
    }

    /// Relaxes a row of a sweep from zero: all other blocks, and later rows of its own block, are still zero.
    #[inline(always)]
    fn first(&self, row: usize, begin: usize, x: &mut [H]) {
        let mut sum = self.b[row];
        for (column, value) in self.row(row) {
            if column >= row {
                break;
            }
            if column >= begin {
                sum -= value * x[column - begin];
            }
        }
        x[row - begin] = self.inverse_diagonal[row] * sum;
    }

    #[inline(always)]
    fn relax(&self, row: usize, block: Range<usize>, x: &mut [H]) {
        let mut sum = self.b[row];
        for (column, value) in self.row(row) {
            let at = column.wrapping_sub(block.start);
            sum -= value * if at < x.len() { x[at] } else { self.before[column] };
        }
        x[row - block.start] += self.inverse_diagonal[row] * sum;
    }
}

impl<H: Scalar> AmgKernels<H> for Cpu {
    fn amg_on_host<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.install(work)
    }

    fn amg_sweep(
        &self,
        sweep: Sweep,
        a: &Csr<H, Self>,
        block: usize,
        vectors: Swept<'_, H, Self>,
    ) -> Result<(), LinalgError> {
        vectors.check(a)?;
        let Swept { b, inverse_diagonal, x, before } = vectors;
        let block = block.max(1);
        if sweep != Sweep::ForwardFromZero {
            std::mem::swap(x, before);
        }
        let Offsets::Narrow(offsets) = a.offsets() else {
            let message = "2³² non-zeros or more: choose Chebyshev".into();
            return Err(LinalgError::Setting { field: "smoother", message });
        };
        let rows = BlockRows {
            offsets: offsets.as_slice(),
            columns: a.columns().as_slice(),
            values: a.values().as_slice(),
            b: b.as_slice(),
            inverse_diagonal: inverse_diagonal.as_slice(),
            before: before.as_slice(),
        };
        let n = rows.b.len();
        let x = SharedMut::new(x.as_mut_slice());
        self.for_ranges(n.div_ceil(block), 1, |blocks| {
            for number in blocks {
                let range = number * block..((number + 1) * block).min(n);
                // SAFETY: blocks do not overlap.
                rows.sweep(sweep, range.clone(), unsafe { x.range(range) });
            }
        });
        Ok(())
    }

    fn amg_dot(&self, x: &Buffer<H, Self>, y: &Buffer<H, Self>) -> Result<f64, LinalgError> {
        self.dot(x, y)
    }
}
