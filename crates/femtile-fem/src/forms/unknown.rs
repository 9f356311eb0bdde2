//! Coefficients that depend on the unknown function u, and the derivatives that Newton's method takes.

use super::{Coefficient, Form};

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
