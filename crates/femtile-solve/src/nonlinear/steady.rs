//! Steady problems whose coefficients depend on u.

use std::fmt::Display;
use std::sync::Mutex;

use femtile_comm::Comm;
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::assembly::{conditions_hold_a_node, conditions_leave_a_constant};
use femtile_linalg::LinalgError;
use femtile_linalg::newton::{self, NewtonConfig, NewtonOutcome, NewtonStop, NonlinearEquation};
use femtile_space::Space;

use super::equation::DiscreteEquation;
use super::report::{Worst, as_linear};
use super::settings::{Typical, check, resolved};
use super::tangent::Derivatives;
use super::{Domain, NonlinearConfig, NonlinearReport};
use crate::auto::{Circumstances, Solves};
use crate::device::{Choice, Chosen, ProblemOnDevice};
use crate::ranks::{Agreed, RankDevice};
use crate::solution::{Finished, Found};
use crate::system::SystemSummary;
use crate::transient::nodal_values;
use crate::{DeviceChoice, Discretization, Progress, Solution, SolveError, SolverConfig, Stage, Stages};

/// Solves a problem whose coefficients depend on u, on the device of the settings or on an open GPU. If the
/// GPU was an automatic choice and fails, the CPU takes over.
pub(crate) fn solve<'m>(
    problem: Discretization<'m>,
    cpu: &Cpu,
    config: &SolverConfig,
    opened: Option<Cuda>,
    stages: &mut Stages<'_>,
) -> Result<Solution<'m>, SolveError> {
    let Choice { device, mut reason } = config.device.choose(opened, problem.n_dofs(), cpu.threads());
    let mut warnings = problem.warnings.clone();
    if let Chosen::Cuda(cuda) = device {
        let device = &config.device.with_overflow(&cuda);
        let of = ProblemOnDevice { cpu, device, reason: &reason, problem: &problem, warnings: &warnings };
        match solve_on(&of, config, stages) {
            Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                reason = error.to_string();
                warnings.push(format!("solved on the CPU: {reason}"));
            }
            done => {
                let finished = done?;
                return Ok(Solution::new(problem, finished));
            }
        }
    }
    let of = ProblemOnDevice { cpu, device: cpu, reason: &reason, problem: &problem, warnings: &warnings };
    let finished = solve_on(&of, config, stages)?;
    Ok(Solution::new(problem, finished))
}

/// Checks a problem; returns the settings with the preconditioner that `auto` stands for, the reason, and the first iterate on
/// the mesh of the rank. Collective if the mesh is distributed.
pub(crate) fn prepared(
    problem: &Discretization<'_>,
    config: &SolverConfig,
    circumstances: Circumstances,
) -> Result<(SolverConfig, String, Vec<f64>), SolveError> {
    check(config, problem)?;
    check_constant(problem)?;
    let initial = nodal_values(problem, &problem.initial, &["equation".into(), "initial".into()]);
    let initial = problem.agreed(initial)?;
    let at = Typical { unknown: typical(problem, &initial)?, time: f64::NAN, shift: 0.0 };
    let (config, reason) = resolved(config, problem, at, circumstances)?;
    Ok((config, reason, initial))
}

/// Returns the mean of values on the mesh of the rank, or of all ranks of a distributed mesh. Collective then.
pub(crate) fn typical(problem: &Discretization<'_>, values: &[f64]) -> Result<f64, LinalgError> {
    let mut sums = [values.iter().sum::<f64>(), values.len() as f64];
    if let Some(divided) = &problem.divided {
        sums = divided.sum(sums)?;
    }
    Ok(sums[0] / sums[1].max(1.0))
}

/// Refuses a problem that leaves a constant open. Collective if the mesh is distributed.
fn check_constant(problem: &Discretization<'_>) -> Result<(), SolveError> {
    let (lambda, source) = (&problem.lambda, &problem.sources[0]);
    if problem.is_anywhere(lambda.as_constant() != Some(0.0) || source.uses_unknown())? {
        return Ok(());
    }
    let space = Space::of(problem.mesh, problem.space())?;
    let holding = problem.form(0).holding_conditions();
    let is_held = holding.and_then(|holding| match &problem.divided {
        // A distributed mesh is connected; the pieces of a part need not be held there.
        Some(_) => conditions_hold_a_node(&space, &holding),
        None => Ok(!conditions_leave_a_constant(&space, &holding)?),
    });
    if problem.is_anywhere(problem.agreed(is_held.map_err(SolveError::from))?)? {
        return Ok(());
    }
    let message =
        "sigma depends on u, and nothing fixes the level of u: give its value somewhere, at a node at least";
    Err(SolveError::setting(&["boundary".into()], message))
}

