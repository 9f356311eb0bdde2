//! The parts of a mesh that one rank has whole, for all ranks.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use femtile_device::parallel;

use super::classes::sort_by_class;
use super::distributed::GlobalMeshSize;
use super::local_numbering::{COPIED, HERE, absent, number, sort_ghosts};
use super::part::{ABSENT, fields_of};
use super::subset::{BITS, Subset};
use super::{CELLS, MeshPart, Partition};
use crate::cells::different;
use crate::check::BoundaryFacets;
use crate::extents::extents;
use crate::generate::Counts;
use crate::{CellKind, Facets, Mesh};

/// Cells per batch of a thread.
const BLOCK: usize = 1 << 16;

/// A whole mesh with its division among ranks.
#[derive(Debug)]
pub struct Scatter<'m> {
    mesh: &'m Mesh,
    boundary: &'m BoundaryFacets,
    owners: Vec<u32>,
    is_shared: Vec<bool>,
    /// The cells of each block of cells by the ranks that own nodes of them.
    touched: Vec<Touched>,
    /// Of each node its mark and its number in the part that is being taken; none between parts.
    marks: Vec<AtomicU8>,
    local: Vec<AtomicU32>,
    /// Tags of cells and facets without a name, with their dimension.
    nameless: BTreeSet<(usize, i32)>,
}

impl<'m> Scatter<'m> {
    /// Takes a mesh with the facets on its boundary.
    ///
    /// # Cost
    /// Beyond the mesh 4 bytes for each cell and rank that owns a node of it, and 10 bytes per node.
    /// # Panics
    /// If the partition is one of a mesh with another number of cells.
    pub fn new(mesh: &'m Mesh, boundary: &'m BoundaryFacets, partition: &Partition) -> Self {
        let owners = partition.owners(mesh);
        let is_shared = partition.shared(mesh, &owners);
        let of =
            |tags: &[i32], dimension: usize| different(tags).into_iter().map(move |tag| (dimension, tag));
        let (of_cells, dimension) = (of(&mesh.cell_tags, mesh.dimension()), mesh.dimension());
        let tags = of_cells.chain(of(&mesh.facets.tags, dimension - 1));
        let nameless = tags.filter(|tag| !mesh.tag_names.contains_key(tag)).collect();
        let n_blocks = mesh.n_cells().div_ceil(BLOCK);
        let touched = parallel::map(n_blocks, 1, |block| Touched::in_block(mesh, &owners, block));
        let marks = parallel::map(mesh.n_nodes(), parallel::CHEAP, |_| AtomicU8::new(0));
        let local = absent(mesh.n_nodes());
        Self { mesh, boundary, owners, is_shared, touched, marks, local, nameless }
    }

    /// Returns whether each of `n_ranks` owns a node, and unnamed tags can be named by their numbers.
    pub fn serves_all(&self, n_ranks: usize) -> bool {
        let is_taken = |(dimension, tag): &(usize, i32)| {
            let number = tag.to_string();
            self.mesh.tag_names.iter().any(|((d, _), name)| d == dimension && *name == number)
        };
        if self.nameless.iter().any(is_taken) {
            return false;
        }
        let mut has_node = vec![false; n_ranks];
        let ranks = self.owners.iter().filter_map(|&owner| usize::try_from(owner).ok());
        ranks.filter(|&rank| rank < n_ranks).for_each(|rank| has_node[rank] = true);
        has_node.into_iter().all(|has_node| has_node)
    }

