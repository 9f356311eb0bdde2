//! Settings of nonlinear problems: what they do not take, and what `auto` stands for.

use femtile_fem::{BoundaryCondition, Coefficient, PointFunction};

use crate::auto::Circumstances;
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

/// Where coefficients are evaluated to choose a preconditioner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typical {
    /// A value of u.
    pub unknown: f64,
    /// NaN for a steady problem.
    pub time: f64,
    /// The shift of the first stage, zero for a steady problem.
    pub shift: f64,
}

/// Returns the settings with the preconditioner that `auto` stands for, and the reason. Collective if the mesh is distributed.
pub(crate) fn resolved(
    config: &SolverConfig,
    problem: &Discretization<'_>,
    at: Typical,
    circumstances: Circumstances,
) -> Result<(SolverConfig, String), SolveError> {
    if problem.is_anywhere(problem.capacity.uses_unknown())? {
        let path = ["equation".into(), "capacity".into()];
        problem.agreed(check_values(problem.mesh, &frozen(&problem.capacity, at), &path))?;
    }
    let config = SolverConfig { operator: OperatorKind::Assembled, ..config.clone() };
    let at_time = |conditions: &Vec<BoundaryCondition>| {
        conditions.iter().map(|given| given.at_time(at.time)).collect::<Vec<_>>()
    };
    let frozen = problem.with(ProblemData {
        sigma: frozen(&problem.sigma, at),
        lambda: plus_capacity(&frozen(&problem.lambda, at), at.shift, &frozen(&problem.capacity, at)),
        capacity: Coefficient::Constant(1.0),
        sources: vec![Coefficient::Constant(0.0)],
        conditions: problem.conditions.iter().map(at_time).collect(),
    });
    // Without its space the choice is one for matrices.
    let frozen = Discretization { space: None, ..frozen };
    // Several ranks take the same choice on every machine: that of CPUs.
    let device = config.device;
    let on = if config.ranks == Ranks::One { device } else { DeviceChoice::Cpu };
    let Plan { config, reason, .. } =
        Plan::of(&SolverConfig { device: on, ..config }, &frozen, None, circumstances)?;
    Ok((SolverConfig { device, ..config }, reason))
}

/// Returns a coefficient at a value of u and a time, up to the direction of tensors.
fn frozen(coefficient: &Coefficient, at: Typical) -> Coefficient {
    let (u, time) = (at.unknown, at.time);
    if !coefficient.uses_unknown() && !coefficient.uses_time() {
        return coefficient.clone();
    }
    match coefficient {
        Coefficient::Expression(expression) => {
            let expression = expression.clone();
            let value = move |point| expression.eval_with(point, time, &[u]);
            Coefficient::Function(PointFunction::new(value))
        }
        Coefficient::TensorExpression(entries) => {
            let entries = entries.clone();
            let value =
                move |point| (0..3).map(|i| entries[i][i].eval_with(point, time, &[u])).fold(0.0, f64::max);
            Coefficient::Function(PointFunction::new(value))
        }
        Coefficient::ByTag(parts) => {
            Coefficient::ByTag(parts.iter().map(|(tag, part)| (*tag, frozen(part, at))).collect())
        }
        other => other.clone(),
    }
}
