//! A distributed mesh: every rank has its part and none has the whole.
//!
//! A `DistributedMesh` is a `MeshPart` with the global numbers of nodes and cells. Ranks make their parts of a box
//! from the cubes around their own (`generate/box_partition.rs`). For other meshes the first rank extracts the
//! parts of all ranks (`scatter`): one pass over the cells finds the ranks that they touch. It sends the
//! parts array by array (`ranks/scatter.rs` and `ranks/wire.rs` of `femtile-solve`).

use std::sync::OnceLock;

use femtile_device::parallel;

use super::MeshPart;
use super::part::cells_alone;
use crate::check::BoundaryFacets;
use crate::generate::{Counts, DeformConfig, deformation};
use crate::{Mesh, MeshError};

/// The part of a rank of a mesh that nobody has whole.
///
/// A cell is an own one of the highest rank among the owners of its nodes, as are unknowns inside it.
#[derive(Debug)]
pub struct DistributedMesh {
    /// The part; numbers in the whole mesh are those that it would have, tagged facets are kept.
    pub part: MeshPart,
    rank: u32,
    n_ranks: usize,
    /// Nodes that the rank owns and cells of other ranks have.
    pub n_shared_nodes: usize,
    /// The size of the whole mesh.
    pub counts: Counts,
    /// Nodes, edges, faces and cells of the whole mesh, each counted once; for simplices only nodes matter.
    pub entities: [u64; 4],
    /// The lowest and the highest coordinates of the whole mesh.
    pub extents: [[f64; 3]; 2],
    /// The cubes of a box; none of another mesh.
    pub cubes: Option<BoxCubes>,
    /// The way in which cells are dealt out.
    pub way: &'static str,
    own: OnceLock<OwnedCells>,
}

/// The whole mesh of which ranks have parts.
#[derive(Debug, Clone, Copy)]
pub struct GlobalMeshSize {
    /// Its size.
    pub counts: Counts,
    /// Nodes, edges, faces and cells, each counted once; of simplices nodes alone matter.
    pub entities: [u64; 4],
    /// The lowest and the highest coordinates.
    pub extents: [[f64; 3]; 2],
}

/// The cubes of a box, with numbers that run along x, then y, then z.
#[derive(Debug)]
pub struct BoxCubes {
    /// Their number along each axis.
    pub n: [usize; 3],
    /// Cells in each of them.
    pub per_cube: usize,
    /// The coordinates between them along each axis, before they are deformed.
    pub lines: [Vec<f64>; 3],
    /// How they are deformed.
    pub deform: Option<DeformConfig>,
}

impl BoxCubes {
    /// Returns the cube that contains a cell of the box, by its index along each axis.
    pub fn cube_of(&self, cell: u32) -> [usize; 3] {
        let [n_x, n_y, _] = self.n;
        let cube = cell as usize / self.per_cube;
        [cube % n_x, cube / n_x % n_y, cube / (n_x * n_y)]
    }

    /// Returns the corners of all cubes in rows, the first coordinate running fastest.
    ///
    /// # Cost
    /// 24 bytes a corner, all of them evaluated.
    pub fn corners(&self) -> Vec<[f64; 3]> {
        let [x, y, z] = &self.lines;
        let ends = [0, 1].map(|end| self.lines.each_ref().map(|lines| lines[end * (lines.len() - 1)]));
        let amplitude = self.deform.map_or(0.0, |deform| deform.amplitude);
        let map = deformation(amplitude, 3, ends);
        let corner = |at: usize| {
            let along = [at % x.len(), at / x.len() % y.len(), at / (x.len() * y.len())];
            map([x[along[0]], y[along[1]], z[along[2]]])
        };
        parallel::map(x.len() * y.len() * z.len(), parallel::CHEAP, corner)
    }

    /// Returns nodes, edges, faces and cubes.
    pub(crate) fn entities(&self) -> [u64; 4] {
        let [n_x, n_y, n_z] = self.n.map(|n| n as u64);
        [
            (n_x + 1) * (n_y + 1) * (n_z + 1),
            n_x * (n_y + 1) * (n_z + 1) + (n_x + 1) * n_y * (n_z + 1) + (n_x + 1) * (n_y + 1) * n_z,
            n_x * n_y * (n_z + 1) + n_x * (n_y + 1) * n_z + (n_x + 1) * n_y * n_z,
            n_x * n_y * n_z,
        ]
    }
}

/// Some cells of a mesh alone, such as the own cells of a rank.
#[derive(Debug)]
pub struct OwnedCells {
    /// The cells, in the order of the mesh that they are from.
    pub mesh: Mesh,
    /// Their facets in a list, such as that of the boundary of the whole mesh.
    pub boundary: BoundaryFacets,
    /// Position of each of these in the list.
    pub facets: Vec<u32>,
    /// Number of each node in the mesh that they are from.
    pub nodes: Vec<u32>,
    /// Number of each cell there, ascending.
    pub cells: Vec<u32>,
}

impl DistributedMesh {
    /// Takes the part of `rank` of `n_ranks` of a mesh that is `whole` nowhere, of whose own nodes cells of other ranks have
    /// `n_shared_nodes`; `way` says how cells are dealt out.
    pub fn new(
        part: MeshPart,
        (rank, n_ranks): (usize, usize),
        n_shared_nodes: usize,
        whole: GlobalMeshSize,
        way: &'static str,
    ) -> Self {
        let GlobalMeshSize { counts, entities, extents } = whole;
        let (rank, own) = (rank as u32, OnceLock::new());
        Self { part, rank, n_ranks, n_shared_nodes, counts, entities, extents, cubes: None, way, own }
    }

    /// Returns the rank, and the number of ranks.
    pub fn rank(&self) -> (usize, usize) {
        (self.rank as usize, self.n_ranks)
    }

    /// Returns whether a cell of the part is an own one.
    pub fn owns_cell(&self, cell: u32) -> bool {
        let part = &self.part;
        part.mesh.cell(cell as usize).iter().all(|&node| part.owner(node, self.rank) <= self.rank)
    }

    /// Returns the own cells as a mesh, which is made at the first call.
    pub fn own(&self) -> &OwnedCells {
        self.own.get_or_init(|| {
            let is_own = |cell| self.owns_cell(cell);
            cells_alone(&self.part.mesh, &self.part.boundary, is_own)
        })
    }

    /// Multiplies all coordinates by a positive number.
    ///
    /// # Errors
    /// As [`Mesh::scale`].
    pub fn scale(&mut self, factor: f64) -> Result<(), MeshError> {
        self.part.mesh.scale(factor)?;
        let lines = self.cubes.iter_mut().flat_map(|cubes| &mut cubes.lines).flatten();
        self.extents.as_flattened_mut().iter_mut().chain(lines).for_each(|x| *x *= factor);
        self.own = OnceLock::new();
        Ok(())
    }

    /// Replaces the tags of cells of the part by a new named tag, of no cell on some ranks; all of them name it.
    ///
    /// # Errors
    /// As [`Mesh::tag_cells`].
    pub fn tag_cells(&mut self, name: &str, cells: &[u32]) -> Result<i32, MeshError> {
        self.own = OnceLock::new();
        self.part.mesh.tag_any_cells(name, cells)
    }

    /// Returns the nodes of elements of a degree on the whole mesh.
    pub fn n_dofs(&self, degree: usize) -> usize {
        let inside = (degree as u64).saturating_sub(1);
        self.entities.iter().zip(0..).map(|(n, d)| n * inside.pow(d)).sum::<u64>() as usize
    }
}
