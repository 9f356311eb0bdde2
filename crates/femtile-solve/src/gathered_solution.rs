//! The solution of a problem that no rank had whole, on the whole mesh.

use std::sync::Arc;

use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use crate::solution::Finished;
use crate::{Poisson, Solution, SolveError};

/// A whole mesh, and the solution of a problem that ranks solved in parts.
#[derive(Debug)]
pub struct GatheredSolution {
    /// The mesh.
    pub mesh: Mesh,
    /// The facets on its boundary.
    pub boundary: Arc<BoundaryFacets>,
    /// The values.
    pub values: GatheredValues,
}

/// The values of a solution on a mesh that was put together.
#[derive(Debug)]
pub struct GatheredValues {
    pub(crate) finished: Finished,
}

impl GatheredValues {
    /// Returns the solution of the same problem, stated once more on the whole mesh.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the problem cannot be discretized, or has another number of degrees of
    /// freedom.
    pub fn on<'m>(self, problem: Poisson<'m>) -> Result<Solution<'m>, SolveError> {
        let discretization = problem.discretize()?;
        let Self { finished } = self;
        let (n, components) = (discretization.n_dofs(), &finished.components);
        let is_same =
            discretization.divided.is_none() && discretization.config.components == components.len();
        if !is_same || components.iter().any(|values| values.len() != n) {
            let message = "the problem has other degrees of freedom than that which ranks solved: state the same one on the mesh";
            return Err(SolveError::solver("ranks", message));
        }
        Ok(Solution::new(discretization, finished))
    }
}
