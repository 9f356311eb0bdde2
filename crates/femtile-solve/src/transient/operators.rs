//! Operators of a semidiscrete problem on a device.

use std::sync::Arc;

use femtile_comm::{Comm, OwnedRows};
use femtile_device::{Buffer, Cpu};
use femtile_fem::{BoundaryCondition, Coefficient, Constraints};
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_sparse::Csr;
use femtile_time::implicit::Outcome;

use super::data::{boundary_at, has_boundary_in_time};
use super::shifted_solver::Shared;
use super::source::SourceLoad;
use super::{linear_outcome, warnings_of};
use crate::auto::{Circumstances, Solves};
use crate::capacity::plus_capacity;
use crate::discretization::{Discretization, ProblemData};
use crate::format::{Formatted, formatted};
use crate::nonlinear::lump;
use crate::preconditioner::RowsOfProblem;
use crate::solution::Found;
use crate::system::{Prepared, SystemSummary};
use crate::tensor::OperatorDevice;
use crate::{OperatorKind, PreconditionerConfig, Silent, SolveError, SolverConfig, Stages};

/// An operator, shared by stages.
pub(super) type Operator<D> = Arc<dyn LinearOperator<f64, D>>;

/// An operator and its preconditioner.
type Preconditioned<D> = (Operator<D>, Arc<dyn Preconditioner<f64, D>>);

/// The operator of stages with shift $a$, with its preconditioner.
pub(super) struct Shifted<D: OperatorDevice> {
    /// The shift.
    pub shift: f64,
    /// $a M + K$, with unit rows and columns at Dirichlet unknowns.
    pub operator: Operator<D>,
    pub preconditioner: Arc<dyn Preconditioner<f64, D>>,
}

impl<D: OperatorDevice> Prepared<D> {
    /// Takes the operator of stages with a shift, and what a report says of it.
    pub(super) fn at_shift(self, shift: f64) -> (Shifted<D>, SystemSummary) {
        let (operator, preconditioner) = (Arc::from(self.operator), Arc::from(self.preconditioner));
        (Shifted { shift, operator, preconditioner }, self.summary)
    }
}

/// Data from which the operators of all shifts are made.
pub(super) enum Terms<D: OperatorDevice> {
    /// $K + s M$, with unit rows and columns at Dirichlet unknowns, and $M$, with zeros there. Both have the
    /// same pattern.
    Matrices { stiffness: Csr<f64, D>, mass: Csr<f64, D>, offset: f64 },
    /// Matrix-free operators, rebuilt for each shift.
    Cells,
}

/// $K + s M$, without elimination of Dirichlet values.
pub(super) struct Stiffness<D: OperatorDevice> {
    pub operator: Operator<D>,
    /// The number s.
    pub offset: f64,
}

/// The operators and the data of a semidiscrete equation, for the unknowns that a rank owns. Functions are collective.
pub(super) trait Operators<D: OperatorDevice> {
    fn device(&self) -> &D;

    fn comm(&self) -> &Comm;

    /// Returns whether the reaction is a number that is not negative.
    fn is_definite(&self) -> bool;

    /// Returns the settings with the preconditioner for a shift.
    fn chosen(&self, shift: f64) -> Result<SolverConfig, SolveError>;

    /// Makes the operator of a shift, and its preconditioner unless one is passed in `kept`.
    fn shifted(
        &self,
        shift: f64,
        config: &SolverConfig,
        kept: Option<Shared<D>>,
    ) -> Result<Shifted<D>, SolveError>;

    /// Makes $K + s M$, without elimination of Dirichlet values.
    fn stiffness(&self, config: &SolverConfig) -> Result<Stiffness<D>, SolveError>;

    /// Returns whether the source, and whether the boundary data, depend on time.
    fn in_time(&self) -> [bool; 2];

    /// Returns the load of the source at a given time; none if it is zero.
    fn source(&mut self, time: f64) -> Result<Option<&Buffer<f64, D>>, SolveError>;

