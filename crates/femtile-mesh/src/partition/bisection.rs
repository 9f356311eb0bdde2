//! Recursive coordinate bisection.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::centres::Places;
use super::classes::sort_by_class;
use super::pieces::{self, ROW, add, part_at, share};

/// Points below which one thread continues alone.
const FEW: usize = 1 << 14;
/// Intervals of an axis in which points are counted, so that few are left to choose among.
const BINS: usize = 1 << 12;

/// Returns the part of each point, among `n_parts` parts whose sizes differ by at most one. Points at the
/// same place are ordered by their numbers.
///
/// # Source
/// `[berger1987]`.
pub(super) fn divide<P: Places + ?Sized>(points: &P, n_parts: usize) -> Vec<u32> {
    let n = points.len();
    let n_parts = n_parts.max(1);
    if n_parts == 1 {
        return vec![0; n];
    }
    if n_parts == 2 && n >= FEW {
        return halves(points);
    }
    let mut order: Vec<u32> = (0..n as u32).into_par_iter().collect();
    let (mut spare, mut bins) = (vec![0; n], vec![0; n]);
    let piece = Piece { order: &mut order, spare: &mut spare, bins: &mut bins };
    bisect(points, piece, &|part| share(n, part, n_parts), 0..n_parts);
    let parts: Vec<AtomicU32> = spare.into_iter().map(AtomicU32::new).collect();
    order.par_iter().enumerate().with_min_len(FEW).for_each(|(position, &point)| {
        parts[point as usize].store(part_at(position, n, n_parts), Relaxed);
    });
    parts.into_iter().map(AtomicU32::into_inner).collect()
}

/// The two parts of all points, which need no order.
fn halves<P: Places + ?Sized>(points: &P) -> Vec<u32> {
    let (axis, extent) = Extents::of(points, points.len(), |i| i).longest();
    let bin = |point| extent.bin(points.along(point, axis));
    pieces::of_sorted(points.len(), (BINS, bin), |point| key(points.along(point, axis)), 2)
}

/// Some of the points, with room to sort them.
struct Piece<'a> {
    order: &'a mut [u32],
    spare: &'a mut [u32],
    bins: &'a mut [u16],
}

impl Piece<'_> {
    fn split_at(&mut self, middle: usize) -> (Piece<'_>, Piece<'_>) {
        let (order, more_order) = self.order.split_at_mut(middle);
        let (spare, more_spare) = self.spare.split_at_mut(middle);
        let (bins, more_bins) = self.bins.split_at_mut(middle);
        (Piece { order, spare, bins }, Piece { order: more_order, spare: more_spare, bins: more_bins })
    }
}

/// Sorts the points of some parts so far that pieces of `order` are the parts, which begin at `begin_of` among all points.
fn bisect<P: Places + ?Sized>(
    points: &P,
    mut piece: Piece<'_>,
    begin_of: &(impl Fn(usize) -> usize + Sync),
    parts: Range<usize>,
) {
    let n = piece.order.len();
    if parts.len() < 2 || n < 2 {
        return;
    }
    let half = parts.start + parts.len() / 2;
    let middle = begin_of(half) - begin_of(parts.start);
    if middle < n {
        let (axis, extent) = Extents::of(points, n, |i| piece.order[i] as usize).longest();
        let along = |point: u32| points.along(point as usize, axis);
        if n < FEW {
            select(&along, piece.order, middle);
        } else {
            split(&along, extent, &mut piece, middle);
        }
    }
    let (low, high) = piece.split_at(middle);
    if n < FEW {
        bisect(points, low, begin_of, parts.start..half);
        bisect(points, high, begin_of, half..parts.end);
    } else {
        rayon::join(
            || bisect(points, low, begin_of, parts.start..half),
            || bisect(points, high, begin_of, half..parts.end),
        );
    }
}

