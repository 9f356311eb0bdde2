//! Sums with the same bits on any number of threads and any width of vectors.
//!
//! A vector is cut into blocks of [`BLOCK`] entries. In a block, entry $i$ goes to lane
//! $i \bmod 16$; lanes are added pairwise, then blocks pairwise. Products are rounded before they
//! are added (no fused multiply–add), so that scalar, AVX2 and AVX-512 code agree to the last bit.
//! These sums wait for memory, not for arithmetic: nothing is lost.

use femtile_device::Scalar;

/// Entries summed by one thread before a partial sum is kept.
pub const BLOCK: usize = 4096;

const LANES: usize = 16;

/// Number of blocks of a vector of `n` entries.
pub const fn n_blocks(n: usize) -> usize {
    n.div_ceil(BLOCK)
}

/// $\sum_i f(i)$ over one block, in the fixed order of lanes.
#[inline(always)]
pub(crate) fn block_sum(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let whole = n - n % LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    for (lane, i) in (whole..n).enumerate() {
        lanes[lane] += term(i);
    }
    combine_lanes(lanes)
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
    match partials {
        [] => 0.0,
        [one] => *one,
        many => {
            let (left, right) = many.split_at(many.len().next_power_of_two() / 2);
            combine(left) + combine(right)
        }
    }
}
