use std::ops::Range;
use std::sync::atomic::AtomicU64;

use femtile_device::{Buffer, Cpu, Scalar};

use super::{FactoredKernels, Factors};
use crate::LinalgError;
use crate::tridiagonal::cpu::panel::{Rows, RowsMut};
use crate::tridiagonal::cpu::sweep::{Batch, Elimination, Source};
use crate::tridiagonal::cpu::vector::Vector;
use crate::tridiagonal::{Algorithm, Ends, Lines, Problem, Stability};

impl<T: Scalar> FactoredKernels<T> for Cpu {
    fn factored_solve(
        &self,
        lines: &Lines,
        factors: &Factors<T, Self>,
        u: &mut Buffer<T, Self>,
        d: Option<&Buffer<T, Self>>,
    ) -> Result<(), LinalgError> {
        // The factors take the places of bands that are the same for all lines.
        let mut lines = lines.clone();
        lines.band_stride = 1;
        lines.axes.iter_mut().for_each(|axis| axis.band_stride = 0);
        let problem = Problem {
            lines,
            algorithm: Algorithm::Thomas,
            ends: Ends::Open,
            stability: Stability::Unpivoted,
        };
        let target = u.as_mut_slice().as_mut_ptr();
        let bands = [&factors.lower, &factors.inverse, &factors.upper];
        let batch = Batch {
            problem: &problem,
            u: target,
            d: d.map_or(target.cast_const(), |d| d.as_slice().as_ptr()),
            bands: Source::Arrays(bands.map(|band| band.as_slice().as_ptr())),
            n_failed: AtomicU64::new(0),
            first_failed: AtomicU64::new(u64::MAX),
        };
        let mut scratch = None;
        crate::tridiagonal::cpu::solve_factored(self, &batch, &mut scratch)
    }
}

/// Both sweeps with factors instead of bands, W vectors of systems side by side.
#[derive(Clone, Copy)]
pub(crate) struct Factored<V: Vector<T>, T: Scalar, const W: usize> {
    d_star: [V; W],
    scalar: std::marker::PhantomData<T>,
}

impl<T: Scalar, V: Vector<T>, const W: usize> Elimination<T, V, W> for Factored<V, T, W> {
    const SLOTS: usize = 2;
    const KEEPS_LAST_ROW: bool = false;

    #[inline(always)]
    unsafe fn begin(_last_row: *const T) -> Self {
        // SAFETY: the caller promises that the processor has the instructions.
        Self { d_star: [unsafe { V::splat(T::ZERO) }; W], scalar: std::marker::PhantomData }
    }

    #[inline(always)]
    unsafe fn forward(
        &mut self,
        rows: Range<usize>,
        _n: usize,
        [lower, inverse, upper]: [Rows<T>; 3],
        d: Rows<T>,
        scratch: *mut T,
    ) {
        let width = W * V::LANES;
        // A copy of its own stays in registers.
        let mut now = *self;
        for (k, row) in rows.enumerate() {
            for w in 0..W {
                let lane = w * V::LANES;
                // SAFETY: the caller promises rows of W vectors, and room for two values a row and lane.
                unsafe {
                    let (a, r) = (V::load(lower.at(k, lane)), V::load(inverse.at(k, lane)));
                    let mut value = V::load(d.at(k, lane));
                    if row > 0 {
                        value = value.sub(a.mul(now.d_star[w]));
                    }
                    now.d_star[w] = value.mul(r);
                    let kept = scratch.add(2 * row * width + lane);
                    V::load(upper.at(k, lane)).store(kept);
                    now.d_star[w].store(kept.add(width));
                }
            }
        }
        *self = now;
    }

    #[inline(always)]
    unsafe fn turn(&mut self, _n: usize, _scratch: *mut T) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn backward(&mut self, rows: Range<usize>, n: usize, scratch: *const T, u: RowsMut<T>) -> bool {
        let width = W * V::LANES;
        let mut now = *self;
        for (k, row) in rows.enumerate().rev() {
            for w in 0..W {
                let lane = w * V::LANES;
                // SAFETY: the caller promises what `forward` left, and rows that can be written.
                unsafe {
                    let kept = scratch.add(2 * row * width + lane);
                    if row + 1 < n {
                        now.d_star[w] = V::load(kept.add(width)).sub(V::load(kept).mul(now.d_star[w]));
                    }
                    u.put(k, lane, now.d_star[w]);
                }
            }
        }
        *self = now;
        true
    }
}
