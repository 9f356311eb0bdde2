//! The part of a mesh that a rank keeps.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use femtile_device::parallel;

use super::classes::by_class;
use super::local_numbering::{LocalNumbering, absent, number, touched};
use super::subset::{BITS, Subset};
use super::{CELLS, OwnedCells};
use crate::check::BoundaryFacets;
use crate::{CellKind, Curved, Field, Mesh};

/// The part of a mesh that the unknowns of a rank depend on: all cells that touch a node which it owns, and others if asked for.
///
/// Local node numbers: first owned nodes that no other rank copies, then owned nodes that others copy, then
/// ghosts, sorted by owner. Tags and shapes of cells are kept. Fields and tagged facets are kept if
/// [`Scatter`](super::Scatter) extracts the part.
///
/// # Source
/// `[kronbichler2022]`, section 5.3: unknowns that neighbours need are numbered last.
#[derive(Debug)]
pub struct MeshPart {
    /// The cells, in their global order.
    pub mesh: Mesh,
    /// The facets of these cells on the boundary of the whole mesh.
    pub boundary: BoundaryFacets,
    /// Global number of each node.
    pub nodes: Vec<u32>,
    /// Global number of each cell.
    pub cells: Vec<u32>,
    /// Position of each boundary facet in the boundary of the whole mesh.
    pub facets: Vec<u32>,
    /// Number of nodes that the rank owns.
    pub n_owned: usize,
    /// The owner of each ghost.
    pub owners: Vec<u32>,
}

/// The number of a point or node that is not in the part.
pub(super) const ABSENT: u32 = u32::MAX;

impl MeshPart {
    /// Extracts the part of `rank` from the owners of nodes
    /// ([`Partition::owners`](super::Partition::owners)); none if the rank owns no node.
    ///
    /// # Panics
    /// If the owners are those of another mesh.
    pub fn new(mesh: &Mesh, boundary: &BoundaryFacets, owners: &[u32], rank: usize) -> Option<Self> {
        Self::and_cells(mesh, boundary, owners, rank, |_| false)
    }

    /// Returns the part as [`Self::new`] does, extended by the cells for which `is_added` holds. None if the part has no cells.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn and_cells(
        mesh: &Mesh,
        boundary: &BoundaryFacets,
        owners: &[u32],
        rank: usize,
        is_added: impl Fn(u32) -> bool + Sync,
    ) -> Option<Self> {
        let rank = rank as u32;
        let (here, marks) = touched(mesh, owners, rank, &is_added);
        let cells = here.members();
        if cells.is_empty() {
            return None;
        }
        let LocalNumbering { nodes, n_owned, local } = LocalNumbering::new(&marks, owners, rank);
        drop(marks);
        Some(Self::with((mesh, boundary), owners, (&here, cells), (nodes, n_owned, &local)))
    }

    /// Returns the owner of a local node; `rank` is the rank of this part.
    ///
    /// # Panics
    /// If there is no node with this number.
    #[inline]
    pub fn owner(&self, node: u32, rank: u32) -> u32 {
        (node as usize).checked_sub(self.n_owned).map_or(rank, |ghost| self.owners[ghost])
    }

    /// Extracts these cells and nodes; `local` has the local numbers.
    pub(super) fn with(
        (mesh, boundary): (&Mesh, &BoundaryFacets),
        owners: &[u32],
        (here, cells): (&Subset, Vec<u32>),
        (nodes, n_owned, local): (Vec<u32>, usize, &[AtomicU32]),
    ) -> Self {
        let (boundary, facets) = facets_of(mesh, boundary, here, local);
        let own = mesh_of(mesh, &cells, &nodes, local);
        let owners = picked(owners, &nodes[n_owned..]);
        Self { mesh: own, boundary, nodes, cells, facets, n_owned, owners }
    }
}

/// Extracts some cells of a mesh with those facets of a list that are theirs.
pub fn cells_alone(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    is_taken: impl Fn(u32) -> bool + Sync,
) -> OwnedCells {
    let n_cells = mesh.n_cells();
    let word = |word: usize| {
        let cells = word * BITS..((word + 1) * BITS).min(n_cells);
        cells.fold(0, |bits, cell| bits | u64::from(is_taken(cell as u32)) << (cell % BITS))
    };
    let here = Subset::new(parallel::map(n_cells.div_ceil(BITS), CELLS / BITS, word));
    let cells = here.members();
    let local = absent(mesh.n_nodes());
    parallel::for_each(cells.len(), CELLS, |i| {
        mesh.cell(cells[i] as usize).iter().for_each(|&node| local[node as usize].store(0, Relaxed));
    });
    let class = |node: usize| usize::from(local[node].load(Relaxed) == ABSENT);
    let (nodes, _) = by_class::<1>(mesh.n_nodes(), class);
    number(&nodes, &local);
    let (boundary, facets) = facets_of(mesh, boundary, &here, &local);
    let mut own = mesh_of(mesh, &cells, &nodes, &local);
    own.cell_fields = fields_of(&mesh.cell_fields, &cells);
    own.node_fields = fields_of(&mesh.node_fields, &nodes);
    OwnedCells { mesh: own, boundary, facets, nodes, cells }
}

