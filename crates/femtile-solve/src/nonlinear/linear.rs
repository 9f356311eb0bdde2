//! Linear solves of nonlinear iterations: the preconditioner is kept while it works, and GMRES takes over if
//! conjugate gradients fail.

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_fem::recovery::IsInterrupted;
use femtile_linalg::krylov::Stop;
use femtile_linalg::newton::CorrectionOutcome;
use femtile_linalg::{LinearOperator, Preconditioner};

use crate::method::iterate;
use crate::preconditioner::{Level, Preconditioning};
use crate::ranks::RankDevice;
use crate::{Method, PreconditionerConfig, Progress, SolveError, SolverConfig, Stages};

/// Growth of iterations for each digit beyond which a preconditioner is made again.
const GROWTH: f64 = 1.5;

/// Tells a linear solve of an interruption.
struct Interruption<'a>(IsInterrupted<'a>);

impl Progress for Interruption<'_> {
    fn is_interrupted(&self) -> bool {
        (self.0)()
    }
}

/// A preconditioner with the iterations for each digit after its making.
struct Kept<D: RankDevice> {
    preconditioner: Box<dyn Preconditioner<f64, D>>,
    per_digit: Option<f64>,
}

/// The solver of linearized equations.
pub(crate) struct TangentSolver<D: RankDevice> {
    /// Its tolerance is that of the solve at hand, its method the one that works.
    config: SolverConfig,
    kept: Option<Kept<D>>,
    pub levels: Vec<Level>,
    pub warnings: Vec<String>,
}

impl<D: RankDevice> TangentSolver<D> {
    /// Creates the solver; `auto` is resolved, and matrices that are not symmetric are left to GMRES.
    pub fn new(config: &SolverConfig, is_symmetric: bool) -> Self {
        let mut config = config.clone();
        if !is_symmetric && !matches!(config.method, Method::Gmres { .. }) {
            config.method = gmres();
        }
        Self { config, kept: None, levels: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the iterations for each digit after the making of the preconditioner, NaN before a solve; none
    /// if it is rebuilt for the next solve.
    pub fn per_digit(&self) -> Option<f64> {
        self.kept.as_ref().map(|kept| kept.per_digit.unwrap_or(f64::NAN))
    }

    /// Returns whether GMRES is the method.
    pub fn takes_gmres(&self) -> bool {
        matches!(self.config.method, Method::Gmres { .. })
    }

    /// Takes GMRES.
    pub fn take_gmres(&mut self) {
        if !self.takes_gmres() {
            self.config.method = gmres();
        }
    }

    /// Restores the iterations per digit of a restarted run.
    pub fn restore_per_digit(&mut self, per_digit: f64) {
        if let Some(kept) = &mut self.kept {
            kept.per_digit = Some(per_digit).filter(|number| !number.is_nan());
        }
    }

    /// Returns whether a preconditioner is kept for other matrices.
    pub fn keeps_preconditioners(&self) -> bool {
        !self.config.preconditioner.is_diagonal()
    }

    /// Returns the settings, with the method that is used.
    pub fn config(&self) -> &SolverConfig {
        &self.config
    }

    /// Returns whether the next solve needs a preconditioner.
    pub fn needs_preconditioner(&self) -> bool {
        self.kept.is_none()
    }

    /// Forgets the preconditioner.
    pub fn forget(&mut self) {
        self.kept = None;
    }

    /// Takes the diagonal as preconditioner from now on.
    pub fn take_diagonal(&mut self, warning: String) {
        self.config.preconditioner = PreconditionerConfig::Jacobi;
        self.warn(warning);
    }

    /// Keeps a preconditioner that is made for the settings from the matrix of a linearization. Collective.
    pub fn make(
        &mut self,
        made: impl FnOnce(&SolverConfig, &mut Vec<String>) -> Result<Preconditioning<D>, SolveError>,
    ) -> Result<(), SolveError> {
        let mut warnings = Vec::new();
        let (made, levels) = made(&self.config, &mut warnings)?;
        warnings.into_iter().for_each(|warning| self.warn(warning));
        (self.kept, self.levels) = (Some(Kept { preconditioner: made, per_digit: None }), levels);
        Ok(())
    }

    /// Solves $A x = b$ from zero with the preconditioner that is kept. Collective.
    pub fn solve(
        &mut self,
        comm: &Comm,
        x: &mut Buffer<f64, D>,
        (a, b): (&dyn LinearOperator<f64, D>, &Buffer<f64, D>),
        tolerance: f64,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Solved, SolveError> {
        let Some(kept) = &mut self.kept else { return Ok(Solved::NeedsPreconditioner(0)) };
        self.config.tolerance = tolerance;
        let mut interruption = Interruption(is_interrupted);
        b.device().fill(x, 0.0)?;
        let system = (a, kept.preconditioner.as_ref());
        let outcome = iterate(&self.config, comm, x, system, b, &mut Stages::new(&mut interruption))?;
        let iterations = outcome.iterations;
        let is_new = kept.per_digit.is_none();
        let per_digit = iterations as f64 / (1.0 / tolerance).log10().max(0.3);
        let before = *kept.per_digit.get_or_insert(per_digit);
        match outcome.stop {
            Stop::Converged => {
                if per_digit > GROWTH * before + 1.0 || self.is_made_for_each_matrix() {
                    self.kept = None;
                }
                Ok(Solved::Done(CorrectionOutcome { iterations, has_converged: true }))
            }
            Stop::Interrupted | Stop::TimeLimit => {
                Ok(Solved::Done(CorrectionOutcome { iterations, has_converged: false }))
            }
            _ if !is_new => {
                self.kept = None;
                Ok(Solved::NeedsPreconditioner(iterations))
            }
            Stop::Breakdown { .. } | Stop::Diverged | Stop::Stagnated
                if !matches!(self.config.method, Method::Gmres { .. }) =>
            {
                let warning = format!(
                    "a linearization is not positive definite, where {} ends: gmres took over",
                    self.config.method.name()
                );
                self.warn(warning);
                self.config.method = gmres();
                self.kept = None;
                Ok(Solved::NeedsPreconditioner(iterations))
            }
            _ => {
                self.kept = None;
                Ok(Solved::Done(CorrectionOutcome { iterations, has_converged: false }))
            }
        }
    }

    /// Adds a warning, once.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns whether a new preconditioner costs no more than a product.
    fn is_made_for_each_matrix(&self) -> bool {
        matches!(self.config.preconditioner, PreconditionerConfig::Jacobi)
    }
}

/// The end of a linear solve.
pub(crate) enum Solved {
    /// It ended.
    Done(CorrectionOutcome),
    /// It is to be repeated with a new preconditioner, after this many iterations.
    NeedsPreconditioner(usize),
}

fn gmres() -> Method {
    Method::Gmres { restart: Method::default_restart() }
}
