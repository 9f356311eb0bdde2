//! Coefficients that depend on the unknown function u, and their derivatives.

use femtile_element::quadrature::gauss_legendre;
use femtile_expression::{Expression, Variable};

use crate::coefficient::Coefficient;

/// The variable of formulas that stands for the unknown function, the first of the other names.
pub const UNKNOWN: Variable = Variable::Other(0);

impl Coefficient {
    /// Returns whether a formula in it depends on u.
    pub fn uses_unknown(&self) -> bool {
        match self {
            Self::Expression(expression) => expression.uses(UNKNOWN),
            Self::TensorExpression(entries) => entries.iter().flatten().any(|entry| entry.uses(UNKNOWN)),
            Self::ByTag(parts) => parts.values().any(Self::uses_unknown),
            Self::Constant(_) | Self::Tensor(_) | Self::CellField(_) | Self::Function(_) => false,
        }
    }

    /// Returns the mean over the values from 0 to u, $\int_0^1 c(s u)\,ds$, so that u times it is the integral of c: by eight Gauss
    /// points, exact for polynomials in u up to degree 15.
    #[must_use]
    pub fn mean_from_zero(&self) -> Self {
        match self {
            Self::Expression(expression) if expression.uses(UNKNOWN) => {
                let (points, weights) = gauss_legendre(8);
                let of_point = |(point, weight): (&f64, &f64)| {
                    &Expression::constant(*weight) * &expression.with_multiple(UNKNOWN, *point)
                };
                let sum = points.iter().zip(&weights).map(of_point).reduce(|sum, term| &sum + &term);
                sum.map_or_else(|| self.clone(), Self::Expression)
            }
            Self::ByTag(parts) => {
                Self::ByTag(parts.iter().map(|(tag, part)| (*tag, part.mean_from_zero())).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the derivative by u.
    #[must_use]
    pub fn slope(&self) -> Self {
        let of = |expression: &Expression| expression.derivative(UNKNOWN);
        match self {
            Self::Expression(expression) => Self::Expression(of(expression)),
            Self::TensorExpression(entries) => {
                let entry = |i: usize, j: usize| of(&entries[i][j]);
                let entries = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
                Self::TensorExpression(Box::new(entries))
            }
            Self::ByTag(parts) => Self::ByTag(parts.iter().map(|(tag, part)| (*tag, part.slope())).collect()),
            Self::Constant(_) | Self::Tensor(_) | Self::CellField(_) | Self::Function(_) => {
                Self::Constant(0.0)
            }
        }
    }
}
