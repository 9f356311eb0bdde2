use std::fmt;

use crate::CellKind;

/// The shape of a cell of a file: one of the kinds that a mesh may have, a pyramid or a prism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellShape {
    /// Two nodes.
    Segment,
    /// Three nodes.
    Triangle,
    /// Four nodes.
    Tetrahedron,
    /// Five nodes: the base counter-clockwise seen from the apex, then the apex.
    Pyramid,
    /// Six nodes: the bottom triangle counter-clockwise seen from the top, then the top triangle.
    Prism,
    /// Four nodes.
    Quadrilateral,
    /// Eight nodes.
    Hexahedron,
}

impl CellShape {
    /// The kind of a mesh with such cells; none for pyramids and prisms, which meshes do not have.
    pub const fn kind(self) -> Option<CellKind> {
        match self {
            Self::Segment => Some(CellKind::Segment),
            Self::Triangle => Some(CellKind::Triangle),
            Self::Quadrilateral => Some(CellKind::Quadrilateral),
            Self::Tetrahedron => Some(CellKind::Tetrahedron),
            Self::Hexahedron => Some(CellKind::Hexahedron),
            Self::Pyramid | Self::Prism => None,
        }
    }

    /// Number of nodes.
    pub const fn n_nodes(self) -> usize {
        match (self, self.kind()) {
            (_, Some(kind)) => kind.n_nodes(),
            (Self::Pyramid, _) => 5,
            _ => 6,
        }
    }

    /// Dimension of the cell itself.
    pub const fn dimension(self) -> usize {
        match self.kind() {
            Some(kind) => kind.dimension(),
            None => 3,
        }
    }

    /// Returns whether the cell is a simplex.
    pub const fn is_simplex(self) -> bool {
        matches!(self, Self::Segment | Self::Triangle | Self::Tetrahedron)
    }

    /// Local nodes of each facet, ordered so that its normal points outwards.
    pub const fn facets(self) -> &'static [&'static [usize]] {
        match (self, self.kind()) {
            (_, Some(kind)) => kind.facets(),
            (Self::Pyramid, _) => &[&[0, 3, 2, 1], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]],
            _ => &[&[0, 2, 1], &[3, 4, 5], &[0, 1, 4, 3], &[1, 2, 5, 4], &[2, 0, 3, 5]],
        }
    }

    /// Lower-case English name.
    pub const fn name(self) -> &'static str {
        match (self, self.kind()) {
            (_, Some(kind)) => kind.name(),
            (Self::Pyramid, _) => "pyramid",
            _ => "prism",
        }
    }

    /// Returns a number of such cells in words.
    pub(crate) fn count(self, n: usize) -> String {
        match (n, self) {
            (1, _) => format!("1 {self}"),
            (_, Self::Tetrahedron) => format!("{n} tetrahedra"),
            (_, Self::Hexahedron) => format!("{n} hexahedra"),
            _ => format!("{n} {self}s"),
        }
    }
}

impl From<CellKind> for CellShape {
    fn from(kind: CellKind) -> Self {
        match kind {
            CellKind::Segment => Self::Segment,
            CellKind::Triangle => Self::Triangle,
            CellKind::Quadrilateral => Self::Quadrilateral,
            CellKind::Tetrahedron => Self::Tetrahedron,
            CellKind::Hexahedron => Self::Hexahedron,
        }
    }
}

impl fmt::Display for CellShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
