//! p-multigrid on a mesh: spaces of falling degree, and algebraic multigrid for degree 1.

use std::ops::RangeInclusive;

use femtile_amg::Amg;
use femtile_device::Cpu;
use femtile_device::cpu::vector::Lanes;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::CellMatrices;
use femtile_fem::tensor::{TensorProblem, assemble};
use femtile_fem::{BoundaryCondition, Coefficient, Condition, Form};
use femtile_linalg::precondition::polynomial::PolynomialKernels;
use femtile_linalg::vector::Convert;
use femtile_linalg::{Preconditioner, Transfer};
use femtile_matrix_free::{CellRule, MatrixFree, MatrixFreeConfig};
use femtile_multigrid::{IdentityTransfer, PLevel, PMultigrid, PMultigridConfig};
use femtile_sum_factorization::SumFactorization;

use super::lines::has_flat_cells;
use super::operator::{CellDevice, OperatorDevice, terms};
use crate::preconditioner::{Level, Preconditioning, f64_in_place_of_f32, levels_of};
use crate::{AmgOptions, LevelPrecision, PmgOptions, SolveError};

/// The range of entries of an operator whose products neither overflow nor underflow in f32.
const F32_RANGE: RangeInclusive<f64> = 1e-28..=1e28;

/// A device that supports levels in a precision.
trait LevelDevice<T: SumFactorization + Lanes>:
    OperatorDevice
    + CellDevice<T>
    + PolynomialKernels<T>
    + Convert<T, f32>
    + Convert<f32, T>
    + Convert<T, f64>
    + Convert<f64, T>
{
}

impl<T, D> LevelDevice<T> for D
where
    T: SumFactorization + Lanes,
    D: OperatorDevice
        + CellDevice<T>
        + PolynomialKernels<T>
        + Convert<T, f32>
        + Convert<f32, T>
        + Convert<T, f64>
        + Convert<f64, T>,
{
}

/// Returns whether an operator with this diagonal, or products with it on the levels, exceed the range of f32.
pub(super) fn is_beyond_f32(diagonal: &[f64]) -> bool {
    !diagonal.iter().all(|entry| F32_RANGE.contains(entry))
}

