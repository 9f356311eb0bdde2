use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar, parallel};

use super::kernels::{check_component, check_terms};
use super::reference::entry;
use super::sum::{BLOCK, block_dot, block_sum, combine, n_blocks};
use super::{Convert, DeviceSum, VectorKernels};
use crate::{LinalgError, error::need};

/// Blocks that one thread takes at least: below this a second thread costs more than it brings.
const MIN_BLOCKS: usize = 4;

/// Calls `work` once for each block of `0..n` with its range and that part of each array in `written`.
///
/// The results stand in the order of the blocks, whichever thread computed them. A thread has the same
/// blocks in every call with the same `n`.
///
/// # Panics
/// When an array of `written` is shorter than `n`.
pub fn map_blocks<T: Scalar, S: Copy + Default + Send, const N: usize>(
    cpu: &Cpu,
    n: usize,
    written: [&mut [T]; N],
    work: impl Fn(Range<usize>, [&mut [T]; N]) -> S + Sync,
) -> Vec<S> {
    let written = written.map(SharedMut::new);
    collect_blocks(
        cpu,
        n,
        #[inline(always)]
        |range| {
            // SAFETY: each block is visited once, and blocks do not overlap.
            let parts = written.each_ref().map(|array| unsafe { array.range(range.clone()) });
            work(range, parts)
        },
    )
}

/// [`map_blocks`] if the number of arrays is known at run time alone.
///
/// # Panics
/// When an array of `written` is shorter than `n`.
pub(crate) fn map_blocks_of<T: Scalar, S: Copy + Default + Send>(
    cpu: &Cpu,
    n: usize,
    written: Vec<&mut [T]>,
    work: impl Fn(Range<usize>, &mut [&mut [T]]) -> S + Sync,
) -> Vec<S> {
    let written: Vec<SharedMut<'_, T>> = written.into_iter().map(SharedMut::new).collect();
    collect_blocks(
        cpu,
        n,
        #[inline(always)]
        |range| {
            // SAFETY: each block is visited once, and blocks do not overlap.
            let part = |array| unsafe { SharedMut::range(array, range.clone()) };
            let mut parts: Vec<&mut [T]> = written.iter().map(part).collect();
            work(range, &mut parts)
        },
    )
}

/// Returns the results of `work` for the blocks of `0..n`, in order.
fn collect_blocks<S: Copy + Default + Send>(
    cpu: &Cpu,
    n: usize,
    work: impl Fn(Range<usize>) -> S + Sync,
) -> Vec<S> {
    let mut results = vec![S::default(); n_blocks(n)];
    let shared = SharedMut::new(&mut results);
    cpu.for_ranges(n_blocks(n), MIN_BLOCKS, |blocks| {
        // SAFETY: the ranges of one `for_ranges` do not overlap.
        let results = unsafe { shared.range(blocks.clone()) };
        for (block, result) in blocks.zip(results) {
            let range = block * BLOCK..((block + 1) * BLOCK).min(n);
            *result = cpu.vectorize(
                #[inline(always)]
                || work(range),
            );
        }
    });
    results
}

/// Adds the results of `work` for each block of `0..n`, in the fixed tree.
pub(crate) fn sum_blocks(cpu: &Cpu, n: usize, work: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    combine(&map_blocks::<f64, f64, 0>(
        cpu,
        n,
        [],
        #[inline(always)]
        |range, []| work(range),
    ))
}

impl<T: Scalar> VectorKernels<T> for Cpu {
    fn fill(&self, x: &mut Buffer<T, Self>, alpha: T) -> Result<(), LinalgError> {
        map_blocks(
            self,
            x.len(),
            [x.as_mut_slice()],
            #[inline(always)]
            |_, [x]| x.fill(alpha),
        );
        Ok(())
    }

    fn copy(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        let x = x.as_slice();
        map_blocks(
            self,
            x.len(),
            [y.as_mut_slice()],
            #[inline(always)]
            |rows, [y]| y.copy_from_slice(&x[rows]),
        );
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
        let x = x.as_slice();
        map_blocks(
            self,
            x.len(),
            [y.as_mut_slice()],
            #[inline(always)]
            |rows, [y]| y.iter_mut().zip(&x[rows]).for_each(|(y, &x)| *y = alpha * x + beta * *y),
        );
        Ok(())
    }

