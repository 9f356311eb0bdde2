//! Parallel loops and sorts in rayon's pool of the calling thread, compiled once.
//!
//! A parallel iterator of rayon compiles some forty functions at each place of use, and again for each type
//! if the place is generic. These loops call their work through a reference, once for a range of indices, so
//! only the work itself is compiled again. Results do not depend on the number of threads: each index has its
//! own result.
//!
//! Loops over vectors of a solve take [`Cpu::for_ranges`](super::Cpu::for_ranges) instead, which wakes its threads faster
//! and gives each the same indices every time.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::SharedMut;

mod sort;
pub use sort::{Number, sort};

/// Indices that a thread takes at a time if each costs a few operations.
pub const CHEAP: usize = 1 << 12;

/// Ranges per thread, if indices suffice, so that idle threads can take over work.
const RANGES_PER_THREAD: usize = 32;

/// Calls `work` for ranges of at least `min_len` indices (except the last) that tile `0..n`.
fn for_ranges(n: usize, min_len: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let len = (n / (RANGES_PER_THREAD * rayon::current_num_threads())).max(min_len).max(1);
    if n <= len {
        return work(0..n);
    }
    (0..n.div_ceil(len)).into_par_iter().for_each(|i| work(i * len..((i + 1) * len).min(n)));
}

/// Returns the number of threads of the pool.
pub fn n_threads() -> usize {
    rayon::current_num_threads()
}

/// Returns the results of both functions, which run at the same time if a thread is idle.
pub fn join<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut one, mut other) = (Some(one), Some(other));
    let (mut first, mut second) = (None, None);
    join_both(&mut || first = one.take().map(|one| one()), &mut || {
        second = other.take().map(|other| other());
    });
    first.zip(second).expect("both have run")
}

/// [`join`] without types, so that rayon's part is compiled once.
fn join_both(one: &mut (dyn FnMut() + Send), other: &mut (dyn FnMut() + Send)) {
    rayon::join(one, other);
}

/// Calls `work(i)` for each `i` of `0..n`; a thread takes at least `min_len` of them at a time.
pub fn for_each(n: usize, min_len: usize, work: impl Fn(usize) + Sync) {
    for_ranges(n, min_len, &|range| range.for_each(&work));
}

/// Returns `of(0)`, …, `of(n − 1)`; a thread takes at least `min_len` of them at a time.
pub fn map<R: Send>(n: usize, min_len: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    collect(n, min_len, &|range, places| {
        places.iter_mut().zip(range).for_each(|(place, i)| {
            place.write(of(i));
        });
    })
}

/// Returns `of(&mut scratch, 0)`, …, `of(&mut scratch, n − 1)`, with a scratch for each thread that works.
pub fn map_with<R: Send, S: Send>(
    n: usize,
    min_len: usize,
    scratch: impl Fn() -> S + Sync,
    of: impl Fn(&mut S, usize) -> R + Sync,
) -> Vec<R> {
    let scratches = Mutex::new(Vec::new());
    collect(n, min_len, &|range, places| {
        let mut own = take(&scratches).unwrap_or_else(&scratch);
        places.iter_mut().zip(range).for_each(|(place, i)| {
            place.write(of(&mut own, i));
        });
        scratches.lock().unwrap_or_else(PoisonError::into_inner).push(own);
    })
}

/// Work that writes each place of a range of results.
type Write<'a, R> = dyn Fn(Range<usize>, &mut [MaybeUninit<R>]) + Sync + 'a;

/// Returns `n` results, which `write` writes.
fn collect<R: Send>(n: usize, min_len: usize, write: &Write<'_, R>) -> Vec<R> {
    let mut results = Vec::with_capacity(n);
    let places = SharedMut::new(&mut results.spare_capacity_mut()[..n]);
    // SAFETY: ranges of a loop do not overlap.
    for_ranges(n, min_len, &|range| write(range.clone(), unsafe { places.range(range) }));
    // SAFETY: the ranges tile `0..n`, and the functions of this module write each place.
    unsafe { results.set_len(n) };
    results
}

