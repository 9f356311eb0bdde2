//! Degrees of freedom of triangles and tetrahedra, numbered by vertices, edges, faces and interiors.
//!
//! Each entity has consecutive numbers. In an edge or face, a degree of freedom is found by its lattice indices in the order
//! of the vertices' numbers, so all cells agree about it whatever their orientation.

use femtile_mesh::Mesh;

use crate::SpaceError;
use crate::element::{Lattice, lattice};
use crate::shared_entities::SharedEntities;

/// The numbering on a mesh of simplices.
#[derive(Debug, Clone)]
pub(super) struct SimplexNumbering {
    degree: usize,
    n_dofs: usize,
    /// Entities below cells that have degrees of freedom, by their number of corners: edges, then faces of tetrahedra.
    shared: Vec<Entities>,
    /// First degree of freedom of the interior of the first cell, and their number per cell.
    interior: [usize; 2],
    places: Vec<Place>,
}

/// Entities of one dimension.
#[derive(Debug, Clone)]
struct Entities {
    /// Number of each: `[n_cells][n_locals]`.
    numbers: Vec<u32>,
    /// Entities of a cell.
    n_locals: usize,
    /// First degree of freedom of the first entity.
    begin: usize,
    /// Degrees of freedom of each entity.
    per_entity: usize,
}

/// The entity of a node of the element.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A corner.
    Vertex(usize),
    /// An edge or a face: its place among [`SimplexNumbering::shared`], its number in the cell, and the node.
    Shared(usize, usize, Lattice),
    /// The place in the interior.
    Interior(usize),
}

impl SimplexNumbering {
    /// Numbers the degrees of freedom of a mesh.
    ///
    /// # Errors
    /// [`SpaceError::TooManyDofs`].
    pub fn new(mesh: &Mesh, degree: usize) -> Result<Self, SpaceError> {
        let (d, n_corners) = (mesh.dimension(), mesh.kind.n_nodes());
        let mut begin = mesh.n_nodes();
        let mut shared = Vec::new();
        for extent in 1..d.min(degree) {
            let corners = sides(n_corners, extent + 1);
            let n_locals = corners.len();
            let entities = SharedEntities::number(&mesh.cells, n_corners, corners);
            let per_entity = n_inner(degree, extent);
            let next = begin + entities.len() * per_entity;
            shared.push(Entities { numbers: entities.numbers, n_locals, begin, per_entity });
            begin = next;
        }
        let per_cell = n_inner(degree, d);
        let n_dofs = begin + mesh.n_cells() * per_cell;
        if n_dofs > u32::MAX as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: n_dofs as f64 });
        }
        let places = places(d, degree);
        Ok(Self { degree, n_dofs, shared, interior: [begin, per_cell], places })
    }

    pub fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// Writes the degrees of freedom of a cell.
    pub fn cell_dofs(&self, mesh: &Mesh, cell: usize, dofs: &mut [u32]) {
        assert_eq!(dofs.len(), self.places.len(), "degrees of freedom of a cell");
        let nodes = mesh.cell(cell);
        let [interior, per_cell] = self.interior;
        for (dof, place) in dofs.iter_mut().zip(&self.places) {
            *dof = match *place {
                Place::Vertex(corner) => nodes[corner],
                Place::Shared(kind, local, node) => {
                    let Entities { numbers, n_locals, begin, per_entity } = &self.shared[kind];
                    let entity = numbers[cell * n_locals + local] as usize;
                    (begin + entity * per_entity + place_in_entity(self.degree, node, nodes)) as u32
                }
                Place::Interior(inside) => (interior + cell * per_cell + inside) as u32,
            };
        }
    }
}

/// Returns the place of a node in its edge or face: by its lattice indices at the vertices with the lowest numbers.
fn place_in_entity(degree: usize, node: Lattice, nodes: &[u32]) -> usize {
    let mut at = [(u32::MAX, 0); 3];
    let mut n = 0;
    for corner in node.corners() {
        at[n] = (nodes[corner], node.indices[corner]);
        n += 1;
    }
    at[..n].sort_unstable();
    let [(_, first), (_, second), _] = at;
    if n == 2 {
        return first - 1;
    }
    // Nodes with a lower first index come before; those with index k have degree - 1 - k second indices.
    let before: usize = (1..first).map(|k| degree - 1 - k).sum();
    before + second - 1
}

/// Returns the entity of each node of the element.
fn places(d: usize, degree: usize) -> Vec<Place> {
    let mut n_interior = 0;
    let place = |node: Lattice| {
        let corners: Vec<usize> = node.corners().collect();
        match corners.len() {
            1 => Place::Vertex(corners[0]),
            n if n == d + 1 => {
                n_interior += 1;
                Place::Interior(n_interior - 1)
            }
            n => {
                let local = sides(d + 1, n).iter().position(|side| *side == corners);
                Place::Shared(n - 2, local.unwrap_or(0), node)
            }
        }
    };
    lattice(d, degree).into_iter().map(place).collect()
}

/// Returns the number of degrees of freedom inside a simplex of a dimension: $\binom{p - 1}{extent}$.
fn n_inner(degree: usize, extent: usize) -> usize {
    (0..extent).fold(1, |product, i| product * degree.saturating_sub(1 + i) / (i + 1))
}

/// Returns the sets of `n` of the corners of a cell, in ascending order.
fn sides(n_corners: usize, n: usize) -> Vec<Vec<usize>> {
    let corners = |set: usize| (0..n_corners).filter(|corner| set >> corner & 1 == 1).collect::<Vec<_>>();
    let mut sides: Vec<_> = (0..1 << n_corners).map(corners).filter(|side| side.len() == n).collect();
    sides.sort_unstable();
    sides
}