    /// Extracts the part of a rank with its tagged facets and fields, and the number of owned nodes that are
    /// used by cells of other ranks. None if it owns no node. An unnamed tag gets its number as a name, so
    /// that ranks can identify each other's tags.
    ///
    /// # Cost
    /// That of the part, and of the tagged facets, the boundary and a bit for each cell of the whole mesh.
    pub fn part(&mut self, rank: usize) -> Option<(MeshPart, usize)> {
        let cells = self.cells(rank as u32);
        if cells.is_empty() {
            return None;
        }
        let (nodes, n_owned) = self.nodes(&cells, rank as u32);
        number(&nodes, &self.local);
        let mut words = vec![0_u64; self.mesh.n_cells().div_ceil(BITS)];
        cells.iter().for_each(|&cell| words[cell as usize / BITS] |= 1 << (cell as usize % BITS));
        let of = (self.mesh, self.boundary);
        let cells = (&Subset::new(words), cells);
        let mut part = MeshPart::with(of, &self.owners, cells, (nodes, n_owned, &self.local));
        part.mesh.facets = self.tagged_facets();
        part.mesh.cell_fields = fields_of(&self.mesh.cell_fields, &part.cells);
        part.mesh.node_fields = fields_of(&self.mesh.node_fields, &part.nodes);
        let named = self.nameless.iter().map(|&(dimension, tag)| ((dimension, tag), tag.to_string()));
        part.mesh.tag_names.extend(named);
        parallel::for_each(part.nodes.len(), parallel::CHEAP, |i| {
            let node = part.nodes[i] as usize;
            self.marks[node].store(0, Relaxed);
            self.local[node].store(ABSENT, Relaxed);
        });
        let is_shared = |node: &&u32| self.is_shared[**node as usize];
        let n_shared = part.nodes[..part.n_owned].iter().filter(is_shared).count();
        Some((part, n_shared))
    }

    /// The cells with a node that a rank owns, ascending.
    fn cells(&self, rank: u32) -> Vec<u32> {
        self.touched.iter().flat_map(|touched| touched.of(rank)).copied().collect()
    }

    /// The nodes of the cells of a rank in the order of its part, and how many of them it owns.
    fn nodes(&self, cells: &[u32], rank: u32) -> (Vec<u32>, usize) {
        let owner = |node: u32| self.owners[node as usize];
        let new_of = |cell: u32| {
            let nodes = self.mesh.cell(cell as usize);
            let mark = if nodes.iter().all(|&node| owner(node) == rank) { HERE } else { COPIED };
            // Most nodes have their mark already, and to read one costs less than to write it.
            let is_new = move |node: &&u32| {
                let known = &self.marks[**node as usize];
                known.load(Relaxed) & mark != mark && known.fetch_or(mark, Relaxed) == 0
            };
            nodes.iter().filter(is_new).copied()
        };
        let new_of_cells = |_, cells: &[u32]| cells.iter().copied().flat_map(new_of).collect::<Vec<u32>>();
        let mut all = parallel::map_chunks(cells, CELLS, new_of_cells).concat();
        parallel::sort(&mut all);
        let class = |node: u32| match (owner(node) == rank, self.marks[node as usize].load(Relaxed)) {
            (true, mark) => usize::from(mark == COPIED),
            (false, _) => 2,
        };
        let mut nodes = vec![0; all.len()];
        let [inner, copied, _] = sort_by_class::<3>(&mut nodes, |at| class(all[at]), |at| all[at]);
        let n_owned = inner + copied;
        sort_ghosts(&mut nodes[n_owned..], &self.owners);
        (nodes, n_owned)
    }

    /// The tagged facets whose nodes all have a number in the part.
    fn tagged_facets(&self) -> Facets {
        let mut facets = Facets::default();
        for (facet, &tag) in self.mesh.facets.tags.iter().enumerate() {
            let nodes = self.mesh.facet(facet).iter().map(|&node| self.local[node as usize].load(Relaxed));
            if nodes.clone().all(|node| node != ABSENT) {
                facets.nodes.extend(nodes);
                facets.tags.push(tag);
            }
        }
        facets
    }

