//! Solver of stages with changing shifts; keeps operators and the preconditioner.

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_linalg::krylov::Stop;
use femtile_linalg::vector::DeviceSum;
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_time::implicit::{StageEquation, StageOutcome};

use super::operators::Shifted;
use super::preconditioning::{Made, Memory};
use super::stage_solver::StageSolver;
use crate::rounding::{self, row_size};
use crate::tensor::OperatorDevice;
use crate::{SolveError, SolverConfig};

/// Number of operators of different shifts that are kept: SDIRK2 and BDF2 need one each at the start.
const KEPT: usize = 2;

/// A preconditioner that operators of several shifts share.
pub(super) type Shared<D> = Arc<dyn Preconditioner<f64, D>>;

/// The solver of stages of any shift, on one rank or on several, each with its rows.
pub(super) struct ShiftedSolver<D: OperatorDevice> {
    solver: StageSolver<D>,
    /// The settings with the preconditioner in use.
    config: SolverConfig,
    /// The operators, in the order of last use.
    shifted: Vec<Shifted<D>>,
    made: Made,
    /// The smallest known Ritz value, with its shift.
    ritz: Option<(f64, f64)>,
    /// [`row_size`] of the operator in use.
    row_size: f64,
    /// For the norms of vectors in each stage.
    sum: DeviceSum<D>,
}

impl<D: OperatorDevice> ShiftedSolver<D> {
    /// Takes the operator of the first stage, which was made for the state of the run so far.
    pub fn new(
        config: SolverConfig,
        first: Shifted<D>,
        memory: &Memory,
        comm: &Comm,
    ) -> Result<Self, SolveError> {
        let made = memory.made.unwrap_or(Made::at(first.shift));
        let solver = StageSolver::new(config.method, &first, comm)?;
        let row_size = row_size(first.operator.as_ref(), comm)?;
        let (device, n) = (first.operator.device(), first.operator.n_rows());
        let sum = DeviceSum::new(device, n).map_err(LinalgError::from)?;
        Ok(Self { solver, config, shifted: vec![first], made, ritz: memory.ritz, row_size, sum })
    }

    /// Returns the settings with the preconditioner in use.
    pub fn config(&self) -> &SolverConfig {
        &self.config
    }

    /// Returns x and b.
    pub fn vectors_mut(&mut self) -> (&mut Buffer<f64, D>, &mut Buffer<f64, D>) {
        self.solver.vectors_mut()
    }

    /// Returns x.
    pub fn x(&self) -> &Buffer<f64, D> {
        self.solver.x()
    }

    /// Switches to the operators of a shift. `choose` returns settings with a new preconditioner; `make`
    /// makes operators, given the preconditioner that is kept. If the reaction `is_definite`, the smallest
    /// Ritz value scales with the shift.
    pub fn bring(
        &mut self,
        (shift, is_definite): (f64, bool),
        choose: impl FnOnce() -> Result<SolverConfig, SolveError>,
        make: impl FnOnce(&SolverConfig, Option<Shared<D>>) -> Result<Shifted<D>, SolveError>,
        comm: &Comm,
    ) -> Result<(), SolveError> {
        let current = &self.shifted[self.shifted.len() - 1];
        let is_diagonal = self.config.preconditioner.is_diagonal();
        // A preconditioner with growing iterations is replaced at once, even if the shift stays, so that this
        // depends on its memory only.
        if current.shift != shift || !is_diagonal && !self.made.serves(shift) {
            let kept = self.kept_preconditioner(shift, choose)?;
            let brought = match self.position(shift, kept.as_ref()) {
                Some(at) => self.shifted.remove(at),
                None => {
                    if self.shifted.len() == KEPT {
                        self.shifted.remove(0);
                    }
                    make(&self.config, kept)?
                }
            };
            self.solver.take(&brought, comm)?;
            self.row_size = row_size(brought.operator.as_ref(), comm)?;
            self.shifted.push(brought);
        }
        let ritz = self.ritz.filter(|(known, _)| is_definite || *known == shift);
        self.solver.set_ritz_value(ritz.map(|(known, value)| value * (shift / known).min(known / shift)));
        Ok(())
    }

    /// The position of the operators of a shift with the preconditioner that is kept, or with their own
    /// diagonal.
    fn position(&self, shift: f64, kept: Option<&Shared<D>>) -> Option<usize> {
        let is_diagonal = self.config.preconditioner.is_diagonal();
        let has_own = |known: &Shifted<D>| match kept {
            Some(kept) => Arc::ptr_eq(kept, &known.preconditioner),
            None => is_diagonal && known.preconditioner.shared_diagonal().is_some(),
        };
        self.shifted.iter().position(|known| known.shift == shift && has_own(known))
    }

    /// Returns the preconditioner if it may be used for another shift; else chooses settings for a new one.
    fn kept_preconditioner(
        &mut self,
        shift: f64,
        choose: impl FnOnce() -> Result<SolverConfig, SolveError>,
    ) -> Result<Option<Shared<D>>, SolveError> {
        let is_diagonal = self.config.preconditioner.is_diagonal();
        if !is_diagonal && self.made.serves(shift) {
            return Ok(Some(Arc::clone(&self.shifted[self.shifted.len() - 1].preconditioner)));
        }
        self.config = choose()?;
        if !is_diagonal || !self.config.preconditioner.is_diagonal() {
            self.ritz = None;
        }
        self.made = Made::at(shift);
        Ok(None)
    }

    /// Solves a stage from x and b, and writes the solution to x.
    ///
    /// The unknown of the solve is the difference of x and $b / a$, the value at the start of the stage. So
    /// the tolerance is relative to the change in the stage, even if that is small compared with u. `history`
    /// is the vector b at free unknowns, zero elsewhere.
    ///
    /// # Cost
    /// One product and four passes besides the solve; `product` is overwritten.
    pub fn solve(
        &mut self,
        equation: &StageEquation<'_, D>,
        (history, product): (&Buffer<f64, D>, &mut Buffer<f64, D>),
        comm: &Comm,
    ) -> Result<StageOutcome, SolveError> {
        let (device, part) = (history.device(), 1.0 / equation.shift);
        self.shifted[self.shifted.len() - 1].operator.apply(product, history)?;
        let (x, b) = self.solver.vectors_mut();
        device.axpby(b, -part, product, 1.0)?;
        device.axpby(x, -part, history, 1.0)?;
        let mut square = [device.dot_in(&mut self.sum, history, history)?];
        comm.sum_values(&mut square)?;
        let rounding = rounding::of_terms(self.row_size * part * square[0].sqrt());
        let outcome = self.solver.solve(&self.config, (equation.is_estimated, rounding), comm)?;
        device.axpby(self.solver.vectors_mut().0, part, history, 1.0)?;
        self.ritz = self.solver.ritz_value().map(|value| (equation.shift, value));
        let (iterations, has_converged) = (outcome.iterations, outcome.stop == Stop::Converged);
        self.made.note(iterations, has_converged);
        Ok(StageOutcome { iterations, has_converged })
    }

    /// Returns the state that later solves depend on; `basis` is the shift of the first stage of the run.
    pub fn memory(&self, basis: f64) -> Vec<f64> {
        Memory { basis: Some(basis), made: Some(self.made), ritz: self.ritz }.write()
    }
}
