//! Element types by Gmsh's numbers.

use crate::io::lagrange::Numbering;
use crate::io::scanner::Scanner;
use crate::{CellKind, CellShape, MeshError};

/// An element type of Gmsh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementType {
    Point,
    Cell(CellShape),
    /// Of higher order, with the total number of nodes.
    Curved {
        shape: CellShape,
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
            1 => return Ok(Self::Cell(CellShape::Segment)),
            2 => return Ok(Self::Cell(CellShape::Triangle)),
            3 => return Ok(Self::Cell(CellShape::Quadrilateral)),
            4 => return Ok(Self::Cell(CellShape::Tetrahedron)),
            5 => return Ok(Self::Cell(CellShape::Hexahedron)),
            6 => return Ok(Self::Cell(CellShape::Prism)),
            7 => return Ok(Self::Cell(CellShape::Pyramid)),
            8 => return Ok(Self::complete(CellKind::Segment, 2)),
            9 => return Ok(Self::order_2(CellShape::Triangle, 6)),
            11 => return Ok(Self::order_2(CellShape::Tetrahedron, 10)),
            10 => return Ok(Self::complete(CellKind::Quadrilateral, 2)),
            12 => return Ok(Self::complete(CellKind::Hexahedron, 2)),
            16 => return Ok(Self::order_2(CellShape::Quadrilateral, 8)),
            17 => return Ok(Self::order_2(CellShape::Hexahedron, 20)),
            13 => return Ok(Self::order_2(CellShape::Prism, 18)),
            14 => return Ok(Self::order_2(CellShape::Pyramid, 14)),
            18 => return Ok(Self::order_2(CellShape::Prism, 15)),
            19 => return Ok(Self::order_2(CellShape::Pyramid, 13)),
            26..=28 => return Ok(Self::complete(CellKind::Segment, number as usize - 23)),
            62..=65 => return Ok(Self::complete(CellKind::Segment, number as usize - 56)),
            36..=38 => return Ok(Self::complete(CellKind::Quadrilateral, number as usize - 33)),
            47..=50 => return Ok(Self::complete(CellKind::Quadrilateral, number as usize - 41)),
            92..=98 => return Ok(Self::complete(CellKind::Hexahedron, number as usize - 89)),
            20..=25 => "triangle of higher order",
            29..=31 => "tetrahedron of higher order",
            66 => "line of order 10",
            51 => "quadrilateral of order 10",
            _ => "unknown or higher-order element",
        };
        let advice = "triangles, tetrahedra, prisms and pyramids of order 1 (`Mesh.ElementOrder = 1`) and 2, quadrilaterals \
                      and hexahedra of any order to 9 can be read";
        Err(scanner.unsupported(format!("Gmsh element type {number} ({name})"), advice))
    }

    fn complete(kind: CellKind, order: usize) -> Self {
        Self::Curved { shape: kind.into(), order, n_nodes: (order + 1).pow(kind.dimension() as u32) }
    }

    const fn order_2(shape: CellShape, n_nodes: usize) -> Self {
        Self::Curved { shape, order: 2, n_nodes }
    }

    /// The order of nodes of a curved quadrilateral or hexahedron; of other curved cells only the corners matter.
    pub(super) fn numbering(self) -> Option<(CellKind, Numbering)> {
        match self {
            Self::Curved { shape, order, n_nodes } if !shape.is_simplex() => {
                Some((shape.kind()?, Numbering::gmsh(shape.kind()?, order).first(n_nodes)))
            }
            _ => None,
        }
    }

    /// The shape of a cell; none for a point.
    pub(super) const fn shape(self) -> Option<CellShape> {
        match self {
            Self::Point => None,
            Self::Cell(shape) | Self::Curved { shape, .. } => Some(shape),
        }
    }

    pub(super) const fn n_nodes(self) -> usize {
        match self {
            Self::Point => 1,
            Self::Cell(shape) => shape.n_nodes(),
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