/// Results that are gathered before an error is looked for, which may be much larger than a result.
const RESULTS: usize = 256;

/// [`map_with`] for work that may fail.
///
/// # Errors
/// The first by index.
pub fn try_map_with<R: Send, S: Send, E: Send>(
    n: usize,
    scratch: impl Fn() -> S + Sync,
    of: impl Fn(&mut S, usize) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let pieces = map_with(n.div_ceil(RESULTS), 1, scratch, |scratch, piece| {
        let range = piece * RESULTS..n.min((piece + 1) * RESULTS);
        range.map(|i| of(scratch, i)).collect::<Result<Vec<R>, E>>()
    });
    let mut results = Vec::with_capacity(n);
    for piece in pieces {
        results.append(&mut piece?);
    }
    Ok(results)
}

fn take<S>(scratches: &Mutex<Vec<S>>) -> Option<S> {
    scratches.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Calls `work(value)` for each value; a thread takes at least `min_len` of them at a time.
pub fn for_each_mut<T: Send>(values: &mut [T], min_len: usize, work: impl Fn(&mut T) + Sync) {
    for_chunks_mut(values, values.len().div_ceil(4 * n_threads()).max(min_len), |_, chunk| {
        chunk.iter_mut().for_each(&work)
    });
}

/// Calls `work(item)` for each item; a thread takes at least `min_len` of them at a time.
pub fn for_each_item<I: Send>(items: Vec<I>, min_len: usize, work: impl Fn(I) + Sync) {
    for_each_item_with(items, min_len, || (), |(), item| work(item));
}

/// Calls `work(&mut scratch, item)` for each item, with a scratch for each thread that works.
pub fn for_each_item_with<I: Send, S: Send>(
    items: Vec<I>,
    min_len: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) + Sync,
) {
    map_items_with(items, min_len, scratch, work);
}

/// Returns `of(item)` for each item.
pub fn map_items<I: Send, R: Send>(items: Vec<I>, of: impl Fn(I) -> R + Sync) -> Vec<R> {
    map_items_with(items, 1, || (), |(), item| of(item))
}

fn map_items_with<I: Send, S: Send, R: Send>(
    mut items: Vec<I>,
    min_len: usize,
    scratch: impl Fn() -> S + Sync,
    of: impl Fn(&mut S, I) -> R + Sync,
) -> Vec<R> {
    let n = items.len();
    // SAFETY: the vector is left empty, so the items belong to the loop alone; after a panic some are never dropped.
    unsafe { items.set_len(0) };
    let places = SharedMut::new(&mut items.spare_capacity_mut()[..n]);
    map_with(n, min_len, scratch, |scratch, i| {
        // SAFETY: each index is visited once, by one thread.
        let place = unsafe { &places.range(i..i + 1)[0] };
        // SAFETY: every place holds an item, and each is read once.
        of(scratch, unsafe { place.assume_init_read() })
    })
}

/// Calls `work(&mut scratch, item)` for each item until one fails.
///
/// # Errors
/// Returns the first error in the order of items, among the items that were begun.
pub fn try_for_each_item_with<I: Send, S: Send, E: Send>(
    items: Vec<I>,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let first = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    let numbered = items.into_iter().enumerate().collect();
    for_each_item_with(numbered, 1, scratch, |scratch, (i, item): (usize, I)| {
        if has_failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = work(scratch, item) {
            has_failed.store(true, Ordering::Relaxed);
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(at, _)| i < *at) {
                *first = Some((i, error));
            }
        }
    });
    let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    first.map_or(Ok(()), |(_, error)| Err(error))
}

