//! Element types by Gmsh's numbers.

use crate::io::lagrange::Numbering;
use crate::io::scanner::Scanner;
use crate::{CellKind, MeshError};

/// An element type of Gmsh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementType {
    Point,
    Cell(CellKind),
    /// Of higher order, with the total number of nodes.
    Curved {
        kind: CellKind,
        order: usize,
        n_nodes: usize,
    },
}

impl ElementType {
    /// The type of a number.
    ///
    /// # Errors
    /// [`MeshError::Unsupported`] with the name of the type.
    pub(super) fn from_number(number: i32, scanner: &Scanner<'_>) -> Result<Self, MeshError> {
        let name = match number {
            15 => return Ok(Self::Point),
            1 => return Ok(Self::Cell(CellKind::Segment)),
            2 => return Ok(Self::Cell(CellKind::Triangle)),
            3 => return Ok(Self::Cell(CellKind::Quadrilateral)),
            4 => return Ok(Self::Cell(CellKind::Tetrahedron)),
            5 => return Ok(Self::Cell(CellKind::Hexahedron)),
            8 => return Ok(Self::complete(CellKind::Segment, 2)),
            9 => return Ok(Self::Curved { kind: CellKind::Triangle, order: 2, n_nodes: 6 }),
            11 => return Ok(Self::Curved { kind: CellKind::Tetrahedron, order: 2, n_nodes: 10 }),
            10 => return Ok(Self::complete(CellKind::Quadrilateral, 2)),
            12 => return Ok(Self::complete(CellKind::Hexahedron, 2)),
            16 => return Ok(Self::Curved { kind: CellKind::Quadrilateral, order: 2, n_nodes: 8 }),
            17 => return Ok(Self::Curved { kind: CellKind::Hexahedron, order: 2, n_nodes: 20 }),
            26..=28 => return Ok(Self::complete(CellKind::Segment, number as usize - 23)),
            62..=65 => return Ok(Self::complete(CellKind::Segment, number as usize - 56)),
            36..=38 => return Ok(Self::complete(CellKind::Quadrilateral, number as usize - 33)),
            47..=50 => return Ok(Self::complete(CellKind::Quadrilateral, number as usize - 41)),
            92..=98 => return Ok(Self::complete(CellKind::Hexahedron, number as usize - 89)),
            6 => "prism",
            7 => "pyramid",
            13 => "prism of order 2 with 18 nodes",
            14 => "pyramid of order 2 with 14 nodes",
            18 => "prism of order 2 with 15 nodes",
            19 => "pyramid of order 2 with 13 nodes",
            20..=25 => "triangle of higher order",
            29..=31 => "tetrahedron of higher order",
            66 => "line of order 10",
            51 => "quadrilateral of order 10",
            _ => "unknown or higher-order element",
        };
        let advice = "triangles and tetrahedra of order 1 (`Mesh.ElementOrder = 1`) and 2, quadrilaterals and \
                      hexahedra of any order to 9 can be read";
        Err(scanner.unsupported(format!("Gmsh element type {number} ({name})"), advice))
    }

    fn complete(kind: CellKind, order: usize) -> Self {
        Self::Curved { kind, order, n_nodes: (order + 1).pow(kind.dimension() as u32) }
    }

    /// The order of nodes of a curved quadrilateral or hexahedron; of curved simplices only the corners matter.
    pub(super) fn numbering(self) -> Option<Numbering> {
        match self {
            Self::Curved { kind, order, n_nodes } if !kind.is_simplex() => {
                Some(Numbering::gmsh(kind, order).first(n_nodes))
            }
            _ => None,
        }
    }

    /// The kind of a cell; none for a point.
    pub(super) const fn kind(self) -> Option<CellKind> {
        match self {
            Self::Point => None,
            Self::Cell(kind) | Self::Curved { kind, .. } => Some(kind),
        }
    }

    pub(super) const fn n_nodes(self) -> usize {
        match self {
            Self::Point => 1,
            Self::Cell(kind) => kind.n_nodes(),
            Self::Curved { n_nodes, .. } => n_nodes,
        }
    }

    /// Gmsh's number of a cell.
    pub(super) const fn number(kind: CellKind) -> i32 {
        match kind {
            CellKind::Segment => 1,
            CellKind::Triangle => 2,
            CellKind::Quadrilateral => 3,
            CellKind::Tetrahedron => 4,
            CellKind::Hexahedron => 5,
        }
    }
}
