//! Operators and linear systems on quadrilaterals and hexahedra: assembled or matrix-free.

use femtile_comm::Comm;
use femtile_device::cpu::vector::Lanes;
use femtile_device::{Cpu, Cuda, part};
use femtile_fem::tensor::{CellMatrices, TensorProblem, assemble};
use femtile_fem::{AssembledSystem, FemError, WithoutMatrix};
use femtile_linalg::krylov::cg::vector_bytes;
use femtile_linalg::precondition::{ByComponent, Diagonal};
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_matrix_free::{CellRule, CudaMatrixFree, MatrixFree, MatrixFreeDevice};
use femtile_multigrid::{MultigridDevice, PMultigridDevice};
use femtile_space::{Space, SpaceError};
use femtile_sum_factorization::SumFactorization;

use super::ahead::Ahead;
use super::start::FullStart;
use super::{degrees, geometric, lines};
use crate::discretization::WeakForm;
use crate::method::SolveDevice;
use crate::nonlinear::MassMatrix;
use crate::plan::Plan;
use crate::preconditioner::{Preconditioning, RowsOfProblem, without_constants};
use crate::right_side::RightSide;
use crate::system::{LinearSystem, PreconditionedOperator, Prepared, SystemSummary};
use crate::{GmgStart, PreconditionerConfig, SolveError, SolverConfig, Stage, Stages};

/// A device with line solves through flat cells in a precision.
pub trait CellDevice<T: SumFactorization + Lanes>: MatrixFreeDevice<T> {
    /// Makes line solves through flat cells from the diagonal of the operator, if there are flat cells and
    /// the device supports it; not by default.
    fn lines(
        &self,
        _: &TensorProblem<'_>,
        _: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError> {
        Ok(None)
    }
}

impl<T: SumFactorization + Lanes> CellDevice<T> for Cpu
where
    Self: MatrixFreeDevice<T>,
{
    fn lines(
        &self,
        problem: &TensorProblem<'_>,
        diagonal: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError> {
        let solves = lines::solves(self, problem, diagonal)?;
        Ok(solves.map(|solves| Box::new(solves) as Box<dyn Preconditioner<T, Self>>))
    }
}

impl<T: SumFactorization + Lanes> CellDevice<T> for Cuda where Self: MatrixFreeDevice<T> {}

/// A device with operators of any degree.
pub trait OperatorDevice:
    SolveDevice
    + CellDevice<f32>
    + CellDevice<f64>
    + MultigridDevice
    + PMultigridDevice<f32>
    + PMultigridDevice<f64>
{
    /// Whether a solve may begin with full multigrid on the levels of the preconditioner. It was measured on
    /// CPUs only.
    const STARTS_ON_LEVELS: bool;

    /// Makes the right side of a component from the operator of all components, with Dirichlet values lifted.
    fn lift(
        &self,
        operator: &<Self as MatrixFreeDevice<f64>>::Operator,
        problem: &TensorProblem<'_>,
        components: usize,
        rule: CellRule,
    ) -> Result<WithoutMatrix<f64, Self>, FemError>;

    /// [`WeakForm::system`] on this device, with the CPU as host.
    ///
    /// # Errors
    /// As [`WeakForm::system`].
    fn system<'a>(
        &self,
        cpu: &Cpu,
        weak: &'a WeakForm<'_>,
        stages: &mut Stages<'_>,
    ) -> Result<LinearSystem<'a, Self>, SolveError>;

    /// [`WeakForm::operators`] on this device, with the CPU as host.
    ///
    /// # Errors
    /// As [`WeakForm::operators`].
    fn operators(
        &self,
        cpu: &Cpu,
        weak: &WeakForm<'_>,
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<PreconditionedOperator<Self>, SolveError>;
}

/// Entry points of [`OperatorDevice`]. An implementation per device compiles multigrid and its kernels in this crate,
/// where generic functions would compile them again in each crate that calls them.
macro_rules! compiled_here {
    () => {
        fn system<'a>(
            &self,
            cpu: &Cpu,
            weak: &'a WeakForm<'_>,
            stages: &mut Stages<'_>,
        ) -> Result<LinearSystem<'a, Self>, SolveError> {
            weak.system_with((cpu, self), Ahead::default(), stages)
        }

        fn operators(
            &self,
            cpu: &Cpu,
            weak: &WeakForm<'_>,
            mass: MassMatrix,
            stages: &mut Stages<'_>,
        ) -> Result<PreconditionedOperator<Self>, SolveError> {
            weak.operators_on((cpu, self), mass, stages)
        }
    };
}

