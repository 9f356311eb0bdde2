//! Recursive coordinate bisection.

use rayon::prelude::*;

/// Points below which one thread goes on alone.
const FEW: usize = 1 << 14;
/// Intervals of an axis in which points are counted, so that few are left to choose among.
const BINS: usize = 1 << 12;

/// Returns the part of each point, of `n_parts` whose sizes differ by one at most; points at the same place are told apart by
/// their numbers.
///
/// # Source
/// `[berger1987]`.
pub(super) fn divide(points: &[[f64; 3]], n_parts: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..points.len() as u32).collect();
    let n_parts = n_parts.max(1);
    bisect(points, &mut order, n_parts);
    let mut parts = vec![0; points.len()];
    for part in 0..n_parts {
        let piece = share(order.len(), part, n_parts)..share(order.len(), part + 1, n_parts);
        order[piece].iter().for_each(|&point| parts[point as usize] = part as u32);
    }
    parts
}

/// Where a part begins of `n` things that are divided evenly.
pub(super) fn share(n: usize, part: usize, n_parts: usize) -> usize {
    (n as u128 * part as u128 / n_parts as u128) as usize
}

/// Sorts the points so far that equal pieces of `order` are the parts.
fn bisect(points: &[[f64; 3]], order: &mut [u32], n_parts: usize) {
    if n_parts < 2 || order.len() < 2 {
        return;
    }
    let half = n_parts / 2;
    let middle = share(order.len(), half, n_parts);
    if middle < order.len() {
        let extents = extents(points, order);
        let longer =
            |one: usize, other: usize| if extents[other].len() > extents[one].len() { other } else { one };
        let axis = (1..3).fold(0, longer);
        split(points, order, (axis, extents[axis]), middle);
    }
    let is_small = order.len() < FEW;
    let (low, high) = order.split_at_mut(middle);
    if is_small {
        bisect(points, low, half);
        bisect(points, high, n_parts - half);
    } else {
        rayon::join(|| bisect(points, low, half), || bisect(points, high, n_parts - half));
    }
}

/// The places of points along an axis.
#[derive(Debug, Clone, Copy)]
struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    const NONE: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };

    fn len(self) -> f64 {
        self.high - self.low
    }

    fn joined(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

fn extents(points: &[[f64; 3]], order: &[u32]) -> [Extent; 3] {
    let join = |all: [Extent; 3], more: [Extent; 3]| [0, 1, 2].map(|axis| all[axis].joined(more[axis]));
    let of = |piece: &[u32]| {
        let points = piece.iter().map(|&point| points[point as usize].map(|x| Extent { low: x, high: x }));
        points.fold([Extent::NONE; 3], join)
    };
    order.par_chunks(FEW).map(of).reduce(|| [Extent::NONE; 3], join)
}

/// Sorts the points so far that the first `middle` ones come first along an axis. Many are counted by intervals first, on all
/// threads, so that one thread has those of one interval left.
fn split(points: &[[f64; 3]], order: &mut [u32], (axis, extent): (usize, Extent), middle: usize) {
    let key = |point: &u32| (points[*point as usize][axis], *point);
    let select = |order: &mut [u32], middle: usize| {
        order.select_nth_unstable_by(middle, |a, b| {
            let ((a, i), (b, j)) = (key(a), key(b));
            a.total_cmp(&b).then(i.cmp(&j))
        });
    };
    if order.len() < FEW {
        return select(order, middle);
    }
    // Never falls from a point to a later one.
    let bin = |point: &u32| {
        let place = (points[*point as usize][axis] - extent.low) / extent.len();
        ((place * BINS as f64) as usize).min(BINS - 1)
    };
    let count = |piece: &[u32]| {
        let mut counts = vec![0_usize; BINS];
        piece.iter().for_each(|point| counts[bin(point)] += 1);
        counts
    };
    let add = |mut one: Vec<usize>, other: Vec<usize>| {
        one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
        one
    };
    let counts = order.par_chunks(FEW).map(count).reduce(|| vec![0; BINS], add);
    let (mut chosen, mut n_below) = (0, 0);
    while n_below + counts[chosen] <= middle {
        n_below += counts[chosen];
        chosen += 1;
    }
    let those = |is: fn(usize, usize) -> bool| -> Vec<u32> {
        order.par_iter().copied().filter(|point| is(bin(point), chosen)).collect()
    };
    let (below, mut within, above) =
        (those(|bin, of| bin < of), those(|bin, of| bin == of), those(|bin, of| bin > of));
    select(&mut within, middle - n_below);
    let sorted = below.iter().chain(&within).chain(&above);
    order.iter_mut().zip(sorted).for_each(|(to, point)| *to = *point);
}
