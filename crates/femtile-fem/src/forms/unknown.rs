//! Coefficients that depend on the unknown function u, and the derivatives that Newton's method takes.

use femtile_element::quadrature::gauss_legendre;
use femtile_expression::{Expression, Variable};

use super::{Coefficient, Form};

/// The variable of formulas that stands for the unknown function, the first of the other names.
pub const UNKNOWN: Variable = Variable::Other(0);

/// The time and the function u at which coefficients are evaluated.
///
/// # Shapes
/// `unknown`: one value per degree of freedom, or empty if no coefficient depends on u.
#[derive(Debug, Clone, Copy)]
pub struct State<'a> {
    /// The time.
    pub time: f64,
    /// The values of u.
    pub unknown: &'a [f64],
}

impl Default for State<'_> {
    /// Returns a state without a time and a function, in which formulas that need them have the value NaN.
    fn default() -> Self {
        Self { time: f64::NAN, unknown: &[] }
    }
}

impl<'a> State<'a> {
    /// Returns the state of a function whose time is part of the coefficients.
    pub fn of(unknown: &'a [f64]) -> Self {
        Self { unknown, ..Self::default() }
    }
}

/// The derivatives of the coefficients of a form with respect to u; none for a coefficient that does not
/// depend on u.
///
/// With all of them a linearization is that of Newton, with none of them that of Picard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slopes {
    /// $\partial\sigma/\partial u$.
    pub sigma: Option<Coefficient>,
    /// $\partial\lambda/\partial u$.
    pub lambda: Option<Coefficient>,
    /// $\partial f/\partial u$.
    pub source: Option<Coefficient>,
}

impl Slopes {
    /// No derivatives.
    pub const NONE: &'static Self = &Self { sigma: None, lambda: None, source: None };

    /// Returns the exact derivatives.
    pub fn of(form: &Form<'_>) -> Self {
        let slope = |coefficient: &Coefficient| coefficient.uses_unknown().then(|| coefficient.slope());
        Self { sigma: slope(form.sigma), lambda: slope(form.lambda), source: slope(form.source) }
    }

    /// Returns whether there is a derivative.
    pub fn is_any(&self) -> bool {
        self.sigma.is_some() || self.lambda.is_some() || self.source.is_some()
    }

    /// Returns whether the linearization is symmetric, which the derivative of σ prevents.
    pub fn is_symmetric(&self) -> bool {
        self.sigma.is_none()
    }
}

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
