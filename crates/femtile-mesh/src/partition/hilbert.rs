//! Positions along a Hilbert curve.

use super::centres::Places;
use super::pieces;
use crate::extents::extents;

/// Bits of a coordinate: three of them fit one number.
const BITS: u32 = 21;
/// About the number of bits of the positions that are used for counting points.
const BITS_OF_BINS: u32 = 15;

/// Returns the part of each point. Parts are `n_parts` pieces of a curve through all points; their sizes
/// differ by at most one.
pub(super) fn divide<P: Places + ?Sized>(points: &P, dimension: usize, n_parts: usize) -> Vec<u32> {
    let (low, scale) = frame(points);
    let cells = f64::from((1u32 << BITS) - 1);
    let steps = |point: usize| -> [u32; 3] {
        let point = points.at(point);
        // A number that is not finite counts as zero.
        std::array::from_fn(|axis| ((point[axis] - low[axis]) * scale * cells) as u32)
    };
    let position = |point: usize| along(steps(point), dimension, BITS);
    // The first bits of a position are those of the first bits of the coordinates.
    let n_axes = dimension.clamp(1, 3) as u32;
    let bits = BITS_OF_BINS / n_axes;
    let bin = |point| along(steps(point).map(|x| x >> (BITS - bits)), dimension, bits) as u32;
    pieces::of_sorted(points.len(), (1 << (bits * n_axes), bin), position, n_parts.max(1))
}

/// The lowest corner of the points, and the factor that fits them into the unit cube.
fn frame<P: Places + ?Sized>(points: &P) -> ([f64; 3], f64) {
    let [low, high] = extents(points.len(), |point| points.at(point));
    let longest = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
    (low, if longest > 0.0 { 1.0 / longest } else { 0.0 })
}

/// Returns the position on the curve of the cube at `x`. Coordinates have `bits` bits; only the first
/// `dimension` coordinates count.
fn along(x: [u32; 3], dimension: usize, bits: u32) -> u64 {
    match dimension {
        3.. => along_in(x, bits, &APART_BY_3),
        2 => along_in([x[0], x[1]], bits, &APART_BY_2),
        _ => along_in([x[0]], bits, &[]),
    }
}

/// The position; the steps of `apart` set the bits of a coordinate `N` places from each other.
///
/// # Source
/// `[skilling2004]`: coordinates to the transposed bits of the position.
fn along_in<const N: usize>(mut x: [u32; N], bits: u32, apart: &[(u32, u64)]) -> u64 {
    for level in (1..bits).rev() {
        let below = (1 << level) - 1;
        for axis in 0..N {
            // All bits where the coordinate has the bit of the level, without a branch: it is set in half of them.
            let is_set = (x[axis] >> level & 1).wrapping_neg();
            let swapped = (x[0] ^ x[axis]) & below & !is_set;
            x[axis] ^= swapped;
            x[0] ^= swapped | below & is_set;
        }
    }
    for axis in 1..N {
        x[axis] ^= x[axis - 1];
    }
    // A bit is set if an odd number of higher ones is.
    let odd = [1, 2, 4, 8, 16].iter().fold(x[N - 1] >> 1, |bits, shift| bits ^ bits >> shift);
    x.iter().fold(0, |position, &x| position << 1 | set_apart(x ^ odd, apart))
}

/// Steps that set the bits of a number two places from each other.
const APART_BY_2: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];
/// Steps that set the bits of a number three places from each other.
const APART_BY_3: [(u32, u64); 5] = [
    (32, 0x001f_0000_0000_ffff),
    (16, 0x001f_0000_ff00_00ff),
    (8, 0x100f_00f0_0f00_f00f),
    (4, 0x10c3_0c30_c30c_30c3),
    (2, 0x1249_2492_4924_9249),
];

fn set_apart(x: u32, steps: &[(u32, u64)]) -> u64 {
    steps.iter().fold(u64::from(x), |x, &(shift, mask)| (x | x << shift) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along the curve each cube is a neighbour of the one before.
    #[test]
    fn steps_of_the_curve_are_between_neighbours() {
        for (dimension, side) in [(1, 64), (2, 16), (3, 8u32)] {
            let mut cubes = Vec::new();
            let of = |d: usize| if d < dimension { side } else { 1 };
            for i in 0..of(0) {
                for j in 0..of(1) {
                    for k in 0..of(2) {
                        cubes.push((along([i, j, k], dimension, BITS), [i, j, k]));
                    }
                }
            }
            cubes.sort_unstable();
            for (step, pair) in cubes.windows(2).enumerate() {
                let distance: u32 = (0..3).map(|axis| pair[0].1[axis].abs_diff(pair[1].1[axis])).sum();
                assert_eq!(distance, 1, "step {step} in {dimension} dimensions: {pair:?}");
                assert_eq!(pair[1].0, pair[0].0 + 1);
            }
        }
    }

    #[test]
    fn the_first_bits_are_those_of_a_coarser_curve() {
        for dimension in [1, 2, 3] {
            for i in 0..1000_u32 {
                let x = [1, 2, 3]
                    .map(|seed| i.wrapping_mul(0x9e37_79b9 + seed).wrapping_mul(seed) >> (32 - BITS));
                let fine = along(x, dimension, BITS);
                for bits in 1..BITS {
                    let left_out = BITS - bits;
                    let coarse = along(x.map(|x| x >> left_out), dimension, bits);
                    assert_eq!(coarse, fine >> (left_out as usize * dimension), "{x:?}: {bits} bits");
                }
            }
        }
    }
}
