//! Operators and linear systems on quadrilaterals and hexahedra: assembled or matrix-free.

use femtile_device::cpu::vector::Lanes;
use femtile_device::{Cpu, Cuda, Device};
use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::CellMatrices;
use femtile_fem::tensor::{TensorProblem, TensorSystem, assemble};
use femtile_fem::{Coefficient, FemError};
use femtile_linalg::krylov::cg::vector_bytes;
use femtile_linalg::precondition::{ByComponent, Diagonal};
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner, Transfer};
use femtile_matrix_free::{
    CellRule, CudaDegreeTransfer, CudaMatrixFree, CudaMatrixFreeConfig, DegreeTransfer, MatrixFree,
    MatrixFreeConfig, MetricEvaluation, Terms,
};
use femtile_multigrid::BoxKernels;
use femtile_sparse::Csr;
use femtile_sum_factorization::SumFactorization;

use super::geometric::Boxes;
use super::start::FullStart;
use super::{degrees, geometric, lines, quadrature};
use crate::method::SolveDevice;
use crate::preconditioner::{Preconditioning, without_constants};
use crate::right_side::RightSide;
use crate::system::LinearSystem;
use crate::{
    GmgStart, LevelPrecision, PmgOptions, PreconditionerConfig, Quadrature, SolveError, SolverConfig, Stage,
    Stages,
};

/// An operator on any device, with the evaluation of cell metrics and the number of cells for each.
type Operator<T, D> = (Box<dyn LinearOperator<T, D>>, Vec<(MetricEvaluation, usize)>);

/// A device with matrix-free operators in a precision.
pub trait CellDevice<T: SumFactorization + Lanes>: Device {
    /// Whether its operators have kernels of their own, apart from those of the host.
    const HAS_KERNELS: bool;

    /// Makes the matrix-free operator with the requested metric evaluation; `on_cpu` is that of the host.
    fn without_matrix(
        &self,
        on_cpu: MatrixFree<T>,
        problem: &TensorProblem<'_>,
        rule: (CellRule, Option<MetricEvaluation>),
    ) -> Result<Operator<T, Self>, FemError>;

    /// Applies a preconditioner to each of `n` components separately; a single component needs no wrapper.
    fn by_component(
        &self,
        one: Box<dyn Preconditioner<T, Self>>,
        n_entries: usize,
        components: usize,
    ) -> Result<Box<dyn Preconditioner<T, Self>>, LinalgError>;

    /// Makes the line solves through flat cells, where a problem has any and the device supports them, from the diagonal of its
    /// operator.
    fn lines(
        &self,
        problem: &TensorProblem<'_>,
        diagonal: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError>;

    /// Makes the transfer between the spaces of two problems on the same cells, the lower degree first.
    fn transfer(
        &self,
        coarse: &TensorProblem<'_>,
        fine: &TensorProblem<'_>,
    ) -> Result<Box<dyn Transfer<T, Self>>, FemError>;
}

impl<T: SumFactorization + Lanes> CellDevice<T> for Cpu {
    const HAS_KERNELS: bool = false;

    fn without_matrix(
        &self,
        on_cpu: MatrixFree<T>,
        _: &TensorProblem<'_>,
        _: (CellRule, Option<MetricEvaluation>),
    ) -> Result<Operator<T, Self>, FemError> {
        let metrics = on_cpu.metric_evaluations();
        Ok((Box::new(on_cpu), metrics))
    }

    fn by_component(
        &self,
        one: Box<dyn Preconditioner<T, Self>>,
        n_entries: usize,
        components: usize,
    ) -> Result<Box<dyn Preconditioner<T, Self>>, LinalgError> {
        Ok(if components == 1 {
            one
        } else {
            Box::new(ByComponent::new(self, one, (n_entries, components))?)
        })
    }

    fn lines(
        &self,
        problem: &TensorProblem<'_>,
        diagonal: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError> {
        let solves = lines::solves(self, problem, diagonal)?;
        Ok(solves.map(|solves| Box::new(solves) as Box<dyn Preconditioner<T, Self>>))
    }

    fn transfer(
        &self,
        coarse: &TensorProblem<'_>,
        fine: &TensorProblem<'_>,
    ) -> Result<Box<dyn Transfer<T, Self>>, FemError> {
        Ok(Box::new(DegreeTransfer::new(self, constrained(coarse), constrained(fine))?))
    }
}

impl<T: SumFactorization + Lanes> CellDevice<T> for Cuda {
    const HAS_KERNELS: bool = true;