/// The values of fields at some nodes or cells.
pub(super) fn fields_of(fields: &BTreeMap<String, Field>, of: &[u32]) -> BTreeMap<String, Field> {
    let taken = |field: &Field| {
        let n = field.n_components;
        let values = of.iter().flat_map(|&at| &field.values[at as usize * n..][..n]).copied().collect();
        Field { n_components: n, values }
    };
    fields.iter().map(|(name, field)| (name.clone(), taken(field))).collect()
}

/// Some of many values.
fn picked<T: Copy + Send + Sync>(values: &[T], at: &[u32]) -> Vec<T> {
    parallel::map(at.len(), parallel::CHEAP, |i| values[at[i] as usize])
}

/// The mesh of some cells and their nodes.
fn mesh_of(mesh: &Mesh, cells: &[u32], nodes: &[u32], local: &[AtomicU32]) -> Mesh {
    let tags = &mesh.cell_tags;
    Mesh {
        points: picked(&mesh.points, nodes),
        kind: mesh.kind,
        is_surface: mesh.is_surface,
        cells: cells_of(mesh, cells, local),
        curved: mesh.curved.as_ref().map(|curved| curved_of(curved, cells, mesh.dimension())),
        cell_tags: if tags.is_empty() { Vec::new() } else { picked(tags, cells) },
        facets: crate::Facets::default(),
        tag_names: mesh.tag_names.clone(),
        cell_fields: BTreeMap::<String, Field>::new(),
        node_fields: BTreeMap::new(),
        division: None,
        notes: Vec::new(),
    }
}

/// The nodes of some cells by their numbers in the part.
fn cells_of(mesh: &Mesh, cells: &[u32], local: &[AtomicU32]) -> Vec<u32> {
    let mut all = vec![0; cells.len() * mesh.kind.n_nodes()];
    match mesh.kind.n_nodes() {
        2 => write_cells::<2>(mesh, cells, local, &mut all),
        3 => write_cells::<3>(mesh, cells, local, &mut all),
        4 => write_cells::<4>(mesh, cells, local, &mut all),
        _ => write_cells::<8>(mesh, cells, local, &mut all),
    }
    all
}

/// Writes [`cells_of`] of `N` nodes.
fn write_cells<const N: usize>(mesh: &Mesh, cells: &[u32], local: &[AtomicU32], all: &mut [u32]) {
    let whole = mesh.cells.as_chunks::<N>().0;
    parallel::for_chunks_mut(all.as_chunks_mut::<N>().0, CELLS, |first, to| {
        for (to, &cell) in to.iter_mut().zip(&cells[first..]) {
            let nodes = &whole[cell as usize];
            (0..N).for_each(|i| to[i] = local[nodes[i] as usize].load(Relaxed));
        }
    });
}

/// The shapes of some cells.
pub(super) fn curved_of(curved: &Curved, cells: &[u32], dimension: usize) -> Curved {
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

/// The boundary facets of some cells, and their positions in the whole boundary.
fn facets_of(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    here: &Subset,
    local: &[AtomicU32],
) -> (BoundaryFacets, Vec<u32>) {
    let class = |facet: usize| usize::from(!here.has(boundary.cells[facet]));
    let (facets, [n_facets]) = by_class::<1>(boundary.len(), class);
    let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
    let mut nodes = vec![0; n_facets * n];
    parallel::for_chunks_mut(&mut nodes, CELLS * n, |begin, nodes| {
        let of_facets = facets[begin / n..].iter().flat_map(|&facet| boundary.facet(facet as usize));
        nodes.iter_mut().zip(of_facets).for_each(|(to, &node)| *to = local[node as usize].load(Relaxed));
    });
    let cells = parallel::map(n_facets, CELLS, |i| here.place(boundary.cells[facets[i] as usize]));
    let local = picked(&boundary.local, &facets);
    (BoundaryFacets { nodes, cells, local }, facets)
}