    /// Evaluates the boundary load and the Dirichlet values at a given time.
    fn boundary(&self, time: f64) -> Result<(Vec<f64>, Constraints), SolveError>;
}

/// The operators of an equation with all its unknowns on one rank.
pub(super) struct OfOneRank<'a, 'm, D: OperatorDevice> {
    pub workshop: Workshop<'a, 'm, D>,
    pub comm: Comm,
    /// The settings of the caller.
    pub asked: SolverConfig,
    /// The settings with the preconditioner that was chosen for the first shift.
    pub of_basis: SolverConfig,
    pub terms: Terms<D>,
    /// The shift of the first stage of the run.
    pub basis: f64,
    pub source: SourceLoad<'a, D>,
}

impl<D: OperatorDevice> Operators<D> for OfOneRank<'_, '_, D> {
    fn device(&self) -> &D {
        self.workshop.device
    }

    fn comm(&self) -> &Comm {
        &self.comm
    }

    fn is_definite(&self) -> bool {
        self.workshop.problem.lambda.as_constant().is_some_and(|lambda| lambda >= 0.0)
    }

    fn chosen(&self, shift: f64) -> Result<SolverConfig, SolveError> {
        self.workshop.choose_for(&self.terms, shift, (&self.asked, &self.of_basis))
    }

    fn shifted(
        &self,
        shift: f64,
        config: &SolverConfig,
        kept: Option<Shared<D>>,
    ) -> Result<Shifted<D>, SolveError> {
        let mut silent = Silent;
        Ok(self.workshop.shifted(&self.terms, shift, config, kept, &mut Stages::new(&mut silent))?.0)
    }

    fn stiffness(&self, config: &SolverConfig) -> Result<Stiffness<D>, SolveError> {
        self.workshop.stiffness(&self.terms, self.basis, config)
    }

    fn in_time(&self) -> [bool; 2] {
        [self.source.depends_on_time(), has_boundary_in_time(self.workshop.problem)]
    }

    fn source(&mut self, time: f64) -> Result<Option<&Buffer<f64, D>>, SolveError> {
        self.source.at(self.workshop.problem, time)
    }

    fn boundary(&self, time: f64) -> Result<(Vec<f64>, Constraints), SolveError> {
        boundary_at(self.workshop.problem, time)
    }
}

/// Makes operators of a problem on a device.
pub(super) struct Workshop<'a, 'm, D: OperatorDevice> {
    pub cpu: &'a Cpu,
    pub device: &'a D,
    pub problem: &'a Discretization<'m>,
    /// Whether the mass matrix is lumped; all operators are matrices then.
    pub is_lumped: bool,
}

/// The linear system of a stage, as a report describes it.
pub(super) struct Description {
    pub parts: SystemSummary,
    /// The settings, with the preconditioner that was chosen.
    pub config: SolverConfig,
    pub preconditioner_reason: String,
    pub warnings: Vec<String>,
}

impl Description {
    /// Describes a run that ended with values at the owned unknowns.
    pub fn found(self, values: Vec<f64>, outcome: &Outcome) -> Found {
        let mut warnings = self.warnings;
        warnings.extend(warnings_of(outcome));
        Found {
            components: vec![values],
            outcome: linear_outcome(outcome),
            summary: self.parts,
            config: self.config,
            warnings,
            nonlinear: None,
        }
    }
}