/// The places of points along an axis.
#[derive(Debug, Clone, Copy)]
struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    fn len(self) -> f64 {
        self.high - self.low
    }

    /// The interval of a coordinate; it does not decrease with the coordinate.
    fn bin(self, x: f64) -> u32 {
        let place = (x - self.low) / self.len();
        ((place * BINS as f64) as u32).min(BINS as u32 - 1)
    }
}

/// The lowest and the highest places along all axes.
#[derive(Debug, Clone, Copy)]
struct Extents {
    low: [f64; 3],
    high: [f64; 3],
}

impl Extents {
    const NONE: Self = Self { low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };

    /// Those of `n` points.
    fn of<P: Places + ?Sized>(points: &P, n: usize, number: impl Fn(usize) -> usize + Sync) -> Self {
        let of = |block: usize| {
            let numbers = block * FEW..((block + 1) * FEW).min(n);
            let mut all = Self::NONE;
            for i in numbers {
                let point = points.at(number(i));
                all = all.joined(&Self { low: point, high: point });
            }
            all
        };
        (0..n.div_ceil(FEW)).into_par_iter().map(of).reduce(|| Self::NONE, |all, more| all.joined(&more))
    }

    /// Returns the extents of both; NaN is ignored.
    #[inline]
    fn joined(mut self, other: &Self) -> Self {
        for axis in 0..3 {
            let (low, high) = (other.low[axis], other.high[axis]);
            self.low[axis] = if low < self.low[axis] { low } else { self.low[axis] };
            self.high[axis] = if high > self.high[axis] { high } else { self.high[axis] };
        }
        self
    }

    /// The axis with the longest extent, the first of several.
    fn longest(self) -> (usize, Extent) {
        let along = |axis: usize| Extent { low: self.low[axis], high: self.high[axis] };
        let longer =
            |one: usize, other: usize| if along(other).len() > along(one).len() { other } else { one };
        let axis = (1..3).fold(0, longer);
        (axis, along(axis))
    }
}

/// A number that is in the order of all numbers as [`f64::total_cmp`] has them.
fn key(x: f64) -> i64 {
    let bits = x.to_bits().cast_signed();
    bits ^ (i64::MAX & (bits >> 63))
}

/// Sorts the points so far that the first `middle` ones come first along an axis.
fn select(along: &impl Fn(u32) -> f64, order: &mut [u32], middle: usize) {
    let mut keys: Vec<(i64, u32)> = order.iter().map(|&point| (key(along(point)), point)).collect();
    keys.select_nth_unstable(middle);
    order.iter_mut().zip(keys).for_each(|(to, (_, point))| *to = point);
}

/// [Selects](select) after points have been counted by intervals on all threads, so that one thread has those of one interval left.
fn split(along: &(impl Fn(u32) -> f64 + Sync), extent: Extent, piece: &mut Piece<'_>, middle: usize) {
    let Piece { order, spare, bins } = piece;
    let count = |(order, bins): (&[u32], &mut [u16])| {
        let mut counts = vec![0; BINS];
        // Counting waits for the count before; apart from it the bins are computed without waiting.
        for (order, bins) in order.chunks(ROW).zip(bins.chunks_mut(ROW)) {
            order.iter().zip(&mut *bins).for_each(|(&point, to)| *to = extent.bin(along(point)) as u16);
            bins.iter().for_each(|&bin| counts[usize::from(bin)] += 1);
        }
        counts
    };
    let blocks = order.par_chunks(FEW).zip(bins.par_chunks_mut(FEW));
    let counts = blocks.map(count).reduce(|| vec![0; BINS], add);
    let (mut chosen, mut n_below) = (0, 0);
    while n_below + counts[chosen] <= middle {
        n_below += counts[chosen];
        chosen += 1;
    }
    let class =
        |i: usize| 1 + usize::from(bins[i] as usize > chosen) - usize::from((bins[i] as usize) < chosen);
    let [_, within, _] = sort_by_class(spare, class, |i| order[i]);
    select(along, &mut spare[n_below..][..within], middle - n_below);
    order.par_chunks_mut(FEW).zip(spare.par_chunks(FEW)).for_each(|(to, from)| to.copy_from_slice(from));
}
