//! The part of a mesh that a rank keeps.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::CELLS;
use crate::check::BoundaryFacets;
use crate::{CellKind, Curved, Field, Mesh};

/// The part of a mesh that the unknowns of a rank depend on: all cells that touch a node which it owns.
///
/// Its numbers of nodes are its own: those that it owns and no other rank copies, then those that others copy, then its ghosts, sorted
/// by owner. Tags and shapes of cells are kept, fields and tagged facets are not.
///
/// # Source
/// `[kronbichler2022]`, section 5.3: what neighbours need is numbered last.
#[derive(Debug)]
pub struct Part {
    /// The cells, in their order in the whole mesh.
    pub mesh: Mesh,
    /// The facets of these cells on the boundary of the whole mesh.
    pub boundary: BoundaryFacets,
    /// Number of each node in the whole mesh.
    pub nodes: Vec<u32>,
    /// Number of each cell in the whole mesh.
    pub cells: Vec<u32>,
    /// Position of each boundary facet in the boundary of the whole mesh.
    pub facets: Vec<u32>,
    /// Number of nodes that the rank owns.
    pub n_owned: usize,
    /// The owner of each ghost.
    pub owners: Vec<u32>,
}

/// A node that is not part of it.
const ABSENT: u32 = u32::MAX;

impl Part {
    /// Takes the part of `rank`, where nodes have these owners ([`Partition::owners`](super::Partition::owners)); none where it
    /// owns no node.
    ///
    /// # Panics
    /// Where the owners are those of another mesh.
    pub fn new(mesh: &Mesh, boundary: &BoundaryFacets, owners: &[u32], rank: usize) -> Option<Self> {
        let rank = rank as u32;
        let is_owned = |node: &u32| owners[*node as usize] == rank;
        let touches = |cell: &u32| mesh.cell(*cell as usize).iter().any(is_owned);
        let cells: Vec<u32> =
            (0..mesh.n_cells() as u32).into_par_iter().with_min_len(CELLS).filter(touches).collect();
        if cells.is_empty() {
            return None;
        }
        let (nodes, n_owned) = numbered(mesh, &cells, owners, rank);
        let mut local = vec![ABSENT; mesh.n_nodes()];
        nodes.iter().zip(0..).for_each(|(&node, number)| local[node as usize] = number);
        let numbers = |nodes: &[u32]| nodes.iter().map(|&node| local[node as usize]).collect::<Vec<u32>>();
        let (boundary, facets) = facets_of(mesh, boundary, &cells, numbers);
        let tags = &mesh.cell_tags;
        let own = Mesh {
            points: nodes.iter().map(|&node| mesh.points[node as usize]).collect(),
            kind: mesh.kind,
            cells: cells_of(mesh, &cells, &local),
            curved: mesh.curved.as_ref().map(|curved| curved_of(curved, &cells, mesh.dimension())),
            cell_tags: if tags.is_empty() {
                Vec::new()
            } else {
                cells.iter().map(|&cell| tags[cell as usize]).collect()
            },
            facets: crate::Facets::default(),
            tag_names: mesh.tag_names.clone(),
            cell_fields: std::collections::BTreeMap::<String, Field>::new(),
            node_fields: std::collections::BTreeMap::new(),
            notes: Vec::new(),
        };
        let owners = nodes[n_owned..].iter().map(|&node| owners[node as usize]).collect();
        Some(Self { mesh: own, boundary, nodes, cells, facets, n_owned, owners })
    }
}

/// The nodes of some cells by their numbers in the part.
fn cells_of(mesh: &Mesh, cells: &[u32], local: &[u32]) -> Vec<u32> {
    let n = mesh.kind.n_nodes();
    let mut all = vec![0; cells.len() * n];
    all.par_chunks_mut(n).zip(cells).with_min_len(CELLS).for_each(|(to, &cell)| {
        let nodes = mesh.cell(cell as usize);
        to.iter_mut().zip(nodes).for_each(|(to, &node)| *to = local[node as usize]);
    });
    all
}

/// The shapes of some cells.
fn curved_of(curved: &Curved, cells: &[u32], dimension: usize) -> Curved {
    let n = curved.n_points(dimension);
    let of_cells = || cells.iter().flat_map(|&cell| &curved.cells[cell as usize * n..][..n]);
    let mut local = vec![ABSENT; curved.points.len()];
    let mut points = Vec::new();
    for &point in of_cells() {
        let number = &mut local[point as usize];
        if *number == ABSENT {
            *number = points.len() as u32;
            points.push(curved.points[point as usize]);
        }
    }
    Curved { order: curved.order, points, cells: of_cells().map(|&point| local[point as usize]).collect() }
}

/// The nodes of some cells in the order of a part, and how many of them the rank owns.
fn numbered(mesh: &Mesh, cells: &[u32], owners: &[u32], rank: u32) -> (Vec<u32>, usize) {
    let is_owned = |node: u32| owners[node as usize] == rank;
    // Another rank copies a node of a cell in which it owns one.
    let flags = || -> Vec<AtomicBool> {
        (0..mesh.n_nodes()).into_par_iter().map(|_| AtomicBool::new(false)).collect()
    };
    let (is_here, is_copied) = (flags(), flags());
    cells.par_iter().with_min_len(CELLS).for_each(|&cell| {
        let nodes = mesh.cell(cell as usize);
        let has_others = nodes.iter().any(|&node| !is_owned(node));
        for &node in nodes {
            is_here[node as usize].store(true, Relaxed);
            if has_others {
                is_copied[node as usize].store(true, Relaxed);
            }
        }
    });
    let (is_here, is_copied) = (
        |node: u32| is_here[node as usize].load(Relaxed),
        |node: u32| is_copied[node as usize].load(Relaxed),
    );
    let those = |of: &(dyn Fn(u32) -> bool + Sync)| -> Vec<u32> {
        let all = (0..mesh.n_nodes() as u32).into_par_iter().with_min_len(CELLS);
        all.filter(|&node| is_here(node) && of(node)).collect()
    };
    let mut nodes = those(&|node| is_owned(node) && !is_copied(node));
    nodes.extend(those(&|node| is_owned(node) && is_copied(node)));
    let n_owned = nodes.len();
    nodes.extend(those(&|node| !is_owned(node)));
    nodes[n_owned..].sort_unstable_by_key(|&node| (owners[node as usize], node));
    (nodes, n_owned)
}

/// The boundary facets of some cells, which ascend, and their positions in the whole boundary.
fn facets_of(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    cells: &[u32],
    numbers: impl Fn(&[u32]) -> Vec<u32>,
) -> (BoundaryFacets, Vec<u32>) {
    let mut local_cell = vec![ABSENT; mesh.n_cells()];
    cells.iter().zip(0..).for_each(|(&cell, number)| local_cell[cell as usize] = number);
    let is_here = |facet: &u32| local_cell[boundary.cells[*facet as usize] as usize] != ABSENT;
    let facets: Vec<u32> = (0..boundary.len() as u32).filter(is_here).collect();
    let per_facet = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
    let mut own =
        BoundaryFacets { nodes: Vec::with_capacity(facets.len() * per_facet), ..BoundaryFacets::default() };
    for &facet in &facets {
        let facet = facet as usize;
        own.nodes.extend(numbers(boundary.facet(facet)));
        own.cells.push(local_cell[boundary.cells[facet] as usize]);
        own.local.push(boundary.local[facet]);
    }
    (own, facets)
}
