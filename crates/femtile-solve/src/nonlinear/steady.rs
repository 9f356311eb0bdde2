//! Steady problems whose coefficients depend on u.

use std::sync::Mutex;

use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::FemError;
use femtile_fem::assembly::{conditions_hold_a_node, conditions_leave_a_constant};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::newton::{self, NewtonConfig, NewtonOutcome, NewtonStop};
use femtile_space::Space;

use super::equation::DiscreteEquation;
use super::report::{Worst, as_linear};
use super::settings::{FORMAT_REASON, check, resolved};
use super::tangent::Derivatives;
use super::{Domain, NonlinearConfig, NonlinearReport};
use crate::device::{Choice, Chosen};
use crate::ranks::{Agreed, RankDevice};
use crate::solution::Finished;
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
        let cuda = config.device.with_overflow(&cuda);
        match solve_on((&cuda, Some(&cuda)), cpu, config, (&problem, &reason, &warnings), stages) {
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
    let finished = solve_on((cpu, None), cpu, config, (&problem, &reason, &warnings), stages)?;
    Ok(Solution::new(problem, finished))
}

/// Checks a problem; returns the settings with the preconditioner that `auto` stands for, the reason, and the first iterate on
/// the mesh of the rank. Collective if the mesh is distributed.
pub(crate) fn prepared(
    problem: &Discretization<'_>,
    config: &SolverConfig,
    gpu: (Option<&Cuda>, usize),
) -> Result<(SolverConfig, String, Vec<f64>), SolveError> {
    check(config, problem)?;
    check_constant(problem)?;
    let initial = nodal_values(problem, &problem.initial, &["equation".into(), "initial".into()]);
    let initial = problem.agreed(initial)?;
    let at = (typical(problem, &initial)?, f64::NAN);
    let (config, reason) = resolved(config, problem, (at, 0.0), gpu)?;
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
struct Shared<'c, 'p>(&'c Mutex<&'p mut dyn Progress>);

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
    (device, opened): (&D, Option<&Cuda>),
    cpu: &Cpu,
    config: &SolverConfig,
    (problem, reason, warnings): (&Discretization<'_>, &str, &[String]),
    stages: &mut Stages<'_>,
) -> Result<Finished, SolveError> {
    stages.begin(Stage::Assemble)?;
    let (config, preconditioner_reason, initial) = prepared(problem, config, (opened, cpu.threads()))?;
    let found = newton(&Domain::whole(device, problem), initial, &config, stages)?;
    let Newton { u, outcome, parts, warnings: of_solve, config, report } = found;
    let (done, reasons) = ((vec![u], outcome), [reason, &preconditioner_reason]);
    let warnings = [warnings, &of_solve].concat();
    let mut finished = Finished::of_parts(device, &config, done, parts, reasons, warnings);
    finished.nonlinear = Some(report);
    Ok(finished)
}

/// The result of Newton's method for a steady problem.
pub(crate) struct Newton {
    /// The values at the owned unknowns.
    pub u: Vec<f64>,
    pub outcome: CgOutcome,
    pub parts: SystemSummary,
    pub warnings: Vec<String>,
    /// The settings with the method of the linear solves.
    pub config: SolverConfig,
    pub report: NonlinearReport,
}

/// Solves a steady problem by Newton's method from the values at the owned unknowns. Collective.
pub(crate) fn newton<D: RankDevice>(
    domain: &Domain<'_, D>,
    initial: Vec<f64>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<Newton, SolveError> {
    let derivatives = Derivatives::of(domain, config.nonlinear.method)?;
    stages.begin(Stage::Solve)?;
    let NonlinearConfig { tolerance, max_iterations, method } = config.nonlinear;
    let progress = Mutex::new(stages.progress());
    let is_interrupted = || Shared(&progress).is_interrupted();
    let at = (f64::NAN, None);
    let mut equation = DiscreteEquation::new(domain, &derivatives, config, at, &is_interrupted)?;
    let mut u = Buffer::from_vec(domain.device, initial).map_err(LinalgError::from)?;
    equation.given.impose(&mut u)?;
    let newton = newton::Newton::new(NewtonConfig {
        tolerance,
        checks_correction: true,
        max_iterations,
        ..NewtonConfig::default()
    });
    // The time limit is that of each linear solve.
    let watched = SolverConfig { tolerance, time_limit: None, ..config.clone() };
    let mut shared = Shared(&progress);
    let mut agreed = Agreed::new(&domain.comm, &watched, &mut shared).in_each_iteration();
    let outcome = newton.solve(&mut equation, &mut u, &mut agreed)?;
    agreed.ended()?;
    if let (NewtonStop::Undefined, Some(error)) = (outcome.stop, equation.refusal.take()) {
        return Err(error.into());
    }
    let mut warnings = std::mem::take(&mut equation.linear.warnings);
    if outcome.stop != NewtonStop::Converged {
        let worst = equation.worst(&u)?;
        warnings.push(warning(&outcome, worst, equation.refusal.as_ref()));
    }
    let parts = SystemSummary {
        format: "csr".into(),
        format_reason: Some(FORMAT_REASON.into()),
        levels: std::mem::take(&mut equation.linear.levels),
        citations: vec!["eisenstat1996"],
        geometries: Vec::new(),
        has_full_start: false,
    };
    Ok(Newton {
        u: u.to_host().map_err(LinalgError::from)?,
        parts,
        warnings,
        config: equation.linear.config().clone(),
        outcome: as_linear(&outcome),
        report: NonlinearReport { method, iterations: outcome.iterations, residuals: outcome.residuals },
    })
}

fn warning(outcome: &NewtonOutcome, worst: Option<Worst>, refusal: Option<&FemError>) -> String {
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
