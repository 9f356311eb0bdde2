//! Sparsity pattern: nodes that share a cell.

use std::ops::Range;

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Element, parallel};
use femtile_mesh::Mesh;
use femtile_sparse::csr::HostOffsets;

use super::row_blocks::RowBlocks;
use crate::FemError;

/// Rows and their columns, on the host.
#[derive(Debug, Clone)]
pub struct Sparsity {
    pub(super) offsets: HostOffsets,
    /// Ascending in each row.
    pub(super) columns: Vec<u32>,
}

impl Sparsity {
    /// Finds the pattern of linear elements on a mesh.
    ///
    /// # Errors
    /// [`FemError::OrphanNode`] for the first node without a cell.
    pub fn of(mesh: &Mesh) -> Result<Self, FemError> {
        Ok(pattern(mesh)?.1)
    }

    /// Returns the columns of a row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.columns[self.offsets.get(row)..self.offsets.get(row + 1)]
    }
}

/// The rows of one block.
#[derive(Default)]
struct BlockRows {
    lengths: Vec<u32>,
    columns: Vec<u32>,
    /// The first row without a cell.
    orphan: Option<usize>,
}

/// Workspace of one thread for a block.
#[derive(Default)]
struct Scratch {
    cells: Vec<u32>,
    /// The range of the nodes of all cells.
    nodes: Range<u32>,
    /// Start of the cells of each row of the block in `adjacent`.
    starts: Vec<u32>,
    /// Nodes of the cells of each row.
    adjacent: Vec<u32>,
    /// The last row that has visited each node of the range of a block, counted from 1. Each block has its
    /// own marks.
    met_by: Vec<u32>,
}

/// Returns the logarithm of the number of rows assembled together: at least sixteen blocks if there are enough rows,
/// few rim cells per block, and values that fit the cache. It depends only on the mesh, so the bits do not depend on
/// threads.
pub(super) fn block_shift(n_rows: usize) -> u32 {
    (n_rows / 16).max(1).ilog2().clamp(9, 15)
}

/// Returns the row blocks of a mesh and the pattern of its matrix.
///
/// # Errors
/// Errors of [`sparsity`].
pub(super) fn pattern(mesh: &Mesh) -> Result<(RowBlocks, Sparsity), FemError> {
    let blocks = RowBlocks::new(mesh, block_shift(mesh.n_nodes()));
    let pattern = match mesh.kind.n_nodes() {
        3 => sparsity::<3>(mesh, &blocks)?,
        _ => sparsity::<4>(mesh, &blocks)?,
    };
    Ok((blocks, pattern))
}

/// Computes the pattern of linear elements on a mesh of simplices with `N` corners.
///
/// Each block sorts its cells by row and collects the distinct nodes of each row.
///
/// # Cost
/// One visit of each pair of corners; 4 bytes per thread and node of the range that the cells of a block have, and 8 bytes
/// per non-zero temporarily.
/// # Errors
/// [`FemError::OrphanNode`] for the first node without a cell.
fn sparsity<const N: usize>(mesh: &Mesh, blocks: &RowBlocks) -> Result<Sparsity, FemError> {
    let parts = parallel::map_with(blocks.n_blocks(), 1, Scratch::default, |scratch, block| {
        block_rows::<N>(mesh, blocks, block, scratch)
    });
    if let Some(node) = parts.iter().find_map(|part| part.orphan) {
        return Err(FemError::OrphanNode { node, point: mesh.points[node] });
    }
    let n_entries: usize = parts.iter().map(|part| part.columns.len()).sum();
    let offsets = match u32::try_from(n_entries) {
        Ok(_) => HostOffsets::Narrow(offsets(mesh.n_nodes(), &parts, |offset| offset as u32)),
        Err(_) => HostOffsets::Wide(offsets(mesh.n_nodes(), &parts, |offset| offset as u64)),
    };
    let mut columns = zeroed_vec(n_entries);
    let mut rest = columns.as_mut_slice();
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let (place, after) = rest.split_at_mut(part.columns.len());
        places.push((place, part.columns));
        rest = after;
    }
    parallel::for_each_item(places, 1, |(place, part)| place.copy_from_slice(&part));
    Ok(Sparsity { offsets, columns })
}

