//! Gather and scatter between node vectors and patches in SIMD lanes, by transposing squares of nodes × patches.

use femtile_device::cpu::vector::{Lanes, Runs, ShortRuns, Vector};
use femtile_device::cpu::{SharedMut, SimdLevel, Source};
use femtile_device::{Cpu, Scalar};

use super::Rows;

/// Fewest nodes of a run for which a transpose pays.
const WORTH: usize = 3;

/// Lanes of the widest SIMD vector.
pub(crate) const MOST_LANES: usize = 16;

/// Gathers values of patches, `to: [rows][len][lanes]`; unused lanes repeat the last patch.
///
/// # Safety
/// No other thread writes the nodes of the rows; nothing else is read.
///
/// # Panics
/// Without a patch, or for nodes beyond the vector.
pub(crate) unsafe fn gather<T: Lanes>(
    cpu: &Cpu,
    rows: &Rows,
    firsts: &[u32],
    to: &mut [T],
    x: Source<'_, T>,
) {
    fit(rows, firsts, to.len(), x.len());
    match cpu.simd() {
        // SAFETY: the caller's promise; the nodes exist, and the device supports the SIMD level.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => unsafe {
            T::Avx2::vectorize(
                #[inline(always)]
                || gather_squares::<T, T::Avx2>(rows, firsts, to, x),
            );
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe {
            T::Avx512::vectorize(
                #[inline(always)]
                || gather_squares::<T, T::Avx512>(rows, firsts, to, x),
            );
        },
        _ => {
            for (offset, to) in rows.offsets.iter().zip(to.chunks_exact_mut(rows.len)) {
                for (k, to) in to.iter_mut().enumerate() {
                    // SAFETY: as above; the scalar path has a single lane.
                    *to = unsafe { x.read((firsts[0] + offset) as usize + k) };
                }
            }
        }
    }
}

/// Scatters values of patches, `from: [rows][len][lanes]`, by calling `act` with each node and its value.
///
/// # Safety
/// No other thread reads or writes the nodes of the rows.
///
/// # Panics
/// Without a patch, or for nodes beyond the vector.
pub(crate) unsafe fn scatter<T: Lanes>(
    cpu: &Cpu,
    rows: &Rows,
    firsts: &[u32],
    from: &[T],
    x: &SharedMut<'_, T>,
    act: impl Fn(&mut T, T),
) {
    fit(rows, firsts, from.len(), x.len());
    match cpu.simd() {
        // SAFETY: the caller's promise; the nodes exist, and the device supports the SIMD level.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => unsafe {
            T::Avx2::vectorize(
                #[inline(always)]
                || scatter_squares::<T, T::Avx2>(rows, firsts, from, x, &act),
            );
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe {
            T::Avx512::vectorize(
                #[inline(always)]
                || scatter_squares::<T, T::Avx512>(rows, firsts, from, x, &act),
            );
        },
        _ => {
            for (offset, from) in rows.offsets.iter().zip(from.chunks_exact(rows.len)) {
                // SAFETY: as above; the scalar path has a single lane.
                let to = unsafe { run(x, (firsts[0] + offset) as usize, rows.len) };
                to.iter_mut().zip(from).for_each(|(to, from)| act(to, *from));
            }
        }
    }
}

/// Panics unless the nodes of the patches exist and the workspace has the right length.
fn fit(rows: &Rows, firsts: &[u32], len: usize, n_nodes: usize) {
    let largest = |numbers: &[u32]| numbers.iter().fold(0, |largest, &number| largest.max(number)) as usize;
    assert!(largest(firsts) + largest(&rows.offsets) + rows.len <= n_nodes, "nodes beyond the vector");
    let n_lanes = len / rows.n_nodes();
    assert!(
        len == rows.n_nodes() * n_lanes && (1..=n_lanes).contains(&firsts.len()),
        "a workspace of another length"
    );
}

/// Returns a run of a vector.
///
/// # Safety
/// It lies within the vector, and no other thread reads or writes it.
#[inline(always)]
#[expect(clippy::mut_from_ref, reason = "the caller keeps runs apart")]
unsafe fn run<'a, T>(x: &'a SharedMut<'_, T>, begin: usize, len: usize) -> &'a mut [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(x.range_unchecked(begin, len), len) }
}

