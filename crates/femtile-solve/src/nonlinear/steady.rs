//! Steady problems whose coefficients depend on u.

use std::ops::ControlFlow;
use std::sync::Mutex;

use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::FemError;
use femtile_fem::assembly::conditions_leave_a_constant;
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::{Monitor, Stop};
use femtile_linalg::newton::{Newton, NewtonConfig, NewtonOutcome, NewtonStop};
use femtile_space::Space;

use super::equation::DiscreteEquation;
use super::report::{Worst, as_linear};
use super::settings::{FORMAT_REASON, check, resolved};
use super::tangent::Derivatives;
use super::{NonlinearReport, place_of};
use crate::device::{Choice, Chosen};
use crate::solution::Finished;
use crate::system::SystemSummary;
use crate::tensor::OperatorDevice;
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
    check(config, &problem)?;
    check_constant(&problem)?;
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

/// Refuses a problem that leaves a constant open.
fn check_constant(problem: &Discretization<'_>) -> Result<(), SolveError> {
    let (lambda, source) = (&problem.lambda, &problem.sources[0]);
    if lambda.as_constant() != Some(0.0) || source.uses_unknown() {
        return Ok(());
    }
    let space = Space::of(problem.mesh, problem.space())?;
    let leaves_a_constant = conditions_leave_a_constant(&space, &problem.form(0).holding_conditions()?)?;
    if !leaves_a_constant {
        return Ok(());
    }
    let message =
        "sigma depends on u, and nothing fixes the level of u: give its value somewhere, at a node at least";
    Err(SolveError::setting(&["boundary".into()], message))
}

/// Passes iterations on and stops when the user asks.
struct Watch<'c, 'p> {
    progress: &'c Mutex<&'p mut dyn Progress>,
    tolerance: f64,
}

impl Monitor for Watch<'_, '_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64) -> ControlFlow<Stop> {
        let Ok(mut progress) = self.progress.lock() else { return ControlFlow::Continue(()) };
        progress.iteration(iteration, relative_residual, self.tolerance);
        match progress.is_interrupted() {
            true => ControlFlow::Break(Stop::Interrupted),
            false => ControlFlow::Continue(()),
        }
    }
}

fn solve_on<D: OperatorDevice>(
    (device, opened): (&D, Option<&Cuda>),
    cpu: &Cpu,
    config: &SolverConfig,
    (problem, reason, warnings): (&Discretization<'_>, &str, &[String]),
    stages: &mut Stages<'_>,
) -> Result<Finished, SolveError> {
    stages.begin(Stage::Assemble)?;
    let path = ["equation".into(), "initial".into()];
    let initial = nodal_values(problem, &problem.initial, &path)?;
    let typical = initial.iter().sum::<f64>() / initial.len().max(1) as f64;
    let gpu = (opened, cpu.threads());
    let (config, preconditioner_reason) = resolved(config, problem, ((typical, f64::NAN), 0.0), gpu)?;
    let derivatives = Derivatives::of(problem, config.nonlinear.method);
    stages.begin(Stage::Solve)?;
    let tolerance = config.nonlinear.tolerance;
    let progress = Mutex::new(stages.progress());
    let is_interrupted = || progress.lock().is_ok_and(|progress| progress.is_interrupted());
    let at = (f64::NAN, None);
    let mut equation = DiscreteEquation::new(device, problem, &derivatives, &config, at, &is_interrupted)?;
    let mut u = Buffer::from_vec(device, initial).map_err(LinalgError::from)?;
    equation.given.impose(&mut u)?;
    let max_iterations = config.nonlinear.max_iterations;
    let newton = Newton::new(NewtonConfig {
        tolerance,
        checks_correction: true,
        max_iterations,
        ..NewtonConfig::default()
    });
    let mut watch = Watch { progress: &progress, tolerance };
    let outcome = newton.solve(&mut equation, &mut u, &mut watch)?;
    if let (NewtonStop::Undefined, Some(error)) = (outcome.stop, equation.refusal.take()) {
        return Err(error.into());
    }
    let values = u.to_host().map_err(LinalgError::from)?;
    let mut warnings = warnings.to_vec();
    warnings.append(&mut equation.linear.warnings);
    if outcome.stop != NewtonStop::Converged {
        let worst = equation.worst(&u)?.map(|(unknown, residual)| Worst {
            unknown,
            point: place_of(problem, unknown),
            value: values[unknown],
            residual,
        });
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
    let (done, reasons) = ((vec![values], as_linear(&outcome)), [reason, &preconditioner_reason]);
    let used = equation.linear.config().clone();
    let mut finished = Finished::of_parts(device, &used, done, parts, reasons, warnings);
    finished.nonlinear = Some(NonlinearReport {
        method: config.nonlinear.method,
        iterations: outcome.iterations,
        residuals: outcome.residuals,
    });
    Ok(finished)
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
