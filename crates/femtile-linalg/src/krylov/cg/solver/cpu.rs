use femtile_device::{Buffer, Cpu, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgSolverKernels, CgSums, start::decide};
use crate::LinalgError;
use crate::krylov::cg::CgScalars;
use crate::vector::VectorKernels;
use crate::vector::cpu::map_blocks;
use crate::vector::sum::{Lanes, PIECE, combine_with, pieces};

type Sums = CgSums<Cpu>;

/// Sums of one pass.
const N_BEGIN: usize = 5;
const N_FINISH: usize = Sums::N_LAST;

impl<T: Scalar> CgSolverKernels<T> for Cpu {
    fn cg_extrapolate(&self, vectors: CgExtrapolate<'_, T, Self>, weight: T) -> Result<(), LinalgError> {
        vectors.check()?;
        let CgExtrapolate { x, previous_x, q, previous_q, r } = vectors;
        let q = q.as_slice();
        map_blocks::<T, (), 4>(
            self,
            q.len(),
            [x, previous_x, previous_q, r].map(Buffer::as_mut_slice),
            #[inline(always)]
            |rows, [x, previous_x, previous_q, r]| {
                extrapolate([x, previous_x], weight, None);
                extrapolate([r, previous_q], weight, Some(&q[rows]));
            },
        );
        Ok(())
    }

    fn cg_begin(
        &self,
        vectors: CgBegin<'_, T, Self>,
        diagonals: CgDiagonals<'_, T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        vectors.check(&diagonals)?;
        sums.check(0)?;
        let CgBegin { r, p, start, b, x } = vectors;
        let [m, test] = [diagonals.m, diagonals.test].map(|d| d.map(Buffer::as_slice));
        let (b, x) = (b.as_slice(), x.as_slice());
        let of_blocks = map_blocks(
            self,
            b.len(),
            [r, p, start].map(Buffer::as_mut_slice),
            #[inline(always)]
            |rows, mut parts| {
                let (mut lanes, mut scaled) = ([Lanes::default(); N_BEGIN], [T::ZERO; PIECE]);
                for piece in pieces(rows.len()) {
                    let of_all = rows.start + piece.start..rows.start + piece.end;
                    let [r, p, start] = parts.each_mut().map(|part| &mut part[piece.clone()]);
                    let (b, scaled) = (&b[of_all.clone()], &mut scaled[..piece.len()]);
                    start.copy_from_slice(&x[of_all.clone()]);
                    r.iter_mut().zip(b).for_each(|(r, &b)| *r = b - *r);
                    lanes[Sums::B_DOT_B].add_dot(b, b);
                    lanes[Sums::R_DOT_R].add_dot(r, r);
                    if let Some(m) = m {
                        scale(p, &m[of_all.clone()], r);
                        lanes[Sums::R_DOT_Z].add_dot(r, p);
                    }
                    if let Some(test) = test {
                        scale(scaled, &test[of_all], b);
                        lanes[Sums::B_RHO].add_dot(b, scaled);
                        lanes[Sums::B_NORM].add_dot(scaled, scaled);
                    }
                }
                lanes.map(Lanes::total)
            },
        );
        leave(&mut sums.first.as_mut_slice()[..N_BEGIN], &of_blocks);
        Ok(())
    }

    fn cg_sum_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        sums.check(0)?;
        Sums::check_place(place)?;
        sums.first.as_mut_slice()[place] = self.dot(x, y)?;
        Ok(())
    }

    fn cg_decide(&self, scalars: &mut CgScalars<Self>, sums: &Sums) -> Result<(), LinalgError> {
        sums.check(0)?;
        decide(scalars, sums);
        Ok(())
    }

    fn cg_finish(&self, vectors: CgFinish<'_, T, Self>, sums: &mut Sums) -> Result<(), LinalgError> {
        vectors.check()?;
        sums.check(0)?;
        let CgFinish { q, b, x, z, test } = vectors;
        let [z, test] = [z, test].map(|d| d.map(Buffer::as_slice));
        let (q, b, x) = (q.as_slice(), b.as_slice(), x.as_slice());
        let of_blocks = map_blocks::<T, _, 0>(
            self,
            b.len(),
            [],
            #[inline(always)]
            |rows, []| {
                let (mut lanes, mut both) = ([Lanes::default(); N_FINISH], [[T::ZERO; PIECE]; 2]);
                for piece in pieces(rows.len()) {
                    let of_all = rows.start + piece.start..rows.start + piece.end;
                    let [r, scaled] = both.each_mut().map(|part| &mut part[..piece.len()]);
                    let (b, x) = (&b[of_all.clone()], &x[of_all.clone()]);
                    r.iter_mut().zip(b).zip(&q[of_all.clone()]).for_each(|((r, &b), &q)| *r = b - q);
                    lanes[Sums::R_DOT_R].add_dot(r, r);
                    lanes[Sums::X_DOT_B].add_dot(x, b);
                    lanes[Sums::X_DOT_R].add_dot(x, r);
                    if let Some(test) = test {
                        scale(scaled, &test[of_all.clone()], r);
                        lanes[Sums::R_RHO].add_dot(r, scaled);
                        lanes[Sums::R_NORM].add_dot(scaled, scaled);
                    }
                    if let Some(z) = z {
                        lanes[Sums::LAST_Z].add_dot(&z[of_all.clone()], &z[of_all]);
                    }
                }
                lanes.map(Lanes::total)
            },
        );
        leave(sums.last.as_mut_slice(), &of_blocks);
        Ok(())
    }
}

/// $(y, y_0) \leftarrow (y + w(y - y_0), y)$; y is `last` if given, else the current values.
#[inline(always)]
fn extrapolate<T: Scalar>([y, previous]: [&mut [T]; 2], weight: T, last: Option<&[T]>) {
    let n = y.len();
    if let Some(last) = last {
        y.copy_from_slice(&last[..n]);
    }
    let previous = &mut previous[..n];
    for i in 0..n {
        let (now, before) = (y[i], previous[i]);
        (y[i], previous[i]) = (now + weight * (now - before), now);
    }
}

#[inline(always)]
fn scale<T: Scalar>(z: &mut [T], d: &[T], r: &[T]) {
    let n = z.len();
    let (d, r) = (&d[..n], &r[..n]);
    for i in 0..n {
        z[i] = d[i] * r[i];
    }
}

/// Adds the sums of blocks in the tree of separate sums.
fn leave<const N: usize>(sums: &mut [f64], of_blocks: &[[f64; N]])
where
    [f64; N]: Default,
{
    sums.copy_from_slice(&combine_with(of_blocks, |left, right| std::array::from_fn(|s| left[s] + right[s])));
}
