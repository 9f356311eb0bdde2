//! Conditions with other data: at a time, without data, without exchange.

use super::{BoundaryCondition, Coefficient, Condition};

impl Condition {
    /// Returns the condition at a time.
    #[must_use]
    pub fn at_time(&self, t: f64) -> Self {
        let mut condition = self.with_datum(self.datum().at_time(t));
        if let Self::Robin { coefficient, .. } = &mut condition {
            *coefficient = coefficient.at_time(t);
        }
        condition
    }

    /// Returns the condition with another value, flux or outer value.
    fn with_datum(&self, datum: Coefficient) -> Self {
        match self {
            Self::Dirichlet(_) => Self::Dirichlet(datum),
            Self::DirichletAtNodes { nodes, .. } => {
                Self::DirichletAtNodes { nodes: nodes.clone(), value: datum }
            }
            Self::Neumann(_) => Self::Neumann(datum),
            Self::Robin { coefficient, .. } => Self::Robin { coefficient: coefficient.clone(), value: datum },
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
    fn with(&self, condition: Condition) -> Self {
        Self { facets: self.facets.clone(), condition }
    }

    /// Returns the condition at a time.
    #[must_use]
    pub fn at_time(&self, t: f64) -> Self {
        self.with(self.condition.at_time(t))
    }

    /// Returns the condition with zero data.
    #[must_use]
    pub fn homogeneous(&self) -> Self {
        self.with(self.condition.with_datum(Coefficient::ZERO))
    }

    /// Returns the condition if it gives u, else zero flux: the facets are kept, as later conditions replace earlier ones.
    #[must_use]
    pub fn given_alone(&self) -> Self {
        match self.condition.given_value() {
            Some(_) => self.clone(),
            None => self.with(Condition::Neumann(Coefficient::ZERO)),
        }
    }
}
