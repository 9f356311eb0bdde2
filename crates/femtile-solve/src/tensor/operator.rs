//! Operators and linear systems on quadrilaterals and hexahedra: assembled or matrix-free.

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
use super::geometric::Boxes;
use super::start::FullStart;
use super::{degrees, geometric, lines, quadrature};
use crate::discretization::WeakForm;
use crate::method::SolveDevice;
use crate::nonlinear::MassMatrix;
use crate::preconditioner::{Preconditioning, without_constants};
use crate::right_side::RightSide;
use crate::system::{LinearSystem, PreconditionedOperator};
use crate::{GmgStart, PreconditionerConfig, Quadrature, SolveError, SolverConfig, Stage, Stages};

/// A device with line solves through flat cells in a precision.
pub trait CellDevice<T: SumFactorization + Lanes>: MatrixFreeDevice<T> {
    /// Makes line solves through flat cells from the diagonal of the operator, if there are flat cells and
    /// the device supports it.
    fn lines(
        &self,
        problem: &TensorProblem<'_>,
        diagonal: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError>;
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

impl<T: SumFactorization + Lanes> CellDevice<T> for Cuda
where
    Self: MatrixFreeDevice<T>,
{
    /// Line solves are not supported.
    fn lines(
        &self,
        _: &TensorProblem<'_>,
        _: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError> {
        Ok(None)
    }
}

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

/// Makes the linear system of the problems of all components on a device with its host.
pub(crate) fn system<'a, D: OperatorDevice>(
    (cpu, device): (&Cpu, &D),
    (config, quadrature): (&SolverConfig, Quadrature),
    (problems, boxes): (&'a [TensorProblem<'a>], Option<&Boxes>),
    ahead: Ahead<'a, D>,
    stages: &mut Stages<'_>,
) -> Result<LinearSystem<'a, D>, SolveError> {
    stages.begin(Stage::Assemble)?;
    let rule = quadrature::rule(quadrature);
    match config.is_assembled() {
        true => of_matrix(device, (config, rule), &problems[0], stages),
        false => matrix_free((cpu, device), (config, rule), (problems, boxes), ahead, stages),
    }
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

/// Makes the system of one component with a sparse matrix.
fn of_matrix<'a, D: OperatorDevice>(
    device: &D,
    (config, rule): (&SolverConfig, CellRule),
    problem: &'a TensorProblem<'a>,
    stages: &mut Stages<'_>,
) -> Result<LinearSystem<'a, D>, SolveError> {
    let (matrix, system) = assembled(device, rule, problem, stages)?.into_parts();
    stages.begin(Stage::Setup)?;
    let is_pure_neumann = system.is_pure_neumann;
    let right = RightSide::new(device, Space::from(problem.space()), vec![system])?;
    LinearSystem::of_matrix(device, config, (matrix, is_pure_neumann), None, right)
}

/// Makes the matrix-free system.
fn matrix_free<'a, D: OperatorDevice>(
    (cpu, device): (&Cpu, &D),
    (solver, rule): (&SolverConfig, CellRule),
    (problems, boxes): (&'a [TensorProblem<'a>], Option<&Boxes>),
    ahead: Ahead<'a, D>,
    stages: &mut Stages<'_>,
) -> Result<LinearSystem<'a, D>, SolveError> {
    // Components differ only in Dirichlet values, not in Dirichlet nodes or facet terms.
    let (problem, components) = (&problems[0], problems.len());
    // Memory for vectors is reserved first, because they are read more often than the data of an operator.
    let n = problem.space().n_dofs() * components;
    let Ahead { operator, levels } = ahead;
    let made = || {
        MatrixFreeDevice::<f64>::matrix_free(
            device,
            cpu,
            problem,
            components,
            (rule, solver.metric),
            operator,
        )
    };
    let operator = part("operator", || device.with_reserved_bytes(vector_bytes::<f64>(n), made));
    let operator = operator.map_err(of_metric)?;
    let lifted = |problem: &'a TensorProblem<'a>| device.lift(&operator, problem, components, rule);
    let systems = part("right side", || problems.iter().map(lifted).collect::<Result<Vec<_>, _>>())?;
    let right = RightSide::new(device, Space::from(problem.space()), systems)?;
    stages.begin(Stage::Setup)?;
    let mut warnings = Vec::new();
    let is_pure_neumann = right.is_pure_neumann();
    let of_all = |one: Preconditioning<D>| -> Result<Preconditioning<D>, LinalgError> {
        let (one, levels) = without_constants(device, one, n / components, is_pure_neumann)?;
        if components == 1 {
            return Ok((one, levels));
        }
        Ok((Box::new(ByComponent::new(device, one, (n / components, components))?), levels))
    };
    let mut on_levels = None;
    let (preconditioner, levels): Preconditioning<D> =
        part("preconditioner", || -> Result<_, SolveError> {
            let made: Preconditioning<D> = match (&solver.preconditioner, boxes) {
                (PreconditionerConfig::None, _) => (Box::new(Diagonal::identity(device, n)?), Vec::new()),
                (PreconditionerConfig::Gmg(options), Some(boxes)) => {
                    let made = geometric::preconditioner(device, (options, solver.method), boxes)?;
                    on_levels = made.1;
                    of_all(made.0)?
                }
                (PreconditionerConfig::Pmg(options), _) => {
                    let problem = (problem, rule);
                    of_all(degrees::preconditioner((cpu, device), options, problem, levels, &mut warnings)?)?
                }
                // Algebraic multigrid without a matrix was refused, boxes for geometric multigrid exist, and `auto` is
                // resolved.
                _ => (
                    Box::new(Diagonal::of_entries(
                        device,
                        <D as MatrixFreeDevice<f64>>::diagonal(&operator)?,
                    )?),
                    Vec::new(),
                ),
            };
            Ok(made)
        })?;
    let start = match (&solver.preconditioner, boxes) {
        (PreconditionerConfig::Gmg(options), Some(boxes)) if options.start == GmgStart::Full => {
            part("full multigrid", || FullStart::new((cpu, device), options, boxes, (problems, rule)))?
        }
        (PreconditionerConfig::Gmg(options), _)
            if options.start == GmgStart::Levels && D::STARTS_ON_LEVELS =>
        {
            FullStart::on_levels(on_levels, problems)
        }
        _ => None,
    };
    let geometries = <D as MatrixFreeDevice<f64>>::metric_evaluations(&operator, problem.space().n_cells());
    Ok(LinearSystem {
        operator: <D as MatrixFreeDevice<f64>>::into_operator(operator),
        format: "matrix-free".into(),
        format_reason: None,
        preconditioner,
        levels,
        right,
        citations: vec!["kronbichler2022"],
        warnings,
        geometries,
        start,
    })
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
