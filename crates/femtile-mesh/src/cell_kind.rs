use std::fmt;

/// The shape of a cell with straight edges, its nodes numbered as VTK numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellKind {
    /// Two nodes.
    Segment,
    /// Three nodes, counter-clockwise.
    Triangle,
    /// Four nodes, counter-clockwise.
    Quadrilateral,
    /// Four nodes; the fourth lies on the side that the right-hand normal of the first three points to.
    Tetrahedron,
    /// Eight nodes: bottom face counter-clockwise seen from the top, then the top face.
    Hexahedron,
}

impl CellKind {
    /// Number of nodes of one cell.
    pub const fn n_nodes(self) -> usize {
        match self {
            Self::Segment => 2,
            Self::Triangle => 3,
            Self::Quadrilateral | Self::Tetrahedron => 4,
            Self::Hexahedron => 8,
        }
    }

    /// Dimension of the cell itself: 1, 2 or 3.
    pub const fn dimension(self) -> usize {
        match self {
            Self::Segment => 1,
            Self::Triangle | Self::Quadrilateral => 2,
            Self::Tetrahedron | Self::Hexahedron => 3,
        }
    }

    /// Returns whether the cell is a simplex.
    pub const fn is_simplex(self) -> bool {
        matches!(self, Self::Segment | Self::Triangle | Self::Tetrahedron)
    }

    /// The shape of a facet (a side of one dimension less); none for a segment.
    pub const fn facet_kind(self) -> Option<Self> {
        match self {
            Self::Segment => None,
            Self::Triangle | Self::Quadrilateral => Some(Self::Segment),
            Self::Tetrahedron => Some(Self::Triangle),
            Self::Hexahedron => Some(Self::Quadrilateral),
        }
    }

    /// Local nodes of each facet, ordered so that the facet's normal points outwards.
    pub const fn facets(self) -> &'static [&'static [usize]] {
        match self {
            Self::Segment => &[&[0], &[1]],
            Self::Triangle => &[&[0, 1], &[1, 2], &[2, 0]],
            Self::Quadrilateral => &[&[0, 1], &[1, 2], &[2, 3], &[3, 0]],
            Self::Tetrahedron => &[&[1, 2, 3], &[0, 3, 2], &[0, 1, 3], &[0, 2, 1]],
            Self::Hexahedron => {
                &[&[0, 3, 2, 1], &[4, 5, 6, 7], &[0, 1, 5, 4], &[1, 2, 6, 5], &[2, 3, 7, 6], &[3, 0, 4, 7]]
            }
        }
    }

    /// Lower-case English name, as case files and messages spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Triangle => "triangle",
            Self::Quadrilateral => "quadrilateral",
            Self::Tetrahedron => "tetrahedron",
            Self::Hexahedron => "hexahedron",
        }
    }

    /// Cell type number of VTK.
    pub const fn vtk_type(self) -> u8 {
        match self {
            Self::Segment => 3,
            Self::Triangle => 5,
            Self::Quadrilateral => 9,
            Self::Tetrahedron => 10,
            Self::Hexahedron => 12,
        }
    }
}

impl fmt::Display for CellKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