impl OperatorDevice for Cpu {
    compiled_here!();

    const STARTS_ON_LEVELS: bool = true;

    fn lift(
        &self,
        operator: &MatrixFree<f64>,
        problem: &TensorProblem<'_>,
        components: usize,
        _: CellRule,
    ) -> Result<WithoutMatrix<f64, Self>, FemError> {
        problem.lift(self, &mut |y, x| {
            apply_to_given(operator, components, y, x);
            Ok(())
        })
    }
}

impl OperatorDevice for Cuda {
    compiled_here!();

    const STARTS_ON_LEVELS: bool = false;

    /// Few cells have Dirichlet values, so the host computes their products.
    fn lift(
        &self,
        _: &CudaMatrixFree<f64>,
        problem: &TensorProblem<'_>,
        _: usize,
        rule: CellRule,
    ) -> Result<WithoutMatrix<f64, Self>, FemError> {
        problem.lift_by_cells(self, rule)
    }
}

/// A device with its host, and the quadrature of the operators that are made there.
pub(crate) struct OnCells<'w, D> {
    pub cpu: &'w Cpu,
    pub device: &'w D,
    pub rule: CellRule,
}

/// Assembles the matrix of one component, and the rest of its system.
pub(crate) fn assembled<D: OperatorDevice>(
    device: &D,
    rule: CellRule,
    problem: &TensorProblem<'_>,
    stages: &mut Stages<'_>,
) -> Result<AssembledSystem<f64, D>, SolveError> {
    let form = problem.form();
    let cells = CellMatrices::new(problem.space(), form.sigma, form.lambda, rule)?;
    Ok(stages.with_fractions(|progress| assemble(device, problem, &cells, progress))?)
}

