use crate::CaseError;

/// The stages of a case, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading or making the mesh.
    Read,
    /// Checking, repairing and refining it.
    Check,
    /// Boundary, coefficients, functionals.
    Space,
    /// Matrix and right side.
    Assemble,
    /// The preconditioner.
    Setup,
    /// The iterations.
    Solve,
    /// Functionals and files.
    Write,
}

impl Stage {
    /// What to show while it goes on.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Read => "reading the mesh",
            Self::Check => "checking the mesh",
            Self::Space => "preparing the form",
            Self::Assemble => "assembling",
            Self::Setup => "preparing the solver",
            Self::Solve => "solving",
            Self::Write => "writing results",
        }
    }
}

/// Who is told how a case goes on, and may end it.
pub trait Progress: Send {
    /// A stage begins; the one before is over.
    fn begin(&mut self, _stage: Stage) {}

    /// This fraction of the stage is done.
    fn fraction(&mut self, _fraction: f64) {}

    /// The solve has done so many iterations.
    fn iteration(&mut self, _iteration: usize, _relative_residual: f64, _tolerance: f64) {}

    /// The linear system has been solved, or its solve has ended otherwise; results are written next.
    fn solved(&mut self, _system: &dyn SolvedSystem) {}

    /// Whether to stop: the solve at its next iteration, keeping what there is; all else before anything is written.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// A linear system $A x = b$ whose solve has ended, wherever it lies: for those who check it by other means.
///
/// Rows are those of the solver, with unit rows where values are given.
pub trait SolvedSystem {
    /// The right side $b$.
    ///
    /// # Errors
    /// What the device reports; so in all functions.
    fn right_side(&self) -> Result<Vec<f64>, CaseError>;

    /// The solution $x$ that was found.
    ///
    /// # Errors
    /// As above.
    fn solution(&self) -> Result<Vec<f64>, CaseError>;

    /// $A v$.
    ///
    /// # Errors
    /// As above, and where `v` has another length.
    fn apply(&self, v: &[f64]) -> Result<Vec<f64>, CaseError>;
}

/// Nobody is told anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
