use femtile::device::{Buffer, Cpu, Scalar};
use femtile::linalg::sparse::csr::dot_of_entries;
use femtile::linalg::{LinalgError, need_product};

use super::{Coo, CooKernels};
use crate::formats::cpu::{TILE, sum_tiles};

impl<T: Scalar> CooKernels<T> for Cpu {
    fn coo_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
        add: bool,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let (y, x) = (y.as_mut_slice(), x.as_slice());
        if a.values.is_empty() {
            y.iter_mut().filter(|_| !add).for_each(|y| *y = T::ZERO);
            return Ok(());
        }
        let rows = a.rows.as_slice();
        let first_row = |tile: usize| match rows.get(tile * TILE) {
            Some(&row) if tile > 0 => row as usize,
            Some(_) => 0,
            None => a.n_rows,
        };
        let mut open = a.carries.lock();
        // SAFETY: rows ascend from entry to entry, and all are below `n_rows`, the length of y.
        unsafe {
            sum_tiles(
                self,
                y,
                open.sums.as_mut_slice(),
                first_row,
                #[inline(always)]
                |tile, rows, y| {
                    if !add {
                        y.fill(T::ZERO);
                    }
                    // SAFETY: the matrix was made from a sound one, and the length of x was checked above.
                    sum_tile(y, rows.start, a, tile * TILE, x)
                },
            );
        }
        Ok(())
    }
}

/// Adds the rows of a tile of entries to y, which begins at `first_row`; gives the sum of the last one where y ends
/// before it.
///
/// # Safety
/// Columns are below `x.len()`.
#[inline(always)]
unsafe fn sum_tile<T: Scalar>(y: &mut [T], first_row: usize, a: &Coo<T, Cpu>, tile: usize, x: &[T]) -> T {
    let end = (tile + TILE).min(a.n_nonzeros());
    let rows = &a.rows.as_slice()[tile..end];
    let (columns, values) = (&a.columns.as_slice()[tile..end], &a.values.as_slice()[tile..end]);
    let mut begin = 0;
    for run in rows.chunk_by(|a, b| a == b) {
        let entries = begin..begin + run.len();
        begin = entries.end;
        // SAFETY: the caller promises that columns are below `x.len()`.
        let sum = unsafe { dot_of_entries(&columns[entries.clone()], &values[entries], x) };
        match y.get_mut(run[0] as usize - first_row) {
            Some(y) => *y += sum,
            None => return sum,
        }
    }
    T::ZERO
}
