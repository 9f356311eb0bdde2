use std::ops::Range;

use femtile::device::{Buffer, Cpu, Scalar};
use femtile::linalg::sparse::Offsets;
use femtile::linalg::sparse::csr::dot_of_entries;
use femtile::linalg::{LinalgError, need_product};

use super::{Merge, MergeKernels};
use crate::formats::cpu::{TILE, sum_tiles};

impl<T: Scalar> MergeKernels<T> for Cpu {
    fn merge_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Merge<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.matrix.n_rows(), a.matrix.n_cols()], y.len(), x.len())?;
        match a.matrix.offsets() {
            Offsets::Narrow(offsets) => {
                apply(self, y, a, |row| offsets.as_slice()[row] as usize, x.as_slice())
            }
            Offsets::Wide(offsets) => apply(self, y, a, |row| offsets.as_slice()[row] as usize, x.as_slice()),
        }
        Ok(())
    }
}

fn apply<T: Scalar>(
    cpu: &Cpu,
    y: &mut Buffer<T, Cpu>,
    a: &Merge<T, Cpu>,
    offset: impl Fn(usize) -> usize + Sync,
    x: &[T],
) {
    let y = y.as_mut_slice();
    if a.n_nonzeros() == 0 {
        return y.fill(T::ZERO);
    }
    let (n_rows, tile_rows) = (y.len(), a.tile_rows.as_slice());
    let mut open = a.carries.lock();
    // SAFETY: entries of ascending tiles lie in ascending rows, and the last number is that of all rows; CSR matrices
    // have columns below `n_cols`, and `merge_apply` has checked that x has as many entries.
    unsafe {
        sum_tiles(
            cpu,
            y,
            open.sums.as_mut_slice(),
            |tile| tile_rows[tile] as usize,
            #[inline(always)]
            |tile, rows, y| {
                let begin = tile * TILE;
                for (y, row) in y.iter_mut().zip(rows.clone()) {
                    *y = dot(a, offset(row).max(begin)..offset(row + 1), x);
                }
                if rows.end == n_rows {
                    return T::ZERO;
                }
                dot(a, offset(rows.end).max(begin)..begin + TILE, x)
            },
        );
    }
}

/// The part of a product that some neighbouring entries make.
///
/// # Safety
/// Columns are below `x.len()`.
#[inline(always)]
unsafe fn dot<T: Scalar>(a: &Merge<T, Cpu>, entries: Range<usize>, x: &[T]) -> T {
    let (columns, values) = (a.matrix.columns().as_slice(), a.matrix.values().as_slice());
    // SAFETY: the caller promises that columns are below `x.len()`.
    unsafe { dot_of_entries(&columns[entries.clone()], &values[entries], x) }
}