    /// Returns the description of the whole mesh. `n_edges` is its number of edges, which does not matter for
    /// simplices.
    pub fn whole(&self, n_edges: u64) -> GlobalMeshSize {
        let mesh = self.mesh;
        let [n_nodes, n_cells] = [mesh.n_nodes(), mesh.n_cells()].map(|n| n as u64);
        // Each side of a cell is on the boundary or shared by two.
        let n_sides = (n_cells * mesh.kind.facets().len() as u64 + self.boundary.len() as u64) / 2;
        let entities = match mesh.dimension() {
            1 => [n_nodes, n_cells, 0, 0],
            2 => [n_nodes, n_sides, n_cells, 0],
            _ => [n_nodes, n_edges, n_sides, n_cells],
        };
        let extents = extents(mesh.n_nodes(), |node| mesh.points[node]);
        GlobalMeshSize { counts: Counts::from(mesh), entities, extents }
    }
}

/// Returns the number of owned edges of the hexahedra of a part. An edge belongs to the higher owner of its
/// two ends, so one rank counts each edge of the whole mesh. Zero for other cells.
pub fn n_owned_edges(part: &MeshPart, rank: usize) -> u64 {
    if part.mesh.kind != CellKind::Hexahedron {
        return 0;
    }
    let rank = rank as u32;
    let is_own = |&(a, b): &(u32, u32)| part.owner(a, rank).max(part.owner(b, rank)) == rank;
    let of_facet = |facet: &'static [usize]| (0..4).map(move |i| (facet[i], facet[(i + 1) % 4]));
    let mut ends: Vec<(usize, usize)> =
        CellKind::Hexahedron.facets().iter().flat_map(|facet| of_facet(facet)).collect();
    ends.iter_mut().for_each(|(a, b)| (*a, *b) = ((*a).min(*b), (*a).max(*b)));
    ends.sort_unstable();
    ends.dedup();
    let of_cell = |nodes: &[u32]| {
        let edge = |&(a, b): &(usize, usize)| (nodes[a].min(nodes[b]), nodes[a].max(nodes[b]));
        let own = ends.iter().map(edge).filter(is_own);
        own.map(|(a, b)| u64::from(a) << 32 | u64::from(b)).collect::<Vec<u64>>()
    };
    let of_cells = |_, cells: &[u32]| cells.chunks_exact(8).flat_map(of_cell).collect::<Vec<u64>>();
    let mut edges = parallel::map_chunks(&part.mesh.cells, 8 * CELLS, of_cells).concat();
    parallel::sort(&mut edges);
    edges.dedup();
    edges.len() as u64
}

/// Cells of a block, ascending for each rank that owns nodes of them.
#[derive(Debug)]
struct Touched {
    cells: Vec<u32>,
    /// The ranks, ascending, with the end of their cells.
    ends: Vec<(u32, u32)>,
}

impl Touched {
    /// Finds the cells of a block of a mesh whose nodes have these owners.
    fn in_block(mesh: &Mesh, owners: &[u32], block: usize) -> Self {
        let cells = block * BLOCK..((block + 1) * BLOCK).min(mesh.n_cells());
        let mut touched = Vec::with_capacity(cells.len() + cells.len() / 8);
        for cell in cells {
            let begin = touched.len();
            for &node in mesh.cell(cell) {
                let of_cell = (owners[node as usize], cell as u32);
                if !touched[begin..].contains(&of_cell) {
                    touched.push(of_cell);
                }
            }
        }
        touched.sort_unstable();
        let mut ends: Vec<(u32, u32)> = Vec::new();
        for (&(rank, _), end) in touched.iter().zip(1..) {
            match ends.last_mut() {
                Some(last) if last.0 == rank => last.1 = end,
                _ => ends.push((rank, end)),
            }
        }
        Self { cells: touched.into_iter().map(|(_, cell)| cell).collect(), ends }
    }

    /// Returns the cells of a rank.
    fn of(&self, rank: u32) -> &[u32] {
        let Ok(at) = self.ends.binary_search_by_key(&rank, |(rank, _)| *rank) else { return &[] };
        let begin = if at == 0 { 0 } else { self.ends[at - 1].1 };
        &self.cells[begin as usize..self.ends[at].1 as usize]
    }
}
