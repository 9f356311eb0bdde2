use femtile_device::{Buffer, Cpu, Scalar};
use rayon::prelude::*;

use super::VectorKernels;
use super::sum::{BLOCK, block_dot, block_sum, combine};
use crate::{LinalgError, error::need};

/// Blocks that one task takes at least: below this a second thread costs more than it brings.
pub(crate) const MIN_BLOCKS: usize = 4;

impl<T: Scalar> VectorKernels<T> for Cpu {
    fn fill(&self, x: &mut Buffer<T, Self>, alpha: T) -> Result<(), LinalgError> {
        self.install(|| {
            x.as_mut_slice().par_chunks_mut(BLOCK).with_min_len(MIN_BLOCKS).for_each(|x| x.fill(alpha));
        });
        Ok(())
    }

    fn copy(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        self.install(|| {
            let blocks = y.as_mut_slice().par_chunks_mut(BLOCK).zip(x.as_slice().par_chunks(BLOCK));
            blocks.with_min_len(MIN_BLOCKS).for_each(|(y, x)| y.copy_from_slice(x));
        });
        Ok(())
    }

    fn axpby(
        &self,
        y: &mut Buffer<T, Self>,
        alpha: T,
        x: &Buffer<T, Self>,
        beta: T,
    ) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        self.install(|| {
            let blocks = y.as_mut_slice().par_chunks_mut(BLOCK).zip(x.as_slice().par_chunks(BLOCK));
            blocks.with_min_len(MIN_BLOCKS).for_each(|(y, x)| {
                self.vectorize(
                    #[inline(always)]
                    || y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x + beta * *y),
                );
            });
        });
        Ok(())
    }

    fn scale_by(
        &self,
        z: &mut Buffer<T, Self>,
        d: &Buffer<T, Self>,
        r: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("d", z.len(), d.len())?;
        need("r", z.len(), r.len())?;
        self.install(|| {
            let factors = d.as_slice().par_chunks(BLOCK).zip(r.as_slice().par_chunks(BLOCK));
            let blocks = z.as_mut_slice().par_chunks_mut(BLOCK).zip(factors);
            blocks.with_min_len(MIN_BLOCKS).for_each(|(z, (d, r))| {
                self.vectorize(
                    #[inline(always)]
                    || z.iter_mut().zip(d).zip(r).for_each(|((z, &d), &r)| *z = d * r),
                );
            });
        });
        Ok(())
    }

    fn dot(&self, x: &Buffer<T, Self>, y: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        need("y", x.len(), y.len())?;
        Ok(self.install(|| {
            let blocks = x.as_slice().par_chunks(BLOCK).zip(y.as_slice().par_chunks(BLOCK));
            let partial = |(x, y)| {
                self.vectorize(
                    #[inline(always)]
                    || block_dot::<T>(x, y),
                )
            };
            combine(&blocks.with_min_len(MIN_BLOCKS).map(partial).collect::<Vec<f64>>())
        }))
    }

    fn sum(&self, x: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        Ok(self.install(|| {
            let partial = |x: &[T]| {
                self.vectorize(
                    #[inline(always)]
                    || block_sum(x.len(), |i| x[i].to_f64()),
                )
            };
            let blocks = x.as_slice().par_chunks(BLOCK).with_min_len(MIN_BLOCKS);
            combine(&blocks.map(partial).collect::<Vec<f64>>())
        }))
    }
}
