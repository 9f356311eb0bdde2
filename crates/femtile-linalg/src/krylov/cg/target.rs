use crate::LinalgError;

/// The norm that the tolerance of a solve is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Target {
    /// $\|r\| \le \tau \|b\|$.
    #[default]
    RightSide,
    /// $\|r\| \le \tau s$ with a given $s > 0$, for callers that know the size of the terms of b; at most $\|b\| / 2$.
    Norm(f64),
    /// $\|r\| \le \min(\tau \|b\|, \rho \|r_0\|)$ with the first residual $r_0$, to compute the correction of
    /// the first guess to a relative accuracy $\rho$.
    Reduction(f64),
}

impl Target {
    pub(super) fn check(self) -> Result<(), LinalgError> {
        let (Self::Norm(value) | Self::Reduction(value)) = self else { return Ok(()) };
        if value > 0.0 && value.is_finite() {
            return Ok(());
        }
        let message = format!("{value} is not positive");
        Err(LinalgError::Setting { field: "target", message })
    }

    /// Returns the norm and the reduction of the settings, 0 if there is none.
    pub(super) fn settings(self) -> [f64; 2] {
        match self {
            Self::RightSide => [0.0, 0.0],
            Self::Norm(size) => [size, 0.0],
            Self::Reduction(reduction) => [0.0, reduction],
        }
    }
}
