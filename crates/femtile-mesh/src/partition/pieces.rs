//! Equal pieces of a sequence that is not sorted.

use femtile_device::parallel;

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
pub(super) fn of_sorted(
    n: usize,
    (n_bins, bin): (usize, impl Fn(usize) -> u32 + Sync),
    key: impl Fn(usize) -> u64 + Sync,
    n_parts: usize,
) -> Vec<u32> {
    // Most bins become parts where they are.
    let mut parts = vec![0; n];
    let counts = count(&mut parts, n_bins, bin);
    let (begins, of_bins) = parts_of_bins(&counts, n, n_parts);
    // Of each item its key, its number and its bin.
    let replace = |begin, parts: &mut [u32]| {
        let mut mixed = Vec::new();
        for (number, to) in (begin..).zip(parts) {
            let bin = std::mem::replace(to, of_bins[*to as usize]);
            if *to == MIXED {
                mixed.push(u128::from(key(number)) << 64 | (number as u128) << 32 | u128::from(bin));
            }
        }
        mixed
    };
    let mut mixed = parallel::map_chunks_mut(&mut parts, THINGS, replace).concat();
    parallel::sort(&mut mixed);
    for mixed in mixed.chunk_by(|one, other| *one as u32 == *other as u32) {
        let begin = begins[mixed[0] as u32 as usize];
        for (position, item) in mixed.iter().enumerate() {
            parts[(item >> 32) as u32 as usize] = part_at(begin + position, n, n_parts);
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
    let count = |begin: usize, bins: &mut [u32], counts: &mut [usize]| {
        // Counting waits for the count before; apart from it the bins are computed without waiting.
        for (begin, bins) in (begin..).step_by(ROW).zip(bins.chunks_mut(ROW)) {
            (begin..).zip(&mut *bins).for_each(|(number, to)| *to = bin(number));
            bins.iter().for_each(|&bin| counts[bin as usize] += 1);
        }
    };
    parallel::count_chunks_mut(bins, THINGS.max(4 * n_bins), n_bins, count)
}
