use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::sum::{BLOCK, n_blocks};
use femtile_linalg::{LinalgError, need_product};

use super::columns::Columns;
use super::reference::{sort_on_host, unsort_on_host};
use super::refill::Refill;
use super::slices::Slices;
use super::{EllWarp, EllWarpConfig, EllWarpKernels};
use crate::Csr;

/// Stored entries that one thread takes at least: below this a second thread costs more than it brings.
const MIN_ENTRIES: usize = 1 << 15;
/// Blocks of rows that a thread takes at least when it calls a hook after the product.
const MIN_BLOCKS: usize = 4;

impl<T: Scalar, V: Scalar> EllWarpKernels<T, V> for Cpu {
    const LANES: &'static [usize] = &[4, 8, 16, 32];

    fn ell_warp_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let product = Product::new(a, x);
        match a.config.lanes {
            4 => apply::<T, V, 4>(self, &product, y, hook),
            8 => apply::<T, V, 8>(self, &product, y, hook),
            16 => apply::<T, V, 16>(self, &product, y, hook),
            _ => apply::<T, V, 32>(self, &product, y, hook),
        }
        Ok(())
    }

    fn ell_warp_convert(
        &self,
        csr: &Csr<V, Self>,
        config: &EllWarpConfig,
    ) -> Result<EllWarp<T, Self, V>, LinalgError> {
        EllWarp::from_csr(self, csr, config)
    }

    fn ell_warp_stored(&self, csr: &Csr<V, Self>, config: &EllWarpConfig) -> Result<usize, LinalgError> {
        Ok(Slices::new(&csr.row_lengths(), config)?.n_stored())
    }

    fn ell_warp_refill(&self, a: &mut EllWarp<T, Self, V>, csr: &Csr<V, Self>) -> Result<(), LinalgError> {
        a.need_pattern_of(csr)?;
        let (refill, values) = Refill::new(a, csr);
        let (parts, starts) = (n_parts(self, values.len()), refill.starts());
        let shared = SharedMut::new(values);
        in_parts(self, parts, &|part| {
            let slices = slices_of_part(starts, part, parts);
            // SAFETY: each slice is of one part, and its values are its own.
            refill.fill(slices.clone(), unsafe { shared.range(refill.stored(slices)) });
        });
        Ok(())
    }

    fn ell_warp_sort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError> {
        sort_on_host(to, from, a)
    }

    fn ell_warp_unsort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError> {
        unsort_on_host(to, from, a)
    }
}

/// The arrays of a matrix and x, as the loops take them.
struct Product<'a, T, V> {
    n_rows: usize,
    is_square: bool,
    starts: &'a [u32],
    shapes: Option<(&'a [u32], &'a [u32])>,
    rows: Option<&'a [u32]>,
    of_blocks: Option<&'a [u32]>,
    columns: ColumnSlices<'a>,
    values: &'a [V],
    x: &'a [T],
}