    /// The operator of the host is freed first.
    fn without_matrix(
        &self,
        on_cpu: MatrixFree<T>,
        problem: &TensorProblem<'_>,
        (rule, metric): (CellRule, Option<MetricEvaluation>),
    ) -> Result<Operator<T, Self>, FemError> {
        drop(on_cpu);
        let (space, constrained) = constrained(problem);
        let config = CudaMatrixFreeConfig { metric, ..CudaMatrixFreeConfig::default() };
        let operator = CudaMatrixFree::new(self, space, terms(problem), rule, constrained, config)?;
        let metrics = vec![(operator.metric(), space.n_cells())];
        Ok((Box::new(operator.with_facets(problem.facet_matrices())?), metrics))
    }

    /// Several components are refused before.
    fn by_component(
        &self,
        one: Box<dyn Preconditioner<T, Self>>,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn Preconditioner<T, Self>>, LinalgError> {
        Ok(one)
    }

    /// Line solves are not supported.
    fn lines(
        &self,
        _: &TensorProblem<'_>,
        _: &[T],
    ) -> Result<Option<Box<dyn Preconditioner<T, Self>>>, LinalgError> {
        Ok(None)
    }

    fn transfer(
        &self,
        coarse: &TensorProblem<'_>,
        fine: &TensorProblem<'_>,
    ) -> Result<Box<dyn Transfer<T, Self>>, FemError> {
        Ok(Box::new(CudaDegreeTransfer::new(self, constrained(coarse), constrained(fine))?))
    }
}

/// A device with operators of any degree.
pub trait OperatorDevice:
    SolveDevice + CellDevice<f32> + CellDevice<f64> + BoxKernels<f32> + BoxKernels<f64>
{
}

impl<D: SolveDevice + CellDevice<f32> + CellDevice<f64> + BoxKernels<f32> + BoxKernels<f64>> OperatorDevice
    for D
{
}

/// The space of a problem with its constrained degrees of freedom.
fn constrained<'p>(problem: &'p TensorProblem<'_>) -> (&'p TensorSpace<'p>, &'p [u32]) {
    (problem.space(), problem.constraints().dofs())
}

/// The terms of a form, without a conduction or a reaction that vanishes.
pub(super) fn terms<'a>(problem: &TensorProblem<'a>) -> Terms<'a> {
    let form = problem.form();
    let unless_zero = |of: &'a Coefficient| (of.as_constant() != Some(0.0)).then_some(of);
    Terms { sigma: unless_zero(form.sigma), lambda: unless_zero(form.lambda) }
}

/// The warning where levels requested in f32 are kept in f64.
const BEYOND_F32: &str = "the levels of p-multigrid are kept in f64: entries of the operator are too large or \
                             too small for single precision";

/// Returns whether all levels of p-multigrid are requested in f64.
fn is_in_double(options: &PmgOptions) -> bool {
    [options.precision, options.amg.precision].iter().all(|precision| *precision == LevelPrecision::F64)
}

/// Makes the linear system of the problems of all components on a device with its host.
pub(crate) fn system<'a, D: OperatorDevice>(
    (cpu, device): (&Cpu, &D),
    (config, quadrature): (&SolverConfig, Quadrature),
    (problems, boxes): (&'a [TensorProblem<'a>], Option<&Boxes>),
    stages: &mut Stages<'_>,
) -> Result<LinearSystem<'a, D>, SolveError> {
    stages.begin(Stage::Assemble)?;
    let rule = quadrature::rule(quadrature);
    match config.is_assembled() {
        true => of_matrix(device, (config, rule), &problems[0], stages),
        false => matrix_free((cpu, device), (config, rule), (problems, boxes), stages),
    }
}

/// Assembles the matrix of one component, and the rest of its system.
pub(crate) fn assembled<'a, D: OperatorDevice>(
    device: &D,
    rule: CellRule,
    problem: &'a TensorProblem<'a>,
    stages: &mut Stages<'_>,
) -> Result<(Csr<f64, D>, TensorSystem<'a, D>), SolveError> {
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
    let (matrix, system) = assembled(device, rule, problem, stages)?;
    stages.begin(Stage::Setup)?;
    let is_pure_neumann = system.is_pure_neumann;
    LinearSystem::of_matrix(device, config, (matrix, is_pure_neumann), None, RightSide::Tensor(system))
}

