//! Equal pieces of a sequence that is not sorted.

use rayon::prelude::*;

/// The least number of items per batch of a thread.
const THINGS: usize = 1 << 14;
/// Items whose bins are computed before they are counted.
pub(super) const ROW: usize = 1 << 10;
/// The part of a bin whose items belong to several parts.
const MIXED: u32 = u32::MAX;

/// Returns the first of `n` evenly divided items that belongs to a part.
pub(super) fn share(n: usize, part: usize, n_parts: usize) -> usize {
    (n as u128 * part as u128 / n_parts as u128) as usize
}

/// The part in which a position of `n` is: the last one that begins there or before. Both numbers are below $2^{32}$.
pub(super) fn part_at(position: usize, n: usize, n_parts: usize) -> u32 {
    (((position as u64 + 1) * n_parts as u64 - 1) / n as u64) as u32
}

/// Returns the piece of each of `n` items if they were sorted by key, with equal keys in the order of their
/// numbers, and cut into `n_parts` equal pieces. Bins do not decrease with the key: only bins in which a
/// piece begins are sorted.
pub(super) fn of_sorted<K: Ord + Copy + Send>(
    n: usize,
    (n_bins, bin): (usize, impl Fn(usize) -> u32 + Sync),
    key: impl Fn(usize) -> K + Sync,
    n_parts: usize,
) -> Vec<u32> {
    // Most bins become parts where they are.
    let mut parts = vec![0; n];
    let counts = count(&mut parts, n_bins, bin);
    let (begins, of_bins) = parts_of_bins(&counts, n, n_parts);
    let replace = |(block, parts): (usize, &mut [u32])| {
        let mut mixed = Vec::new();
        for (number, to) in (block * THINGS..).zip(parts) {
            let bin = std::mem::replace(to, of_bins[*to as usize]);
            if *to == MIXED {
                mixed.push((key(number), number as u32, bin));
            }
        }
        mixed
    };
    let mixed: Vec<Vec<(K, u32, u32)>> = parts.par_chunks_mut(THINGS).enumerate().map(replace).collect();
    let mut mixed = mixed.concat();
    mixed.par_sort_unstable();
    for mixed in mixed.chunk_by(|one, other| one.2 == other.2) {
        for (position, &(_, number, bin)) in mixed.iter().enumerate() {
            parts[number as usize] = part_at(begins[bin as usize] + position, n, n_parts);
        }
    }
    parts
}

/// Returns the offset of each bin in the sequence, and its part.
fn parts_of_bins(counts: &[usize], n: usize, n_parts: usize) -> (Vec<usize>, Vec<u32>) {
    let mut begin = 0;
    let of_bin = |&count: &usize| {
        let at = begin;
        begin += count;
        let part = |position| part_at(position, n, n_parts);
        let is_whole = count > 0 && part(at) == part(begin - 1);
        (at, if is_whole { part(at) } else { MIXED })
    };
    counts.iter().map(of_bin).unzip()
}

/// Writes the bin of each item, and returns the number of items per bin.
fn count(bins: &mut [u32], n_bins: usize, bin: impl Fn(usize) -> u32 + Sync) -> Vec<usize> {
    let length = THINGS.max(4 * n_bins);
    let count = |(block, bins): (usize, &mut [u32])| {
        let mut counts = vec![0; n_bins];
        // Counting waits for the count before; apart from it the bins are computed without waiting.
        for (begin, bins) in (block * length..).step_by(ROW).zip(bins.chunks_mut(ROW)) {
            (begin..).zip(&mut *bins).for_each(|(number, to)| *to = bin(number));
            bins.iter().for_each(|&bin| counts[bin as usize] += 1);
        }
        counts
    };
    bins.par_chunks_mut(length).enumerate().map(count).reduce(|| vec![0; n_bins], add)
}

/// The sums of two lists of counts.
pub(super) fn add(mut one: Vec<usize>, other: Vec<usize>) -> Vec<usize> {
    one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
    one
}