/// The progress of a solve, which linear solves ask as well.
pub(crate) struct Shared<'c, 'p>(pub &'c Mutex<&'p mut dyn Progress>);

impl Progress for Shared<'_, '_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64, tolerance: f64) {
        if let Ok(mut progress) = self.0.lock() {
            progress.iteration(iteration, relative_residual, tolerance);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.0.lock().is_ok_and(|progress| progress.is_interrupted())
    }
}

fn solve_on<D: RankDevice>(
    &ProblemOnDevice { cpu, device, reason, problem, warnings }: &ProblemOnDevice<'_, '_, D>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<Finished, SolveError> {
    stages.begin(Stage::Assemble)?;
    let circumstances = Circumstances::on(cpu, device, Solves::One);
    let (config, preconditioner_reason, initial) = prepared(problem, config, circumstances)?;
    let found = newton(&Domain::whole(device, problem), initial, &config, stages)?;
    Ok(Finished::new(device, found.after(warnings), [reason, &preconditioner_reason]))
}

/// Solves a steady problem by Newton's method from the values at the owned unknowns. Collective.
pub(crate) fn newton<D: RankDevice>(
    domain: &Domain<'_, D>,
    initial: Vec<f64>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<Found, SolveError> {
    let derivatives = Derivatives::of(domain, config.nonlinear.method)?;
    stages.begin(Stage::Solve)?;
    let method = config.nonlinear.method;
    let progress = Mutex::new(stages.progress());
    let is_interrupted = || Shared(&progress).is_interrupted();
    let at = (f64::NAN, None);
    let mut equation = DiscreteEquation::new(domain, &derivatives, config, at, &is_interrupted)?;
    let mut u = Buffer::from_vec(domain.device, initial).map_err(LinalgError::from)?;
    equation.given.impose(&mut u)?;
    let outcome = converge(&mut equation, &mut u, (&domain.comm, config), &mut Shared(&progress))?;
    if let (NewtonStop::Undefined, Some(error)) = (outcome.stop, equation.refusal.take()) {
        return Err(error.into());
    }
    let mut warnings = std::mem::take(&mut equation.linear.warnings);
    if outcome.stop != NewtonStop::Converged {
        let worst = equation.worst(&u)?;
        warnings.push(warning(&outcome, worst, equation.refusal.as_ref().map(|error| error as &dyn Display)));
    }
    let levels = std::mem::take(&mut equation.linear.levels);
    Ok(Found {
        components: vec![u.to_host().map_err(LinalgError::from)?],
        outcome: as_linear(&outcome),
        summary: SystemSummary::of_refilled_matrix(levels, vec!["eisenstat1996"]),
        config: equation.linear.config().clone(),
        warnings,
        nonlinear: Some(NonlinearReport {
            method,
            iterations: outcome.iterations,
            residuals: outcome.residuals,
        }),
    })
}

/// Iterates on an equation from `u` as the settings say. Collective.
pub(crate) fn converge<D: RankDevice, E: NonlinearEquation<D, Error = SolveError>>(
    equation: &mut E,
    u: &mut Buffer<f64, D>,
    (comm, config): (&Comm, &SolverConfig),
    progress: &mut dyn Progress,
) -> Result<NewtonOutcome, SolveError> {
    let NonlinearConfig { tolerance, max_iterations, .. } = config.nonlinear;
    let newton = newton::Newton::new(NewtonConfig {
        tolerance,
        checks_correction: true,
        max_iterations,
        ..NewtonConfig::default()
    });
    // The time limit is that of each linear solve.
    let watched = SolverConfig { tolerance, time_limit: None, ..config.clone() };
    let mut agreed = Agreed::new(comm, &watched, progress).in_each_iteration();
    let outcome = newton.solve(equation, u, &mut agreed)?;
    agreed.ended()?;
    Ok(outcome)
}

/// Says why an iteration has not converged, with the unknown of the largest residual, and what ended its last line search.
pub(crate) fn warning(
    outcome: &NewtonOutcome,
    worst: Option<Worst>,
    refusal: Option<&dyn Display>,
) -> String {
    let last = outcome.residuals.last().copied().unwrap_or(f64::NAN);
    let mut text = format!(
        "the nonlinear iteration {} (‖r‖/‖b‖ = {last:.2e} after {} iterations)",
        outcome.stop, outcome.iterations
    );
    if let Some(worst) = worst {
        text += &format!("; {worst}");
    }
    if let (NewtonStop::NoDescent, Some(refusal)) = (outcome.stop, refusal) {
        text += &format!("; further on, {refusal}");
    }
    text
}
