use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};

use super::products::Lanewise;
use super::scalars::{Sums, Update};
use super::{MergedCgKernels, MergedScalars, MergedVectors};
use crate::hooks::{MergedHook, MergedOperator};
use crate::vector::cpu::map_blocks;
use crate::vector::sum::{BLOCK, combine_with, n_blocks};
use crate::{LinalgError, LinearOperator, error::need};

/// Number of entries per loop, so that values read by several loops stay in the nearest cache.
pub(super) const CHUNK: usize = 192;

impl<T: Scalar> MergedCgKernels<T> for Cpu {
    fn merged_cg_pass(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &mut MergedVectors<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &mut MergedScalars<Self>,
    ) -> Result<(), LinalgError> {
        if scalars.has_ended() {
            return Ok(());
        }
        let MergedVectors { r, p, v } = vectors;
        let n = r.len();
        for (field, vector) in [("x", x.len()), ("p", p.len()), ("v", v.len())] {
            need(field, n, vector)?;
        }
        need_diagonal(diagonal, n)?;
        let merged = a.merged();
        let mut sums = vec![Sums::default(); merged.map_or(n_blocks(n), MergedOperator::n_tiles)];
        let pass = Pass {
            cpu: self,
            update: scalars.update(),
            x: SharedMut::new(x.as_mut_slice()),
            r: SharedMut::new(r.as_mut_slice()),
            diagonal: Scaling::new(diagonal),
            sums: SharedMut::new(&mut sums),
        };
        match merged {
            Some(a) => a.apply_merged(v, p, &pass)?,
            None => three_passes(self, v, p, a, &pass)?,
        }
        let total = combine_with(&sums, |left, right| std::array::from_fn(|k| left[k] + right[k]));
        scalars.sums.as_mut_slice().copy_from_slice(&total);
        Ok(())
    }

    fn merged_cg_step(&self, scalars: &mut MergedScalars<Self>) -> Result<(), LinalgError> {
        scalars.step::<T>();
        Ok(())
    }

    fn merged_cg_finish(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &MergedVectors<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &MergedScalars<Self>,
    ) -> Result<(), LinalgError> {
        need("r", x.len(), vectors.r.len())?;
        need("p", x.len(), vectors.p.len())?;
        need_diagonal(diagonal, x.len())?;
        let steps = scalars.not_taken();
        if steps == [0.0, 0.0] {
            return Ok(());
        }
        let (steps, scaling) = (steps.map(T::from_f64), Scaling::new(diagonal));
        let (r, p) = (vectors.r.as_slice(), vectors.p.as_slice());
        map_blocks(
            self,
            x.len(),
            [x.as_mut_slice()],
            #[inline(always)]
            |rows, [x]| {
                let mut workspace = [T::ZERO; CHUNK];
                for (chunk, x) in chunks(rows).zip(x.chunks_mut(CHUNK)) {
                    let d = scaling.of(chunk.clone(), &mut workspace);
                    advance(x, &p[chunk.clone()], &r[chunk], d, steps);
                }
            },
        );
        Ok(())
    }
}

fn need_diagonal<T: Scalar>(
    (entries, repeats): (&Buffer<T, Cpu>, usize),
    n: usize,
) -> Result<(), LinalgError> {
    need("diagonal", n, entries.len().saturating_mul(repeats))
}

/// Updates, product and sums one after another, for operators without a loop to join.
fn three_passes<T: Scalar>(
    cpu: &Cpu,
    v: &mut Buffer<T, Cpu>,
    p: &mut Buffer<T, Cpu>,
    a: &dyn LinearOperator<T, Cpu>,
    hook: &Pass<'_, T>,
) -> Result<(), LinalgError> {
    let before = v.as_slice();
    map_blocks(cpu, p.len(), [p.as_mut_slice()], |rows, [p]| hook.pre(rows.clone(), p, &before[rows]));
    a.apply(v, p)?;
    need("v", p.len(), v.len())?;
    let (p, v) = (p.as_slice(), v.as_slice());
    map_blocks::<T, (), 0>(cpu, p.len(), [], |rows, []| {
        hook.post(rows.start / BLOCK, rows.clone(), &p[rows.clone()], &v[rows]);
    });
    Ok(())
}

/// One pass over the vectors.
struct Pass<'a, T> {
    cpu: &'a Cpu,
    update: Update,
    x: SharedMut<'a, T>,
    r: SharedMut<'a, T>,
    diagonal: Scaling<'a, T>,
    sums: SharedMut<'a, Sums>,
}

