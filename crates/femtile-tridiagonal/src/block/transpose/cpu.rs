use bytemuck::Pod;

use super::MAX_LANES;

/// Entry e of run l becomes lane l of vector e; `ahead` entries further on, memory is asked for.
#[inline(always)]
pub(in crate::block) fn gather<V: Pod, T: Pod>(to: &mut [V], runs: &[&[T]; MAX_LANES], ahead: usize) {
    let (len, lanes) = (to.len(), size_of::<V>() / size_of::<T>());
    let to: &mut [T] = bytemuck::cast_slice_mut(to);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if lanes > 1 {
        let tile = 32 / size_of::<T>();
        for begin in (0..lanes).step_by(tile) {
            let from: &[&[T]] = &runs[begin..begin + tile];
            assert!(from.iter().all(|run| run.len() >= len));
            done = len / tile * tile;
            // SAFETY: the runs have the entries, and `to` is long enough for all; vectors of several lanes mean AVX2.
            unsafe { transpose_in(&mut to[begin..], lanes, from, done, ahead) };
        }
    }
    for lane in 0..lanes {
        for (place, &value) in runs[lane][..len].iter().enumerate().skip(done) {
            to[place * lanes + lane] = value;
        }
    }
}

/// Lane l of vector e becomes entry e of run l; lanes whose run is empty are left out.
#[inline(always)]
pub(in crate::block) fn scatter<V: Pod, T: Pod>(from: &[V], runs: &mut [&mut [T]; MAX_LANES]) {
    let (len, lanes) = (from.len(), size_of::<V>() / size_of::<T>());
    let from: &[T] = bytemuck::cast_slice(from);
    let mut done = [0; MAX_LANES];
    #[cfg(target_arch = "x86_64")]
    if lanes > 1 {
        let tile = 32 / size_of::<T>();
        for begin in (0..lanes).step_by(tile) {
            let to = &mut runs[begin..begin + tile];
            if to.iter().any(|run| run.len() < len) {
                continue;
            }
            while done[begin] + tile <= len {
                // SAFETY: the tile lies within the runs; vectors of several lanes mean that there is AVX2.
                unsafe { transpose_out(&from[done[begin] * lanes + begin..], lanes, to, done[begin]) };
                done[begin] += tile;
            }
            let all = done[begin];
            done[begin..begin + tile].fill(all);
        }
    }
    for (lane, run) in runs.iter_mut().enumerate().take(lanes) {
        for (place, value) in run.iter_mut().enumerate().skip(done[lane]) {
            *value = from[place * lanes + lane];
        }
    }
}

/// Undoes [`transpose_in`].
///
/// # Safety
/// The processor has AVX2, and each run has the entries.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_out<T: Pod>(from: &[T], stride: usize, runs: &mut [&mut [T]], place: usize) {
    use std::arch::x86_64::*;
    let tile = 32 / size_of::<T>();
    assert!(runs.len() == tile && from.len() >= (tile - 1) * stride + tile);
    let from = from.as_ptr();
    // SAFETY: the stores lie within the runs and the loads within `from`, as was checked.
    unsafe {
        if tile == 4 {
            let mut rows = [_mm256_setzero_pd(); 4];
            for (column, row) in rows.iter_mut().enumerate() {
                *row = _mm256_loadu_pd(from.add(column * stride).cast());
            }
            transpose_4(&mut rows);
            for (run, entries) in runs.iter_mut().zip(rows) {
                _mm256_storeu_pd(run.as_mut_ptr().add(place).cast(), entries);
            }
        } else {
            let mut rows = [_mm256_setzero_ps(); 8];
            for (column, row) in rows.iter_mut().enumerate() {
                *row = _mm256_loadu_ps(from.add(column * stride).cast());
            }
            transpose_8(&mut rows);
            for (run, entries) in runs.iter_mut().zip(rows) {
                _mm256_storeu_ps(run.as_mut_ptr().add(place).cast(), entries);
            }
        }
    }
}

