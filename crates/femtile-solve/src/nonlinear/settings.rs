//! Settings of nonlinear problems: what they do not take, and what `auto` stands for.

use femtile_device::Cuda;
use femtile_fem::{BoundaryCondition, Coefficient, PointFunction};

use crate::auto::{Circumstances, Solves};
use crate::capacity::{check_values, plus_capacity};
use crate::discretization::ProblemData;
use crate::plan::Plan;
use crate::{DeviceChoice, Discretization, OperatorKind, Ranks, SolveError, SolverConfig};

impl Discretization<'_> {
    /// Returns whether a coefficient of the equation depends on u.
    pub fn is_nonlinear(&self) -> bool {
        let mut coefficients = [&self.sigma, &self.lambda, &self.capacity].into_iter().chain(&self.sources);
        coefficients.any(Coefficient::uses_unknown)
    }
}

/// Refuses settings that linearizations do not take.
pub(crate) fn check(config: &SolverConfig, problem: &Discretization<'_>) -> Result<(), SolveError> {
    config.nonlinear.check()?;
    let wrong = |key: &str, message: &str| Err(SolveError::solver(key, message));
    if problem.config.components > 1 {
        let message = "coefficients that depend on u are for one component";
        return Err(SolveError::setting(&["space".into(), "components".into()], message));
    }
    if config.operator == OperatorKind::MatrixFree {
        return wrong("operator", "coefficients that depend on u or t make a matrix: take \"assembled\"");
    }
    if config.preconditioner.of_cells().is_some() {
        let message = "it is made from cells with fixed coefficients, and these depend on u or t: take \"amg\" or \"jacobi\"";
        return wrong("preconditioner", message);
    }
    Ok(())
}

/// Returns the settings with the preconditioner that `auto` stands for, and the reason. Collective if the mesh is distributed. `at` is a typical value of u and the
/// time, `shift` that of the first stage.
pub(crate) fn resolved(
    config: &SolverConfig,
    problem: &Discretization<'_>,
    (at, shift): ((f64, f64), f64),
    (opened, n_threads): (Option<&Cuda>, usize),
) -> Result<(SolverConfig, String), SolveError> {
    if problem.is_anywhere(problem.capacity.uses_unknown())? {
        let path = ["equation".into(), "capacity".into()];
        problem.agreed(check_values(problem.mesh, &frozen(&problem.capacity, at), &path))?;
    }
    let config = SolverConfig { operator: OperatorKind::Assembled, ..config.clone() };
    let at_time = |conditions: &Vec<BoundaryCondition>| {
        conditions.iter().map(|given| given.at_time(at.1)).collect::<Vec<_>>()
    };
    let frozen = problem.with(ProblemData {
        sigma: frozen(&problem.sigma, at),
        lambda: plus_capacity(&frozen(&problem.lambda, at), shift, &frozen(&problem.capacity, at)),
        capacity: Coefficient::Constant(1.0),
        sources: vec![Coefficient::Constant(0.0)],
        conditions: problem.conditions.iter().map(at_time).collect(),
    });
    // Without its space the choice is one for matrices.
    let frozen = Discretization { space: None, ..frozen };
    let solves = if shift > 0.0 { Solves::Many } else { Solves::One };
    let circumstances = Circumstances::new(opened.is_some(), n_threads, solves);
    // Several ranks take the same choice on every machine: that of CPUs.
    let device = config.device;
    let on = if config.ranks == Ranks::One { device } else { DeviceChoice::Cpu };
    let Plan { config, reason, .. } =
        Plan::of(&SolverConfig { device: on, ..config }, &frozen, None, circumstances)?;
    Ok((SolverConfig { device, ..config }, reason))
}

/// Returns a coefficient at a value of u and a time, up to the direction of tensors.
fn frozen(coefficient: &Coefficient, (u, time): (f64, f64)) -> Coefficient {
    if !coefficient.uses_unknown() && !coefficient.uses_time() {
        return coefficient.clone();
    }
    match coefficient {
        Coefficient::Expression(expression) => {
            let expression = expression.clone();
            let at = move |point| expression.eval_with(point, time, &[u]);
            Coefficient::Function(PointFunction::new(at))
        }
        Coefficient::TensorExpression(entries) => {
            let entries = entries.clone();
            let at =
                move |point| (0..3).map(|i| entries[i][i].eval_with(point, time, &[u])).fold(0.0, f64::max);
            Coefficient::Function(PointFunction::new(at))
        }
        Coefficient::ByTag(parts) => {
            Coefficient::ByTag(parts.iter().map(|(tag, part)| (*tag, frozen(part, (u, time)))).collect())
        }
        other => other.clone(),
    }
}

/// Returns the reason for the format of a matrix that is refilled.
pub(crate) const FORMAT_REASON: &str = "the matrix is refilled in each iteration";