impl<T: Scalar> MergedHook<T> for Pass<'_, T> {
    fn reads(&self) -> Vec<*const T> {
        let diagonal = (self.diagonal.repeats == 1).then_some(self.diagonal.entries.as_ptr());
        let x = (self.update.of_p != 0.0).then(|| self.x.address(0));
        std::iter::once(self.r.address(0)).chain(diagonal).chain(x).collect()
    }

    fn pre(&self, rows: Range<usize>, p: &mut [T], v: &[T]) {
        let Update { alpha, beta, of_p, of_late } = self.update;
        let [alpha, beta, of_p, of_late] = [alpha, beta, of_p, of_late].map(T::from_f64);
        // SAFETY: ranges of `pre` do not overlap, and rows are not looked at by `post` before their `pre` has ended.
        let (x, r) = unsafe { (self.x.range(rows.clone()), self.r.range(rows.clone())) };
        self.cpu.vectorize(
            #[inline(always)]
            || {
                let parts = x.chunks_mut(CHUNK).zip(r.chunks_mut(CHUNK));
                let parts = parts.zip(p.chunks_mut(CHUNK)).zip(v.chunks(CHUNK)).zip(chunks(rows));
                let mut workspace = [T::ZERO; CHUNK];
                for ((((x, r), p), v), rows) in parts {
                    let d = self.diagonal.of(rows, &mut workspace);
                    if of_p != T::ZERO {
                        advance(x, p, r, d, [of_p, of_late]);
                    }
                    for (((r, p), &v), &d) in r.iter_mut().zip(p).zip(v).zip(d) {
                        *r -= alpha * v;
                        *p = d * *r + beta * *p;
                    }
                }
            },
        );
    }

    fn post(&self, tile: usize, rows: Range<usize>, p: &[T], v: &[T]) {
        // SAFETY: the `pre` of these rows has ended, and ranges of `post` do not overlap; nor do tiles.
        let (r, sums) = unsafe { (&*self.r.range(rows.clone()), &mut self.sums.range(tile..tile + 1)[0]) };
        self.cpu.vectorize(
            #[inline(always)]
            || {
                let mut found = Lanewise::default();
                let mut workspace = [T::ZERO; CHUNK];
                for (((p, v), r), rows) in
                    p.chunks(CHUNK).zip(v.chunks(CHUNK)).zip(r.chunks(CHUNK)).zip(chunks(rows))
                {
                    let d = self.diagonal.of(rows, &mut workspace);
                    found.add(self.cpu.simd(), [p, v, r, d]);
                }
                *sums = found.total();
            },
        );
    }
}

/// The rows that [`slice::chunks`] would give.
#[inline(always)]
fn chunks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    rows.clone().step_by(CHUNK).map(move |begin| begin..(begin + CHUNK).min(rows.end))
}

/// x += ς p + τ (p − D⁻¹ r).
#[inline(always)]
fn advance<T: Scalar>(x: &mut [T], p: &[T], r: &[T], d: &[T], [of_p, of_late]: [T; 2]) {
    for (((x, &p), &r), &d) in x.iter_mut().zip(p).zip(r).zip(d) {
        *x += of_p * p + of_late * (p - d * r);
    }
}

/// A diagonal of which each entry stands for some consecutive rows.
#[derive(Clone, Copy)]
struct Scaling<'a, T> {
    entries: &'a [T],
    repeats: usize,
}

impl<'a, T: Scalar> Scaling<'a, T> {
    fn new((entries, repeats): (&'a Buffer<T, Cpu>, usize)) -> Self {
        Self { entries: entries.as_slice(), repeats }
    }

    /// The entries of at most [`CHUNK`] rows.
    #[inline(always)]
    fn of<'b>(&'b self, rows: Range<usize>, workspace: &'b mut [T; CHUNK]) -> &'b [T] {
        let n = rows.len();
        match self.repeats {
            1 => return &self.entries[rows],
            3 if rows.start.is_multiple_of(3) && n.is_multiple_of(3) => {
                let entries = &self.entries[rows.start / 3..rows.end / 3];
                let (threes, _) = workspace.as_chunks_mut();
                threes.iter_mut().zip(entries).for_each(|(three, &entry)| *three = [entry; 3]);
            }
            times => workspace.iter_mut().zip(rows).for_each(|(to, row)| *to = self.entries[row / times]),
        }
        &workspace[..n]
    }
}
