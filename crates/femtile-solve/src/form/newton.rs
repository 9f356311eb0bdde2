//! Newton's method for nonlinear forms, in load steps.

use std::fmt::Display;
use std::sync::Mutex;

use femtile_comm::Comm;
use femtile_device::cuda::Opening;
use femtile_device::{Buffer, Cpu};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::newton::{NewtonOutcome, NewtonStop};
use femtile_operator::{CpuOperator, DiscreteForm};

use super::continuation::{LoadStep, Walk};
use super::equation::FormEquation;
use super::evaluation::{Evaluate, on_host};
use super::on_ranks::Known;
use super::rank_form::RankForm;
use super::solution::SolvedBy;
use super::solve::{Solved, takes_motions};
use crate::device::{Choice, Chosen};
use crate::matrix::{check_preconditioner, resolved};
use crate::nonlinear::{Shared, Worst, as_linear, converge, warning};
use crate::ranks::RankDevice;
use crate::system::SystemSummary;
use crate::{
    DeviceChoice, NonlinearMethod, NonlinearReport, Progress, SolveError, SolverConfig, Stage, Stages,
};

/// The solution of a nonlinear form on a rank.
pub(super) struct Converged {
    /// The values at the owned unknowns.
    pub u: Vec<f64>,
    /// The time t at which they are, or were sought.
    pub time: f64,
    pub outcome: CgOutcome,
    pub report: NonlinearReport,
    pub load_steps: Vec<LoadStep>,
    /// The settings with the method and the preconditioner of the last linear solve.
    pub config: SolverConfig,
    pub parts: SystemSummary,
    pub warnings: Vec<String>,
}

impl Converged {
    /// Returns the result on the whole mesh.
    pub fn into_solved(self, u: Vec<f64>, by: SolvedBy) -> Solved {
        let Self { time, outcome, report, load_steps, warnings, .. } = self;
        Solved { u, time, outcome, by, warnings, nonlinear: Some(report), load_steps }
    }
}

/// Refuses settings that nonlinear forms do not take.
pub(super) fn check(config: &SolverConfig) -> Result<(), SolveError> {
    config.nonlinear.check()?;
    if config.nonlinear.method == NonlinearMethod::Picard {
        let message = "a form has its exact tangent: take \"newton\"";
        return Err(SolveError::solver("nonlinear", message));
    }
    Ok(())
}

impl Known<'_, '_> {
    /// Solves a nonlinear form on one rank.
    pub fn newton_on_one_rank(
        &self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let config = &resolved(config);
        config.check()?;
        check_preconditioner(config)?;
        stages.begin(Stage::Assemble)?;
        let Choice { device, mut reason } = self.choice(cpu, config, opening)?;
        let mut warnings = Vec::new();
        if let Chosen::Cuda(gpu) = &device {
            let gpu = config.device.with_overflow(gpu);
            let evaluate = self.on_gpu();
            match self.newton_on((&gpu, evaluate), cpu, (config, &reason), stages) {
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                done => return done,
            }
        }
        let mut solved = self.newton_on((cpu, on_host), cpu, (config, &reason), stages)?;
        solved.warnings.splice(0..0, warnings);
        Ok(solved)
    }

    fn newton_on<D: RankDevice>(
        &self,
        (device, evaluate): (&D, Evaluate<D>),
        cpu: &Cpu,
        (config, reason): (&SolverConfig, &str),
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let Self { problem, space, form, constraints, motions, .. } = *self;
        let operator = CpuOperator::new(DiscreteForm::new(space, form, &problem.facets)?, cpu)?;
        let all: Vec<u32> = (0..constraints.n_dofs() as u32).collect();
        let near_nullspace = takes_motions(config, form, motions).then(|| motions.rows_of(&all, constraints));
        let (operator, comm) = (Some(operator), Comm::alone());
        let on_rank =
            RankForm { device, comm, cpu, operator, part: None, near_nullspace, loads: problem.loads(space) };
        let mut found = self.converge(&on_rank, (config, evaluate), stages)?;
        let by = SolvedBy::new((device, reason), found.parts.clone(), &found.config);
        let u = std::mem::take(&mut found.u);
        Ok(found.into_solved(u, by))
    }

