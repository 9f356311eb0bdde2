//! Loads and Dirichlet values of a problem, without its σ and λ.

use femtile_device::part;
use femtile_space::Space;

use crate::FemError;
use crate::constraints::Constraints;
use crate::evaluation::Evaluation;
use crate::forms::{Coefficient, Compiled, Conditions, FacetTerm, add_loads, facet_terms};
use crate::functionals::source_rule;
use crate::tensor::SOURCE_RULE;

/// The right side of a problem on a space before anything is lifted.
pub(crate) struct RightSide {
    /// $\int f \varphi_i\,dx + \int (g + c\,w)\,\varphi_i\,ds$: `[n_dofs]`.
    pub load: Vec<f64>,
    pub constraints: Constraints,
    pub facet_terms: Vec<FacetTerm>,
}

impl RightSide {
    /// Evaluates a source and boundary conditions.
    pub fn new(
        space: &Space<'_>,
        source: &Coefficient,
        conditions: &Conditions<'_>,
    ) -> Result<Self, FemError> {
        let constraints = part("Dirichlet values", || Constraints::new(space, conditions))?;
        let mut load = vec![0.0; space.n_dofs()];
        if source.as_constant() != Some(0.0) {
            let evaluation = Evaluation::new(space, source_rule(space, source, SOURCE_RULE));
            let source = Compiled::scalar("source", source, space.mesh())?;
            part("integrals of the source", || evaluation.add_moments(&mut load, &source))?;
        }
        let facet_terms = part("facet terms", || facet_terms(space, conditions))?;
        add_loads(&mut load, &facet_terms);
        Ok(Self { load, constraints, facet_terms })
    }
}

/// Evaluates the load of a source and of boundary conditions, $b_i = \int f \varphi_i\,dx + \int (g + c\,w)\,\varphi_i\,ds$,
/// and the Dirichlet values. Nothing is lifted or eliminated.
///
/// # Shapes
/// A value for each degree of freedom of the space, which has degree 1 on simplices.
/// # Cost
/// One pass over the cells, on the processor; terms are added by ascending cell, so the bits depend on no number of threads.
/// # Errors
/// A folded cell, a datum that is not finite, a negative transfer coefficient.
pub fn load(
    space: &Space<'_>,
    source: &Coefficient,
    conditions: &Conditions<'_>,
) -> Result<(Vec<f64>, Constraints), FemError> {
    let RightSide { load, constraints, .. } = RightSide::new(space, source, conditions)?;
    Ok((load, constraints))
}
