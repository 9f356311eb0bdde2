use femtile_device::DeviceError;
use femtile_form::FormError;
use femtile_linalg::LinalgError;
use femtile_space::SpaceError;

/// Errors of assembly, functionals and operators.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FemError {
    /// An error of a space or of the geometry of its cells.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A form on another mesh than that of the assembly.
    #[error(
        "the assembly belongs to a mesh of {} nodes and {} cells, the form has {} and {}: create a new assembly",
        expected[0], expected[1], found[0], found[1]
    )]
    OtherMesh {
        /// Nodes and cells of the mesh of the assembly.
        expected: [usize; 2],
        /// Nodes and cells of the mesh of the form.
        found: [usize; 2],
    },
    /// A form on a mesh of the same size as that of the assembly, with other cells or points.
    #[error(
        "the mesh of the form has the size of the assembly's mesh, but other cells or points: create a new assembly"
    )]
    ChangedMesh,
    /// A system or a prepared problem of another assembly, or a problem prepared before the last one.
    #[error("the {field} does not belong to this assembly: {advice}")]
    OtherAssembly {
        /// The kind of object.
        field: &'static str,
        /// A remedy.
        advice: &'static str,
    },
    /// Boundary conditions in an assembly without boundary terms.
    #[error(
        "assembly by patches does not support boundary conditions, and the form has {n_conditions}: leave them out, or \
         assemble by rows"
    )]
    HasConditions {
        /// The number of conditions of the form.
        n_conditions: usize,
    },
    /// A node has no cell: its row of the matrix would be empty.
    #[error("node {node} at {} belongs to no cell; drop orphan nodes first", place(point))]
    OrphanNode {
        /// The first such node.
        node: usize,
        /// Its coordinates.
        point: [f64; 3],
    },
    /// A boundary condition on a facet that does not exist.
    #[error("boundary condition {condition} names facet {facet}, but the boundary has {n_facets} facets")]
    NoSuchFacet {
        /// Position of the condition in the list.
        condition: usize,
        /// The facet.
        facet: u32,
        /// Number of boundary facets.
        n_facets: usize,
    },
    /// A condition at a node that does not exist.
    #[error("boundary condition {condition} names node {node}, but the mesh has {n_nodes} nodes")]
    NoSuchNode {
        /// Position of the condition in the list.
        condition: usize,
        /// The node.
        node: u32,
        /// Number of nodes of the mesh.
        n_nodes: usize,
    },
    /// A set of boundary facets with one that does not exist.
    #[error("there is no facet {facet}: the boundary has {n_facets} facets")]
    FacetOutOfRange {
        /// The facet.
        facet: u32,
        /// Number of boundary facets.
        n_facets: usize,
    },
    /// Unbalanced sources and fluxes of a pure Neumann problem, which then has no solution.
    #[error(
        "{} (source {}, flux through the boundary {}), so there is no solution where nothing holds u: add `dirichlet` or `robin` to \
         a part of the boundary, or make source and flux cancel",
        flows(*source_integral, *flux_integral),
        significant(*source_integral),
        significant(*flux_integral)
    )]
    Incompatible {
        /// Integral of the source over the domain.
        source_integral: f64,
        /// Integral of the Neumann flux over the boundary.
        flux_integral: f64,
    },
    /// A component of the mesh without any condition, whose solution is determined up to a constant only.
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
    /// A point outside the mesh.
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
    /// A vector without exactly one entry per degree of freedom.
    #[error("{field} has {found} entries, but the mesh has {expected} nodes")]
    Length {
        /// Which vector.
        field: &'static str,
        /// Its length.
        found: usize,
        /// Number of nodes.
        expected: usize,
    },
    /// The work was stopped by its caller.
    #[error("the work was interrupted")]
    Interrupted,
    /// An error of a coefficient.
    #[error(transparent)]
    Form(#[from] FormError),
    /// An error of a matrix or vector.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// An error of the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl FemError {
    /// Returns the cell of the error, if there is one.
    pub fn cell(&self) -> Option<usize> {
        match self {
            Self::Space(error) => error.cell(),
            Self::Form(error) => error.cell(),
            _ => None,
        }
    }
}

fn place(point: &[f64; 3]) -> String {
    format!("({}, {}, {})", point[0], point[1], point[2])
}

/// Describes the inflow and outflow of the domain.
fn flows(source: f64, flux: f64) -> String {
    let inward = significant(source.max(0.0) + flux.max(0.0));
    let outward = significant(-source.min(0.0) - flux.min(0.0));
    match (&*inward, &*outward) {
        (inward, "0") => format!("{inward} flows in and nothing out"),
        ("0", outward) => format!("{outward} flows out and nothing in"),
        (inward, outward) => format!("{inward} flows in and {outward} out"),
    }
}

/// Returns a number rounded to six digits, as short as it can be.
fn significant(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    // Zero has no sign here.
    format!("{:?}", rounded + 0.0).trim_end_matches(".0").into()
}

impl FemError {
    /// Returns the error of a part of a mesh with the numbers that its cells and nodes have in the whole.
    #[must_use]
    pub fn in_global_numbers(mut self, cells: &[u32], nodes: &[u32]) -> Self {
        let whole = |number: &mut usize, numbers: &[u32]| {
            if let Some(&of_whole) = numbers.get(*number) {
                *number = of_whole as usize;
            }
        };
        match &mut self {
            Self::Space(error) => error.number_globally(cells),
            Self::Form(error) => error.cell_mut().into_iter().for_each(|cell| whole(cell, cells)),
            Self::OrphanNode { node, .. } => whole(node, nodes),
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unbalanced_flows_are_told_in_six_digits() {
        let told = |source_integral, flux_integral| {
            FemError::Incompatible { source_integral, flux_integral }.to_string()
        };
        for (source, flux, begin) in [
            (
                10.000000000000002,
                0.0,
                "10 flows in and nothing out (source 10, flux through the boundary 0),",
            ),
            (-1e-7, -0.0, "1e-7 flows out and nothing in (source -1e-7,"),
            (3.0, -1.0, "3 flows in and 1 out ("),
            (0.0, 2.5, "2.5 flows in and nothing out ("),
        ] {
            let told = told(source, flux);
            assert!(told.starts_with(begin) && told.contains("`dirichlet` or `robin`"), "{told}");
        }
    }
}
