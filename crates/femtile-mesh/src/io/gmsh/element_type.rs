//! Element types by Gmsh's numbers.

use crate::io::scanner::Scanner;
use crate::{CellKind, MeshError};

/// What a type number of Gmsh stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementType {
    Point,
    Cell(CellKind),
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
            6 => "prism",
            7 => "pyramid",
            8 => "line of order 2",
            9 => "triangle of order 2",
            10 => "quadrilateral of order 2 with 9 nodes",
            11 => "tetrahedron of order 2",
            12 => "hexahedron of order 2 with 27 nodes",
            13 => "prism of order 2 with 18 nodes",
            14 => "pyramid of order 2 with 14 nodes",
            16 => "quadrilateral of order 2 with 8 nodes",
            17 => "hexahedron of order 2 with 20 nodes",
            18 => "prism of order 2 with 15 nodes",
            19 => "pyramid of order 2 with 13 nodes",
            20..=25 => "triangle of higher order",
            26..=28 => "line of higher order",
            29..=31 => "tetrahedron of higher order",
            36..=38 => "quadrilateral of higher order",
            92 | 93 => "hexahedron of higher order",
            _ => "unknown or higher-order element",
        };
        let advice = "linear triangles, quadrilaterals, tetrahedra and hexahedra can be read \
                      (`Mesh.ElementOrder = 1`)";
        Err(scanner.unsupported(format!("Gmsh element type {number} ({name})"), advice))
    }

    /// The kind of a cell; none for a point.
    pub(super) const fn kind(self) -> Option<CellKind> {
        match self {
            Self::Point => None,
            Self::Cell(kind) => Some(kind),
        }
    }

    pub(super) const fn n_nodes(self) -> usize {
        match self {
            Self::Point => 1,
            Self::Cell(kind) => kind.n_nodes(),
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
