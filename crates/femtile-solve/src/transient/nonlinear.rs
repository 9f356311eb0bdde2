//! Semidiscrete equations with coefficients that depend on u or time, or with a lumped mass matrix.

use std::ops::ControlFlow;

use femtile_device::Buffer;
use femtile_fem::{Coefficient, FemError};
use femtile_form::FormError;
use femtile_linalg::krylov::{Monitor, Stop};
use femtile_linalg::newton::{Newton, NewtonConfig, NewtonOutcome, NewtonStop, NonlinearEquation};
use femtile_time::implicit::{SemiDiscrete, StageEquation, StageOutcome};

use crate::discretization::Discretization;
use crate::nonlinear::{Derivatives, DiscreteEquation, Domain, Mass, MassMatrix, NonlinearReport};
use crate::ranks::RankDevice;
use crate::{SolveError, SolverConfig};

/// Relative accuracy of the correction of an initial guess, if it is an error estimate.
const OF_ESTIMATE: f64 = 0.01;

/// Returns whether the linear equation depends on time or u, so that its matrices are reassembled.
pub(super) fn is_refilled(problem: &Discretization<'_>) -> bool {
    let exchanges = problem.conditions[0].iter().any(|given| match &given.condition {
        femtile_fem::Condition::Robin { coefficient, .. } => coefficient.uses_time(),
        _ => false,
    });
    exchanges || problem.is_nonlinear() || problem.sigma.uses_time() || problem.lambda.uses_time()
}

/// The semidiscrete equation $M \dot u = F(t, u) - K(t, u)$ of a problem.
///
/// Stages are solved by Newton's method or Picard iteration from their initial guess; if the coefficients do
/// not depend on u, by one linear solve.
pub(super) struct Nonlinear<'a, D: RankDevice> {
    domain: &'a Domain<'a, D>,
    equation: DiscreteEquation<'a, D>,
    /// The mass matrix with capacity 1; none if it equals the mass matrix of the equation.
    mass_of_norms: Option<Mass<D>>,
    config: SolverConfig,
    iterations: usize,
    residuals: Vec<f64>,
    /// Describes the last stage that did not converge.
    pub failure: Option<String>,
    product: Buffer<f64, D>,
}

impl<'a, D: RankDevice> Nonlinear<'a, D> {
    /// Prepares the equation from a given time on. Collective.
    pub fn new(
        domain: &'a Domain<'a, D>,
        derivatives: &'a Derivatives,
        config: &SolverConfig,
        (time, mass): (f64, MassMatrix),
    ) -> Result<Self, SolveError> {
        let at = (time, Some(mass));
        let equation = DiscreteEquation::new(domain, derivatives, config, at, &|| false)?;
        let one = Coefficient::Constant(1.0);
        let mass_of_norms = match domain.problem.capacity.as_constant() {
            Some(1.0) => None,
            _ => Some(Mass::new(domain, mass, &one)?),
        };
        Ok(Self {
            product: domain.zeros()?,
            domain,
            equation,
            mass_of_norms,
            config: config.clone(),
            iterations: 0,
            residuals: Vec::new(),
            failure: None,
        })
    }

    /// Inserts the Dirichlet values at a given time into `u`.
    pub fn impose(&mut self, time: f64, u: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        self.equation.bring_time(time)?;
        Ok(self.equation.given.impose(u)?)
    }

    /// Restores the memory of a run from a checkpoint, so that it continues with the same bits.
    pub fn restore(&mut self, memory: &[f64]) -> Result<(), SolveError> {
        let Some((iterations, equation)) = memory.split_first() else { return Ok(()) };
        self.iterations = *iterations as usize;
        self.equation.restore(equation)
    }

    /// Returns statistics of the nonlinear solves; none if stages are linear.
    pub fn report(&self) -> Option<NonlinearReport> {
        let Self { iterations, residuals, .. } = self;
        let method = self.config.nonlinear.method;
        (!self.equation.is_linear()).then(|| NonlinearReport {
            method,
            iterations: *iterations,
            residuals: residuals.clone(),
        })
    }

