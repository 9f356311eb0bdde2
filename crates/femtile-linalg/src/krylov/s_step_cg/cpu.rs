use std::ops::Range;

use femtile_device::{Buffer, Cpu, Scalar};

use super::{MAX_STEPS, SStepCgKernels, SStepSums, SmallMatrix};
use crate::vector::cpu::{map_blocks, map_blocks_of};
use crate::vector::sum::{Lanes, PIECE, block_dot, combine_with, pieces};
use crate::{LinalgError, error::need};

type Vector<T> = Buffer<T, Cpu>;

impl<T: Scalar> SStepCgKernels<T> for Cpu {
    fn s_step_couplings(
        &self,
        p: &[Vector<T>],
        t: &[Vector<T>],
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SmallMatrix, LinalgError> {
        let n = length(p, t, inverse_diagonal)?;
        let (p, t, d) = (slices(p), slices(t), inverse_diagonal.map(Buffer::as_slice));
        let partials = map_blocks::<T, SmallMatrix, 0>(
            self,
            n,
            [],
            #[inline(always)]
            |rows, []| couplings_of(&p, &t[1..], d, rows),
        );
        Ok(combine_with(&partials, SmallMatrix::plus))
    }

    fn s_step_directions(
        &self,
        p: &mut [Vector<T>],
        t: &[Vector<T>],
        b: &SmallMatrix,
        n_before: usize,
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SStepSums, LinalgError> {
        let n = length(p, t, inverse_diagonal)?;
        let n_written = n_before.max(t.len() - 1);
        let (t, d) = (slices(t), inverse_diagonal.map(Buffer::as_slice));
        let p = p[..n_written].iter_mut().map(Buffer::as_mut_slice).collect();
        let partials = map_blocks_of(
            self,
            n,
            p,
            #[inline(always)]
            |rows, p| directions_of(p, &t, (b, n_before), d, rows),
        );
        Ok(combine_with(&partials, SStepSums::plus))
    }

    fn s_step_solution(&self, x: &mut Vector<T>, p: &[Vector<T>], a: &[f64]) -> Result<(), LinalgError> {
        need("x", length(p, &[], None)?, x.len())?;
        let p = slices(p);
        map_blocks(
            self,
            x.len(),
            [x.as_mut_slice()],
            #[inline(always)]
            |rows, [x]| {
                for piece in pieces(x.len()) {
                    let place = within(&rows, &piece);
                    for (p, &a) in p.iter().zip(a) {
                        add_scaled(&mut x[piece.clone()], &p[place.clone()], T::from_f64(a));
                    }
                }
            },
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

impl SStepSums {
    fn plus(mut self, other: Self) -> Self {
        self.w = self.w.plus(other.w);
        self.g.iter_mut().zip(other.g).for_each(|(g, other)| *g += other);
        self
    }
}

/// The length that all these vectors have.
fn length<T: Scalar>(p: &[Vector<T>], t: &[Vector<T>], d: Option<&Vector<T>>) -> Result<usize, LinalgError> {
    let n = p.first().map_or(0, Buffer::len);
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

/// C of one block. Each piece stays in the nearest cache while all pairs are summed.
#[inline(always)]
fn couplings_of<T: Scalar>(p: &[&[T]], t: &[&[T]], d: Option<&[T]>, rows: Range<usize>) -> SmallMatrix {
    let mut lanes = [[Lanes::default(); MAX_STEPS]; MAX_STEPS];
    let mut workspace = [T::ZERO; PIECE];
    for piece in pieces(rows.len()) {
        let place = within(&rows, &piece);
        for (j, t) in t.iter().enumerate() {
            let a_t = unscaled(&mut workspace, &t[place.clone()], d.map(|d| &d[place.clone()]));
            for (i, p) in p.iter().enumerate() {
                lanes[i][j].add_dot(&p[place.clone()], a_t);
            }
        }
    }
    totals(&lanes)
}

/// P, W and g of one block.
#[inline(always)]
fn directions_of<T: Scalar>(
    p: &mut [&mut [T]],
    t: &[&[T]],
    (b, n_before): (&SmallMatrix, usize),
    d: Option<&[T]>,
    rows: Range<usize>,
) -> SStepSums {
    let n_steps = t.len() - 1;
    let mut w = [[Lanes::default(); MAX_STEPS]; MAX_STEPS];
    let mut g = [Lanes::default(); MAX_STEPS];
    let mut before = [[T::ZERO; PIECE]; MAX_STEPS];
    let mut workspace = [T::ZERO; PIECE];
    for piece in pieces(rows.len()) {
        let (place, n) = (within(&rows, &piece), piece.len());
        for (before, p) in before.iter_mut().zip(&p[..n_before]) {
            before[..n].copy_from_slice(&p[piece.clone()]);
        }
        for j in 0..n_steps {
            let p = &mut p[j][piece.clone()];
            p.copy_from_slice(&t[j][place.clone()]);
            for (l, before) in before[..n_before].iter().enumerate() {
                add_scaled(p, &before[..n], T::from_f64(b[(l, j)]));
            }
        }
        let d = d.map(|d| &d[place.clone()]);
        for (j, t) in t.iter().enumerate() {
            let a_t = unscaled(&mut workspace, &t[place.clone()], d);
            for (i, p) in p[..n_steps].iter().enumerate() {
                let lanes = if j == 0 { &mut g[i] } else { &mut w[i][j - 1] };
                lanes.add_dot(&p[piece.clone()], a_t);
            }
        }
    }
    SStepSums { w: totals(&w), g: g.map(Lanes::total) }
}

#[inline(always)]
fn totals(lanes: &[[Lanes; MAX_STEPS]; MAX_STEPS]) -> SmallMatrix {
    let mut totals = SmallMatrix::default();
    for (i, row) in lanes.iter().enumerate() {
        for (j, lanes) in row.iter().enumerate() {
            totals[(i, j)] = lanes.total();
        }
    }
    totals
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