/// Returns the offset of each row, and the end of the last row.
fn offsets<T: Element>(n_rows: usize, parts: &[BlockRows], of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut offsets = zeroed_vec(n_rows + 1);
    // The first is zero; each block writes the ends of its rows.
    let mut rest = &mut offsets[1..];
    let mut begin = 0;
    let mut work = Vec::with_capacity(parts.len());
    for part in parts {
        let (ends, after) = rest.split_at_mut(part.lengths.len());
        work.push((begin, ends, part));
        (rest, begin) = (after, begin + part.columns.len());
    }
    parallel::for_each_item(work, 1, |(mut end, ends, part)| {
        for (to, &length) in ends.iter_mut().zip(&part.lengths) {
            end += length as usize;
            *to = of(end);
        }
    });
    offsets
}

fn block_rows<const N: usize>(
    mesh: &Mesh,
    blocks: &RowBlocks,
    block: usize,
    scratch: &mut Scratch,
) -> BlockRows {
    let cells = mesh.cells.as_chunks::<N>().0;
    let rows = blocks.rows(block);
    blocks.cells_of(block, &mut scratch.cells);
    sort_by_row(cells, &rows, scratch);
    let first = scratch.nodes.start;
    if scratch.met_by.len() < scratch.nodes.len() {
        scratch.met_by.resize(scratch.nodes.len(), 0);
    }

    let mut found = BlockRows { lengths: Vec::with_capacity(rows.len()), ..BlockRows::default() };
    found.columns.reserve(scratch.adjacent.len() * 2 / 3);
    for (i, row) in rows.enumerate() {
        let start = found.columns.len();
        let mark = row as u32 + 1;
        for &cell in &scratch.adjacent[scratch.starts[i] as usize..scratch.starts[i + 1] as usize] {
            for node in cells[cell as usize] {
                let met_by = &mut scratch.met_by[(node - first) as usize];
                if *met_by != mark {
                    *met_by = mark;
                    found.columns.push(node);
                }
            }
        }
        found.columns[start..].sort_unstable();
        if found.columns.len() == start {
            found.orphan = found.orphan.or(Some(row));
        }
        found.lengths.push((found.columns.len() - start) as u32);
    }
    found
}

/// Lists the cells of each row of a block, ascending, and finds the range of their nodes.
fn sort_by_row<const N: usize>(cells: &[[u32; N]], rows: &Range<usize>, scratch: &mut Scratch) {
    let (first, n_rows) = (rows.start as u32, rows.len());
    // Filling moves each start to its end, which is the next one's start: hence the shift by one.
    scratch.starts.clear();
    scratch.starts.resize(n_rows + 2, 0);
    scratch.nodes = first..first;
    for &cell in &scratch.cells {
        for node in cells[cell as usize] {
            let Range { start, end } = &mut scratch.nodes;
            (*start, *end) = ((*start).min(node), (*end).max(node + 1));
            let row = node.wrapping_sub(first) as usize;
            if row < n_rows {
                scratch.starts[row + 2] += 1;
            }
        }
    }
    for row in 2..n_rows + 2 {
        scratch.starts[row] += scratch.starts[row - 1];
    }
    scratch.adjacent.clear();
    scratch.adjacent.resize(scratch.starts[n_rows + 1] as usize, 0);
    for &cell in &scratch.cells {
        for node in cells[cell as usize] {
            let row = node.wrapping_sub(first) as usize;
            if row < n_rows {
                let next = &mut scratch.starts[row + 1];
                scratch.adjacent[*next as usize] = cell;
                *next += 1;
            }
        }
    }
}