/// Returns `of(begin, chunk)` for each chunk of `len` values (the last may be shorter), which begins at index `begin`.
pub fn map_chunks<T: Sync, R: Send>(
    values: &[T],
    len: usize,
    of: impl Fn(usize, &[T]) -> R + Sync,
) -> Vec<R> {
    map(values.len().div_ceil(len), 1, |i| of(i * len, &values[i * len..values.len().min((i + 1) * len)]))
}

/// [`map_chunks`] with chunks that `of` may change.
pub fn map_chunks_mut<T: Send, R: Send>(
    values: &mut [T],
    len: usize,
    of: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let n = values.len();
    let values = SharedMut::new(values);
    map(n.div_ceil(len), 1, |i| {
        let range = i * len..((i + 1) * len).min(n);
        // SAFETY: chunks do not overlap, and each belongs to one index of the loop.
        of(range.start, unsafe { values.range(range) })
    })
}

/// Calls `work(begin, chunk)` for chunks of `len` values (the last may be shorter), which begin at index `begin`.
pub fn for_chunks_mut<T: Send>(values: &mut [T], len: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    map_chunks_mut(values, len, work);
}

/// Returns `n` counts: the sums of those that `count(begin, chunk, counts)` raises for chunks whose lengths are multiples of
/// `len` (except the last).
pub fn count_chunks_mut<T: Send>(
    values: &mut [T],
    len: usize,
    n: usize,
    count: impl Fn(usize, &mut [T], &mut [usize]) + Sync,
) -> Vec<usize> {
    let n_chunks = values.len().div_ceil(len).div_ceil(4 * n_threads()).max(1);
    let of_chunk = |begin: usize, chunk: &mut [T]| {
        let mut counts = vec![0; n];
        count(begin, chunk, &mut counts);
        counts
    };
    let mut total = vec![0; n];
    for counts in map_chunks_mut(values, len * n_chunks, of_chunk) {
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    total
}

/// Returns whether `is_so(i)` holds for each `i` of `0..n`; ends soon after the first for which it does not.
pub fn all(n: usize, min_len: usize, is_so: impl Fn(usize) -> bool + Sync) -> bool {
    first(n, min_len, |i| !is_so(i)).is_none()
}

/// Returns the first `i` of `0..n` for which `is_so(i)` holds; indices far behind it are not asked for.
pub fn first(n: usize, min_len: usize, is_so: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    let found = AtomicUsize::new(n);
    for_ranges(n, min_len, &|mut range| {
        if range.start < found.load(Ordering::Relaxed)
            && let Some(i) = range.find(|&i| is_so(i))
        {
            found.fetch_min(i, Ordering::Relaxed);
        }
    });
    Some(found.into_inner()).filter(|&i| i < n)
}

/// Returns the numbers below `n` for which `is_so` holds, ascending.
pub fn filter(n: usize, is_so: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    let of_block = |block: usize| {
        let numbers = block * CHEAP..n.min((block + 1) * CHEAP);
        numbers.filter(|&number| is_so(number)).map(|number| number as u32).collect::<Vec<u32>>()
    };
    map(n.div_ceil(CHEAP), 1, of_block).concat()
}

/// Returns the sum of `of(i)` over `0..n`; a thread takes at least `min_len` of them at a time.
pub fn sum(n: usize, min_len: usize, of: impl Fn(usize) -> usize + Sync) -> usize {
    let total = AtomicUsize::new(0);
    for_ranges(n, min_len, &|range| {
        total.fetch_add(range.map(&of).sum(), Ordering::Relaxed);
    });
    total.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 6] = [0, 1, 2, 97, 1_000, 10_007];

    #[test]
    fn every_index_has_its_own_result() {
        for n in SIZES {
            for min_len in [1, 64] {
                assert_eq!(map(n, min_len, |i| vec![i]), (0..n).map(|i| vec![i]).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn scratches_are_used_by_one_thread_at_a_time() {
        let of = |scratch: &mut Vec<usize>, i: usize| {
            scratch.clear();
            scratch.extend([i, i]);
            scratch.iter().sum::<usize>()
        };
        assert_eq!(map_with(10_007, 1, Vec::new, of), (0..10_007).map(|i| 2 * i).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_by_index_is_returned() {
        let of = |failing: &'static [usize]| {
            move |(): &mut (), i: usize| if failing.contains(&i) { Err(i) } else { Ok(i) }
        };
        assert_eq!(try_map_with(10_007, || (), of(&[])), Ok((0..10_007).collect()));
        assert_eq!(try_map_with(10_007, || (), of(&[9_000, 700, 701])), Err(700));
        let items = || (0..10_007).collect();
        let given =
            |failing| try_for_each_item_with(items(), || (), move |(), i| of(failing)(&mut (), i).map(drop));
        assert_eq!((given(&[]), given(&[10_006])), (Ok(()), Err(10_006)));
    }

    #[test]
    fn every_item_is_given_once() {
        for n in SIZES {
            let items: Vec<Box<usize>> = (0..n).map(Box::new).collect();
            let given = Mutex::new(vec![0; n]);
            for_each_item(items, 1, |item| given.lock().unwrap()[*item] += 1);
            assert_eq!(given.into_inner().unwrap(), vec![1; n]);
        }
    }

    #[test]
    fn chunks_tile_a_slice() {
        for n in SIZES {
            let mut values = vec![0; n];
            for_chunks_mut(&mut values, 7, |begin, chunk| {
                assert!(chunk.len() == 7 || begin + chunk.len() == n);
                chunk.iter_mut().zip(begin..).for_each(|(value, i)| *value += i);
            });
            assert_eq!(values, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_value_and_item_is_changed_once() {
        for n in SIZES {
            let mut values: Vec<usize> = (0..n).collect();
            for_each_mut(&mut values, 16, |value| *value += 3);
            assert_eq!(values, (3..n + 3).collect::<Vec<_>>());
            let items = values.iter_mut().collect();
            let before = map_items(items, |value: &mut usize| std::mem::replace(value, 0));
            assert_eq!((before, values), ((3..n + 3).collect(), vec![0; n]));
        }
    }

    #[test]
    fn both_functions_run_and_nest() {
        fn sum(range: Range<usize>) -> usize {
            match range.len() {
                0 | 1 => range.sum(),
                n => {
                    let middle = range.start + n / 2;
                    let (low, high) = join(|| sum(range.start..middle), || sum(middle..range.end));
                    low + high
                }
            }
        }
        for n in SIZES {
            assert_eq!(sum(0..n), (0..n).sum());
            assert_eq!(super::sum(n, 1, |i| i), (0..n).sum());
        }
    }

    #[test]
    fn counts_of_chunks_add_up() {
        for n in SIZES {
            let mut values = vec![0; n];
            let counts = count_chunks_mut(&mut values, 5, 3, |begin, chunk, counts| {
                assert!(chunk.len() % 5 == 0 || begin + chunk.len() == n);
                chunk.iter_mut().zip(begin..).for_each(|(value, i)| *value = i);
                chunk.iter().for_each(|value| counts[*value % 3] += 1);
            });
            assert_eq!(counts, [0, 1, 2].map(|class| (n + 2 - class) / 3));
            assert_eq!(values, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_index_and_all_are_found() {
        for n in SIZES {
            for from in [0, 1, n / 2, n.saturating_sub(1), n] {
                let is_so = |i| i == from || i > from && i % 3 == 0;
                assert_eq!(first(n, 16, is_so), (from..n).next(), "{from} of {n}");
                let all: Vec<u32> = (0..n).filter(|&i| is_so(i)).map(|i| i as u32).collect();
                assert_eq!(filter(n, is_so), all);
            }
        }
    }

    #[test]
    fn all_sees_the_last_index() {
        for n in SIZES {
            assert!(all(n, 1, |i| i < n));
            assert_eq!(all(n, 16, |i| i + 1 < n), n == 0);
        }
    }
}
