//! Sorts of numbers by all threads, compiled here once for each type.

use super::{for_chunks_mut, n_threads};

/// Numbers that one thread sorts alone, and that a thread merges at a time.
const ALONE: usize = 1 << 13;

/// A number that [`sort`] takes. Sort pairs as one number: the first in its high bits.
pub trait Number: Sized {
    /// Sorts numbers, the smallest first.
    fn sort(values: &mut [Self]);
}

macro_rules! sort_by_merging {
    ($($number:ty)*) => {$(
        impl Number for $number {
            fn sort(values: &mut [Self]) {
                merge_sort(values);
            }
        }
    )*};
}

sort_by_merging!(u32 u64 u128);

/// Sorts numbers, the smallest first.
///
/// # Cost
/// $O(n \log n)$, all of it on all threads; as much memory again.
pub fn sort<N: Number>(values: &mut [N]) {
    N::sort(values);
}

fn merge_sort<T: Copy + Ord + Send + Sync>(values: &mut [T]) {
    let (n, n_threads) = (values.len(), n_threads());
    if n_threads == 1 || n <= ALONE {
        return values.sort_unstable();
    }
    // Runs of whole pieces, so that no piece goes beyond a pair of runs.
    let mut run = n.div_ceil(2 * n_threads.next_power_of_two()).next_multiple_of(ALONE);
    for_chunks_mut(values, run, |_, run| run.sort_unstable());
    let mut spare = values.to_vec();
    let (mut from, mut to, mut is_spare) = (values, &mut spare[..], false);
    while run < n {
        for_chunks_mut(to, ALONE, |begin, piece| merge(from, run, begin, piece));
        std::mem::swap(&mut from, &mut to);
        (run, is_spare) = (2 * run, !is_spare);
    }
    if is_spare {
        to.copy_from_slice(from);
    }
}

/// Writes the piece that begins at `begin` of the merged pairs of runs of a length.
fn merge<T: Copy + Ord>(values: &[T], run: usize, begin: usize, piece: &mut [T]) {
    let start = begin - begin % (2 * run);
    let pair = &values[start..values.len().min(start + 2 * run)];
    let (one, other) = pair.split_at(run.min(pair.len()));
    // Of the numbers before the piece, the first `low` of one run and the rest of the other.
    let before = begin - start;
    let (mut low, mut high) = (before.saturating_sub(other.len()), before.min(one.len()));
    while low < high {
        let middle = usize::midpoint(low, high);
        if one[middle] <= other[before - 1 - middle] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let (mut i, mut j) = (low, before - low);
    let mut places = piece.iter_mut();
    while i < one.len()
        && j < other.len()
        && let Some(place) = places.next()
    {
        let is_other = other[j] < one[i];
        *place = if is_other { other[j] } else { one[i] };
        j += usize::from(is_other);
        i += usize::from(!is_other);
    }
    // One run has ended, or the piece has.
    places.zip(one[i..].iter().chain(&other[j..])).for_each(|(place, value)| *place = *value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;

    fn check<T: Number + Copy + Ord + Send + Sync + std::fmt::Debug>(of: impl Fn(u64) -> T) {
        let mut state = 1_u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 11) % bound
        };
        for n in [0, 1, 2, 97, ALONE, ALONE + 1, 4 * ALONE, 4 * ALONE + 1, 12 * ALONE - 5, 100_003] {
            for bound in [1, 3, 1 << 53] {
                let random: Vec<T> = (0..n).map(|_| of(random(bound))).collect();
                let mut expected = random.clone();
                expected.sort();
                let falling: Vec<T> = expected.iter().rev().copied().collect();
                for threads in [1, 2, 3, 5] {
                    let cpu = Cpu::new(threads).unwrap();
                    for values in [&random, &expected, &falling] {
                        let mut sorted = values.clone();
                        cpu.install(|| sort(&mut sorted));
                        assert!(sorted == expected, "{n} below {bound}, {threads} threads");
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_of_each_size_are_sorted_by_any_number_of_threads() {
        check(|number| number as u32);
        check(|number| number << 11);
        check(|number| u128::from(number) << 64 | u128::from(number.reverse_bits()));
    }
}
