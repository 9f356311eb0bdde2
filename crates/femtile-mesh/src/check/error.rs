use super::Finding;
use crate::{Mesh, MeshError};

/// The most cells that a message lists.
const MAX_LISTED: usize = 8;

fn listed(cells: &[usize]) -> String {
    let mut text: Vec<String> = cells.iter().take(MAX_LISTED).map(usize::to_string).collect();
    text.extend((cells.len() > MAX_LISTED).then(|| "…".into()));
    text.join(", ")
}

/// Reasons to refuse a mesh; cells and nodes are counted from 0, as before the repairs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The arrays of the mesh do not fit each other.
    #[error(transparent)]
    Invalid(#[from] MeshError),
    /// A setting of the check has no meaning.
    #[error("{field} = {value}: a finite number that is not negative is needed")]
    Setting {
        /// The setting.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A cell names the same node twice.
    #[error(
        "cell {cell} uses node {node} twice{}; remove the cell or correct its nodes",
        if *.after_merge { " now that coinciding nodes are merged, so its edge is shorter than the tolerance" } else { "" }
    )]
    RepeatedNode {
        /// The cell.
        cell: usize,
        /// The node.
        node: u32,
        /// True if the nodes were different before duplicate nodes were merged.
        after_merge: bool,
    },
    /// The volume of a cell is zero up to rounding.
    #[error(
        "cell {cell} near {at:?} is degenerate: its measure is {measure:e}, zero up to rounding; remove it or move its nodes"
    )]
    Degenerate {
        /// The cell.
        cell: usize,
        /// Its signed length, area or volume.
        measure: f64,
        /// Its centroid.
        at: [f64; 3],
    },
    /// The map to a quadrilateral or hexahedron turns some part of it inside out.
    #[error(
        "cell {cell} is folded near {at:?}: the Jacobian of its map is {jacobian:e} there, where its other parts have the \
         other sign; move its points, or mesh it finer or with a lower order"
    )]
    Folded {
        /// The cell.
        cell: usize,
        /// The quadrature point.
        at: [f64; 3],
        /// The Jacobian there, positive if the sign is that of the cell's measure.
        jacobian: f64,
    },
    /// Two cells have the same nodes.
    #[error("cells {first} and {second} near {at:?} have the same nodes; remove one of them")]
    DuplicateCells {
        /// The cell of the smaller number.
        first: usize,
        /// The other cell.
        second: usize,
        /// Centroid of the first.
        at: [f64; 3],
    },
    /// A facet belongs to more than two cells.
    #[error(
        "the facet with nodes {nodes:?} near {at:?} is shared by {} cells, {}; a facet joins two at most, so some of them overlap",
        cells.len(),
        listed(cells)
    )]
    SharedFacet {
        /// Nodes of the facet.
        nodes: Vec<u32>,
        /// All cells that have it.
        cells: Vec<usize>,
        /// Centroid of the facet.
        at: [f64; 3],
    },
    /// Two cells share a facet and lie on the same side of it.
    #[error(
        "cells {first} and {second} near {at:?} lie on the same side of the facet that they share, so they overlap; the mesh is folded there"
    )]
    FoldedCells {
        /// The cell of the smaller number.
        first: usize,
        /// The other cell.
        second: usize,
        /// Centroid of the first.
        at: [f64; 3],
    },
    /// Two boundary facets cover each other in part.
    #[error(
        "boundary facets of cells {first} and {second} near {at:?} overlap without coinciding, so the mesh is not conforming \
         (neighbours cut their common face along different diagonals, or a node hangs in the middle of a facet): \
         mesh again so that neighbouring cells share whole facets"
    )]
    OverlappingFacets {
        /// The cell of the smaller number.
        first: usize,
        /// The other cell.
        second: usize,
        /// Centroid of the first cell's facet.
        at: [f64; 3],
    },
    /// Thin gaps that share edges.
    #[error(
        "thin gaps ({n}) lie side by side, the first beside cell {cell} near {at:?} with a longest edge of {longest_edge:.2e}: \
         neighbours cut their common faces along different diagonals, and nothing flows between them; mesh again so that \
         neighbouring cells share whole facets"
    )]
    Gaps {
        /// Number of gaps.
        n: usize,
        /// A cell at the first.
        cell: usize,
        /// Middle of the first.
        at: [f64; 3],
        /// Its longest edge.
        longest_edge: f64,
    },
    /// A fault of cells that are parts of cells of the file, which the reader divided into simplices.
    #[error("{fault} ({})", parts.join("; "))]
    OfParts {
        /// The fault.
        fault: Box<CheckError>,
        /// Sentences that name the cells of the file.
        parts: Vec<String>,
    },
    /// The caller interrupted the check.
    #[error("the mesh check was interrupted")]
    Interrupted,
}

impl CheckError {
    /// Names nodes by other numbers.
    pub(super) fn renumbered(mut self, number: impl Fn(u32) -> u32) -> Self {
        match &mut self {
            Self::RepeatedNode { node, .. } => *node = number(*node),
            Self::SharedFacet { nodes, .. } => nodes.iter_mut().for_each(|node| *node = number(*node)),
            _ => {}
        }
        self
    }

    /// Names the cells of the file that its cells are parts of, if the reader divided them.
    pub(super) fn of_file(self, mesh: &Mesh) -> Self {
        let cells: Vec<usize> = match &self {
            Self::RepeatedNode { cell, .. }
            | Self::Degenerate { cell, .. }
            | Self::Folded { cell, .. }
            | Self::Gaps { cell, .. } => vec![*cell],
            Self::DuplicateCells { first, second, .. }
            | Self::FoldedCells { first, second, .. }
            | Self::OverlappingFacets { first, second, .. } => vec![*first, *second],
            Self::SharedFacet { cells, .. } => cells.iter().take(MAX_LISTED).copied().collect(),
            _ => Vec::new(),
        };
        let of_cell = |cell: usize| Some(format!("cell {cell} is a part of {}", mesh.cell_of_file(cell)?));
        let parts: Vec<String> = cells.into_iter().filter_map(of_cell).collect();
        if parts.is_empty() { self } else { Self::OfParts { fault: Box::new(self), parts } }
    }

    /// Returns the name by which the settings accept it, if they can.
    pub fn finding(&self) -> Option<Finding> {
        match self {
            Self::OfParts { fault, .. } => fault.finding(),
            Self::DuplicateCells { .. } => Some(Finding::DuplicateCells),
            Self::SharedFacet { .. } => Some(Finding::SharedFacet),
            Self::FoldedCells { .. } => Some(Finding::FoldedCells),
            Self::OverlappingFacets { .. } => Some(Finding::OverlappingFacets),
            Self::Gaps { .. } => Some(Finding::Gap),
            _ => None,
        }
    }
}
