//! Which rank works on which cells.

mod bisection;
mod centres;
mod classes;
mod collection;
mod distributed;
mod hilbert;
mod local_numbering;
mod part;
mod pieces;
mod scatter;
mod subset;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use centres::{Centres, Places};
use femtile_device::parallel;

use crate::Mesh;

pub use collection::{GatheredMesh, OwnedMesh};
pub use distributed::{BoxCubes, DistributedMesh, GlobalMeshSize, OwnedCells};
pub use part::{MeshPart, cells_alone};
pub use scatter::{Scatter, n_owned_edges};

/// Cells of a parallel task.
const CELLS: usize = 1 << 12;

/// Ways to divide a mesh among ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Partitioner {
    /// Cuts across the longest side of each remaining part, at the median of the cells: the fewest neighbours
    /// on most meshes.
    #[default]
    Bisection,
    /// Pieces of a Hilbert curve through the cells: faster, and little moves when cells are added.
    Hilbert,
}

impl Partitioner {
    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bisection => "bisection",
            Self::Hilbert => "hilbert",
        }
    }

    /// Divides the cells of a mesh among ranks, whose numbers of cells differ by one at most.
    ///
    /// The result depends on the mesh alone, so ranks that have the mesh need no communication.
    ///
    /// # Cost
    /// $n \log p$ for n cells and p ranks by bisection, n along the curve and a sort of the cells about its cuts.
    /// # Source
    /// `[berger1987]`; the curve `[skilling2004]`.
    pub fn divide(self, mesh: &Mesh, n_ranks: usize) -> Partition {
        let ranks = match mesh.kind.n_nodes() {
            2 => self.ranks(&Centres::<2>::of(mesh), mesh.dimension(), n_ranks),
            3 => self.ranks(&Centres::<3>::of(mesh), mesh.dimension(), n_ranks),
            4 => self.ranks(&Centres::<4>::of(mesh), mesh.dimension(), n_ranks),
            n => {
                debug_assert_eq!(n, 8, "nodes of a cell");
                self.ranks(&Centres::<8>::of(mesh), mesh.dimension(), n_ranks)
            }
        };
        Partition { ranks, n_ranks }
    }

    fn ranks(self, centres: &impl Places, dimension: usize, n_ranks: usize) -> Vec<u32> {
        match self {
            Self::Bisection => bisection::divide(centres, n_ranks),
            Self::Hilbert => hilbert::divide(centres, dimension, n_ranks),
        }
    }
}

/// The rank of each cell of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    ranks: Vec<u32>,
    n_ranks: usize,
}

/// How even a partition is, and how much it cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionQuality {
    /// Cells of the rank with the fewest.
    pub fewest_cells: usize,
    /// Cells of the rank with the most.
    pub most_cells: usize,
    /// Nodes of cells of several ranks.
    pub n_shared_nodes: usize,
}

impl Partition {
    /// Creates the partition from the rank of each cell; none if a rank is not below `n_ranks`.
    pub fn new(ranks: Vec<u32>, n_ranks: usize) -> Option<Self> {
        ranks.iter().all(|&rank| (rank as usize) < n_ranks).then_some(Self { ranks, n_ranks })
    }

    /// Gives all cells to one rank.
    pub fn one(n_cells: usize) -> Self {
        Self { ranks: vec![0; n_cells], n_ranks: 1 }
    }

    /// Returns the rank of each cell.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    /// Returns the owner of each node, the lowest rank of its cells; `u32::MAX` if no cell uses the node.
    ///
    /// # Panics
    /// If the mesh has another number of cells.
    pub fn owners(&self, mesh: &Mesh) -> Vec<u32> {
        assert_eq!(self.ranks.len(), mesh.n_cells(), "a partition is of one mesh");
        let owners = parallel::map(mesh.n_nodes(), parallel::CHEAP, |_| AtomicU32::new(u32::MAX));
        self.for_each_cell(mesh, |rank, nodes| {
            for &node in nodes {
                let owner = &owners[node as usize];
                // Hardly any cell lowers the owner that others gave; to read it costs less.
                if rank < owner.load(Relaxed) {
                    owner.fetch_min(rank, Relaxed);
                }
            }
        });
        owners.into_iter().map(AtomicU32::into_inner).collect()
    }

    /// Returns how even it is, and how much it cuts, for nodes with these [owners](Partition::owners).
    ///
    /// # Panics
    /// If the mesh has another number of cells or nodes.
    pub fn quality(&self, mesh: &Mesh, owners: &[u32]) -> PartitionQuality {
        let is_shared = self.shared(mesh, owners);
        let mut n_cells = vec![0; self.n_ranks];
        self.ranks.iter().for_each(|&rank| n_cells[rank as usize] += 1);
        PartitionQuality {
            fewest_cells: n_cells.iter().copied().min().unwrap_or(0),
            most_cells: n_cells.iter().copied().max().unwrap_or(0),
            n_shared_nodes: is_shared.into_iter().filter(|is_shared| *is_shared).count(),
        }
    }

    /// Returns whether each node belongs to cells of several ranks; `owners` are its
    /// [owners](Partition::owners).
    fn shared(&self, mesh: &Mesh, owners: &[u32]) -> Vec<bool> {
        assert_eq!([self.ranks.len(), owners.len()], [mesh.n_cells(), mesh.n_nodes()], "of one mesh");
        let is_shared = parallel::map(mesh.n_nodes(), parallel::CHEAP, |_| AtomicBool::new(false));
        self.for_each_cell(mesh, |rank, nodes| {
            for &node in nodes {
                if owners[node as usize] != rank {
                    is_shared[node as usize].store(true, Relaxed);
                }
            }
        });
        is_shared.into_iter().map(AtomicBool::into_inner).collect()
    }

    /// Shows the rank and the nodes of each cell.
    fn for_each_cell(&self, mesh: &Mesh, show: impl Fn(u32, &[u32]) + Sync) {
        let n = mesh.kind.n_nodes();
        parallel::map_chunks(&self.ranks, CELLS, |first, ranks| {
            let cells = mesh.cells[first * n..].chunks_exact(n);
            ranks.iter().zip(cells).for_each(|(&rank, nodes)| show(rank, nodes));
        });
    }
}
