use std::ops::Range;

use femtile::device::cpu::SharedMut;
use femtile::device::{Buffer, Cpu, Scalar};
use femtile::linalg::sparse::Offsets;
use femtile::linalg::sparse::csr::dot_of_entries;
use femtile::linalg::vector::map_blocks;
use femtile::linalg::{LinalgError, need_product};

use super::{Coo, Ell, FormatKernels, Merge};

/// Entries of a tile. Sums of rows are cut where tiles meet, whatever the number of threads, so that it does not
/// change their bits.
const TILE: usize = 4096;
/// Tiles that one thread takes at least: below this a second thread costs more than it brings.
const MIN_TILES: usize = 8;
/// Rows whose sums stay in the nearest cache while their entries are added column by column.
const ROWS: usize = 256;

impl<T: Scalar> FormatKernels<T> for Cpu {
    fn tile_entries(&self) -> usize {
        TILE
    }

    fn tile_carries(&self, n_entries: usize) -> usize {
        n_entries.div_ceil(TILE)
    }

    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let (y, x) = (y.as_mut_slice(), x.as_slice());
        map_blocks(
            self,
            a.n_rows,
            [y],
            #[inline(always)]
            |rows, [y]| {
                for (chunk, y) in y.chunks_mut(ROWS).enumerate() {
                    sum_rows(y, rows.start + chunk * ROWS, a, x);
                }
            },
        );
        Ok(())
    }

    fn coo_add(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let (y, x, rows) = (y.as_mut_slice(), x.as_slice(), a.rows.as_slice());
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
                // SAFETY: the matrix was made from a sound one, and the length of x was checked above.
                |tile, rows, y| sum_tile(y, rows.start, a, tile * TILE, x),
            );
        }
        Ok(())
    }

    fn merge_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Merge<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.matrix.n_rows(), a.matrix.n_cols()], y.len(), x.len())?;
        let (y, x) = (y.as_mut_slice(), x.as_slice());
        match a.matrix.offsets() {
            Offsets::Narrow(offsets) => merge(self, y, a, |row| offsets.as_slice()[row] as usize, x),
            Offsets::Wide(offsets) => merge(self, y, a, |row| offsets.as_slice()[row] as usize, x),
        }
        Ok(())
    }
}

/// Sums of the rows from `first_row` on, as many as there are in y.
#[inline(always)]
fn sum_rows<T: Scalar>(y: &mut [T], first_row: usize, a: &Ell<T, Cpu>, x: &[T]) {
    y.fill(T::ZERO);
    for step in 0..a.steps {
        let begin = step * a.pitch + first_row;
        let entries = begin..begin + y.len();
        let (columns, values) = (&a.columns.as_slice()[entries.clone()], &a.values.as_slice()[entries]);
        for (y, (&column, &value)) in y.iter_mut().zip(columns.iter().zip(values)) {
            // The column of padding lies beyond the end of every x.
            if let Some(&x) = x.get(column as usize) {
                *y += value * x;
            }
        }
    }
}

/// Adds the rows of a tile of entries to y, which begins at `first_row`; gives the sum of the last one where y ends
/// before it.
///
/// # Safety
/// Columns are below `x.len()`.
#[inline(always)]
unsafe fn sum_tile<T: Scalar>(y: &mut [T], first_row: usize, a: &Coo<T, Cpu>, tile: usize, x: &[T]) -> T {
    let end = (tile + TILE).min(a.values.len());
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

fn merge<T: Scalar>(
    cpu: &Cpu,
    y: &mut [T],
    a: &Merge<T, Cpu>,
    offset: impl Fn(usize) -> usize + Sync,
    x: &[T],
) {
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

/// Sums rows by tiles of entries: `work` is given a tile, the rows that end in it and their part of y, and gives
/// what it leaves open of the row that the next tile begins with.
///
/// # Safety
/// `first_row(t)` ascends (not strictly) with the tile t, from 0 to the length of y for t = `open.len()`.
unsafe fn sum_tiles<T: Scalar>(
    cpu: &Cpu,
    y: &mut [T],
    open: &mut [T],
    first_row: impl Fn(usize) -> usize + Sync,
    work: impl Fn(usize, Range<usize>, &mut [T]) -> T + Sync,
) {
    let n_tiles = open.len();
    let (shared_y, shared_open) = (SharedMut::new(y), SharedMut::new(open));
    cpu.for_ranges(n_tiles, MIN_TILES, |tiles| {
        // SAFETY: the ranges of one `for_ranges` do not overlap.
        let open = unsafe { shared_open.range(tiles.clone()) };
        for (tile, open) in tiles.zip(open) {
            let rows = first_row(tile)..first_row(tile + 1);
            // SAFETY: each tile is visited once, and the caller promises that their rows do not overlap.
            let y = unsafe { shared_y.range(rows.clone()) };
            *open = cpu.vectorize(
                #[inline(always)]
                || work(tile, rows, y),
            );
        }
    });
    for tile in 1..n_tiles {
        y[first_row(tile)] += open[tile - 1];
    }
}