impl<'m, D: OperatorDevice> Workshop<'_, 'm, D> {
    /// Chooses the preconditioner for a shift, unless the settings name one, and returns the reason as well.
    pub fn choose(&self, shift: f64, config: &SolverConfig) -> Result<(SolverConfig, String), SolveError> {
        let variant = self.held(shift);
        let weak = variant.weak_form_for(config, Circumstances::on(self.cpu, self.device, Solves::Many))?;
        Ok((weak.config().clone(), weak.preconditioner_reason().to_owned()))
    }

    /// Chooses the preconditioner for a shift. If the choice does not fit the operators (assembled or
    /// matrix-free), returns that of the first shift.
    pub fn choose_for(
        &self,
        terms: &Terms<D>,
        shift: f64,
        (asked, of_basis): (&SolverConfig, &SolverConfig),
    ) -> Result<SolverConfig, SolveError> {
        let (chosen, _) = self.choose(shift, asked)?;
        let fits = match terms {
            Terms::Matrices { .. } => {
                self.problem.space.is_none() || chosen.is_assembled() || chosen.preconditioner.is_diagonal()
            }
            Terms::Cells => !chosen.is_assembled(),
        };
        Ok(if fits { chosen } else { of_basis.clone() })
    }

    /// Makes the data for the operators of all shifts; `shift` is that of the first stage.
    pub fn terms(
        &self,
        shift: f64,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Terms<D>, SolveError> {
        if self.problem.space.is_some() && !config.is_assembled() {
            return Ok(Terms::Cells);
        }
        let (stiffness, offset) = positive(shift, |shift| self.matrix(self.held(shift), config, stages))?;
        let conditions: Vec<_> =
            self.problem.conditions[0].iter().map(|given| given.homogeneous().given_alone()).collect();
        let zero = || Coefficient::Constant(0.0);
        let mut mass = |times: f64| {
            let multiple = plus_capacity(&zero(), times, &self.problem.capacity);
            self.matrix(self.variant(zero(), multiple, conditions.clone()), config, stages)
        };
        let mass = match self.has_given_values() {
            false => mass(1.0)?,
            // Doubling is exact. So the unit diagonals of Dirichlet rows cancel, and nothing else changes.
            true => mass(2.0)?.combined(1.0, &mass(1.0)?, -1.0)?,
        };
        if !self.is_lumped {
            return Ok(Terms::Matrices { stiffness, mass, offset });
        }
        // The offset is that of the consistent matrix.
        let stiffness = stiffness.combined(1.0, &mass, -offset)?;
        let mut lumped = mass;
        lump(&self.natural_mass(config, stages)?, &mut lumped)?;
        Ok(Terms::Matrices { stiffness, mass: lumped, offset: 0.0 })
    }

    /// Assembles the consistent mass matrix, without elimination of Dirichlet values.
    fn natural_mass(
        &self,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Csr<f64, D>, SolveError> {
        self.matrix(mass(self.problem), config, stages)
    }

    /// Makes the mass matrix $M$, without elimination of Dirichlet values.
    pub fn mass(
        &self,
        terms: &Terms<D>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Operator<D>, SolveError> {
        let variant = mass(self.problem);
        match terms {
            Terms::Matrices { mass, .. } if self.is_lumped || !self.has_given_values() => {
                in_format(mass.combined(1.0, mass, 0.0)?, config)
            }
            Terms::Matrices { .. } => in_format(self.natural_mass(config, stages)?, config),
            Terms::Cells => Ok(self.of_cells(&variant, &without_preconditioner(config), stages)?.0.0),
        }
    }

    /// Makes the mass matrix of L₂ norms, with capacity 1 and without elimination of Dirichlet values; none
    /// if it equals $M$.
    pub fn mass_of_norms(
        &self,
        terms: &Terms<D>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Option<Operator<D>>, SolveError> {
        let Some(variant) = mass_of_norms(self.problem) else { return Ok(None) };
        Ok(Some(match terms {
            Terms::Matrices { .. } => in_format(self.matrix(variant, config, stages)?, config)?,
            Terms::Cells => self.of_cells(&variant, &without_preconditioner(config), stages)?.0.0,
        }))
    }

    /// Makes $K + s M$, without elimination of Dirichlet values; `shift` is that of the first stage.
    pub fn stiffness(
        &self,
        terms: &Terms<D>,
        shift: f64,
        config: &SolverConfig,
    ) -> Result<Stiffness<D>, SolveError> {
        let mut silent = Silent;
        let mut quiet = Stages::new(&mut silent);
        let natural = |shift: f64| natural(self.problem, shift);
        if let Terms::Matrices { stiffness, mass, offset } = terms
            && !self.has_given_values()
        {
            let operator = in_format(stiffness.combined(1.0, mass, 0.0)?, config)?;
            return Ok(Stiffness { operator, offset: *offset });
        }
        let (operator, offset) = positive(shift, |shift| match terms {
            Terms::Matrices { .. } if self.is_lumped => {
                let matrix = self.matrix(natural(shift), config, &mut quiet)?;
                let mass = self.natural_mass(config, &mut quiet)?;
                in_format(matrix.combined(1.0, &mass, -shift)?, config)
            }
            Terms::Matrices { .. } => in_format(self.matrix(natural(shift), config, &mut quiet)?, config),
            Terms::Cells => {
                Ok(self.of_cells(&natural(shift), &without_preconditioner(config), &mut quiet)?.0.0)
            }
        })?;
        Ok(Stiffness { operator, offset: if self.is_lumped { 0.0 } else { offset } })
    }

    /// Makes the operator of a shift, and its preconditioner unless one is passed in `kept`. The settings
    /// must name a preconditioner.
    pub fn shifted(
        &self,
        terms: &Terms<D>,
        shift: f64,
        config: &SolverConfig,
        kept: Option<Arc<dyn Preconditioner<f64, D>>>,
        stages: &mut Stages<'_>,
    ) -> Result<(Shifted<D>, SystemSummary), SolveError> {
        match terms {
            Terms::Matrices { stiffness, mass, offset } => {
                let matrix = stiffness.combined(1.0, mass, shift - offset)?;
                if let Some(preconditioner) = kept {
                    let Formatted { operator, format, reason } = formatted(matrix, config, Solves::Many)?;
                    let parts = SystemSummary::of_matrix(format, reason, Vec::new());
                    return Ok((Shifted { shift, operator: Arc::from(operator), preconditioner }, parts));
                }
                let mesh = self.problem.space.is_none().then_some(self.problem.mesh);
                let rows = RowsOfProblem { mesh, ..RowsOfProblem::all(matrix.n_rows()) };
                let made = Prepared::of_matrix(config, OwnedRows::whole(matrix)?, &rows, Solves::Many)?;
                Ok(made.at_shift(shift))
            }
            Terms::Cells => {
                let of_operator = without_preconditioner(config);
                let config = if kept.is_some() { &of_operator } else { config };
                let ((operator, made), parts) = self.of_cells(&self.held(shift), config, stages)?;
                Ok((Shifted { shift, operator, preconditioner: kept.unwrap_or(made) }, parts))
            }
        }
    }

    /// Makes the matrix-free operator of a problem, and the preconditioner of the settings.
    fn of_cells(
        &self,
        of: &Discretization<'m>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<(Preconditioned<D>, SystemSummary), SolveError> {
        let weak = of.weak_form_for(config, Circumstances::on(self.cpu, self.device, Solves::Many))?;
        let system = weak.system((self.cpu, self.device), stages)?;
        let Prepared { operator, preconditioner, summary, .. } = system.prepared;
        Ok(((Arc::from(operator), Arc::from(preconditioner)), summary))
    }

    /// Assembles the matrix of a problem.
    fn matrix(
        &self,
        of: Discretization<'m>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Csr<f64, D>, SolveError> {
        let config = SolverConfig { operator: OperatorKind::Assembled, ..without_preconditioner(config) };
        let weak = of.weak_form_for(&config, Circumstances::on(self.cpu, self.device, Solves::Many))?;
        weak.matrix(self.device, stages)
    }

    /// Returns the problem of a shift with zero data.
    fn held(&self, shift: f64) -> Discretization<'m> {
        held(self.problem, shift)
    }

    /// Returns whether there are Dirichlet values.
    fn has_given_values(&self) -> bool {
        self.problem.conditions[0].iter().any(|given| given.condition.given_value().is_some())
    }

    /// Returns the problem with other coefficients and conditions, and no source.
    fn variant(
        &self,
        sigma: Coefficient,
        lambda: Coefficient,
        conditions: Vec<BoundaryCondition>,
    ) -> Discretization<'m> {
        variant(self.problem, sigma, lambda, conditions)
    }
}

/// Returns the problem of a shift with zero data.
pub(super) fn held<'m>(problem: &Discretization<'m>, shift: f64) -> Discretization<'m> {
    let conditions = problem.conditions[0].iter().map(BoundaryCondition::homogeneous).collect();
    let lambda = plus_capacity(&problem.lambda, shift, &problem.capacity);
    variant(problem, problem.sigma.clone(), lambda, conditions)
}

