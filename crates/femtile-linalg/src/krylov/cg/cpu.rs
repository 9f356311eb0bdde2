use femtile_device::{Buffer, Cpu, Scalar};

use super::{CgKernels, CgScalars, scalars as host};
use crate::vector::VectorKernels;
use crate::vector::cpu::map_blocks;
use crate::vector::sum::{block_dot, block_sum, combine};
use crate::{LinalgError, error::need};

type Scalars = CgScalars<Cpu>;

impl<T: Scalar> CgKernels<T> for Cpu {
    host::on_host!();

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
