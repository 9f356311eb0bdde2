use super::Tolerance;

/// The lengths of steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steps {
    /// This number of equal steps; a step whose solve does not converge is divided.
    Fixed(usize),
    /// Lengths chosen by an estimate of the local error.
    Adaptive {
        /// The bound of the error.
        tolerance: Tolerance,
        /// The length of the first step; by default a thousandth of the run.
        first: Option<f64>,
        /// The shortest step; a run that needs shorter ones ends.
        shortest: f64,
        /// The longest step.
        longest: f64,
    },
}

impl Steps {
    /// Steps of a run whose lengths are chosen, as far as devices and preconditioners are chosen for them.
    pub const EXPECTED: usize = 100;

    /// Returns the number of steps, or [`Steps::EXPECTED`] if their lengths are chosen.
    pub const fn expected(&self) -> usize {
        match self {
            Self::Fixed(n) => *n,
            Self::Adaptive { .. } => Self::EXPECTED,
        }
    }
}
