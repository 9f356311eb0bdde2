use std::fmt;

use crate::krylov;

/// The reason why Newton's method ended.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum NewtonStop {
    /// The method has converged to the tolerance.
    Converged,
    /// The limit of iterations was reached first.
    MaxIterations,
    /// No step along the last correction made the residual smaller.
    NoDescent,
    /// The residual has no finite value at the first iterate.
    Undefined,
    /// A linear solve did not converge, and its result made the residual no smaller.
    LinearSolver,
    /// The monitor ended the iteration.
    Ended(krylov::Stop),
}

impl fmt::Display for NewtonStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::MaxIterations => {
                "reached the limit of iterations: begin nearer to the solution, or allow more iterations"
            }
            Self::NoDescent => {
                "found no smaller residual along the last correction: begin nearer to the solution; the equation may have \
                 none nearby, and a tolerance below rounding ends here too"
            }
            Self::Undefined => "found no finite residual at the first iterate: begin elsewhere",
            Self::LinearSolver => {
                "ended because a linear solve did not converge: take another preconditioner, or method gmres"
            }
            Self::Ended(stop) => return stop.fmt(f),
        })
    }
}

/// The outcome of Newton's method.
#[derive(Debug, Clone, PartialEq)]
pub struct NewtonOutcome {
    /// The reason why it ended.
    pub stop: NewtonStop,
    /// Iterations, each with a linearization.
    pub iterations: usize,
    /// Iterations of all linear solves.
    pub linear_iterations: usize,
    /// Norms of the residual relative to the size of its terms, at the first iterate and after every iteration.
    pub residuals: Vec<f64>,
    /// The share of each correction that was added.
    pub lengths: Vec<f64>,
}

impl NewtonOutcome {
    /// Returns whether the method converged to the tolerance.
    pub fn has_converged(&self) -> bool {
        self.stop == NewtonStop::Converged
    }
}
