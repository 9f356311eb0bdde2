use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::cpu::vector::prefetch;
use femtile_device::{Buffer, Cpu, Scalar};

use super::scalars::{Sums, Update};
use super::{MergedCgKernels, MergedScalars, MergedVectors};
use crate::hooks::{MergedHook, MergedOperator};
use crate::vector::cpu::map_blocks;
use crate::vector::sum::{BLOCK, n_blocks};
use crate::{LinalgError, LinearOperator, error::need};

/// Entries that are worked on at once, so that what is read by several loops stays in the nearest cache.
const CHUNK: usize = 192;

/// Sums are taken in so many lanes, whatever the processor has.
const LANES: usize = 8;

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
        scalars.sums.as_mut_slice().copy_from_slice(&combine(&sums));
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
        let steps = scalars.steps.as_slice();
        let steps = [steps[MergedScalars::<Self>::OF_P], steps[MergedScalars::<Self>::OF_LATE]];
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
                for (chunk, x) in chunks(rows).zip(x.chunks_mut(CHUNK)) {
                    let d = scaling.of(chunk.clone());
                    advance(x, &p[chunk.clone()], &r[chunk], &d, steps);
                }
            },
        );
        Ok(())
    }
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
    fn ahead(&self, rows: Range<usize>) {
        let moves_x = self.update.of_p != 0.0;
        for row in rows.clone().step_by(64 / size_of::<T>()) {
            prefetch(self.r.address(row));
            if moves_x {
                prefetch(self.x.address(row));
            }
        }
        let times = self.diagonal.repeats;
        let entries = &self.diagonal.entries[rows.start / times..rows.end.div_ceil(times)];
        entries.iter().step_by(64 / size_of::<T>()).for_each(|entry| prefetch(entry));
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
                for ((((x, r), p), v), rows) in parts {
                    let d = self.diagonal.of(rows);
                    if of_p != T::ZERO {
                        advance(x, p, r, &d, [of_p, of_late]);
                    }
                    let d = &d[..r.len()];
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
                let mut lanes = [[0.0; LANES]; 7];
                for (((p, v), r), rows) in
                    p.chunks(CHUNK).zip(v.chunks(CHUNK)).zip(r.chunks(CHUNK)).zip(chunks(rows))
                {
                    add_products(&mut lanes, p, v, r, &self.diagonal.of(rows));
                }
                *sums = lanes.map(|lanes| lanes.iter().sum());
            },
        );
    }
}

/// The rows that [`slice::chunks`] would give.
fn chunks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    rows.clone().step_by(CHUNK).map(move |begin| begin..(begin + CHUNK).min(rows.end))
}

/// x += ς p + τ (p − D⁻¹ r).
#[inline(always)]
fn advance<T: Scalar>(x: &mut [T], p: &[T], r: &[T], d: &[T; CHUNK], [of_p, of_late]: [T; 2]) {
    let d = &d[..x.len()];
    for (((x, &p), &r), &d) in x.iter_mut().zip(p).zip(r).zip(d) {
        *x += of_p * p + of_late * (p - d * r);
    }
}

/// Adds the terms of the seven sums of a chunk, entry i in lane i modulo their number; products are rounded before.
#[inline(always)]
fn add_products<T: Scalar>(lanes: &mut [[f64; LANES]; 7], p: &[T], v: &[T], r: &[T], d: &[T; CHUNK]) {
    let n = r.len();
    let (p, v, d) = (&p[..n], &v[..n], &d[..n]);
    let mut add = |i: usize, lane: usize| {
        let [p, v, r, d] = [p[i], v[i], r[i], d[i]].map(T::to_f64);
        let (dr, dv) = (d * r, d * v);
        let terms = [r * r, p * v, r * v, v * v, r * dr, r * dv, v * dv];
        for (lanes, term) in lanes.iter_mut().zip(terms) {
            lanes[lane] += term;
        }
    };
    let whole = n - n % LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            add(start + lane, lane);
        }
    }
    (whole..n).for_each(|i| add(i, i - whole));
}

/// Adds sums of tiles in a fixed binary tree.
fn combine(sums: &[Sums]) -> Sums {
    match sums {
        [] => Sums::default(),
        [one] => *one,
        many => {
            let (left, right) = many.split_at(many.len().next_power_of_two() / 2);
            let (left, right) = (combine(left), combine(right));
            std::array::from_fn(|k| left[k] + right[k])
        }
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
    fn of(&self, rows: Range<usize>) -> [T; CHUNK] {
        let mut found = [T::ZERO; CHUNK];
        match self.repeats {
            1 => found[..rows.len()].copy_from_slice(&self.entries[rows]),
            times => {
                let (mut entry, mut used) = (rows.start / times, rows.start % times);
                for found in &mut found[..rows.len()] {
                    *found = self.entries[entry];
                    used += 1;
                    if used == times {
                        (entry, used) = (entry + 1, 0);
                    }
                }
            }
        }
        found
    }
}