/// Returns the problem of a shift with zero data and without Dirichlet conditions.
///
/// Other conditions may then hold on their facets. That changes only rows of Dirichlet unknowns, which
/// residuals drop.
pub(super) fn natural<'m>(problem: &Discretization<'m>, shift: f64) -> Discretization<'m> {
    let conditions = problem.conditions[0].iter().map(BoundaryCondition::homogeneous);
    let conditions = conditions.filter(|given| given.condition.given_value().is_none()).collect();
    let lambda = plus_capacity(&problem.lambda, shift, &problem.capacity);
    variant(problem, problem.sigma.clone(), lambda, conditions)
}

/// Returns the problem whose matrix is the mass matrix, without elimination of Dirichlet values.
pub(super) fn mass<'m>(problem: &Discretization<'m>) -> Discretization<'m> {
    variant(problem, Coefficient::Constant(0.0), problem.capacity.clone(), Vec::new())
}

/// Returns the problem whose matrix is the mass matrix with capacity 1, for L₂ norms; none if it equals the
/// mass matrix.
pub(super) fn mass_of_norms<'m>(problem: &Discretization<'m>) -> Option<Discretization<'m>> {
    let [zero, one] = [0.0, 1.0].map(Coefficient::Constant);
    (problem.capacity.as_constant() != Some(1.0)).then(|| variant(problem, zero, one, Vec::new()))
}