impl<D: OperatorDevice> OnCells<'_, D> {
    /// Makes the system of one component with a sparse matrix.
    pub fn with_matrix<'a>(
        &self,
        config: &SolverConfig,
        problem: &'a TensorProblem<'a>,
        stages: &mut Stages<'_>,
    ) -> Result<LinearSystem<'a, D>, SolveError> {
        let (matrix, system) = assembled(self.device, self.rule, problem, stages)?.into_parts();
        stages.begin(Stage::Setup)?;
        let right = RightSide::new(self.device, Space::from(problem.space()), vec![system])?;
        LinearSystem::of_whole_matrix(config, matrix, None, right)
    }

    /// Makes the matrix-free system of the problems of all components.
    pub fn without_matrix<'a>(
        &self,
        plan: &Plan,
        problems: &'a [TensorProblem<'a>],
        ahead: Ahead<'a, D>,
        stages: &mut Stages<'_>,
    ) -> Result<LinearSystem<'a, D>, SolveError> {
        let Self { cpu, device, rule } = *self;
        // Components differ only in Dirichlet values, not in Dirichlet nodes or facet terms.
        let (problem, components) = (&problems[0], problems.len());
        // Memory for vectors is reserved first, because they are read more often than the data of an operator.
        let n = problem.space().n_dofs() * components;
        let Ahead { operator, spaces, levels } = ahead;
        let metric = (rule, plan.config.metric);
        let made =
            || MatrixFreeDevice::<f64>::matrix_free(device, cpu, problem, components, metric, operator);
        let operator = part("operator", || device.with_reserved_bytes(vector_bytes::<f64>(n), made));
        let operator = operator.map_err(of_metric)?;
        let lifted = |problem: &'a TensorProblem<'a>| device.lift(&operator, problem, components, rule);
        let systems = part("right side", || problems.iter().map(lifted).collect::<Result<Vec<_>, _>>())?;
        let right = RightSide::new(device, Space::from(problem.space()), systems)?;
        stages.begin(Stage::Setup)?;
        let mut warnings = Vec::new();
        let is_pure_neumann = right.is_pure_neumann;
        let rows = RowsOfProblem { is_pure_neumann, ..RowsOfProblem::all(n / components) };
        let of_all = |one: Preconditioning<D>| -> Result<Preconditioning<D>, LinalgError> {
            let (one, levels) = without_constants(device, one, &rows)?;
            if components == 1 {
                return Ok((one, levels));
            }
            Ok((Box::new(ByComponent::new(device, one, (n / components, components))?), levels))
        };
        let mut start = None;
        let made = || -> Result<Preconditioning<D>, SolveError> {
            Ok(match (&plan.config.preconditioner, &plan.boxes) {
                (PreconditionerConfig::None, _) => (Box::new(Diagonal::identity(device, n)?), Vec::new()),
                (PreconditionerConfig::Gmg(options), Some(boxes)) => {
                    let method = plan.config.method;
                    let (made, on_levels) = geometric::preconditioner(device, options, method, boxes)?;
                    start = match options.start {
                        GmgStart::Full => {
                            part("full multigrid", || FullStart::new(self, options, boxes, problems))?
                        }
                        GmgStart::Levels if D::STARTS_ON_LEVELS => FullStart::on_levels(on_levels, problems),
                        GmgStart::Levels | GmgStart::None => None,
                    };
                    of_all(made)?
                }
                (PreconditionerConfig::Pmg(options), _) => {
                    of_all(degrees::preconditioner(self, options, problem, (spaces, levels), &mut warnings)?)?
                }
                // Algebraic multigrid without a matrix was refused, boxes for geometric multigrid exist, and `auto` is
                // resolved.
                _ => {
                    let diagonal = <D as MatrixFreeDevice<f64>>::diagonal(&operator)?;
                    (Box::new(Diagonal::of_entries(device, diagonal)?), Vec::new())
                }
            })
        };
        let (preconditioner, levels) = part("preconditioner", made)?;
        let geometries =
            <D as MatrixFreeDevice<f64>>::metric_evaluations(&operator, problem.space().n_cells());
        let summary = SystemSummary {
            has_full_start: start.is_some(),
            ..SystemSummary::without_matrix(levels, geometries)
        };
        let operator = <D as MatrixFreeDevice<f64>>::into_operator(operator);
        let prepared = Prepared { operator, preconditioner, summary, warnings };
        Ok(LinearSystem { prepared, right, start, comm: Comm::alone() })
    }
}

/// Attributes an error of the requested metric evaluation to its setting.
pub(crate) fn of_metric(error: FemError) -> SolveError {
    match error {
        FemError::Space(SpaceError::UnfitMetric { .. }) => SolveError::solver("metric", error.to_string()),
        FemError::Linalg(LinalgError::Setting { field: "metric", message }) => {
            SolveError::solver("metric", message)
        }
        error => error.into(),
    }
}

/// Computes the product of the operator with the Dirichlet values of one component.
fn apply_to_given(operator: &MatrixFree<f64>, components: usize, y: &mut [f64], x: &[f64]) {
    if components == 1 {
        return operator.apply_to_given(y, x);
    }
    let (mut all_x, mut all_y) = (vec![0.0; x.len() * components], vec![0.0; x.len() * components]);
    all_x.iter_mut().step_by(components).zip(x).for_each(|(to, from)| *to = *from);
    operator.apply_to_given(&mut all_y, &all_x);
    y.iter_mut().zip(all_y.iter().step_by(components)).for_each(|(to, from)| *to = *from);
}
