//! Boundary conditions that depend on the time.

use super::{BoundaryCondition, Coefficient, Condition};

impl Condition {
    /// Returns the condition at a time.
    #[must_use]
    pub fn at_time(&self, t: f64) -> Self {
        match self {
            Self::Dirichlet(value) => Self::Dirichlet(value.at_time(t)),
            Self::DirichletAtNodes { nodes, value } => {
                Self::DirichletAtNodes { nodes: nodes.clone(), value: value.at_time(t) }
            }
            Self::Neumann(value) => Self::Neumann(value.at_time(t)),
            Self::Robin { coefficient, value } => {
                Self::Robin { coefficient: coefficient.at_time(t), value: value.at_time(t) }
            }
        }
    }

    /// Returns whether a value in it depends on the time t.
    pub fn uses_time(&self) -> bool {
        let exchange = match self {
            Self::Robin { coefficient, .. } => coefficient.uses_time(),
            _ => false,
        };
        exchange || self.datum().uses_time()
    }

    /// Returns the value, flux or outer value that the condition gives.
    pub fn datum(&self) -> &Coefficient {
        match self {
            Self::Dirichlet(value)
            | Self::DirichletAtNodes { value, .. }
            | Self::Neumann(value)
            | Self::Robin { value, .. } => value,
        }
    }
}

impl BoundaryCondition {
    /// Returns the condition at a time.
    #[must_use]
    pub fn at_time(&self, t: f64) -> Self {
        Self { facets: self.facets.clone(), condition: self.condition.at_time(t) }
    }
}