    /// Returns the solver of linear equations, for reports.
    pub fn equation(&mut self) -> &mut DiscreteEquation<'a, D> {
        &mut self.equation
    }

    /// Describes a stage that did not converge.
    fn describe(
        &mut self,
        time: f64,
        outcome: &NewtonOutcome,
        u: &Buffer<f64, D>,
    ) -> Result<String, SolveError> {
        let mut text = format!("at t = {time} the nonlinear iteration {}", outcome.stop);
        if outcome.stop != NewtonStop::Undefined
            && let Some(worst) = self.equation.worst(u)?
        {
            text += &format!("; {worst}");
        }
        if let (NewtonStop::Undefined | NewtonStop::NoDescent, Some(refusal)) =
            (outcome.stop, &self.equation.refusal)
        {
            text += &format!("; {refusal}");
        }
        Ok(text)
    }

    /// Returns whether an error is about a coefficient that does not depend on u: another iterate would not avoid
    /// it.
    fn is_of_data(&self, error: &FemError) -> bool {
        let problem = self.domain.problem;
        let FemError::Form(
            FormError::NotFinite { field, .. }
            | FormError::Indefinite { field, .. }
            | FormError::Negative { field, .. },
        ) = error
        else {
            return false;
        };
        match *field {
            "sigma" => !problem.sigma.uses_unknown(),
            "lambda" => !problem.lambda.uses_unknown(),
            "capacity" => !problem.capacity.uses_unknown(),
            "source" => !problem.sources[0].uses_unknown(),
            _ => false,
        }
    }
}

/// Stops an iteration whose residual is NaN.
struct Finite;

impl Monitor for Finite {
    fn iteration(&mut self, _: usize, residual: f64) -> ControlFlow<Stop> {
        match residual.is_finite() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Stop::Diverged),
        }
    }
}

impl<D: RankDevice> SemiDiscrete<D> for Nonlinear<'_, D> {
    type Error = SolveError;

    fn solve(
        &mut self,
        equation: &StageEquation<'_, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, SolveError> {
        let time = equation.time;
        self.impose(time, u)?;
        self.equation.begin_stage(equation)?;
        let settings = self.config.nonlinear;
        let is_linear = self.equation.is_linear();
        let newton = Newton::new(NewtonConfig {
            tolerance: if is_linear { self.config.tolerance } else { settings.tolerance },
            reduction: equation.is_estimated.then_some(OF_ESTIMATE),
            max_iterations: settings.max_iterations,
            ..NewtonConfig::default()
        });
        let outcome = newton.solve(&mut self.equation, u, &mut Finite)?;
        if outcome.stop == NewtonStop::Undefined {
            let is_of_data = self.equation.refusal.as_ref().is_some_and(|error| self.is_of_data(error));
            // A part may lack the cells whose coefficient depends on u.
            let [may_be_mended] = self.domain.comm.any([!is_of_data])?;
            if let Some(source) = self.equation.refusal.take_if(|_| !may_be_mended) {
                return Err(SolveError::AtTime { time, source });
            }
        }
        self.iterations += outcome.iterations;
        let has_converged = outcome.has_converged();
        if !has_converged {
            self.failure = Some(self.describe(time, &outcome, u)?);
        }
        let iterations = outcome.linear_iterations;
        self.residuals = outcome.residuals;
        Ok(StageOutcome { iterations, has_converged })
    }

    fn defect(
        &mut self,
        (time, _): (f64, f64),
        u: &Buffer<f64, D>,
        d: &mut Buffer<f64, D>,
    ) -> Result<(), SolveError> {
        self.equation.bring_time(time)?;
        self.equation.defect(u, d)
    }

    fn clear_given(&mut self, v: &mut Buffer<f64, D>) -> Result<(), SolveError> {
        Ok(self.equation.given.clear(v)?)
    }

    fn norm(&mut self, v: &Buffer<f64, D>) -> Result<f64, SolveError> {
        if let Some(mass) = self.mass_of_norms.as_ref().or(self.equation.mass()) {
            mass.apply(&mut self.product, v)?;
        }
        let square = self.domain.dot(v, &self.product)?;
        // Rounding may give a small negative number; NaN stays NaN.
        Ok(if square < 0.0 { 0.0 } else { square.sqrt() })
    }

    fn memory(&self) -> Vec<f64> {
        let mut memory = vec![self.iterations as f64];
        memory.extend(self.equation.memory());
        memory
    }
}
