//! The damping of the patch smoother.

use femtile_device::{Scalar, parallel};

use crate::setup::rows::{RowAccess, Rows};
use crate::setup::spectrum::largest_eigenvalue;

/// $\omega \lambda$ for an estimate $\lambda$ of $\lambda_\max(M^{-1} A)$, below two by a margin.
pub(crate) const OUTER: f64 = 1.4;
/// Steps of Lanczos' method. Flat cells at the border of two patches make eigenvalues that belong to few rows and that
/// fewer steps do not find: four left a cycle indefinite on a sample mesh.
pub(crate) const STEPS: usize = 12;

/// Returns $\omega$ such that $\omega \lambda_\max(M^{-1} A) < 2$, for steps
/// $x = x + \omega M^{-1} (b - A x)$ by patches of consecutive rows. `scale` holds the damped reciprocals of
/// the diagonal.
///
/// # Cost
/// A product with A and `inner - 1` products with its blocks for each of twelve steps of Lanczos' method.
pub(crate) fn outer_damping<T: Scalar>(a: &Rows<T>, scale: &[T], starts: &[u32], inner: usize) -> f64 {
    let solve = |z: &mut [T], r: &[T]| {
        let (mut rest, mut patches) = (z, Vec::with_capacity(starts.len()));
        for ends in starts.windows(2) {
            let (own, more) = rest.split_at_mut((ends[1] - ends[0]) as usize);
            rest = more;
            patches.push((ends[0] as usize, own));
        }
        parallel::for_each_item(patches, 1, |(begin, z)| {
            let rows = begin..begin + z.len();
            inexact(a, begin, [&scale[rows.clone()], &r[rows]], inner, z);
        });
    };
    OUTER / largest_eigenvalue(a, scale, STEPS, solve)
}

/// Computes $z = M^{-1} r$ on the patch whose first row is `begin`.
fn inexact<T: Scalar>(a: &Rows<T>, begin: usize, [scale, r]: [&[T]; 2], inner: usize, z: &mut [T]) {
    z.iter_mut().zip(scale).zip(r).for_each(|((z, &s), &r)| *z = s * r);
    let mut next = Vec::with_capacity(z.len());
    for _ in 1..inner {
        next.clear();
        for i in 0..z.len() {
            let (columns, values) = a.row(begin + i);
            let entries = columns.iter().zip(values);
            let inside = entries.filter_map(|(&column, &value)| {
                z.get((column as usize).wrapping_sub(begin)).map(|&z| value * z)
            });
            next.push(z[i] + scale[i] * (r[i] - inside.sum::<T>()));
        }
        z.copy_from_slice(&next);
    }
}