/// Makes the matrix-free system.
fn matrix_free<'a, D: OperatorDevice>(
    (cpu, device): (&Cpu, &D),
    (solver, rule): (&SolverConfig, CellRule),
    (problems, boxes): (&'a [TensorProblem<'a>], Option<&Boxes>),
    stages: &mut Stages<'_>,
) -> Result<LinearSystem<'a, D>, SolveError> {
    // Components differ only in given values, not in their places nor in facet terms.
    let (problem, components) = (&problems[0], problems.len());
    let (constrained, facets) = (problem.constraints().dofs(), problem.facet_matrices());
    // The requested metric evaluation is for the device of the iterations.
    let has_kernels = <D as CellDevice<f64>>::HAS_KERNELS;
    let metric = solver.metric.filter(|_| !has_kernels);
    let config = MatrixFreeConfig { rule, constrained, facets, components, metric };
    let on_cpu = MatrixFree::new(cpu, problem.space(), terms(problem), config).map_err(of_metric)?;
    let lifted = |problem: &'a TensorProblem<'a>| {
        problem.lift(device, &mut |y, x| {
            apply_to_given(&on_cpu, components, y, x);
            Ok(())
        })
    };
    let systems = problems.iter().map(lifted).collect::<Result<Vec<_>, _>>()?;
    let right = RightSide::of_components(device, systems)?;
    stages.begin(Stage::Setup)?;
    let (n, mut warnings) = (right.values().len(), Vec::new());
    let is_pure_neumann = right.is_pure_neumann();
    let of_all = |one: Preconditioning<D>| -> Result<Preconditioning<D>, LinalgError> {
        let (one, levels) = without_constants(device, one, n / components, is_pure_neumann)?;
        Ok((CellDevice::<f64>::by_component(device, one, n / components, components)?, levels))
    };
    let (preconditioner, levels): Preconditioning<D> = match (&solver.preconditioner, boxes) {
        (PreconditionerConfig::None, _) => (Box::new(Diagonal::identity(device, n)?), Vec::new()),
        (PreconditionerConfig::Gmg(options), Some(boxes)) => {
            of_all(geometric::preconditioner(device, (options, solver.method), boxes)?)?
        }
        (PreconditionerConfig::Pmg(options), _) => {
            let is_beyond_f32 = degrees::is_beyond_f32(&on_cpu.diagonal());
            if is_beyond_f32 && !is_in_double(options) {
                warnings.push(BEYOND_F32.into());
            }
            let problem = (problem, rule);
            let made =
                degrees::preconditioner((cpu, device), options, problem, is_beyond_f32, &mut warnings)?;
            of_all(made)?
        }
        // Algebraic multigrid without a matrix was refused, boxes for geometric multigrid exist, and `auto` is
        // resolved.
        _ => (Box::new(Diagonal::of_entries(device, on_cpu.diagonal())?), Vec::new()),
    };
    let start = match (&solver.preconditioner, boxes) {
        (PreconditionerConfig::Gmg(options), Some(boxes)) if options.start == GmgStart::Full => {
            FullStart::new((cpu, device), options, boxes, (problems, rule))?
        }
        _ => None,
    };
    // Vectors are read more often than the data of an operator.
    let rule = (rule, solver.metric);
    let (operator, geometries) = device
        .with_reserved_bytes(vector_bytes::<f64>(n), || device.without_matrix(on_cpu, problem, rule))
        .map_err(of_metric)?;
    Ok(LinearSystem {
        operator,
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
fn of_metric(error: FemError) -> SolveError {
    match error {
        FemError::UnfitMetric { .. } => SolveError::solver("metric", error.to_string()),
        FemError::Linalg(LinalgError::Setting { field: "metric", message }) => {
            SolveError::solver("metric", message)
        }
        error => error.into(),
    }
}

/// Computes the product of the operator with the given values of one component.
fn apply_to_given(operator: &MatrixFree<f64>, components: usize, y: &mut [f64], x: &[f64]) {
    if components == 1 {
        return operator.apply_to_given(y, x);
    }
    let (mut all_x, mut all_y) = (vec![0.0; x.len() * components], vec![0.0; x.len() * components]);
    all_x.iter_mut().step_by(components).zip(x).for_each(|(to, from)| *to = *from);
    operator.apply_to_given(&mut all_y, &all_x);
    y.iter_mut().zip(all_y.iter().step_by(components)).for_each(|(to, from)| *to = *from);
}
