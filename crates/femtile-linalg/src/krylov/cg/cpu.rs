use femtile_device::{Buffer, Cpu, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgKernels, CgScalars, CgSums, scalars as host};
use crate::vector::VectorKernels;
use crate::vector::cpu::map_blocks;
use crate::vector::sum::{Lanes, PIECE, block_dot, block_sum, combine, combine_with, pieces};
use crate::{LinalgError, error::need};

type Scalars = CgScalars<Cpu>;
type Sums = CgSums<Cpu>;

/// Sums of the passes before and after the iterations.
const N_BEGIN: usize = 5;
const N_FINISH: usize = Sums::N_LAST;

impl<T: Scalar> CgKernels<T> for Cpu {
    host::on_host!();

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
        start.map_or(Ok(()), |start| self.copy(start, x))?;
        let [m, test] = [diagonals.m, diagonals.test].map(|d| d.map(Buffer::as_slice));
        let b = b.as_slice();
        let of_blocks = map_blocks(
            self,
            b.len(),
            [r, p].map(Buffer::as_mut_slice),
            #[inline(always)]
            |rows, mut parts| {
                let (mut lanes, mut scaled) = ([Lanes::default(); N_BEGIN], [T::ZERO; PIECE]);
                for piece in pieces(rows.len()) {
                    let of_all = rows.start + piece.start..rows.start + piece.end;
                    let [r, p] = parts.each_mut().map(|part| &mut part[piece.clone()]);
                    let (b, scaled) = (&b[of_all.clone()], &mut scaled[..piece.len()]);
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

    fn cg_residual(
        &self,
        r: &mut Buffer<T, Self>,
        q: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        need("q", r.len(), q.len())?;
        let alpha = T::from_f64(host::alpha_beta(scalars).0);
        let (n, q) = (q.len(), q.as_slice());
        let Some(d) = inverse_diagonal else {
            let r_dot_r = map_blocks(
                self,
                n,
                [r.as_mut_slice()],
                #[inline(always)]
                |rows, [r]| {
                    subtract(r, &q[rows], alpha);
                    block_dot(r, r)
                },
            );
            scalars.r_sums.as_mut_slice()[Scalars::R_DOT_R] = combine(&r_dot_r);
            return Ok(());
        };
        need("inverse_diagonal", n, d.len())?;
        let d = d.as_slice();
        let sums = map_blocks(
            self,
            n,
            [r.as_mut_slice()],
            #[inline(always)]
            |rows, [r]| residual_block(r, &q[rows.clone()], &d[rows], alpha),
        );
        let (r_dot_r, r_dot_z): (Vec<f64>, Vec<f64>) = sums.into_iter().unzip();
        scalars.r_sums.as_mut_slice()[Scalars::R_DOT_R] = combine(&r_dot_r);
        scalars.r_sums.as_mut_slice()[Scalars::R_DOT_Z] = combine(&r_dot_z);
        Ok(())
    }

    fn cg_direction(
        &self,
        p: &mut Buffer<T, Self>,
        x: &mut Buffer<T, Self>,
        z: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        need("x", p.len(), x.len())?;
        need("z", p.len(), z.len())?;
        let (alpha, beta) = host::alpha_beta(scalars);
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        if let Some(d) = inverse_diagonal {
            need("inverse_diagonal", p.len(), d.len())?;
        }
        let (z, d) = (z.as_slice(), inverse_diagonal.map(Buffer::as_slice));
        map_blocks(
            self,
            p.len(),
            [p.as_mut_slice(), x.as_mut_slice()],
            #[inline(always)]
            |rows, [p, x]| {
                let d = d.map(|d| &d[rows.clone()]);
                direction_block(p, x, &z[rows], d, alpha, beta);
            },
        );
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

#[inline(always)]
fn subtract<T: Scalar>(r: &mut [T], q: &[T], alpha: T) {
    for (r, &q) in r.iter_mut().zip(q) {
        *r -= alpha * q;
    }
}

/// r −= αq; returns (r·r, r·D⁻¹r). The block stays in the first-level cache between its three loops.
#[inline(always)]
fn residual_block<T: Scalar>(r: &mut [T], q: &[T], d: &[T], alpha: T) -> (f64, f64) {
    let n = r.len();
    let (q, d) = (&q[..n], &d[..n]);
    subtract(r, q, alpha);
    let r_dot_z = block_sum(n, |i| r[i].to_f64() * (d[i].to_f64() * r[i].to_f64()));
    (block_dot(r, r), r_dot_z)
}

#[inline(always)]
fn direction_block<T: Scalar>(p: &mut [T], x: &mut [T], z: &[T], d: Option<&[T]>, alpha: T, beta: T) {
    let n = p.len();
    let (x, z) = (&mut x[..n], &z[..n]);
    if alpha == T::ZERO {
        return p.iter_mut().zip(z).enumerate().for_each(|(i, (p, &z))| {
            *p = d.map_or(z, |d| d[i] * z) + beta * *p;
        });
    }
    match d {
        Some(d) => {
            let d = &d[..n];
            for i in 0..n {
                let old = p[i];
                x[i] += alpha * old;
                p[i] = d[i] * z[i] + beta * old;
            }
        }
        None => {
            for i in 0..n {
                let old = p[i];
                x[i] += alpha * old;
                p[i] = z[i] + beta * old;
            }
        }
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
