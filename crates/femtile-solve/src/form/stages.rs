//! A form as a semidiscrete equation.

use femtile_device::Buffer;
use femtile_linalg::newton::{Newton, NewtonConfig, NewtonStop};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_space::LinearConstraints;
use femtile_time::implicit::{SemiDiscrete, StageEquation, StageOutcome};

use super::equation::FormEquation;
use super::newton::without_tangent;
use super::on_ranks::Known;
use crate::ranks::RankDevice;
use crate::{NonlinearMethod, NonlinearReport, SolveError, SolverConfig};

/// Relative accuracy of the correction of a first guess, if it is an error estimate.
const OF_ESTIMATE: f64 = 0.01;

/// The semidiscrete equation $r(t, u, \dot u) = 0$ of a form; stages are solved by Newton's method. Functions are collective.
pub(super) struct FormStages<'a, 'm, D: RankDevice> {
    known: &'a Known<'a, 'm>,
    pub equation: FormEquation<'a, D>,
    /// The mass matrix of all components; none if no norms are asked for.
    mass: Option<Box<dyn LinearOperator<f64, D>>>,
    /// The Dirichlet values at the last time.
    constraints: LinearConstraints,
    config: SolverConfig,
    iterations: usize,
    residuals: Vec<f64>,
    /// Whether the tangent was checked.
    is_checked: bool,
    /// Describes the last stage that did not converge.
    pub failure: Option<String>,
}

impl<'a, 'm, D: RankDevice> FormStages<'a, 'm, D> {
    /// Begins with the Dirichlet values of the known parts.
    pub fn new(
        known: &'a Known<'a, 'm>,
        mut equation: FormEquation<'a, D>,
        mass: Option<Box<dyn LinearOperator<f64, D>>>,
        config: &SolverConfig,
    ) -> Self {
        equation.has_content = known.problem.has_content;
        Self {
            known,
            equation,
            mass,
            constraints: known.constraints.clone(),
            config: config.clone(),
            iterations: 0,
            residuals: Vec::new(),
            is_checked: !cfg!(debug_assertions),
            failure: None,
        }
    }

    /// Puts the Dirichlet values at a time into `u`.
    pub fn impose(&mut self, time: f64, u: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.bring_time(time)?;
        self.equation.impose(u)
    }

    /// Restores the memory of a run from a checkpoint, so that it continues with the same bits.
    pub fn restore(&mut self, memory: &[f64]) -> Result<(), SolveError> {
        let Some((iterations, equation)) = memory.split_first() else { return Ok(()) };
        self.iterations = *iterations as usize;
        self.bring_time(self.known.time)?;
        self.equation.restore(equation)
    }

    /// Returns statistics of the nonlinear solves; none of a linear form.
    pub fn report(&self) -> Option<NonlinearReport> {
        let (iterations, residuals) = (self.iterations, self.residuals.clone());
        let report = NonlinearReport { method: NonlinearMethod::Newton, iterations, residuals };
        (!self.known.form.is_linear()).then_some(report)
    }

    fn bring_time(&mut self, time: f64) -> Result<(), SolveError> {
        let Known { problem, space, .. } = *self.known;
        if problem.has_values_in_time() {
            self.constraints = problem.constraints_at(space, self.constraints.n_dofs(), time)?;
        }
        self.equation.bring_time(time, &self.constraints)
    }
}

impl<D: RankDevice> SemiDiscrete<D> for FormStages<'_, '_, D> {
    type Error = SolveError;

    fn solve(
        &mut self,
        stage: &StageEquation<'_, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, SolveError> {
        self.impose(stage.time, u)?;
        self.equation.begin_stage(stage)?;
        if !self.is_checked {
            self.is_checked = true;
            self.equation.check_tangent(u)?;
        }
        self.equation.n_tangents = 0;
        let is_linear = self.known.form.is_linear();
        let newton = Newton::new(NewtonConfig {
            tolerance: if is_linear { self.config.tolerance } else { self.config.nonlinear.tolerance },
            reduction: stage.is_estimated.then_some(OF_ESTIMATE),
            max_iterations: self.config.nonlinear.max_iterations,
            ..NewtonConfig::default()
        });
        let outcome = match newton.solve(&mut self.equation, u, &mut ()) {
            Err(_) if self.equation.is_tangent_refused => without_tangent(self.equation.n_tangents),
            outcome => outcome?,
        };
        self.iterations += outcome.iterations;
        let has_converged = outcome.stop == NewtonStop::Converged;
        if !has_converged {
            let reason = self.known.reason(&mut self.equation, &outcome, u)?;
            self.failure = Some(format!("at t = {}, {reason}", stage.time));
        }
        self.residuals = outcome.residuals;
        Ok(StageOutcome { iterations: outcome.linear_iterations, has_converged })
    }

    fn defect(
        &mut self,
        (time, _): (f64, f64),
        u: &Buffer<f64, D>,
        d: &mut Buffer<f64, D>,
    ) -> Result<(), SolveError> {
        self.bring_time(time)?;
        self.equation.defect(u, d)
    }

    fn clear_given(&mut self, v: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.equation.clear_given(v)
    }

    fn norm(&mut self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        let Some(mass) = &self.mass else { return Ok(self.equation.form.norm(v)?) };
        let mut product = Buffer::zeros(v.device(), v.len()).map_err(LinalgError::from)?;
        mass.apply(&mut product, v)?;
        let mut square = [v.device().dot(v, &product)?];
        self.equation.form.comm.sum_values(&mut square)?;
        // Rounding may give a small negative number; NaN stays NaN.
        Ok(if square[0] < 0.0 { 0.0 } else { square[0].sqrt() })
    }

    fn may_have_kinks(&self) -> bool {
        let Known { problem, form, .. } = *self.known;
        !form.is_linear() || form.is_in_time() || problem.has_values_in_time()
    }

    fn memory(&self) -> Vec<f64> {
        let mut memory = vec![self.iterations as f64];
        memory.extend(self.equation.memory());
        memory
    }
}
