//! Forms: coefficients, boundary conditions, and their evaluation.
//!
//! Find $u$ with $u = u_D$ on the Dirichlet part and, for all $v$ that vanish there,
//!
//! $$ \int_\Omega \sigma\nabla u\cdot\nabla v + \lambda u v \,dx + \int_{\Gamma_R} c\,u v \,ds
//!    = \int_\Omega f v \,dx + \int_{\Gamma_N} g v \,ds + \int_{\Gamma_R} c\,w v \,ds. $$

mod cell_coefficients;
mod cell_points;
mod checks;
mod conditions;
mod cuda;
mod facet_terms;
mod linearized;
mod point_coefficients;
mod sample_forms;
mod unknown;
mod variants;

use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

pub(crate) use cell_coefficients::{
    CHUNK, CellCoefficients, ChunkCoefficients, ChunkScratch, VOIGT, mass_entries,
};
pub(crate) use cell_points::centroid;
pub use checks::{definite, not_negative, positive};
pub use conditions::Conditions;
#[doc(hidden)]
pub use cuda::{CudaForm, CudaFormData, Evaluated, OPERATIONS};
pub use facet_terms::FacetMatrix;
pub(crate) use facet_terms::{FacetTerm, add_loads, facet_terms, terms_of_facets};
pub use femtile_form::{Coefficient, Compiled, PointFunction, Points, UNKNOWN};
pub(crate) use linearized::CompiledSlopes;
pub(crate) use point_coefficients::PointCoefficients;
#[doc(hidden)]
pub use sample_forms::{for_every_form, for_every_linearization};
pub use unknown::{Slopes, State};

/// A boundary condition; $\sigma\,\partial u/\partial n$ is the flux into the domain.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// Prescribes $u$.
    Dirichlet(Coefficient),
    /// Prescribes $u$ at nodes of the mesh, on its boundary or inside: at these nodes, and on all edges, faces and
    /// cells whose corners are all named.
    DirichletAtNodes {
        /// Numbers of nodes.
        nodes: Vec<u32>,
        /// The value of $u$.
        value: Coefficient,
    },
    /// Prescribes $\sigma\,\partial u/\partial n$.
    Neumann(Coefficient),
    /// Sets $\sigma\,\partial u/\partial n = c\,(w - u)$.
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

/// A condition and its boundary facets.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundaryCondition {
    /// Positions in the list of boundary facets.
    pub facets: Vec<u32>,
    /// The condition on them.
    pub condition: Condition,
}

/// The problem $-\nabla\cdot(\sigma\nabla u) + \lambda u = f$ on a mesh, with its boundary conditions.
///
/// If several conditions name a facet, the last one holds. A node shared by a Dirichlet facet and other
/// facets has the Dirichlet value, that of the last condition if there are several. The same is true for
/// named nodes. Facets without a condition have zero flux.
#[derive(Debug, Clone, Copy)]
pub struct Form<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// Its boundary, in which `conditions` count facets.
    pub boundary: &'a BoundaryFacets,
    /// Conductivity $\sigma$, symmetric positive definite, or [`Coefficient::ZERO`] with $\lambda \ne 0$: the matrix is then a
    /// mass matrix, and the problem a projection.
    pub sigma: &'a Coefficient,
    /// Reaction $\lambda \ge 0$.
    pub lambda: &'a Coefficient,
    /// Source $f$.
    pub source: &'a Coefficient,
    /// Boundary conditions.
    pub conditions: &'a [BoundaryCondition],
}
