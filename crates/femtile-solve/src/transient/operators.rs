//! Operators of a semidiscrete problem on a device.

use std::sync::Arc;

use femtile_device::{Cpu, Cuda};
use femtile_fem::{BoundaryCondition, Coefficient, Condition};
use femtile_linalg::{LinearOperator, Preconditioner};

use crate::discretization::Discretization;
use crate::system::{LinearSystem, SystemParts};
use crate::tensor::OperatorDevice;
use crate::{PreconditionerConfig, SolveError, SolverConfig, Stages, Value};

/// An operator of one stage or of several.
pub(super) type Operator<D> = Arc<dyn LinearOperator<f64, D>>;

/// The operators of stages with one shift $a$.
pub(super) struct Shifted<D: OperatorDevice> {
    /// The shift.
    pub shift: f64,
    /// $a M + K$ without any given values.
    pub natural: Operator<D>,
    /// The same with unit rows and columns where values are given.
    pub held: Operator<D>,
    /// A preconditioner for `held`.
    pub preconditioner: Box<dyn Preconditioner<f64, D>>,
}

/// Where operators are made.
pub(super) struct Workshop<'a, 'm, D: OperatorDevice> {
    pub cpu: &'a Cpu,
    pub device: &'a D,
    /// The GPU, where it is one.
    pub opened: Option<&'a Cuda>,
    pub problem: &'a Discretization<'m>,
}

/// The linear system of a stage, as a report describes it.
pub(super) struct Description {
    pub parts: SystemParts,
    /// The settings, with the preconditioner that was chosen.
    pub config: SolverConfig,
    pub preconditioner_reason: String,
}

impl<'m, D: OperatorDevice> Workshop<'_, 'm, D> {
    /// Makes the mass matrix $M$.
    pub fn mass(&self, config: &SolverConfig, stages: &mut Stages<'_>) -> Result<Operator<D>, SolveError> {
        let [zero, one] = [0.0, 1.0].map(Coefficient::Constant);
        self.operator(self.variant(zero, one, Vec::new()), config, stages)
    }

    /// Makes the operators with a shift.
    pub fn shifted(
        &self,
        shift: f64,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<(Shifted<D>, Description), SolveError> {
        let lambda = self.problem.lambda.plus(shift);
        let all = without_data(&self.problem.conditions[0]);
        // Without given values other conditions may win their facets; that changes rows of given values alone, which no
        // residual keeps.
        let free: Vec<_> =
            all.iter().filter(|given| given.condition.given_value().is_none()).cloned().collect();
        let is_held = free.len() < all.len();
        let variant = self.variant(self.problem.sigma.clone(), lambda.clone(), all);
        let weak = variant.weak_form(config, self.opened, self.cpu.threads())?;
        let system = weak.system((self.cpu, self.device), stages)?;
        let description = Description {
            parts: system.parts(),
            config: weak.config().clone(),
            preconditioner_reason: weak.preconditioner_reason().to_owned(),
        };
        let LinearSystem { operator, preconditioner, .. } = system;
        let held = Arc::from(operator);
        let natural = match is_held {
            true => self.operator(self.variant(self.problem.sigma.clone(), lambda, free), config, stages)?,
            false => Arc::clone(&held),
        };
        Ok((Shifted { shift, natural, held, preconditioner }, description))
    }

    /// Makes the operator of a problem, without a preconditioner.
    fn operator(
        &self,
        of: Discretization<'m>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Operator<D>, SolveError> {
        let config = SolverConfig { preconditioner: PreconditionerConfig::None, ..config.clone() };
        let weak = of.weak_form(&config, self.opened, self.cpu.threads())?;
        let system = weak.system((self.cpu, self.device), stages)?;
        Ok(Arc::from(system.operator))
    }

    /// Returns the problem with other coefficients and conditions, and no source.
    fn variant(
        &self,
        sigma: Coefficient,
        lambda: Coefficient,
        conditions: Vec<BoundaryCondition>,
    ) -> Discretization<'m> {
        let Discretization { mesh, boundary, config, space, .. } = self.problem;
        Discretization {
            mesh,
            boundary: Arc::clone(boundary),
            sigma,
            lambda,
            sources: vec![Coefficient::Constant(0.0)],
            conditions: vec![conditions],
            config: *config,
            space: space.clone(),
            initial: Value::Number(0.0),
            overlaps: Vec::new(),
            node_overlaps: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Returns conditions of the same kinds with zero data.
fn without_data(conditions: &[BoundaryCondition]) -> Vec<BoundaryCondition> {
    let zero = || Coefficient::Constant(0.0);
    let one = |given: &BoundaryCondition| {
        let condition = match &given.condition {
            Condition::Dirichlet(_) => Condition::Dirichlet(zero()),
            Condition::DirichletAtNodes { nodes, .. } => {
                Condition::DirichletAtNodes { nodes: nodes.clone(), value: zero() }
            }
            // It keeps its place, as later conditions take facets from earlier ones.
            Condition::Neumann(_) => Condition::Neumann(zero()),
            Condition::Robin { coefficient, .. } => {
                Condition::Robin { coefficient: coefficient.clone(), value: zero() }
            }
        };
        BoundaryCondition { facets: given.facets.clone(), condition }
    };
    conditions.iter().map(one).collect()
}
