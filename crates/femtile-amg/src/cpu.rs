//! The acts of a cycle on the CPU: in the passes of products, block by block.

use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::hooks::Hook;
use femtile_linalg::sparse::csr::{Csr, Offsets};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::vector::sum::BLOCK;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::kernels::{AmgKernels, Convert, Smoothed, Step, Sweep, Swept};

/// Entries that one thread takes at least.
const MIN_LEN: usize = 4 * BLOCK;

/// r = b − y for rows whose product y has just been computed.
struct Residual<'a, H> {
    b: &'a [H],
    r: SharedMut<'a, H>,
}

impl<H: Scalar> Hook<H> for Residual<'_, H> {
    fn post(&self, rows: Range<usize>, _: &[H], y: &[H]) {
        // SAFETY: ranges given to `post` do not overlap.
        let r = unsafe { self.r.range(rows.clone()) };
        r.iter_mut().zip(&self.b[rows]).zip(y).for_each(|((r, &b), &y)| *r = b - y);
    }
}

/// A step of a smoother for rows whose product has just been computed.
struct Relax<'a, H> {
    step: Step<H>,
    b: &'a [H],
    inverse_diagonal: &'a [H],
    next: SharedMut<'a, H>,
    direction: SharedMut<'a, H>,
}

impl<H: Scalar> Hook<H> for Relax<'_, H> {
    fn post(&self, rows: Range<usize>, x: &[H], y: &[H]) {
        let Step { alpha, beta, is_kept } = self.step;
        let (b, inverse) = (&self.b[rows.clone()], &self.inverse_diagonal[rows.clone()]);
        // SAFETY: ranges given to `post` do not overlap.
        let next = unsafe { self.next.range(rows.clone()) };
        let n = next.len();
        let (x, y, b, inverse) = (&x[..n], &y[..n], &b[..n], &inverse[..n]);
        if !is_kept && beta == H::ZERO {
            for i in 0..n {
                next[i] = x[i] + alpha * (inverse[i] * (b[i] - y[i]));
            }
            return;
        }
        // SAFETY: ranges given to `post` do not overlap.
        let direction = unsafe { self.direction.range(rows) };
        if beta == H::ZERO {
            direction.fill(H::ZERO);
        }
        for i in 0..n {
            direction[i] = beta * direction[i] + alpha * (inverse[i] * (b[i] - y[i]));
            next[i] = x[i] + direction[i];
        }
    }
}

/// What a sweep reads.
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

    /// A row whose block has zeros from it on, as other blocks have.
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

    fn amg_first_step(
        &self,
        x: &mut Buffer<H, Self>,
        direction: &mut Buffer<H, Self>,
        step: Step<H>,
        inverse_diagonal: &Buffer<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        let (inverse, b) = (inverse_diagonal.as_slice(), b.as_slice());
        let (x, direction) = (SharedMut::new(x.as_mut_slice()), SharedMut::new(direction.as_mut_slice()));
        self.for_ranges(b.len(), MIN_LEN, |rows| {
            // SAFETY: ranges of one call do not overlap.
            let (x, direction) = unsafe { (x.range(rows.clone()), direction.range(rows.clone())) };
            let given = inverse[rows.clone()].iter().zip(&b[rows]);
            x.iter_mut().zip(given).for_each(|(x, (&inverse, &b))| *x = step.alpha * (inverse * b));
            if step.is_kept {
                direction.copy_from_slice(x);
            }
        });
        Ok(())
    }

    fn amg_step(
        &self,
        a: &dyn LinearOperator<H, Self>,
        step: Step<H>,
        vectors: Smoothed<'_, H, Self>,
    ) -> Result<(), LinalgError> {
        let Smoothed { b, inverse_diagonal, x, next, direction, product } = vectors;
        let hook = Relax {
            step,
            b: b.as_slice(),
            inverse_diagonal: inverse_diagonal.as_slice(),
            next: SharedMut::new(next.as_mut_slice()),
            direction: SharedMut::new(direction.as_mut_slice()),
        };
        a.apply_with(product, x, &hook)
    }

    fn amg_sweep(
        &self,
        sweep: Sweep,
        a: &Csr<H, Self>,
        block: usize,
        vectors: Swept<'_, H, Self>,
    ) -> Result<(), LinalgError> {
        let Swept { b, inverse_diagonal, x, before } = vectors;
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

    fn amg_residual(
        &self,
        r: &mut Buffer<H, Self>,
        product: &mut Buffer<H, Self>,
        a: &dyn LinearOperator<H, Self>,
        x: &Buffer<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        a.apply_with(product, x, &Residual { b: b.as_slice(), r: SharedMut::new(r.as_mut_slice()) })
    }
}

impl<T: Scalar, H: Scalar> Convert<T, H> for Cpu {
    fn amg_convert(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        let x = x.as_slice();
        let y = SharedMut::new(y.as_mut_slice());
        self.for_ranges(x.len(), MIN_LEN, |rows| {
            // SAFETY: ranges of one call do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            y.iter_mut().zip(&x[rows]).for_each(|(y, &x)| *y = H::from_f64(alpha * x.to_f64()));
        });
        Ok(())
    }

    fn amg_gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        let (x, order) = (x.as_slice(), order.as_slice());
        let y = SharedMut::new(y.as_mut_slice());
        self.for_ranges(order.len(), MIN_LEN, |rows| {
            // SAFETY: ranges of one call do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            let pairs = y.iter_mut().zip(&order[rows]);
            pairs.for_each(|(y, &at)| *y = H::from_f64(alpha * x[at as usize].to_f64()));
        });
        Ok(())
    }
}
