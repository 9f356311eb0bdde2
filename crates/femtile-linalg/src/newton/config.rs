use crate::LinalgError;

/// Settings of Newton's method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewtonConfig {
    /// The residual falls below this share of the size of its terms. Default 1e-8.
    pub tolerance: f64,
    /// If given, the residual falls below this share of its first norm as well.
    pub reduction: Option<f64>,
    /// Whether the correction of the last iterate has to be small as well: at most five times the tolerance,
    /// relative to u. That costs one more linear solve. Default false.
    pub checks_correction: bool,
    /// The most iterations. Default 50.
    pub max_iterations: usize,
}

impl Default for NewtonConfig {
    fn default() -> Self {
        Self { tolerance: 1e-8, reduction: None, checks_correction: false, max_iterations: 50 }
    }
}

impl NewtonConfig {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] with the first that is wrong.
    pub fn check(&self) -> Result<(), LinalgError> {
        let wrong = |field, message: String| Err(LinalgError::Setting { field, message });
        if !(self.tolerance > 0.0 && self.tolerance < 1.0) {
            return wrong("tolerance", format!("{} is not between 0 and 1", self.tolerance));
        }
        match self.max_iterations {
            0 => wrong("max_iterations", "at least one iteration is needed".into()),
            _ => Ok(()),
        }
    }
}
