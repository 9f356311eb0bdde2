//! Cells of each block of rows.

use std::ops::Range;

use femtile_device::parallel;
use femtile_mesh::Mesh;

/// Cells counted together when they are sorted into blocks of rows.
const CELLS_PER_PART: usize = 1 << 16;
/// Most parts: their tables stay small for any number of cells.
const MAX_PARTS: usize = 256;

/// The cells of each block of $2^k$ consecutive rows, ascending.
///
/// Blocks depend only on the mesh, not on the number of threads, so sums by block have the same bits on any machine.
///
/// # Cost
/// Two sweeps over the cells; 4 bytes per block of each cell, between one and four blocks per cell.
#[derive(Debug)]
pub(super) struct RowBlocks {
    n_rows: usize,
    /// Logarithm of the number of rows in a block.
    shift: u32,
    parts: Vec<CellLists>,
}

/// Contributions of consecutive cells to the lists of all blocks.
#[derive(Debug)]
struct CellLists {
    /// Start of the list of each block: `[n_blocks + 1]`.
    offsets: Vec<u32>,
    cells: Vec<u32>,
}

impl RowBlocks {
    /// Creates blocks of `2^shift` rows.
    pub fn new(mesh: &Mesh, shift: u32) -> Self {
        let n_rows = mesh.n_nodes();
        let n_blocks = n_rows.div_ceil(1 << shift);
        let per_part = CELLS_PER_PART.max(mesh.n_cells().div_ceil(MAX_PARTS));
        let n_corners = mesh.kind.n_nodes();
        let of_part = |begin: usize, cells: &[u32]| match n_corners {
            3 => CellLists::new::<3>(cells.as_chunks().0, (begin / 3) as u32, shift, n_blocks),
            _ => CellLists::new::<4>(cells.as_chunks().0, (begin / n_corners) as u32, shift, n_blocks),
        };
        Self { n_rows, shift, parts: parallel::map_chunks(&mesh.cells, per_part * n_corners, of_part) }
    }

    /// Returns the number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(1 << self.shift)
    }

    /// Returns the rows of a block.
    pub fn rows(&self, block: usize) -> Range<usize> {
        block << self.shift..((block + 1) << self.shift).min(self.n_rows)
    }

    /// Returns the block of a row.
    pub fn block_of(&self, row: u32) -> usize {
        (row >> self.shift) as usize
    }

    /// Writes the cells of a block to `cells`.
    pub fn cells_of(&self, block: usize, cells: &mut Vec<u32>) {
        cells.clear();
        for part in &self.parts {
            cells.extend(&part.cells[part.offsets[block] as usize..part.offsets[block + 1] as usize]);
        }
    }
}

impl CellLists {
    fn new<const N: usize>(cells: &[[u32; N]], first: u32, shift: u32, n_blocks: usize) -> Self {
        let mut offsets = vec![0u32; n_blocks + 1];
        for cell in cells {
            each_block(cell, shift, |block| offsets[block + 1] += 1);
        }
        for block in 0..n_blocks {
            offsets[block + 1] += offsets[block];
        }
        let mut next = offsets.clone();
        let mut list = vec![0; offsets[n_blocks] as usize];
        for (i, cell) in cells.iter().enumerate() {
            each_block(cell, shift, |block| {
                list[next[block] as usize] = first + i as u32;
                next[block] += 1;
            });
        }
        Self { offsets, cells: list }
    }
}

/// Calls `visit` once for each block of a cell.
#[inline]
fn each_block<const N: usize>(cell: &[u32; N], shift: u32, mut visit: impl FnMut(usize)) {
    let blocks = cell.map(|node| node >> shift);
    for (i, &block) in blocks.iter().enumerate() {
        if !blocks[..i].contains(&block) {
            visit(block as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::generate::{BoxConfig, box_mesh};

    #[test]
    fn every_block_lists_the_cells_that_touch_it_in_order() {
        let mesh = box_mesh(&BoxConfig { cells: [3, 4, 5], ..BoxConfig::default() }).unwrap();
        for shift in [0, 2, 5, 10] {
            let blocks = RowBlocks::new(&mesh, shift);
            let mut found = Vec::new();
            for block in 0..blocks.n_blocks() {
                let rows = blocks.rows(block);
                blocks.cells_of(block, &mut found);
                let touches =
                    |cell: &u32| mesh.cell(*cell as usize).iter().any(|&n| rows.contains(&(n as usize)));
                let expected: Vec<u32> = (0..mesh.n_cells() as u32).filter(touches).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