    /// Solves a nonlinear form, in load steps if the problem has them, each from the solution of the one before. Collective.
    ///
    /// # Errors
    /// An integrand without a value at the first function; a load step that does not converge, however short.
    pub fn converge<D: RankDevice>(
        &self,
        form: &RankForm<'_, D>,
        (config, evaluate): (&SolverConfig, Evaluate<D>),
        stages: &mut Stages<'_>,
    ) -> Result<Converged, SolveError> {
        let Self { problem, space, constraints, .. } = *self;
        stages.begin(Stage::Solve)?;
        let progress = Mutex::new(stages.progress());
        let is_interrupted = || Shared(&progress).is_interrupted();
        let mut equation = FormEquation::new(form, self.approximation, (config, evaluate), &is_interrupted)?;
        let mut u = form.of_whole(&problem.initial_values(space)?)?;
        let mut walk = Walk::new(problem.continuation);
        let (mut load_steps, mut n_linear, mut iterations) = (Vec::new(), 0, 0);
        let (time, outcome) = loop {
            let (time, before) = (walk.next(), u.to_host().map_err(LinalgError::from)?);
            equation.bring_time(time, &problem.constraints_at(space, constraints.n_dofs(), time)?)?;
            n_linear += equation.begin(&mut u)?;
            equation.n_tangents = 0;
            if load_steps.is_empty() && iterations == 0 {
                equation.check_energy(&u)?;
            }
            if cfg!(debug_assertions) && iterations == 0 {
                equation.check_tangent(&u)?;
            }
            let outcome = match converge(&mut equation, &mut u, (&form.comm, config), &mut Shared(&progress))
            {
                Err(_) if equation.is_tangent_refused => without_tangent(equation.n_tangents),
                outcome => outcome?,
            };
            iterations += outcome.iterations;
            n_linear += outcome.linear_iterations;
            match outcome.stop {
                NewtonStop::Converged => {
                    load_steps.push(LoadStep { time, iterations: outcome.iterations });
                    if walk.go_on() {
                        break (time, outcome);
                    }
                }
                NewtonStop::Ended(_) => break (time, outcome),
                NewtonStop::Undefined if problem.continuation.is_none() => {
                    return Err(equation.without_value()?);
                }
                _ if problem.continuation.is_none() => break (time, outcome),
                _ if walk.halve() => {
                    u.upload(&before).map_err(LinalgError::from)?;
                    equation.linear.forget();
                }
                _ => return Err(too_short(&walk, &self.reason(&mut equation, &outcome, &u)?)),
            }
        };
        let mut warnings = std::mem::take(&mut equation.linear.warnings);
        if outcome.stop != NewtonStop::Converged {
            warnings.push(self.reason(&mut equation, &outcome, &u)?);
        }
        let outcome = NewtonOutcome { linear_iterations: n_linear, ..outcome };
        Ok(Converged {
            u: u.to_host().map_err(LinalgError::from)?,
            time,
            outcome: as_linear(&outcome),
            report: NonlinearReport {
                method: NonlinearMethod::Newton,
                iterations,
                residuals: outcome.residuals,
            },
            load_steps: if problem.continuation.is_some() { load_steps } else { Vec::new() },
            config: equation.linear.config().clone(),
            parts: SystemSummary::of_refilled_matrix(
                std::mem::take(&mut equation.linear.levels),
                vec!["eisenstat1996", "deuflhard2011"],
            ),
            warnings,
        })
    }

    /// Says why an iteration has not converged. Collective.
    pub fn reason<D: RankDevice>(
        &self,
        equation: &mut FormEquation<'_, D>,
        outcome: &NewtonOutcome,
        u: &Buffer<f64, D>,
    ) -> Result<String, SolveError> {
        let refusal = equation.told_refusal()?;
        let worst = equation.worst(u)?.map(|[residual, unknown, value]| {
            let (unknown, n) = (unknown as usize, self.form.n_components());
            Ok::<_, SolveError>(Worst {
                unknown,
                point: self.space.node_points()[unknown / n],
                value,
                residual,
            })
        });
        let reason = match (outcome.stop, refusal) {
            (NewtonStop::Undefined, Some(refusal)) => refusal,
            (_, refusal) => {
                warning(outcome, worst.transpose()?, refusal.as_ref().map(|text| text as &dyn Display))
            }
        };
        // Where a flux such as that of radiation has no slope.
        let is_from_zero = !self.problem.has_initial() && !self.problem.is_in_time;
        Ok(if is_from_zero { format!("{reason}; u began at zero: give `initial`") } else { reason })
    }
}

/// The outcome of an iteration whose tangent has no value after `n_tangents` that had one.
pub(super) fn without_tangent(n_tangents: usize) -> NewtonOutcome {
    let (residuals, lengths) = (Vec::new(), Vec::new());
    let stop = if n_tangents == 0 { NewtonStop::Undefined } else { NewtonStop::NoDescent };
    NewtonOutcome { stop, iterations: n_tangents, linear_iterations: 0, residuals, lengths }
}

fn too_short(walk: &Walk, reason: &str) -> SolveError {
    let message = format!(
        "the load step from t = {} to t = {} does not converge, the last of those that were tried, each half as long as the \
         one before: {reason}; the load at t = {} may be the largest there is a solution for",
        walk.time(),
        walk.time() + 2.0 * (walk.next() - walk.time()),
        walk.time()
    );
    SolveError::setting(&["continuation".into(), "steps".into()], message)
}
