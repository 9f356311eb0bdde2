use std::ops::Range;

use femtile::device::cpu::SharedMut;
use femtile::device::{Buffer, Cpu, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;
use femtile::linalg::vector::sum::{BLOCK, n_blocks};

use super::{HookKernels, TileKernels};

/// Entries of a tile. Sums of rows are cut where tiles meet, whatever the number of threads, so that it does not
/// change their bits.
pub(super) const TILE: usize = 4096;
/// Tiles that one thread takes at least: below this a second thread costs more than it brings.
const MIN_TILES: usize = 8;
/// Blocks of rows that one thread takes at least in the pass of a hook.
const MIN_BLOCKS: usize = 4;

impl TileKernels for Cpu {
    fn tile_entries(&self) -> usize {
        TILE
    }

    fn tile_carries(&self, n_entries: usize) -> usize {
        n_entries.div_ceil(TILE)
    }
}

impl<T: Scalar> HookKernels<T> for Cpu {
    fn hook_rows(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
        product: impl FnOnce(&mut Buffer<T, Self>) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        let n = y.len();
        if x.len() != n {
            return product(y);
        }
        hook.pre(0..n);
        product(y)?;
        let (x, y) = (x.as_slice(), y.as_slice());
        self.for_ranges(n_blocks(n), MIN_BLOCKS, |blocks| {
            for block in blocks {
                let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
                hook.post(rows.clone(), &x[rows.clone()], &y[rows]);
            }
        });
        Ok(())
    }
}

/// Sums rows by tiles of entries: `work` is given a tile, the rows that end in it and their part of y, and gives
/// what it leaves open of the row that the next tile begins with.
///
/// # Safety
/// `first_row(t)` ascends (not strictly) with the tile t, from 0 to the length of y for t = `open.len()`.
pub(super) unsafe fn sum_tiles<T: Scalar>(
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
