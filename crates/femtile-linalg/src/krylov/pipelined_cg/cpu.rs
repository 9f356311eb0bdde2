use femtile_device::{Buffer, Cpu, Scalar};

use super::{PipelinedCgKernels, PipelinedCgStep, PipelinedCgSums, PipelinedCgVectors};
use crate::krylov::Preconditioning;
use crate::vector::cpu::map_blocks;
use crate::vector::sum::{Lanes, PIECE, combine_with, pieces};
use crate::{LinalgError, error::need};

type Vectors<T> = PipelinedCgVectors<T, Cpu>;

impl<T: Scalar> PipelinedCgKernels<T> for Cpu {
    fn pipelined_cg_update(
        &self,
        x: &mut Buffer<T, Self>,
        v: &mut Vectors<T>,
        by: Preconditioning<'_, T, Self>,
        step: PipelinedCgStep,
    ) -> Result<PipelinedCgSums, LinalgError> {
        let of_all = [("x", &*x), ("w", &v.w), ("n", &v.n), ("p", &v.p), ("s", &v.s), ("z", &v.z)];
        need_vectors(v.r.len(), &of_all)?;
        let by_numbers = (T::from_f64(step.alpha), T::from_f64(step.beta));
        let sums = match by {
            Preconditioning::Identity => update_plain(self, x, v, by_numbers),
            Preconditioning::Diagonal(d) => {
                need_vectors(v.r.len(), &[("inverse_diagonal", d), ("m", &v.m)])?;
                update_scaled(self, x, v, d.as_slice(), by_numbers)
            }
            Preconditioning::General => {
                need_vectors(v.r.len(), &[("m", &v.m), ("u", &v.u), ("q", &v.q)])?;
                update_general(self, x, v, by_numbers)
            }
        };
        Ok(combine_with(&sums, PipelinedCgSums::plus))
    }
}

fn need_vectors<T: Scalar>(n: usize, vectors: &[(&'static str, &Buffer<T, Cpu>)]) -> Result<(), LinalgError> {
    vectors.iter().try_for_each(|(field, vector)| need(field, n, vector.len()))
}

impl PipelinedCgSums {
    fn plus(self, other: Self) -> Self {
        Self {
            r_dot_r: self.r_dot_r + other.r_dot_r,
            r_dot_u: self.r_dot_u + other.r_dot_u,
            w_dot_u: self.w_dot_u + other.w_dot_u,
        }
    }
}

/// The sums of a block, filled piece by piece.
#[derive(Default)]
struct Partial {
    r_dot_r: Lanes,
    r_dot_u: Lanes,
    w_dot_u: Lanes,
}

impl Partial {
    #[inline(always)]
    fn add<T: Scalar>(&mut self, r: &[T], w: &[T], u: &[T]) {
        self.r_dot_r.add_dot(r, r);
        self.r_dot_u.add_dot(r, u);
        self.w_dot_u.add_dot(w, u);
    }

    #[inline(always)]
    fn total(self) -> PipelinedCgSums {
        PipelinedCgSums {
            r_dot_r: self.r_dot_r.total(),
            r_dot_u: self.r_dot_u.total(),
            w_dot_u: self.w_dot_u.total(),
        }
    }
}

/// direction = source + β direction, then target += step · direction.
#[inline(always)]
fn follow<T: Scalar>(direction: &mut [T], target: &mut [T], source: &[T], beta: T, step: T) {
    let n = direction.len();
    let (target, source) = (&mut target[..n], &source[..n]);
    for i in 0..n {
        direction[i] = source[i] + beta * direction[i];
        target[i] += step * direction[i];
    }
}

fn update_plain<T: Scalar>(
    cpu: &Cpu,
    x: &mut Buffer<T, Cpu>,
    v: &mut Vectors<T>,
    (alpha, beta): (T, T),
) -> Vec<PipelinedCgSums> {
    let n = v.n.as_slice();
    let written = [x, &mut v.p, &mut v.r, &mut v.s, &mut v.w, &mut v.z].map(Buffer::as_mut_slice);
    map_blocks(
        cpu,
        n.len(),
        written,
        #[inline(always)]
        |rows, mut parts| {
            let (n, mut sums) = (&n[rows.clone()], Partial::default());
            for piece in pieces(rows.len()) {
                let [x, p, r, s, w, z] = parts.each_mut().map(|part| &mut part[piece.clone()]);
                follow(p, x, r, beta, alpha);
                follow(s, r, w, beta, -alpha);
                follow(z, w, &n[piece], beta, -alpha);
                sums.r_dot_r.add_dot(r, r);
                sums.w_dot_u.add_dot(w, r);
            }
            let sums = sums.total();
            PipelinedCgSums { r_dot_u: sums.r_dot_r, ..sums }
        },
    )
}

fn update_scaled<T: Scalar>(
    cpu: &Cpu,
    x: &mut Buffer<T, Cpu>,
    v: &mut Vectors<T>,
    d: &[T],
    (alpha, beta): (T, T),
) -> Vec<PipelinedCgSums> {
    let n = v.n.as_slice();
    let written = [x, &mut v.p, &mut v.r, &mut v.s, &mut v.w, &mut v.z, &mut v.m].map(Buffer::as_mut_slice);
    map_blocks(
        cpu,
        n.len(),
        written,
        #[inline(always)]
        |rows, mut parts| {
            let (n, d) = (&n[rows.clone()], &d[rows.clone()]);
            let (mut sums, mut u) = (Partial::default(), [T::ZERO; PIECE]);
            for piece in pieces(rows.len()) {
                let [x, p, r, s, w, z, m] = parts.each_mut().map(|part| &mut part[piece.clone()]);
                let (d, u) = (&d[piece.clone()], &mut u[..piece.len()]);
                scale(u, d, r);
                follow(p, x, u, beta, alpha);
                follow(s, r, w, beta, -alpha);
                follow(z, w, &n[piece], beta, -alpha);
                scale(u, d, r);
                scale(m, d, w);
                sums.add(r, w, u);
            }
            sums.total()
        },
    )
}

fn update_general<T: Scalar>(
    cpu: &Cpu,
    x: &mut Buffer<T, Cpu>,
    v: &mut Vectors<T>,
    (alpha, beta): (T, T),
) -> Vec<PipelinedCgSums> {
    let (n, m) = (v.n.as_slice(), v.m.as_slice());
    let written = [x, &mut v.p, &mut v.r, &mut v.s, &mut v.w, &mut v.z, &mut v.u, &mut v.q];
    map_blocks(
        cpu,
        n.len(),
        written.map(Buffer::as_mut_slice),
        #[inline(always)]
        |rows, mut parts| {
            let (n, m, mut sums) = (&n[rows.clone()], &m[rows.clone()], Partial::default());
            for piece in pieces(rows.len()) {
                let [x, p, r, s, w, z, u, q] = parts.each_mut().map(|part| &mut part[piece.clone()]);
                follow(p, x, u, beta, alpha);
                follow(s, r, w, beta, -alpha);
                follow(q, u, &m[piece.clone()], beta, -alpha);
                follow(z, w, &n[piece], beta, -alpha);
                sums.add(r, w, u);
            }
            sums.total()
        },
    )
}

#[inline(always)]
fn scale<T: Scalar>(z: &mut [T], d: &[T], r: &[T]) {
    let n = z.len();
    let (d, r) = (&d[..n], &r[..n]);
    for i in 0..n {
        z[i] = d[i] * r[i];
    }
}