/// Transposes the first `len` entries of 4 runs of f64 or 8 runs of f32, in tiles of 32 bytes each way.
///
/// # Safety
/// The processor has AVX2; each run has `len` entries, a multiple of those of a tile; `to` holds rows of a tile
/// `stride` apart, one for each entry.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_in<T: Pod>(to: &mut [T], stride: usize, runs: &[&[T]], len: usize, ahead: usize) {
    use std::arch::x86_64::*;
    let tile = 32 / size_of::<T>();
    let mut from = [std::ptr::null(); 8];
    from.iter_mut().zip(runs).for_each(|(pointer, run)| *pointer = run.as_ptr());
    let to = to.as_mut_ptr();
    // SAFETY: the loads lie within the runs and the stores within `to`; a prefetch may go anywhere.
    unsafe {
        for place in (0..len).step_by(tile) {
            // Once for each line of the caches, that is for every other tile.
            if place & tile == 0 {
                for run in from.iter().take(tile) {
                    _mm_prefetch::<_MM_HINT_T0>(run.wrapping_add(place + ahead).cast());
                }
            }
            let to = to.add(place * stride);
            if tile == 4 {
                // Halves of two runs are loaded into one vector, which spares the exchange of halves.
                let pair = |run: usize, entry: usize| {
                    let low = _mm_loadu_pd(from[run].add(place + entry).cast());
                    let high = _mm_loadu_pd(from[run + 2].add(place + entry).cast());
                    _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high)
                };
                for entry in [0, 2] {
                    let (even, odd) = (pair(0, entry), pair(1, entry));
                    _mm256_storeu_pd(to.add(entry * stride).cast(), _mm256_unpacklo_pd(even, odd));
                    _mm256_storeu_pd(to.add((entry + 1) * stride).cast(), _mm256_unpackhi_pd(even, odd));
                }
            } else {
                let mut rows = [_mm256_setzero_ps(); 8];
                for (row, run) in rows.iter_mut().zip(from) {
                    *row = _mm256_loadu_ps(run.add(place).cast());
                }
                transpose_8(&mut rows);
                for (column, entries) in rows.into_iter().enumerate() {
                    _mm256_storeu_ps(to.add(column * stride).cast(), entries);
                }
            }
        }
    }
}

/// # Safety
/// The processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_4(rows: &mut [std::arch::x86_64::__m256d; 4]) {
    use std::arch::x86_64::*;
    // SAFETY: the caller vouches for AVX.
    unsafe {
        let (a, b) = (_mm256_unpacklo_pd(rows[0], rows[1]), _mm256_unpackhi_pd(rows[0], rows[1]));
        let (c, d) = (_mm256_unpacklo_pd(rows[2], rows[3]), _mm256_unpackhi_pd(rows[2], rows[3]));
        *rows = [
            _mm256_permute2f128_pd::<0x20>(a, c),
            _mm256_permute2f128_pd::<0x20>(b, d),
            _mm256_permute2f128_pd::<0x31>(a, c),
            _mm256_permute2f128_pd::<0x31>(b, d),
        ];
    }
}

/// # Safety
/// The processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_8(rows: &mut [std::arch::x86_64::__m256; 8]) {
    use std::arch::x86_64::*;
    // SAFETY: the caller vouches for AVX.
    unsafe {
        // Half h of `quads[4 g + e]` is entry 4 h + e of rows 4 g to 4 g + 3.
        let mut quads = *rows;
        for g in [0, 4] {
            let first = _mm256_castps_pd(_mm256_unpacklo_ps(rows[g], rows[g + 1]));
            let second = _mm256_castps_pd(_mm256_unpacklo_ps(rows[g + 2], rows[g + 3]));
            quads[g] = _mm256_castpd_ps(_mm256_unpacklo_pd(first, second));
            quads[g + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(first, second));
            let first = _mm256_castps_pd(_mm256_unpackhi_ps(rows[g], rows[g + 1]));
            let second = _mm256_castps_pd(_mm256_unpackhi_ps(rows[g + 2], rows[g + 3]));
            quads[g + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(first, second));
            quads[g + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(first, second));
        }
        for e in 0..4 {
            rows[e] = _mm256_permute2f128_ps::<0x20>(quads[e], quads[4 + e]);
            rows[4 + e] = _mm256_permute2f128_ps::<0x31>(quads[e], quads[4 + e]);
        }
    }
}
