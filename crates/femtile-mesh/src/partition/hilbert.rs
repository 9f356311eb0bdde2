//! Positions along a Hilbert curve.

use rayon::prelude::*;

use super::bisection::share;

/// Bits of a coordinate: three of them fit one number.
const BITS: u32 = 21;

/// Returns the part of each point, of `n_parts` pieces of a curve through all of them, whose sizes differ by one at most.
pub(super) fn divide(points: &[[f64; 3]], dimension: usize, n_parts: usize) -> Vec<u32> {
    let (low, scale) = frame(points);
    let cells = f64::from((1u32 << BITS) - 1);
    let position = |point: &[f64; 3]| {
        // A number that is not finite counts as zero.
        let steps = std::array::from_fn(|axis| ((point[axis] - low[axis]) * scale * cells) as u32);
        along(steps, dimension)
    };
    let mut order: Vec<(u64, u32)> = points
        .par_iter()
        .zip(0..points.len() as u32)
        .map(|(point, number)| (position(point), number))
        .collect();
    order.par_sort_unstable();
    let mut parts = vec![0; points.len()];
    let n_parts = n_parts.max(1);
    for part in 0..n_parts {
        let piece = share(order.len(), part, n_parts)..share(order.len(), part + 1, n_parts);
        order[piece].iter().for_each(|&(_, point)| parts[point as usize] = part as u32);
    }
    parts
}

/// The lowest corner of the points, and the factor that fits them into the unit cube.
fn frame(points: &[[f64; 3]]) -> ([f64; 3], f64) {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in points {
        for axis in 0..3 {
            (low[axis], high[axis]) = (low[axis].min(point[axis]), high[axis].max(point[axis]));
        }
    }
    let longest = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
    (low, if longest > 0.0 { 1.0 / longest } else { 0.0 })
}

/// The position on the curve through the cubes with these coordinates, in `dimension` of them.
///
/// # Source
/// `[skilling2004]`: coordinates to the transposed bits of the position.
fn along(mut x: [u32; 3], dimension: usize) -> u64 {
    let n = dimension.clamp(1, 3);
    let top = 1 << (BITS - 1);
    let mut bit = top;
    while bit > 1 {
        let below = bit - 1;
        for axis in 0..n {
            if x[axis] & bit != 0 {
                x[0] ^= below;
            } else {
                let swapped = (x[0] ^ x[axis]) & below;
                x[0] ^= swapped;
                x[axis] ^= swapped;
            }
        }
        bit >>= 1;
    }
    for axis in 1..n {
        x[axis] ^= x[axis - 1];
    }
    let mut mask = 0;
    let mut bit = top;
    while bit > 1 {
        if x[n - 1] & bit != 0 {
            mask ^= bit - 1;
        }
        bit >>= 1;
    }
    let digits = (0..BITS).rev().flat_map(|level| (0..n).map(move |axis| (level, axis)));
    digits.fold(0, |position, (level, axis)| position << 1 | u64::from((x[axis] ^ mask) >> level & 1))
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
                        cubes.push((along([i, j, k], dimension), [i, j, k]));
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
}
