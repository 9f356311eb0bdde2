use crate::LinalgError;
use crate::krylov::cg::KrylovConfig;

/// Settings of the generalized minimal residual method.
#[derive(Debug, Clone, PartialEq)]
pub struct GmresConfig {
    /// Settings that all Krylov methods share.
    pub cg: KrylovConfig,
    /// Directions of a restart cycle, at least 1. Default 30.
    pub restart: usize,
}

impl Default for GmresConfig {
    fn default() -> Self {
        Self { cg: KrylovConfig::default(), restart: 30 }
    }
}

impl GmresConfig {
    pub(super) fn check(&self) -> Result<(), LinalgError> {
        self.cg.check()?;
        if self.restart > 0 {
            return Ok(());
        }
        let message = "0 directions leave nothing to choose from; 30 are a good choice".into();
        Err(LinalgError::Setting { field: "restart", message })
    }
}
