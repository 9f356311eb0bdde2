use crate::SolveError;

/// Linearizations of equations whose coefficients depend on u.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NonlinearMethod {
    /// Newton's method, with exact derivatives of the coefficients: converges quadratically.
    #[default]
    Newton,
    /// Picard's iteration, with coefficients of the last iterate: converges linearly, with symmetric matrices.
    Picard,
}

impl NonlinearMethod {
    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Newton => "newton",
            Self::Picard => "picard",
        }
    }
}

/// Settings of the iteration for equations whose coefficients depend on u.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonlinearConfig {
    /// The linearization.
    pub method: NonlinearMethod,
    /// The iteration ends when ‖r‖ ≤ tolerance · ‖b‖ with the residual r of the equation and the right side b of its
    /// linearization, boundary values lifted, and the next correction is at most five times the tolerance of u; in a step in time
    /// when ‖r‖ ≤ tolerance · ‖r₀‖ with the residual r₀ of the value that the step begins from.
    pub tolerance: f64,
    /// The iteration ends after this many linearizations at the latest, in each step of an equation in time.
    pub max_iterations: usize,
}

impl Default for NonlinearConfig {
    fn default() -> Self {
        Self { method: NonlinearMethod::Newton, tolerance: 1e-8, max_iterations: 50 }
    }
}

impl NonlinearConfig {
    pub(crate) fn check(&self) -> Result<(), SolveError> {
        let wrong = |key: &str, message: String| Err(SolveError::solver(key, message));
        if !(self.tolerance > 0.0 && self.tolerance < 1.0) {
            let message = format!("{} is not between 0 and 1; 1e-8 is a good choice", self.tolerance);
            return wrong("nonlinear_tolerance", message);
        }
        match self.max_iterations {
            0 => wrong("nonlinear_iterations", "at least one iteration is needed".into()),
            _ => Ok(()),
        }
    }
}
