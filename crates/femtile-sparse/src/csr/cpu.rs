use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Element, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::sum::{BLOCK, n_blocks};
use femtile_linalg::{need, need_product};

use super::{Csr, CsrKernels, Offsets};

/// Non-zeros that one thread takes at least: below this a second thread costs more than it brings.
const MIN_NONZEROS: usize = 1 << 15;

impl<T: Scalar> CsrKernels<T> for Cpu {
    fn csr_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Csr<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        match a.offsets() {
            Offsets::Narrow(offsets) => apply_rows(self, y.as_mut_slice(), offsets.as_slice(), a, x, hook),
            Offsets::Wide(offsets) => apply_rows(self, y.as_mut_slice(), offsets.as_slice(), a, x, hook),
        }
        Ok(())
    }

    fn csr_inverse_diagonal(&self, d: &mut Buffer<T, Self>, a: &Csr<T, Self>) -> Result<(), LinalgError> {
        need("d", a.n_rows, d.len())?;
        self.install(|| {
            let blocks = parallel::map_chunks_mut(d.as_mut_slice(), BLOCK, |begin, d| {
                for (row, d) in (begin..).zip(d) {
                    let diagonal = a.row(row).find(|&(column, _)| column == row);
                    let entry = diagonal.map_or(T::ZERO, |(_, value)| value);
                    if !(entry > T::ZERO && entry.is_finite()) {
                        return Err(LinalgError::Diagonal { row, value: entry.to_f64() });
                    }
                    *d = T::ONE / entry;
                }
                Ok(())
            });
            blocks.into_iter().collect()
        })
    }
}

trait Offset: Element + Copy {
    fn index(self) -> usize;
}

impl Offset for u32 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

impl Offset for u64 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

fn apply_rows<T: Scalar, O: Offset>(
    cpu: &Cpu,
    y: &mut [T],
    offsets: &[O],
    a: &Csr<T, Cpu>,
    x: &Buffer<T, Cpu>,
    hook: &dyn Hook<T>,
) {
    let (columns, values, x) = (a.columns.as_slice(), a.values.as_slice(), x.as_slice());
    let square = a.n_rows == a.n_cols;
    if square {
        hook.pre(0..a.n_rows);
    }
    let shared = SharedMut::new(y);
    let product = |blocks: Range<usize>| {
        for block in blocks {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(a.n_rows);
            // SAFETY: each block belongs to one share, and blocks do not overlap.
            let y = unsafe { shared.range(rows.clone()) };
            let offsets = &offsets[rows.start..=rows.end];
            cpu.vectorize(
                #[inline(always)]
                || {
                    // SAFETY: `Csr::from_parts` has checked that offsets ascend within the entries and that
                    // every column is below `n_cols`, and `csr_apply` that x has `n_cols` entries.
                    unsafe { product_of_rows(y, offsets, columns, values, x) }
                },
            );
            if square {
                hook.post(rows.clone(), &x[rows], y);
            }
        }
    };
    match shares(cpu, offsets).as_slice() {
        [all] => product(all.clone()),
        shares => cpu.for_threads(|thread| product(shares.get(thread).cloned().unwrap_or_default())),
    }
}

/// Blocks of rows for each thread, contiguous, with about the same number of non-zeros in each share;
/// fewer shares than threads where the matrix is small.
fn shares<O: Offset>(cpu: &Cpu, offsets: &[O]) -> Vec<Range<usize>> {
    let n_rows = offsets.len().saturating_sub(1);
    let n_nonzeros = offsets.last().map_or(0, |end| end.index());
    let parts = (n_nonzeros / MIN_NONZEROS).clamp(1, cpu.threads());
    let bound = |part: usize| match part {
        0 => 0,
        _ if part == parts => n_blocks(n_rows),
        _ => {
            let target = n_nonzeros / parts * part;
            (offsets.partition_point(|offset| offset.index() < target) + BLOCK / 2) / BLOCK
        }
    };
    (0..parts).map(|part| bound(part)..bound(part + 1)).collect()
}

/// Prefetch distance ahead of a row, in entries. The processor's own prefetching keeps up
/// with the two streams only in part; on one core this is worth a sixth of the time (AMD EPYC, Zen 3).
const AHEAD: usize = 256;

/// `y[i] = Σ values · x[columns]` over the rows between consecutive `offsets`.
///
/// # Safety
/// Offsets ascend within `values` and `columns`, which have equal lengths; columns are below `x.len()`.
#[inline(always)]
unsafe fn product_of_rows<T: Scalar, O: Offset>(
    y: &mut [T],
    offsets: &[O],
    columns: &[u32],
    values: &[T],
    x: &[T],
) {
    let mut asked = offsets.first().map_or(0, |first| first.index()) + AHEAD;
    for (y, ends) in y.iter_mut().zip(offsets.windows(2)) {
        let (begin, end) = (ends[0].index(), ends[1].index());
        while asked < end + AHEAD {
            prefetch_16(values, asked);
            prefetch_16(columns, asked);
            asked += 16;
        }
        // SAFETY: the caller promises that rows lie within the entries and columns below `x.len()`.
        *y =
            unsafe { dot_of_entries(columns.get_unchecked(begin..end), values.get_unchecked(begin..end), x) };
    }
}

/// Asks for the cache lines of 16 entries from `first` on, which may lie past the end.
#[inline(always)]
fn prefetch_16<E>(array: &[E], first: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..16 * size_of::<E>() / 64 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = array.as_ptr().wrapping_add(first).cast::<i8>().wrapping_add(64 * line);
        // SAFETY: every x86-64 processor has this instruction, and it may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, first);
}

/// $\sum_i v_i x_{c_i}$ over consecutive entries, in four interleaved sums, in an order that is the same at every SIMD level.
///
/// Entries of x are loaded one by one: the gather instruction was measured a fifth slower.
///
/// # Safety
/// Columns are below `x.len()`.
#[inline(always)]
pub unsafe fn dot_of_entries<T: Scalar>(columns: &[u32], values: &[T], x: &[T]) -> T {
    // SAFETY: the caller promises that columns are below `x.len()`.
    let at = |column: u32| unsafe { *x.get_unchecked(column as usize) };
    let mut sums = [T::ZERO; 4];
    let (columns4, columns_rest) = columns.as_chunks::<4>();
    let (values4, values_rest) = values.as_chunks::<4>();
    for (columns, values) in columns4.iter().zip(values4) {
        for lane in 0..4 {
            sums[lane] += values[lane] * at(columns[lane]);
        }
    }
    for (lane, (&column, &value)) in columns_rest.iter().zip(values_rest).enumerate() {
        sums[lane] += value * at(column);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}