    fn combine(&self, y: &mut Buffer<T, Self>, terms: &[(T, &Buffer<T, Self>)]) -> Result<(), LinalgError> {
        check_terms(y.len(), terms)?;
        let terms: Vec<(T, &[T])> = terms.iter().map(|(alpha, x)| (*alpha, x.as_slice())).collect();
        let ((first, x), others) = (terms[0], &terms[1..]);
        map_blocks(
            self,
            x.len(),
            [y.as_mut_slice()],
            #[inline(always)]
            |rows, [y]| {
                y.iter_mut().zip(&x[rows.clone()]).for_each(|(y, &x)| *y = first * x);
                for (alpha, x) in others {
                    y.iter_mut().zip(&x[rows.clone()]).for_each(|(y, &x)| *y += *alpha * x);
                }
            },
        );
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
        let (d, r) = (d.as_slice(), r.as_slice());
        map_blocks(
            self,
            r.len(),
            [z.as_mut_slice()],
            #[inline(always)]
            |rows, [z]| {
                let factors = d[rows.clone()].iter().zip(&r[rows]);
                z.iter_mut().zip(factors).for_each(|(z, (&d, &r))| *z = d * r);
            },
        );
        Ok(())
    }

    fn take_component(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        (component, components): (usize, usize),
    ) -> Result<(), LinalgError> {
        check_component(y.len(), x.len(), (component, components))?;
        let x = x.as_slice();
        map_blocks(self, y.len(), [y.as_mut_slice()], |rows, [y]| {
            let nodes = x[components * rows.start..].chunks_exact(components);
            y.iter_mut().zip(nodes).for_each(|(y, node)| *y = node[component]);
        });
        Ok(())
    }

    fn put_component(
        &self,
        x: &mut Buffer<T, Self>,
        y: &Buffer<T, Self>,
        (component, components): (usize, usize),
    ) -> Result<(), LinalgError> {
        check_component(y.len(), x.len(), (component, components))?;
        let (y, min_len) = (y.as_slice(), components * MIN_BLOCKS * BLOCK);
        self.install(|| {
            parallel::for_chunks_mut(x.as_mut_slice(), min_len, |begin, x| {
                let nodes = x.chunks_exact_mut(components);
                nodes.zip(&y[begin / components..]).for_each(|(node, y)| node[component] = *y);
            });
        });
        Ok(())
    }

    fn dot(&self, x: &Buffer<T, Self>, y: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        need("y", x.len(), y.len())?;
        let (x, y) = (x.as_slice(), y.as_slice());
        Ok(sum_blocks(
            self,
            x.len(),
            #[inline(always)]
            |rows| block_dot(&x[rows.clone()], &y[rows]),
        ))
    }

    fn sum(&self, x: &Buffer<T, Self>) -> Result<f64, LinalgError> {
        let x = x.as_slice();
        Ok(sum_blocks(
            self,
            x.len(),
            #[inline(always)]
            |rows| {
                let x = &x[rows];
                block_sum(x.len(), |i| x[i].to_f64())
            },
        ))
    }

    fn sum_into(&self, sum: &mut DeviceSum<Self>, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        sum.check(x.len())?;
        sum.result.as_mut_slice()[0] = self.sum(x)?;
        Ok(())
    }

    fn subtract_mean(
        &self,
        x: &mut Buffer<T, Self>,
        sum: &DeviceSum<Self>,
        n: usize,
    ) -> Result<(), LinalgError> {
        let mean = T::from_f64(sum.result.as_slice()[0] / n as f64);
        map_blocks(
            self,
            x.len(),
            [x.as_mut_slice()],
            #[inline(always)]
            |_, [x]| x.iter_mut().for_each(|x| *x -= mean),
        );
        Ok(())
    }
}

/// Entries that one thread converts at least.
const MIN_LEN: usize = MIN_BLOCKS * BLOCK;

impl<T: Scalar, H: Scalar> Convert<T, H> for Cpu {
    fn convert(&self, y: &mut Buffer<H, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        let x = x.as_slice();
        let y = SharedMut::new(y.as_mut_slice());
        self.for_ranges(x.len(), MIN_LEN, |rows| {
            // SAFETY: ranges of one call do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            y.iter_mut().zip(&x[rows]).for_each(|(y, &x)| *y = H::from_f64(alpha * x.to_f64()));
        });
        Ok(())
    }

    fn gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        need("x", y.len(), x.len())?;
        need("order", y.len(), order.len())?;
        let (x, order) = (x.as_slice(), order.as_slice());
        let y = SharedMut::new(y.as_mut_slice());
        self.for_ranges(order.len(), MIN_LEN, |rows| {
            // SAFETY: ranges of one call do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            let pairs = y.iter_mut().zip(&order[rows]);
            pairs.for_each(|(y, &at)| *y = H::from_f64(alpha * entry(x, at)));
        });
        Ok(())
    }
}
