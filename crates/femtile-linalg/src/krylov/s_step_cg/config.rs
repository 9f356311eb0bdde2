use crate::LinalgError;
use crate::krylov::cg::KrylovConfig;

/// The most steps that are taken together.
pub const MAX_STEPS: usize = 6;

/// Settings of s-step conjugate gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct SStepCgConfig {
    /// Those of conjugate gradients; [`KrylovConfig::look_every`] has no meaning here.
    pub cg: KrylovConfig,
    /// Steps that are taken together, s, from 1 to [`MAX_STEPS`]. Default 3.
    pub steps: usize,
}

impl Default for SStepCgConfig {
    fn default() -> Self {
        Self { cg: KrylovConfig::default(), steps: 3 }
    }
}

impl SStepCgConfig {
    pub(super) fn check(&self) -> Result<(), LinalgError> {
        self.cg.check()?;
        if (1..=MAX_STEPS).contains(&self.steps) {
            return Ok(());
        }
        let message = format!("{} is not between 1 and {MAX_STEPS}; 3 is a good choice", self.steps);
        Err(LinalgError::Setting { field: "steps", message })
    }
}
