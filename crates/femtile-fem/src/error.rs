use femtile_device::DeviceError;
use femtile_linalg::LinalgError;
use femtile_mesh::CellKind;

use crate::geometry::MetricEvaluation;

/// What can go wrong between a mesh with coefficients and a linear system or a functional.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FemError {
    /// The cells are of a kind without linear elements here.
    #[error("linear elements are for triangles and tetrahedra; this mesh has {kind} cells: split them first")]
    UnsupportedCells {
        /// Kind of the cells.
        kind: CellKind,
    },
    /// The cells are not products of intervals, of which elements of higher degree are made here.
    #[error(
        "elements of this space are for quadrilaterals and hexahedra; this mesh has {kind} cells: take degree 1 there"
    )]
    NoTensorCells {
        /// Kind of the cells.
        kind: CellKind,
    },
    /// Cells of which a GPU has no operator without a matrix.
    #[error(
        "operators without a matrix are for hexahedra on a GPU; this mesh has {kind} cells: solve on a CPU, or \
         assemble a matrix"
    )]
    HexahedraAlone {
        /// Kind of the cells.
        kind: CellKind,
    },
    /// A degree that no element has.
    #[error("degree {degree} is not offered: 1 to {highest} are, on {kind} cells")]
    Degree {
        /// The degree.
        degree: usize,
        /// Kind of the cells.
        kind: CellKind,
        /// The highest degree on such cells.
        highest: usize,
    },
    /// More unknowns than 32 bits can number.
    #[error(
        "{n_dofs:.0} degrees of freedom; at most {} can be numbered: take a coarser mesh or a lower degree",
        u32::MAX
    )]
    TooManyDofs {
        /// How many there would be.
        n_dofs: f64,
    },
    /// A cell that folds over itself.
    #[error(
        "cell {cell} is turned inside out at {}: its Jacobian is {value:e} there; mend the mesh, or straighten curved cells \
         (a lower order of its geometry)",
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
    /// A way to come by the metric of cells that was asked for and does not serve them.
    #[error(
        "metric {} does not fit cell {cell}: {reason}; take {}, or leave it open",
        metric.name(),
        instead.name()
    )]
    UnfitMetric {
        /// The requested evaluation.
        metric: MetricEvaluation,
        /// Number of the first cell that it does not serve.
        cell: usize,
        /// Why.
        reason: &'static str,
        /// What serves that cell.
        instead: MetricEvaluation,
    },
    /// A form on another mesh than the one that assembly was prepared for.
    #[error(
        "assembly was prepared for a mesh of {} nodes and {} cells, the form has {} and {}: prepare it anew",
        expected[0], expected[1], found[0], found[1]
    )]
    OtherMesh {
        /// Nodes and cells of the mesh that it was prepared for.
        expected: [usize; 2],
        /// Those of the mesh of the form.
        found: [usize; 2],
    },
    /// A form on a mesh of the same size, but not the one that assembly was prepared for.
    #[error(
        "the mesh of the form is as large as the one that assembly was prepared for, but has other cells or points: \
         prepare it anew"
    )]
    ChangedMesh,
    /// A system or a prepared problem that belongs to another assembly, or was prepared before the last one.
    #[error("the {field} is not this assembly's own: {advice}")]
    OtherAssembly {
        /// What it is.
        field: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// Conditions on the boundary where the inside of the domain alone is assembled.
    #[error(
        "an assembly by patches knows no conditions on the boundary, the form has {n_conditions}: leave them out, or \
         assemble by rows"
    )]
    HasConditions {
        /// How many the form has.
        n_conditions: usize,
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
    /// A node that no cell uses: its row of the matrix would be empty.
    #[error("node {node} at {} belongs to no cell; drop orphan nodes first", place(point))]
    OrphanNode {
        /// The first such node.
        node: usize,
        /// Its coordinates.
        point: [f64; 3],
    },
    /// A coefficient that is not a finite number somewhere.
    #[error("{field} is {value} in cell {cell} at {}; it must be finite everywhere", place(point))]
    NotFinite {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// Where in it.
        point: [f64; 3],
        /// What it evaluated to.
        value: f64,
    },
    /// A coefficient that must not be negative but is.
    #[error("{field} is {value} in cell {cell} at {}; it must not be negative", place(point))]
    Negative {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// Where in it.
        point: [f64; 3],
        /// Its value there.
        value: f64,
    },
    /// A conductivity that is not symmetric positive definite.
    #[error(
        "{field} is not symmetric positive definite in cell {cell} at {}: {}; the problem would not be elliptic",
        place(point),
        matrix(tensor)
    )]
    Indefinite {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// Where in it.
        point: [f64; 3],
        /// Its value there, by rows; only the upper left block counts in two dimensions.
        tensor: [[f64; 3]; 3],
    },
    /// A coefficient given by tag lacks the tag of a cell.
    #[error("{field} has no value for tag {tag} of cell {cell}; tags with a value: {known}")]
    MissingTag {
        /// Which coefficient.
        field: &'static str,
        /// Number of the cell.
        cell: usize,
        /// Its tag.
        tag: i32,
        /// The tags that have a value.
        known: String,
    },
    /// A coefficient has the wrong shape: a tensor for a scalar, a field with a wrong number of values.
    #[error("{field}: {message}")]
    Shape {
        /// Which coefficient.
        field: &'static str,
        /// What is wrong and what fits.
        message: String,
    },
    /// A boundary condition names a facet that does not exist.
    #[error("boundary condition {condition} names facet {facet}, but the boundary has {n_facets} facets")]
    NoSuchFacet {
        /// Position of the condition in the list.
        condition: usize,
        /// The facet.
        facet: u32,
        /// Number of boundary facets.
        n_facets: usize,
    },
    /// A condition at nodes names a node that does not exist.
    #[error("boundary condition {condition} names node {node}, but the mesh has {n_nodes} nodes")]
    NoSuchNode {
        /// Position of the condition in the list.
        condition: usize,
        /// The node.
        node: u32,
        /// Number of nodes of the mesh.
        n_nodes: usize,
    },
    /// A set of boundary facets names one that does not exist.
    #[error("facet {facet} was asked for, but the boundary has {n_facets} facets")]
    FacetOutOfRange {
        /// The facet.
        facet: u32,
        /// Number of boundary facets.
        n_facets: usize,
    },
    /// Sources and fluxes of a pure Neumann problem do not balance, so that it has no solution.
    #[error(
        "with λ = 0 and no Dirichlet or Robin condition a solution exists only if ∫ source + ∫ flux = 0, but they are \
         {source_integral:e} and {flux_integral:e}: change one of them by {:e}, or fix the value somewhere",
        -(source_integral + flux_integral)
    )]
    Incompatible {
        /// Integral of the source over the domain.
        source_integral: f64,
        /// Integral of the Neumann flux over the boundary.
        flux_integral: f64,
    },
    /// A part of the mesh is tied to nothing, so that its solution is defined up to a constant.
    #[error(
        "the mesh has {n_components} connected components, and the one with node {node} at {} ({n_nodes} nodes) has λ = 0 \
         and no Dirichlet or Robin condition: give it one, or remove it",
        place(point)
    )]
    Floating {
        /// Number of connected components of the mesh.
        n_components: usize,
        /// The first node of the component.
        node: usize,
        /// Its coordinates.
        point: [f64; 3],
        /// Number of nodes of the component.
        n_nodes: usize,
    },
    /// A value was asked for at a point outside the mesh.
    #[error(
        "the point {} lies outside the mesh, {distance:e} from the nearest cell, number {cell}",
        place(point)
    )]
    Outside {
        /// The point.
        point: [f64; 3],
        /// Distance to the nearest cell.
        distance: f64,
        /// That cell.
        cell: usize,
    },
    /// A vector does not have one entry a node.
    #[error("{field} has {found} entries, but the mesh has {expected} nodes")]
    Length {
        /// Which vector.
        field: &'static str,
        /// Its length.
        found: usize,
        /// Number of nodes.
        expected: usize,
    },
    /// Whoever asked for a system or a gradient wanted the work to end.
    #[error("the work was interrupted")]
    Interrupted,
    /// A matrix or vector could not be made or used.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl FemError {
    /// The cell that the error is about, if it is about one.
    pub fn cell(&self) -> Option<usize> {
        match *self {
            Self::Degenerate { cell, .. }
            | Self::Inverted { cell, .. }
            | Self::UnfitMetric { cell, .. }
            | Self::NotFinite { cell, .. }
            | Self::Negative { cell, .. }
            | Self::Indefinite { cell, .. }
            | Self::MissingTag { cell, .. } => Some(cell),
            _ => None,
        }
    }
}

fn place(point: &[f64; 3]) -> String {
    format!("({}, {}, {})", point[0], point[1], point[2])
}

fn matrix(tensor: &[[f64; 3]; 3]) -> String {
    let rows: Vec<String> =
        tensor.iter().map(|row| format!("[{}, {}, {}]", row[0], row[1], row[2])).collect();
    format!("[{}]", rows.join(", "))
}
