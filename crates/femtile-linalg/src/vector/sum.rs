//! Sums with the same bits on any number of threads and any width of vectors.
//!
//! A vector is cut into blocks of [`BLOCK`] entries. In a block, entry $i$ goes to lane
//! $i \bmod 16$; lanes are added pairwise, then blocks pairwise. Products are rounded before they
//! are added (no fused multiply–add), so that scalar, AVX2 and AVX-512 code agree to the last bit.
//! These sums wait for memory, not for arithmetic: nothing is lost.
//!
//! Passes over many vectors process a block in pieces of 256 entries (`Lanes`): all sums of a pass are taken from
//! the L1 cache and have the bits of separate sums. Sums of f32 vectors are accumulated in f64. A GPU sums tiles of
//! 2,048 entries in a fixed order of its own.
//!
//! Assembly rounds products in the same way. A solve with an assembled matrix therefore has the same bits on every
//! SIMD path. Matrix-free operators use fused multiply–add, so their bits depend on the SIMD path.

use std::ops::Range;

use femtile_device::Scalar;

/// Entries summed by one thread before a partial sum is kept.
pub const BLOCK: usize = 4096;

/// Partial sums that a block is added up in.
const LANES: usize = 16;

/// Entries of a block that passes over many vectors work through at a time, so that they stay in the nearest cache.
pub(crate) const PIECE: usize = 256;

/// The pieces of a block of `n` entries.
pub(crate) fn pieces(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(PIECE).map(move |start| start..(start + PIECE).min(n))
}

/// Number of blocks of a vector of `n` entries.
pub const fn n_blocks(n: usize) -> usize {
    n.div_ceil(BLOCK)
}

/// The lanes of a block's sum, filled piece by piece.
///
/// Pieces begin at multiples of [`LANES`] in their block: the total then has the bits of [`block_sum`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lanes([f64; LANES]);

impl Lanes {
    /// Adds $f(i)$ for each of the `n` entries of the next piece.
    #[inline(always)]
    pub(crate) fn add(&mut self, n: usize, term: impl Fn(usize) -> f64) {
        let mut lanes = self.0;
        let whole = n - n % LANES;
        for start in (0..whole).step_by(LANES) {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                *sum += term(start + lane);
            }
        }
        for (lane, i) in (whole..n).enumerate() {
            lanes[lane] += term(i);
        }
        self.0 = lanes;
    }

    /// Adds $x^\mathsf{T} y$ of the next piece.
    #[inline(always)]
    pub(crate) fn add_dot<T: Scalar>(&mut self, x: &[T], y: &[T]) {
        let n = x.len().min(y.len());
        let (x, y) = (&x[..n], &y[..n]);
        self.add(n, |i| x[i].to_f64() * y[i].to_f64());
    }

    /// The sum of all pieces.
    #[inline(always)]
    pub(crate) fn total(self) -> f64 {
        combine_lanes(self.0)
    }
}

/// $\sum_i f(i)$ over one block, in the fixed order of lanes.
#[inline(always)]
pub(crate) fn block_sum(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = Lanes::default();
    lanes.add(n, term);
    lanes.total()
}

/// Adds lanes pairwise: 0+8, 1+9, …, then 0+4, ….
#[inline(always)]
pub(crate) fn combine_lanes(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// $x^\mathsf{T} y$ over one block.
#[inline(always)]
pub fn block_dot<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    let n = x.len().min(y.len());
    let (x, y) = (&x[..n], &y[..n]);
    block_sum(n, |i| x[i].to_f64() * y[i].to_f64())
}

/// Adds partial sums in a fixed binary tree.
pub fn combine(partials: &[f64]) -> f64 {
    combine_with(partials, |left, right| left + right)
}

/// Adds partial results of several sums in the same tree.
pub(crate) fn combine_with<S: Copy + Default>(partials: &[S], add: fn(S, S) -> S) -> S {
    match partials {
        [] => S::default(),
        [one] => *one,
        many => {
            let (left, right) = many.split_at(many.len().next_power_of_two() / 2);
            add(combine_with(left, add), combine_with(right, add))
        }
    }
}
