use femtile_mesh::{CellKind, Mesh};

use crate::SpaceError;

/// The space of continuous functions that are linear on each cell: one degree of freedom per node.
///
/// Its numbering is that of the nodes, so that a vector of degrees of freedom is a nodal field.
#[derive(Debug, Clone, Copy)]
pub struct LinearSpace<'a> {
    mesh: &'a Mesh,
}

impl<'a> LinearSpace<'a> {
    /// Creates the space on a mesh of triangles in the plane or tetrahedra.
    ///
    /// # Errors
    /// [`SpaceError::UnsupportedCells`] for other cells, [`SpaceError::Surface`] for a surface in space.
    pub fn new(mesh: &'a Mesh) -> Result<Self, SpaceError> {
        match mesh.kind {
            _ if mesh.is_surface => Err(SpaceError::Surface),
            CellKind::Triangle | CellKind::Tetrahedron => Ok(Self { mesh }),
            kind => Err(SpaceError::UnsupportedCells { kind }),
        }
    }

    /// Returns the number of degrees of freedom.
    pub fn n_dofs(&self) -> usize {
        self.mesh.n_nodes()
    }

    /// Returns the degrees of freedom of a cell.
    pub fn cell_dofs(&self, cell: usize) -> &'a [u32] {
        self.mesh.cell(cell)
    }
}