/// # Safety
/// As [`gather`]; nodes exist, and the CPU supports the instructions of `V`.
#[inline(always)]
unsafe fn gather_squares<T: Scalar, V: ShortRuns<T>>(
    rows: &Rows,
    firsts: &[u32],
    to: &mut [T],
    x: Source<'_, T>,
) {
    let lanes = V::LANES;
    let mut first_of = [firsts[firsts.len() - 1] as usize; MOST_LANES];
    first_of.iter_mut().zip(firsts).for_each(|(to, first)| *to = *first as usize);
    for (offset, to) in rows.offsets.iter().zip(to.chunks_exact_mut(rows.len * lanes)) {
        for (square, to) in to.chunks_mut(lanes * lanes).enumerate() {
            let begin = *offset as usize + square * lanes;
            let n = to.len() / lanes;
            let to = to.as_mut_ptr();
            // SAFETY: reads lie within x, writes in the n vectors of `to`; the CPU supports the instructions.
            unsafe {
                if 2 * n <= lanes {
                    gather_runs::<T, V>(n, to, |lane| x.address(first_of[lane] + begin));
                } else if n == lanes {
                    V::transpose(
                        #[inline(always)]
                        |lane| x.address(first_of[lane] + begin),
                        #[inline(always)]
                        |k| to.add(k * lanes),
                    );
                } else {
                    V::transpose_first(
                        n,
                        #[inline(always)]
                        |lane| x.address(first_of[lane] + begin),
                        #[inline(always)]
                        |k| to.add(k * lanes),
                    );
                }
            }
        }
    }
}

/// Gathers `n` nodes of each patch in runs of four, two and one.
///
/// # Safety
/// `n` values can be read at each place and `n` vectors written; the CPU supports the instructions of `V`.
#[inline(always)]
unsafe fn gather_runs<T: Scalar, V: ShortRuns<T>>(n: usize, to: *mut T, from: impl Fn(usize) -> *const T) {
    let mut k = 0;
    // SAFETY: runs end at n.
    unsafe {
        while k + 4 <= n {
            gather_run::<T, V, 4>(k, to, &from);
            k += 4;
        }
        if n & 2 != 0 {
            gather_run::<T, V, 2>(k, to, &from);
            k += 2;
        }
        if n & 1 != 0 {
            gather_run::<T, V, 1>(k, to, &from);
        }
    }
}

/// Gathers `K` nodes of each patch from `begin` on.
///
/// # Safety
/// These can be read and written; the CPU supports the instructions of `V`.
#[inline(always)]
unsafe fn gather_run<T: Scalar, V: Runs<T, K>, const K: usize>(
    begin: usize,
    to: *mut T,
    from: &impl Fn(usize) -> *const T,
) {
    // SAFETY: by the contract.
    unsafe {
        let found = V::read_runs(|lane| from(lane).add(begin));
        // No iterator: its closures would not be compiled for these vectors.
        #[allow(clippy::needless_range_loop)]
        for j in 0..K {
            found[j].store(to.add((begin + j) * V::LANES));
        }
    }
}

/// A square of values, aligned to a cache line.
#[repr(align(64))]
struct Square<T>([T; MOST_LANES * MOST_LANES]);

/// # Safety
/// As [`scatter`]; nodes exist, and the CPU supports the instructions of `V`.
#[inline(always)]
unsafe fn scatter_squares<T: Scalar, V: Vector<T>>(
    rows: &Rows,
    firsts: &[u32],
    from: &[T],
    x: &SharedMut<'_, T>,
    act: &impl Fn(&mut T, T),
) {
    let lanes = V::LANES;
    let mut square = Square([T::ZERO; MOST_LANES * MOST_LANES]);
    for (offset, from) in rows.offsets.iter().zip(from.chunks_exact(rows.len * lanes)) {
        for (number, from) in from.chunks(lanes * lanes).enumerate() {
            let begin = *offset as usize + number * lanes;
            let n = from.len() / lanes;
            if n < WORTH {
                for (k, from) in from.chunks_exact(lanes).enumerate() {
                    for (&first, &value) in firsts.iter().zip(from) {
                        // SAFETY: the node exists, and only the caller accesses it.
                        act(unsafe { &mut run(x, first as usize + begin + k, 1)[0] }, value);
                    }
                }
                continue;
            }
            let to = square.0.as_mut_ptr();
            // SAFETY: reads stay within the n vectors of `from`, the last of which fills missing rows; writes stay within
            // the square.
            unsafe {
                V::transpose(
                    #[inline(always)]
                    |k| from.as_ptr().add(k.min(n - 1) * lanes),
                    #[inline(always)]
                    |lane| to.add(lane * lanes),
                );
            }
            for (&first, values) in firsts.iter().zip(square.0.chunks_exact(lanes)) {
                // SAFETY: the run exists, and only the caller accesses it.
                let to = unsafe { run(x, first as usize + begin, n) };
                to.iter_mut().zip(values).for_each(|(to, value)| act(to, *value));
            }
        }
    }
}
