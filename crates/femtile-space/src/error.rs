use femtile_mesh::CellKind;

use crate::geometry::MetricEvaluation;

/// Errors of spaces, of the geometry of their cells and of constraints.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// Cells of a kind without linear elements.
    #[error("linear elements are for triangles and tetrahedra; this mesh has {kind} cells: split them first")]
    UnsupportedCells {
        /// Kind of the cells.
        kind: CellKind,
    },
    /// A surface in space, for a method of meshes in the plane and of solids.
    #[error("the mesh is a surface in space: take an equation of forms, such as convection-diffusion")]
    Surface,
    /// Cells of a kind without tensor-product elements.
    #[error("this space needs quadrilaterals or hexahedra; this mesh has {kind} cells: take degree 1")]
    NoTensorCells {
        /// Kind of the cells.
        kind: CellKind,
    },
    /// Cells of a kind without elements.
    #[error("there are no elements on {kind} cells: take triangles, tetrahedra, quadrilaterals or hexahedra")]
    NoElement {
        /// Kind of the cells.
        kind: CellKind,
    },
    /// An unsupported degree.
    #[error("degree {degree} is not supported on {kind} cells: take 1 to {highest}")]
    Degree {
        /// The degree.
        degree: usize,
        /// Kind of the cells.
        kind: CellKind,
        /// The highest degree on such cells.
        highest: usize,
    },
    /// More degrees of freedom than 32-bit numbers.
    #[error(
        "{n_dofs:.0} degrees of freedom; at most {} are supported: take a coarser mesh or a lower degree",
        u32::MAX
    )]
    TooManyDofs {
        /// Their number.
        n_dofs: f64,
    },
    /// A cell that folds over itself.
    #[error(
        "cell {cell} is turned inside out at {}: its Jacobian determinant is {value:e} there; repair the mesh, or lower the \
         order of its curved cells",
        place(point)
    )]
    Inverted {
        /// Number of the cell.
        cell: usize,
        /// The point.
        point: [f64; 3],
        /// Determinant of the Jacobian of the map there, positive in a sound cell.
        value: f64,
    },
    /// A cell without volume: its stiffness would be infinite.
    #[error(
        "cell {cell} at {} is degenerate: its measure is {measure:e}; check the mesh for coinciding nodes and slivers",
        place(centre)
    )]
    Degenerate {
        /// Number of the cell.
        cell: usize,
        /// Its length, area or volume.
        measure: f64,
        /// Its centroid.
        centre: [f64; 3],
    },
    /// The requested metric evaluation does not fit a cell.
    #[error(
        "metric {} does not fit cell {cell}: {reason}; take {}, or leave it open",
        metric.name(),
        instead.name()
    )]
    UnfitMetric {
        /// The requested evaluation.
        metric: MetricEvaluation,
        /// Number of the first cell that it does not fit.
        cell: usize,
        /// The reason.
        reason: &'static str,
        /// An evaluation that fits the cell.
        instead: MetricEvaluation,
    },
    /// A relation with a degree of freedom that does not exist.
    #[error("a constraint names degree of freedom {dof}, but there are {n_dofs}")]
    NoSuchDof {
        /// The degree of freedom.
        dof: u32,
        /// Number of degrees of freedom.
        n_dofs: usize,
    },
    /// A coefficient or constant of a relation that is not finite.
    #[error(
        "the constraint of degree of freedom {dof} has the coefficient or constant {value}; it must be finite"
    )]
    ConstraintNotFinite {
        /// The degree of freedom that it constrains.
        dof: u32,
        /// The number.
        value: f64,
    },
    /// Relations that make a degree of freedom depend on itself.
    #[error(
        "the constraints form a circle: degree of freedom {dof} depends on itself; leave out one of the relations of the circle"
    )]
    ConstraintCircle {
        /// A degree of freedom of the circle.
        dof: u32,
    },
    /// Relations of one degree of freedom that disagree.
    #[error(
        "the constraints of degree of freedom {dof} contradict each other: leave out all but one of them"
    )]
    ContradictoryConstraints {
        /// The degree of freedom.
        dof: u32,
    },
}

impl SpaceError {
    /// Returns the cell of the error, if there is one.
    pub fn cell(&self) -> Option<usize> {
        match *self {
            Self::Inverted { cell, .. } | Self::Degenerate { cell, .. } | Self::UnfitMetric { cell, .. } => {
                Some(cell)
            }
            _ => None,
        }
    }

    /// Replaces the number of a cell of a part of a mesh by its number in the whole.
    pub fn number_globally(&mut self, cells: &[u32]) {
        if let Self::Inverted { cell, .. } | Self::Degenerate { cell, .. } | Self::UnfitMetric { cell, .. } =
            self
        {
            *cell = cells.get(*cell).map_or(*cell, |&cell| cell as usize);
        }
    }
}

fn place(point: &[f64; 3]) -> String {
    format!("({}, {}, {})", point[0], point[1], point[2])
}
