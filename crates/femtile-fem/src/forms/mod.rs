//! The bilinear form and the load: coefficients, boundary conditions, and their values where they are needed.
//!
//! Find $u$ with $u = u_D$ on the Dirichlet part and, for all $v$ that vanish there,
//!
//! $$ \int_\Omega \sigma\nabla u\cdot\nabla v + \lambda u v \,dx + \int_{\Gamma_R} c\,u v \,ds
//!    = \int_\Omega f v \,dx + \int_{\Gamma_N} g v \,ds + \int_{\Gamma_R} c\,w v \,ds. $$

mod cell_coefficients;
mod checks;
mod coefficient;
mod compiled;
mod cuda;
mod facet_terms;
mod in_time;
mod kinds;
mod point_coefficients;

use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

pub(crate) use cell_coefficients::{
    CHUNK, CellCoefficients, ChunkCoefficients, ChunkScratch, VOIGT, mass_entries,
};
pub(crate) use checks::{definite, not_negative};
pub use coefficient::{Coefficient, PointFunction};
pub(crate) use compiled::{Compiled, Points};
pub(crate) use cuda::{CudaForm, CudaFormData, Evaluated, OPERATIONS};
pub(crate) use facet_terms::{FACET_ENTRIES, FacetTerm, facet_terms, measure as facet_measure, winners};
pub(crate) use kinds::for_every_form;
pub(crate) use point_coefficients::PointCoefficients;

/// What holds on a part of the boundary; $\sigma\,\partial u/\partial n$ is the flux into the domain.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// $u$ has this value.
    Dirichlet(Coefficient),
    /// $u$ has this value at nodes of the mesh too, on its boundary or inside: at them and all along edges, faces and cells
    /// whose corners are all among them.
    DirichletAtNodes {
        /// Numbers of nodes.
        nodes: Vec<u32>,
        /// The value of $u$.
        value: Coefficient,
    },
    /// $\sigma\,\partial u/\partial n$ has this value.
    Neumann(Coefficient),
    /// $\sigma\,\partial u/\partial n = c\,(w - u)$.
    Robin {
        /// The transfer coefficient $c \ge 0$.
        coefficient: Coefficient,
        /// The outer value $w$.
        value: Coefficient,
    },
}

impl Condition {
    /// Returns the value of $u$, if the condition gives it.
    pub fn given_value(&self) -> Option<&Coefficient> {
        match self {
            Self::Dirichlet(value) | Self::DirichletAtNodes { value, .. } => Some(value),
            Self::Neumann(_) | Self::Robin { .. } => None,
        }
    }
}

/// A condition and the boundary facets where it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundaryCondition {
    /// Positions in the list of boundary facets.
    pub facets: Vec<u32>,
    /// What holds there.
    pub condition: Condition,
}

/// The problem $-\nabla\cdot(\sigma\nabla u) + \lambda u = f$ on a mesh, with its boundary conditions.
///
/// On a facet named by several conditions the last one holds; on nodes that Dirichlet facets share with
/// others the Dirichlet value holds, that of the last condition where several meet; so it does at nodes that are named
/// themselves. Facets that no condition names have zero flux.
#[derive(Debug, Clone, Copy)]
pub struct Form<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// Its boundary, that `conditions` count in.
    pub boundary: &'a BoundaryFacets,
    /// Conductivity $\sigma$, symmetric positive definite, or the number zero: then $\lambda > 0$ makes it a projection.
    pub sigma: &'a Coefficient,
    /// Reaction $\lambda \ge 0$.
    pub lambda: &'a Coefficient,
    /// Source $f$.
    pub source: &'a Coefficient,
    /// What holds on the boundary.
    pub conditions: &'a [BoundaryCondition],
}
