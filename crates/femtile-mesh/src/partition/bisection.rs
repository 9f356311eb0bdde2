//! Recursive coordinate bisection.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use femtile_device::parallel;

use super::centres::Places;
use super::classes::sort_by_class;
use super::pieces::{self, ROW, part_at, share};
use crate::extents::extents;

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
    let mut order: Vec<u32> = (0..n as u32).collect();
    let (mut spare, mut bins) = (vec![0; n], vec![0; n]);
    let piece = Piece { order: &mut order, spare: &mut spare, bins: &mut bins };
    bisect(points, piece, &|part| share(n, part, n_parts), 0..n_parts);
    let parts: Vec<AtomicU32> = spare.into_iter().map(AtomicU32::new).collect();
    parallel::for_each(n, FEW, |position| {
        parts[order[position] as usize].store(part_at(position, n, n_parts), Relaxed);
    });
    parts.into_iter().map(AtomicU32::into_inner).collect()
}

/// The two parts of all points, which need no order.
fn halves<P: Places + ?Sized>(points: &P) -> Vec<u32> {
    let (axis, extent) = longest(extents(points.len(), |point| points.at(point)));
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
        let (axis, extent) = longest(extents(n, |i| points.at(piece.order[i] as usize)));
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
        parallel::join(
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

/// The axis with the longest extent, the first of several.
fn longest([low, high]: [[f64; 3]; 2]) -> (usize, Extent) {
    let along = |axis: usize| Extent { low: low[axis], high: high[axis] };
    let longer = |one: usize, other: usize| if along(other).len() > along(one).len() { other } else { one };
    let axis = (1..3).fold(0, longer);
    (axis, along(axis))
}

/// A number that is in the order of all numbers as [`f64::total_cmp`] has them.
fn key(x: f64) -> u64 {
    let bits = x.to_bits();
    bits ^ ((bits.cast_signed() >> 63).cast_unsigned() | 1 << 63)
}

/// Sorts the points so far that the first `middle` ones come first along an axis.
fn select(along: &impl Fn(u32) -> f64, order: &mut [u32], middle: usize) {
    let mut keys: Vec<(u64, u32)> = order.iter().map(|&point| (key(along(point)), point)).collect();
    keys.select_nth_unstable(middle);
    order.iter_mut().zip(keys).for_each(|(to, (_, point))| *to = point);
}

/// [Selects](select) after points have been counted by intervals on all threads, so that one thread has those of one interval left.
fn split(along: &(impl Fn(u32) -> f64 + Sync), extent: Extent, piece: &mut Piece<'_>, middle: usize) {
    let Piece { order, spare, bins } = piece;
    let count = |begin: usize, bins: &mut [u16], counts: &mut [usize]| {
        let order = &order[begin..];
        // Counting waits for the count before; apart from it the bins are computed without waiting.
        for (order, bins) in order.chunks(ROW).zip(bins.chunks_mut(ROW)) {
            order.iter().zip(&mut *bins).for_each(|(&point, to)| *to = extent.bin(along(point)) as u16);
            bins.iter().for_each(|&bin| counts[usize::from(bin)] += 1);
        }
    };
    let counts = parallel::count_chunks_mut(bins, FEW, BINS, count);
    let (mut chosen, mut n_below) = (0, 0);
    while n_below + counts[chosen] <= middle {
        n_below += counts[chosen];
        chosen += 1;
    }
    let class =
        |i: usize| 1 + usize::from(bins[i] as usize > chosen) - usize::from((bins[i] as usize) < chosen);
    let [_, within, _] = sort_by_class(spare, class, |i| order[i]);
    select(along, &mut spare[n_below..][..within], middle - n_below);
    parallel::for_chunks_mut(order, FEW, |begin, to| to.copy_from_slice(&spare[begin..][..to.len()]));
}
