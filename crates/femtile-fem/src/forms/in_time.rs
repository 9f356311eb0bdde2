//! Coefficients that depend on the time, and sums with a number.

use femtile_expression::{Expression, Variable};

use super::{BoundaryCondition, Coefficient, Condition, PointFunction};

impl Coefficient {
    /// Returns whether a formula in it depends on the time t.
    pub fn uses_time(&self) -> bool {
        match self {
            Self::Expression(expression) => expression.uses(Variable::T),
            Self::TensorExpression(entries) => entries.iter().flatten().any(|entry| entry.uses(Variable::T)),
            Self::ByTag(parts) => parts.values().any(Self::uses_time),
            Self::Constant(_) | Self::Tensor(_) | Self::CellField(_) | Self::Function(_) => false,
        }
    }

    /// Returns the coefficient at a time.
    #[must_use]
    pub fn at_time(&self, t: f64) -> Self {
        match self {
            Self::Expression(expression) => Self::Expression(expression.at_time(t)),
            Self::TensorExpression(entries) => {
                let entry = |i: usize, j: usize| entries[i][j].at_time(t);
                let entries = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
                Self::TensorExpression(Box::new(entries))
            }
            Self::ByTag(parts) => {
                Self::ByTag(parts.iter().map(|(tag, part)| (*tag, part.at_time(t))).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the sum with a number; of a tensor, with that multiple of the identity.
    #[must_use]
    pub fn plus(&self, number: f64) -> Self {
        let with_formula = |expression: &Expression| expression + &Expression::constant(number);
        match self {
            Self::Constant(value) => Self::Constant(value + number),
            Self::Expression(expression) => Self::Expression(with_formula(expression)),
            Self::Tensor(tensor) => {
                let entry = |i: usize, j: usize| tensor[i][j] + if i == j { number } else { 0.0 };
                Self::Tensor(std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j))))
            }
            Self::TensorExpression(entries) => {
                let entry = |i: usize, j: usize| match i == j {
                    true => with_formula(&entries[i][j]),
                    false => entries[i][j].clone(),
                };
                Self::TensorExpression(Box::new(std::array::from_fn(|i| {
                    std::array::from_fn(|j| entry(i, j))
                })))
            }
            Self::ByTag(parts) => {
                Self::ByTag(parts.iter().map(|(tag, part)| (*tag, part.plus(number))).collect())
            }
            Self::CellField(field) => {
                let mut sum = field.clone();
                let is_diagonal = |at: usize| match field.n_components {
                    6 => at < 3,
                    9 => at.is_multiple_of(4),
                    _ => true,
                };
                let entries = sum.values.iter_mut().enumerate();
                let diagonal = entries.filter(|(i, _)| is_diagonal(i % field.n_components));
                diagonal.for_each(|(_, value)| *value += number);
                Self::CellField(sum)
            }
            Self::Function(function) => {
                let function = function.clone();
                Self::Function(PointFunction::new(move |point| function.at(point) + number))
            }
        }
    }
}

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