/// Sets up p-multigrid for the operator of a problem, over the degrees of [`degrees`], on a device with its host; in f64 where
/// the range of f32 is too small.
///
/// # Errors
/// [`SolveError::Setting`] where a level cannot be set up.
pub(super) fn preconditioner<D: OperatorDevice>(
    devices: (&Cpu, &D),
    options: &PmgOptions,
    problem: (&TensorProblem<'_>, CellRule),
    is_beyond_f32: bool,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    match options.precision {
        LevelPrecision::F32 if !is_beyond_f32 => {
            with_levels::<f32, D>(devices, problem, (options, false), warnings)
        }
        _ => with_levels::<f64, D>(devices, problem, (options, is_beyond_f32), warnings),
    }
}

/// Returns the degrees from `degree` down to 1, each half of the one before, rounded up.
pub(crate) fn degrees(highest: usize) -> Vec<usize> {
    std::iter::successors(Some(highest), |&degree| (degree > 1).then(|| degree.div_ceil(2))).collect()
}

/// Sets up p-multigrid with levels in a precision.
fn with_levels<T: SumFactorization + Lanes, D: LevelDevice<T>>(
    (cpu, device): (&Cpu, &D),
    (problem, rule): (&TensorProblem<'_>, CellRule),
    (options, is_beyond_f32): (&PmgOptions, bool),
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    let (form, conditions) = (problem.form(), homogeneous(problem.form().conditions));
    let form = Form { source: &ZERO, conditions: &conditions, ..*form };
    let of_degree = |degree: usize| TensorSpace::new(form.mesh, degree);
    let spaces = degrees(problem.space().degree()).into_iter().skip(1).map(of_degree);
    let spaces: Vec<TensorSpace<'_>> = spaces.collect::<Result<_, _>>()?;
    let below = spaces.iter().map(|space| TensorProblem::new(space, &form));
    let below: Vec<TensorProblem<'_>> = below.collect::<Result<_, _>>()?;
    let problems: Vec<&TensorProblem<'_>> = std::iter::once(problem).chain(&below).collect();

    let level =
        |pair: &[&TensorProblem<'_>]| level((cpu, device), pair[0], rule, device.transfer(pair[1], pair[0])?);
    let mut levels: Vec<PLevel<T, D>> = problems.windows(2).map(level).collect::<Result<_, SolveError>>()?;
    let mut reports: Vec<Level> = levels.iter().map(|level| without_matrix(&level.diagonal)).collect();
    let lowest = problems[problems.len() - 1];
    if has_flat_cells(lowest) {
        // Algebraic multigrid smooths by points.
        let same = Box::new(IdentityTransfer(lowest.space().n_dofs()));
        levels.extend(
            Some(self::level((cpu, device), lowest, rule, same)?).filter(|level| level.lines.is_some()),
        );
    }
    let (amg, of_amg) = algebraic::<T, D>(device, &options.amg, lowest, rule, is_beyond_f32, warnings)?;
    reports.extend(of_amg);
    let config = PMultigridConfig { sweeps: options.sweeps, ..PMultigridConfig::default() };
    let cycle = PMultigrid::new(device, levels, (amg, lowest.space().n_dofs()), config).map_err(|error| {
        refuse(&format!("cannot be set up ({error}): check the coefficients and the shape of cells"))
    })?;
    Ok((Box::new(cycle), reports))
}

const ZERO: Coefficient = Coefficient::Constant(0.0);

/// Returns the boundary conditions with zero data, all that an operator depends on.
fn homogeneous(conditions: &[BoundaryCondition]) -> Vec<BoundaryCondition> {
    let of = |entry: &BoundaryCondition| BoundaryCondition {
        facets: entry.facets.clone(),
        condition: match &entry.condition {
            Condition::Dirichlet(_) => Condition::Dirichlet(ZERO),
            Condition::DirichletAtNodes { nodes, .. } => {
                Condition::DirichletAtNodes { nodes: nodes.clone(), value: ZERO }
            }
            Condition::Neumann(_) => Condition::Neumann(ZERO),
            Condition::Robin { coefficient, .. } => {
                Condition::Robin { coefficient: coefficient.clone(), value: ZERO }
            }
        },
    };
    conditions.iter().map(of).collect()
}

/// Makes the level of a problem; the host computes the diagonal.
fn level<T: SumFactorization + Lanes, D: CellDevice<T> + PolynomialKernels<T>>(
    (cpu, device): (&Cpu, &D),
    own: &TensorProblem<'_>,
    rule: CellRule,
    transfer: Box<dyn Transfer<T, D>>,
) -> Result<PLevel<T, D>, SolveError> {
    let (constrained, facets) = (own.constraints().dofs(), own.facet_matrices());
    let config = MatrixFreeConfig { rule, constrained, facets, ..MatrixFreeConfig::default() };
    let on_cpu = MatrixFree::<T>::new(cpu, own.space(), terms(own), config)?;
    let diagonal = on_cpu.diagonal();
    let (operator, _) = device.without_matrix(on_cpu, own, (rule, None))?;
    Ok(PLevel { operator, lines: device.lines(own, &diagonal)?, diagonal, transfer })
}

fn without_matrix<T>(diagonal: &[T]) -> Level {
    Level { n_rows: diagonal.len(), n_nonzeros: None, n_patches: None, format: None }
}

/// A preconditioner for vectors of a precision.
type Lowest<T, D> = Box<dyn Preconditioner<T, D>>;

/// Sets up algebraic multigrid for a problem of degree 1; returns it with its levels.
fn algebraic<T: SumFactorization + Lanes, D: LevelDevice<T>>(
    device: &D,
    options: &AmgOptions,
    problem: &TensorProblem<'_>,
    rule: CellRule,
    is_beyond_f32: bool,
    warnings: &mut Vec<String>,
) -> Result<(Lowest<T, D>, Vec<Level>), SolveError> {
    let form = problem.form();
    let cells = CellMatrices::new(problem.space(), form.sigma, form.lambda, rule)?;
    let (matrix, _) = assemble(device, problem, &cells, &|_| ())?;
    if !is_beyond_f32 && options.precision == LevelPrecision::F32 {
        match Amg::<f32, D>::new(&matrix, None, &options.config) {
            Err(error) if error.is_of_precision() => warnings.push(f64_in_place_of_f32(&error)),
            made => {
                let amg = made?;
                let levels = levels_of(amg.hierarchy());
                return Ok((Box::new(amg), levels));
            }
        }
    }
    let amg = Amg::<f64, D>::new(&matrix, None, &options.config)?;
    let levels = levels_of(amg.hierarchy());
    Ok((Box::new(amg), levels))
}

/// Returns the error where p-multigrid does not serve a problem.
fn refuse(message: &str) -> SolveError {
    SolveError::solver("preconditioner", format!("p-multigrid {message}, or use \"jacobi\""))
}