/// Returns the problem whose matrix is the mass matrix, with unit rows and columns at Dirichlet unknowns.
pub(super) fn held_mass<'m>(problem: &Discretization<'m>) -> Discretization<'m> {
    let conditions = problem.conditions[0].iter().map(|given| given.homogeneous().given_alone()).collect();
    variant(problem, Coefficient::Constant(0.0), problem.capacity.clone(), conditions)
}

/// Returns a problem with other coefficients and conditions, and no source.
fn variant<'m>(
    problem: &Discretization<'m>,
    sigma: Coefficient,
    lambda: Coefficient,
    conditions: Vec<BoundaryCondition>,
) -> Discretization<'m> {
    problem.with(ProblemData {
        sigma,
        lambda,
        capacity: Coefficient::Constant(1.0),
        sources: vec![Coefficient::Constant(0.0)],
        conditions: vec![conditions],
    })
}

/// Calls `make` with offset 0, or with `shift` if 0 fails: with a negative reaction, or a component without
/// Dirichlet values or reaction, the offset must be positive.
fn positive<T>(
    shift: f64,
    mut make: impl FnMut(f64) -> Result<T, SolveError>,
) -> Result<(T, f64), SolveError> {
    match make(0.0) {
        Ok(made) => Ok((made, 0.0)),
        Err(error) if error.is_device_trouble() => Err(error),
        Err(_) => Ok((make(shift)?, shift)),
    }
}

/// Converts a matrix to the format of the settings.
fn in_format<D: OperatorDevice>(
    matrix: Csr<f64, D>,
    config: &SolverConfig,
) -> Result<Operator<D>, SolveError> {
    Ok(Arc::from(formatted(matrix, config, Solves::Many)?.operator))
}

pub(super) fn without_preconditioner(config: &SolverConfig) -> SolverConfig {
    SolverConfig { preconditioner: PreconditionerConfig::None, ..config.clone() }
}
