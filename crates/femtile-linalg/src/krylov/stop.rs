use std::fmt;

/// Why an iterative method ended.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// The method has converged to the tolerance.
    Converged,
    /// The limit of iterations was reached first.
    MaxIterations,
    /// The residual found no new minimum for a long time.
    Stagnated,
    /// The residual grew far above its initial value.
    Diverged,
    /// A quantity that must be positive was not.
    Breakdown {
        /// Which one, as the method's formulas call it.
        quantity: &'static str,
        /// Its value.
        value: f64,
    },
    /// The user asked to stop.
    Interrupted,
    /// The time allowed was used up.
    TimeLimit,
}

impl Stop {
    /// The quantity of a breakdown that too many steps taken together bring about as well as the matrix.
    pub(super) const BLOCK_PIVOT: &'static str = "a pivot of PᵀAP";

    /// The quantity of a breakdown that recurrences bring about as well as the matrix.
    pub(super) const RECURRED: &'static str = "p·Ap, by recurrence,";

    /// The quantity of a breakdown of the generalized minimal residual method.
    pub(super) const PIVOT: &'static str = "a pivot of H";

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxIterations => "max_iterations",
            Self::Stagnated => "stagnated",
            Self::Diverged => "diverged",
            Self::Breakdown { .. } => "breakdown",
            Self::Interrupted => "interrupted",
            Self::TimeLimit => "time_limit",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Converged => f.write_str("converged"),
            Self::MaxIterations => {
                f.write_str("reached the limit of iterations: allow more or choose a stronger preconditioner")
            }
            Self::Stagnated => f.write_str(
                "stagnated: the tolerance is below what rounding allows, or the matrix is singular",
            ),
            Self::Diverged => f.write_str(
                "diverged: the matrix is probably not positive definite; method gmres needs no definite matrix",
            ),
            Self::Breakdown { quantity, value } => {
                write!(f, "broke down: {quantity} = {value:e}; {}", advice(quantity))
            }
            Self::Interrupted => f.write_str("was interrupted by the user"),
            Self::TimeLimit => f.write_str("reached the time limit"),
        }
    }
}

/// Explains a quantity that is not positive.
fn advice(quantity: &str) -> &'static str {
    match quantity {
        Stop::BLOCK_PIVOT => {
            "rounding does not allow this number of steps at once: take fewer, or plain conjugate gradients; where those \
             break down as well, the matrix is not positive definite"
        }
        Stop::PIVOT => "the matrix or the preconditioner is singular",
        Stop::RECURRED => {
            "rounding has overtaken the recurrences: take plain conjugate gradients; where those break down as well, the \
             matrix or the preconditioner is not positive definite"
        }
        _ => {
            "the matrix or the preconditioner is not positive definite; method gmres needs no definite matrix"
        }
    }
}
