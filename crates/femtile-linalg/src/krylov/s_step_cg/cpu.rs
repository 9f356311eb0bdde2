use std::ops::Range;

use femtile_device::{Buffer, Cpu, Scalar};

use super::kernels::{enough, few};
use super::{MAX_STEPS, SStepCgKernels, SStepGram, SmallMatrix};
use crate::vector::cpu::{map_blocks, map_blocks_of};
use crate::vector::sum::{Lanes, PIECE, block_dot, combine_with, pieces};
use crate::{LinalgError, error::need};

type Vector<T> = Buffer<T, Cpu>;

impl<T: Scalar> SStepCgKernels<T> for Cpu {
    fn s_step_gram(
        &self,
        p: &[Vector<T>],
        t: &[Vector<T>],
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SStepGram, LinalgError> {
        let n = length(p, t, inverse_diagonal)?;
        let (p, t, d) = (slices(p), slices(t), inverse_diagonal.map(Buffer::as_slice));
        let partials = map_blocks::<T, SStepGram, 0>(
            self,
            n,
            [],
            #[inline(always)]
            |rows, []| gram_of(&p, &t, d, rows),
        );
        Ok(combine_with(&partials, SStepGram::plus))
    }

    fn s_step_update(
        &self,
        x: &mut Vector<T>,
        p: &mut [Vector<T>],
        r: &[Vector<T>],
        b: &SmallMatrix,
        a: &[f64],
        a_before: &[f64],
    ) -> Result<(), LinalgError> {
        need("x", length(p, r, None)?, x.len())?;
        let n_written = enough(p.len(), r.len(), a, a_before)?;
        let (n, r) = (x.len(), slices(r));
        let p = p[..n_written].iter_mut().map(Buffer::as_mut_slice);
        let written = [x.as_mut_slice()].into_iter().chain(p).collect();
        map_blocks_of(
            self,
            n,
            written,
            #[inline(always)]
            |rows, written| update_block(written, &r, b, [a, a_before], rows),
        );
        Ok(())
    }

    fn s_step_residual(
        &self,
        t_0: &mut Vector<T>,
        b: &Vector<T>,
        v: &Vector<T>,
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<f64, LinalgError> {
        need("b", t_0.len(), b.len())?;
        need("v", t_0.len(), v.len())?;
        inverse_diagonal.map_or(Ok(()), |d| need("inverse_diagonal", t_0.len(), d.len()))?;
        let (n, b, v) = (t_0.len(), b.as_slice(), v.as_slice());
        let d = inverse_diagonal.map(Buffer::as_slice);
        let partials = map_blocks(
            self,
            n,
            [t_0.as_mut_slice()],
            #[inline(always)]
            |rows, [t_0]| {
                subtract(t_0, &b[rows.clone()], &v[rows.clone()]);
                let r_dot_r = block_dot(t_0, t_0);
                if let Some(d) = d {
                    t_0.iter_mut().zip(&d[rows]).for_each(|(t, &d)| *t *= d);
                }
                r_dot_r
            },
        );
        Ok(combine_with(&partials, |left, right| left + right))
    }
}

impl SStepGram {
    fn plus(mut self, other: Self) -> Self {
        let rows = self.before.iter_mut().chain(&mut self.basis);
        let others = other.before.iter().chain(&other.basis);
        rows.flatten().zip(others.flatten()).for_each(|(sum, other)| *sum += other);
        self
    }
}

/// The length that all these vectors have.
fn length<T: Scalar>(p: &[Vector<T>], t: &[Vector<T>], d: Option<&Vector<T>>) -> Result<usize, LinalgError> {
    few(p.len(), t.len())?;
    let n = p.iter().chain(t).next().map_or(0, Buffer::len);
    p.iter().try_for_each(|p| need("p", n, p.len()))?;
    t.iter().try_for_each(|t| need("t", n, t.len()))?;
    d.map_or(Ok(()), |d| need("inverse_diagonal", n, d.len()))?;
    Ok(n)
}

fn slices<T: Scalar>(vectors: &[Vector<T>]) -> Vec<&[T]> {
    vectors.iter().map(Buffer::as_slice).collect()
}

/// The rows of the whole vector that a piece of a block has.
#[inline(always)]
fn within(rows: &Range<usize>, piece: &Range<usize>) -> Range<usize> {
    rows.start + piece.start..rows.start + piece.end
}

/// The sums of one block. Each piece stays in the nearest cache while all pairs are summed.
#[inline(always)]
fn gram_of<T: Scalar>(p: &[&[T]], t: &[&[T]], d: Option<&[T]>, rows: Range<usize>) -> SStepGram {
    let mut before = [[Lanes::default(); MAX_STEPS + 1]; MAX_STEPS];
    let mut basis = [[Lanes::default(); MAX_STEPS + 1]; MAX_STEPS];
    let mut workspace = [T::ZERO; PIECE];
    for piece in pieces(rows.len()) {
        let place = within(&rows, &piece);
        let d = d.map(|d| &d[place.clone()]);
        for (k, t_k) in t.iter().enumerate() {
            let d_t = unscaled(&mut workspace, &t_k[place.clone()], d);
            for (i, p) in p.iter().enumerate() {
                before[i][k].add_dot(&p[place.clone()], d_t);
            }
            for (i, t) in t[..k.max(1)].iter().enumerate() {
                basis[i][k].add_dot(&t[place.clone()], d_t);
            }
        }
    }
    SStepGram {
        before: before.map(|row| row.map(Lanes::total)),
        basis: basis.map(|row| row.map(Lanes::total)),
    }
}

/// x, which is the first of the vectors, and P of one block.
#[inline(always)]
fn update_block<T: Scalar>(
    written: &mut [&mut [T]],
    r: &[&[T]],
    b: &SmallMatrix,
    [a, a_before]: [&[f64]; 2],
    rows: Range<usize>,
) {
    let Some((x, p)) = written.split_first_mut() else { return };
    let mut before = [[T::ZERO; PIECE]; MAX_STEPS];
    let before = &mut before[..a_before.len()];
    for piece in pieces(rows.len()) {
        let (place, n) = (within(&rows, &piece), piece.len());
        let x = &mut x[piece.clone()];
        for ((before, p), &a) in before.iter_mut().zip(&*p).zip(a_before) {
            before[..n].copy_from_slice(&p[piece.clone()]);
            add_scaled(x, &before[..n], T::from_f64(a));
        }
        for (j, r) in r.iter().enumerate() {
            let p = &mut p[j][piece.clone()];
            p.copy_from_slice(&r[place.clone()]);
            for (l, before) in before.iter().enumerate() {
                add_scaled(p, &before[..n], T::from_f64(b[(l, j)]));
            }
            add_scaled(x, p, T::from_f64(a[j]));
        }
    }
}

/// D t, in `workspace` unless D = I.
#[inline(always)]
fn unscaled<'a, T: Scalar>(workspace: &'a mut [T; PIECE], t: &'a [T], d: Option<&[T]>) -> &'a [T] {
    let Some(d) = d else { return t };
    let (workspace, d) = (&mut workspace[..t.len()], &d[..t.len()]);
    for i in 0..workspace.len() {
        workspace[i] = t[i] / d[i];
    }
    workspace
}

#[inline(always)]
fn add_scaled<T: Scalar>(y: &mut [T], x: &[T], alpha: T) {
    let n = y.len();
    let x = &x[..n];
    for i in 0..n {
        y[i] += alpha * x[i];
    }
}

#[inline(always)]
fn subtract<T: Scalar>(r: &mut [T], b: &[T], v: &[T]) {
    let n = r.len();
    let (b, v) = (&b[..n], &v[..n]);
    for i in 0..n {
        r[i] = b[i] - v[i];
    }
}