#[derive(Clone, Copy)]
enum ColumnSlices<'a> {
    Full(&'a [u32]),
    Delta { words: &'a [u16], starts: &'a [u32], bases: &'a [u32] },
}

impl<'a, T: Scalar, V: Scalar> Product<'a, T, V> {
    fn new(a: &'a EllWarp<T, Cpu, V>, x: &'a Buffer<T, Cpu>) -> Self {
        let columns = match &*a.columns {
            Columns::Full(columns) => ColumnSlices::Full(columns.as_slice()),
            Columns::Delta { words, starts, bases } => ColumnSlices::Delta {
                words: words.as_slice(),
                starts: starts.as_slice(),
                bases: bases.as_slice(),
            },
        };
        Self {
            n_rows: a.n_rows,
            is_square: a.n_rows == a.n_cols,
            starts: a.layout.starts.as_slice(),
            shapes: a.layout.shapes.as_ref().map(|(firsts, folds)| (firsts.as_slice(), folds.as_slice())),
            rows: a.scatters().map(Buffer::as_slice),
            of_blocks: a.layout.of_blocks.as_deref(),
            columns,
            values: a.values.as_slice(),
            x: x.as_slice(),
        }
    }

    /// Blocks of rows of a part.
    fn blocks(&self, of_blocks: &[u32], part: usize, parts: usize) -> Range<usize> {
        let bound = |part| bound(self.starts, of_blocks, |slice| self.starts[slice as usize], part, parts);
        bound(part)..bound(part + 1)
    }
}

/// Slices of a part.
fn slices_of_part(starts: &[u32], part: usize, parts: usize) -> Range<usize> {
    let bound = |part| bound(starts, starts, |start| start, part, parts);
    bound(part)..bound(part + 1)
}

/// Returns where part `part` of `parts` begins among pieces whose first columns `begin` returns, each part with
/// about as many stored entries.
fn bound(starts: &[u32], begins: &[u32], begin: impl Fn(u32) -> u32, part: usize, parts: usize) -> usize {
    let end = starts.last().copied().unwrap_or(0) as usize;
    match part {
        0 => 0,
        _ if part == parts => begins.len() - 1,
        _ => begins.partition_point(|&piece| (begin(piece) as usize) < end * part / parts),
    }
}

/// Returns the number of parts to divide `n_stored` entries into, one for each thread.
fn n_parts(cpu: &Cpu, n_stored: usize) -> usize {
    (n_stored / MIN_ENTRIES).clamp(1, cpu.threads())
}

/// Does the work of each part on a thread of its own.
fn in_parts(cpu: &Cpu, parts: usize, work: &(dyn Fn(usize) + Sync)) {
    if parts == 1 {
        return work(0);
    }
    cpu.for_threads(|part| {
        if part < parts {
            work(part);
        }
    });
}

fn apply<T: Scalar, V: Scalar, const LANES: usize>(
    cpu: &Cpu,
    a: &Product<'_, T, V>,
    y: &mut Buffer<T, Cpu>,
    hook: &dyn Hook<T>,
) {
    if a.is_square {
        hook.pre(0..a.n_rows);
    }
    let parts = n_parts(cpu, a.values.len());
    let shared = SharedMut::new(y.as_mut_slice());
    let post = |block: usize| {
        if a.is_square {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(a.n_rows);
            // SAFETY: all rows of a block are written before it is handed on, and by one thread alone.
            hook.post(rows.clone(), &a.x[rows.clone()], unsafe { shared.range(rows) });
        }
    };
    if let Some(of_blocks) = a.of_blocks {
        in_parts(cpu, parts, &|part| {
            for block in a.blocks(of_blocks, part, parts) {
                let slices = of_blocks[block] as usize..of_blocks[block + 1] as usize;
                multiply::<T, V, LANES>(cpu, a, slices, &shared);
                post(block);
            }
        });
    } else {
        in_parts(cpu, parts, &|part| {
            multiply::<T, V, LANES>(cpu, a, slices_of_part(a.starts, part, parts), &shared);
        });
        cpu.for_ranges(n_blocks(a.n_rows), MIN_BLOCKS, |blocks| blocks.for_each(post));
    }
}

/// y of the rows of some slices.
fn multiply<T: Scalar, V: Scalar, const LANES: usize>(
    cpu: &Cpu,
    a: &Product<'_, T, V>,
    slices: Range<usize>,
    y: &SharedMut<'_, T>,
) {
    cpu.vectorize(
        #[inline(always)]
        || {
            for slice in slices {
                let entries = a.starts[slice] as usize * LANES..a.starts[slice + 1] as usize * LANES;
                // SAFETY: columns were below the length of x when the matrix was made, and x has kept its length.
                let sums = unsafe { sums_of_slice::<T, V, LANES>(a, slice, entries) };
                write_rows(a, slice, sums, y);
            }
        },
    );
}

/// Sums of each lane of a slice, whatever stands for its columns.
///
/// # Safety
/// Columns are below the length of x.
#[inline(always)]
unsafe fn sums_of_slice<T: Scalar, V: Scalar, const LANES: usize>(
    a: &Product<'_, T, V>,
    slice: usize,
    entries: Range<usize>,
) -> [T; LANES] {
    let (n, values) = (entries.len(), (a.values, entries.clone()));
    match a.columns {
        ColumnSlices::Full(columns) => {
            let of_slice = &columns[entries.clone()];
            // SAFETY: the caller promises that columns are below the length of x; there is one for each value.
            unsafe {
                sums(
                    values,
                    (columns, entries.start),
                    a.x,
                    #[inline(always)]
                    |first, lane| *of_slice.get_unchecked(first + lane),
                )
            }
        }
        ColumnSlices::Delta { words, starts, bases } => {
            let first = starts[slice] as usize * LANES;
            let of_slice = &words[first..starts[slice + 1] as usize * LANES];
            let mut last = [bases[slice]; LANES];
            // SAFETY: as above; there are one or two words for each value.
            unsafe {
                if of_slice.len() == n {
                    sums(
                        values,
                        (words, first),
                        a.x,
                        #[inline(always)]
                        |first, lane| {
                            last[lane] += u32::from(*of_slice.get_unchecked(first + lane));
                            last[lane]
                        },
                    )
                } else {
                    sums(
                        values,
                        (words, first),
                        a.x,
                        #[inline(always)]
                        |first, lane| {
                            let at = 2 * (first + lane);
                            u32::from(*of_slice.get_unchecked(at))
                                | u32::from(*of_slice.get_unchecked(at + 1)) << 16
                        },
                    )
                }
            }
        }
    }
}

/// Adds the lanes of each row and writes the rows of a slice.
#[inline(always)]
fn write_rows<T: Scalar, V: Scalar, const LANES: usize>(
    a: &Product<'_, T, V>,
    slice: usize,
    mut sums: [T; LANES],
    y: &SharedMut<'_, T>,
) {
    if a.shapes.is_none() && a.rows.is_none() && (slice + 1) * LANES <= a.n_rows {
        // SAFETY: these rows belong to this slice alone.
        unsafe { y.range(slice * LANES..(slice + 1) * LANES) }.copy_from_slice(&sums);
        return;
    }
    let (first, n) = match a.shapes {
        None => (slice * LANES, LANES.min(a.n_rows - slice * LANES)),
        Some((firsts, folds)) => {
            for _ in 0..folds[slice] {
                for row in 0..LANES / 2 {
                    sums[row] = sums[2 * row] + sums[2 * row + 1];
                }
            }
            (firsts[slice] as usize, (firsts[slice + 1] - firsts[slice]) as usize)
        }
    };
    for (place, &sum) in (first..first + n).zip(&sums) {
        let row = a.rows.map_or(place, |rows| rows[place] as usize);
        // SAFETY: each row is at one place of one slice, and rows are below the length of y.
        unsafe { y.write(row, sum) };
    }
}

/// Prefetch distance for values and columns of a slice, in entries: the processor's own prefetching keeps up with
/// the two streams only in part (24 against 30 GB/s out of the last-level cache of an AMD EPYC, Zen 3).
const AHEAD: usize = 384;

/// Asks for the lines of the entries `first..first + LANES`, each line once; they may lie past the end.
#[inline(always)]
fn prefetch<const LANES: usize, E>(array: &[E], first: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let (begin, bytes) = (first * size_of::<E>(), LANES * size_of::<E>());
        let address = array.as_ptr().cast::<i8>();
        if bytes >= LINE {
            for line in 0..bytes / LINE {
                // SAFETY: every x86-64 processor has this instruction, and it may be given any address.
                unsafe { _mm_prefetch(address.wrapping_add(begin + line * LINE), _MM_HINT_T0) };
            }
        } else if begin % LINE < bytes {
            // SAFETY: as above.
            unsafe { _mm_prefetch(address.wrapping_add(begin), _MM_HINT_T0) };
        }
    }
}

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Sums of each lane over the columns of a slice, whose entries begin at `first`; `column` gives lane by lane the
/// columns of x that belong to some entries.
///
/// # Safety
/// Columns are below the length of x.
#[inline(always)]
unsafe fn sums<T: Scalar, V: Scalar, C, const LANES: usize>(
    values: (&[V], Range<usize>),
    columns: (&[C], usize),
    x: &[T],
    mut column: impl FnMut(usize, usize) -> u32,
) -> [T; LANES] {
    let mut sums = [T::ZERO; LANES];
    let ((values, range), (words, mut word)) = (values, columns);
    let of_slice = &values[range.clone()];
    for (j, of_column) in of_slice.as_chunks::<LANES>().0.iter().enumerate() {
        prefetch::<LANES, V>(values, range.start + j * LANES + AHEAD);
        prefetch::<LANES, C>(words, word + AHEAD);
        word += LANES;
        for lane in 0..LANES {
            // SAFETY: the caller promises that columns are below the length of x.
            let x = unsafe { *x.get_unchecked(column(j * LANES, lane) as usize) };
            sums[lane] += T::from_f64(of_column[lane].to_f64()) * x;
        }
    }
    sums
}
