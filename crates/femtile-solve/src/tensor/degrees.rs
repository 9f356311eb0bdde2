//! p-multigrid on a mesh: spaces of falling degree, and algebraic multigrid for degree 1.
//!
//! The levels are spaces on the same cells with homogeneous data. For a GPU the CPU computes the matrix of degree
//! 1.

use std::ops::RangeInclusive;

use femtile_amg::AmgDevice;
use femtile_device::cpu::vector::Lanes;
use femtile_device::{Scalar, parallel, part};
use femtile_fem::tensor::{CellMatrices, TensorProblem, assemble};
use femtile_fem::{BoundaryCondition, Coefficient, Form};
use femtile_linalg::precondition::polynomial::PolynomialKernels;
use femtile_linalg::vector::Convert;
use femtile_linalg::{Preconditioner, Transfer};
use femtile_matrix_free::MatrixFreeDevice;
use femtile_multigrid::{IdentityTransfer, PLevel, PMultigridConfig, PMultigridDevice};
use femtile_space::{SpaceError, TensorSpace};
use femtile_sum_factorization::SumFactorization;

use super::lines::has_flat_cells;
use super::operator::{CellDevice, OnCells, OperatorDevice};
use crate::preconditioner::{Level, Preconditioning, and_levels, in_precision};
use crate::{AmgOptions, LevelPrecision, PmgOptions, SolveError};

/// The range of entries of an operator whose products neither overflow nor underflow in f32.
const F32_RANGE: RangeInclusive<f64> = 1e-28..=1e28;

/// A device that supports levels in a precision.
trait LevelDevice<T: SumFactorization + Lanes>:
    OperatorDevice
    + CellDevice<T>
    + PMultigridDevice<T>
    + AmgDevice<T>
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
        + PMultigridDevice<T>
        + AmgDevice<T>
        + Convert<T, f32>
        + Convert<f32, T>
        + Convert<T, f64>
        + Convert<f64, T>,
{
}

/// The warning if levels requested in f32 are kept in f64.
pub(crate) const BEYOND_F32: &str = "the levels of p-multigrid are kept in f64: entries of the operator are too large or \
                             too small for single precision";

/// Returns whether an operator with this diagonal, or products with it on the levels, exceed the range of f32.
pub(crate) fn is_beyond_f32<T: Scalar>(diagonal: &[T]) -> bool {
    !parallel::all(diagonal.len(), ROWS, |row| F32_RANGE.contains(&diagonal[row].to_f64()))
}

/// Rows per parallel task.
const ROWS: usize = 1 << 14;

/// Sets up p-multigrid for the operator of a problem, over the degrees of [`degrees`]; its spaces and data of its operators
/// may have been computed ahead. Levels are in f64 if the range of f32 is too small.
///
/// # Errors
/// [`SolveError::Setting`] if a level cannot be set up.
pub(super) fn preconditioner<D: OperatorDevice>(
    on: &OnCells<'_, D>,
    options: &PmgOptions,
    problem: &TensorProblem<'_>,
    (spaces, operators): (Vec<TensorSpace<'_>>, Vec<<D as MatrixFreeDevice<f32>>::Data>),
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    let n_below = degrees(problem.space().degree()).len() - 1;
    let spaces = match spaces.len() == n_below {
        true => spaces,
        false => part("numbers of unknowns", || spaces_below(problem.space()))?,
    };
    if options.precision == LevelPrecision::F32
        && let Some(made) = with_levels::<f32, D>(on, problem, (&spaces, operators), options, warnings)?
    {
        return Ok(made);
    }
    let made = with_levels::<f64, D>(on, problem, (&spaces, Vec::new()), options, warnings)?;
    made.ok_or_else(|| refuse("cannot be set up: entries of its levels are out of range"))
}

/// Returns the degrees from `degree` down to 1, each half of the one before, rounded up.
pub(crate) fn degrees(highest: usize) -> Vec<usize> {
    std::iter::successors(Some(highest), |&degree| (degree > 1).then(|| degree.div_ceil(2))).collect()
}

/// Returns the spaces of lower degree, the highest first.
pub(crate) fn spaces_below<'a>(space: &TensorSpace<'a>) -> Result<Vec<TensorSpace<'a>>, SpaceError> {
    below(space.degree()).into_iter().map(|degree| space.of_degree(degree)).collect()
}

/// Returns the degrees of the levels below a degree, the highest first.
pub(crate) fn below(degree: usize) -> Vec<usize> {
    degrees(degree).split_off(1)
}

/// Returns a form without source, with homogeneous conditions.
pub(crate) fn without_data<'a>(form: &Form<'a>, homogeneous: &'a [BoundaryCondition]) -> Form<'a> {
    Form { source: &Coefficient::ZERO, conditions: homogeneous, ..*form }
}

/// Sets up p-multigrid with levels in one precision; none if its range is too small. Data of the highest
/// levels may have been computed ahead.
fn with_levels<T: SumFactorization + Lanes, D: LevelDevice<T>>(
    on: &OnCells<'_, D>,
    problem: &TensorProblem<'_>,
    (spaces, prepared): (&[TensorSpace<'_>], Vec<<D as MatrixFreeDevice<T>>::Data>),
    options: &PmgOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<Preconditioning<D>>, SolveError> {
    let conditions = homogeneous(problem.form().conditions);
    let form = without_data(problem.form(), &conditions);
    let below = spaces.iter().map(|space| TensorProblem::new(space, &form));
    let below: Vec<TensorProblem<'_>> = part("problems of lower degree", || below.collect::<Result<_, _>>())?;
    let problems: Vec<&TensorProblem<'_>> = std::iter::once(problem).chain(&below).collect();

    let mut prepared = prepared.into_iter();
    let level = |pair: &[&TensorProblem<'_>]| {
        let transfer = part("transfer", || on.device.transfer(pair[1], pair[0]))?;
        level(on, pair[0], prepared.next(), transfer)
    };
    let made = problems.windows(2).map(level).collect::<Result<Option<Vec<_>>, SolveError>>()?;
    let Some(mut levels): Option<Vec<PLevel<T, D>>> = made else {
        return Ok(None);
    };
    let is_beyond_f32 = levels.iter().any(|level| is_beyond_f32(&level.diagonal));
    if is_beyond_f32 && [options.precision, options.amg.precision].contains(&LevelPrecision::F32) {
        warnings.push(BEYOND_F32.into());
    }
    let mut reports: Vec<Level> = levels.iter().map(|level| without_matrix(&level.diagonal)).collect();
    let lowest = problems[problems.len() - 1];
    if has_flat_cells(lowest) {
        // Algebraic multigrid has point smoothers.
        let same = Box::new(IdentityTransfer(lowest.space().n_dofs()));
        let made = self::level(on, lowest, None, same)?;
        levels.extend(made.filter(|level| level.lines.is_some()));
    }
    let (amg, of_amg) = algebraic::<T, D>(on, &options.amg, lowest, is_beyond_f32, warnings)?;
    reports.extend(of_amg);
    let config = PMultigridConfig { sweeps: options.sweeps, ..PMultigridConfig::default() };
    let lowest = (amg, lowest.space().n_dofs());
    let cycle = on.device.p_multigrid((&|_| Ok(()), 0), levels, lowest, config).map_err(|error| {
        refuse(&format!("cannot be set up ({error}): check the coefficients and the shape of cells"))
    })?;
    Ok(Some((cycle, reports)))
}

/// Returns the boundary conditions with zero data. An operator depends on nothing else of them.
pub(crate) fn homogeneous(conditions: &[BoundaryCondition]) -> Vec<BoundaryCondition> {
    conditions.iter().map(BoundaryCondition::homogeneous).collect()
}

/// Makes the level of a problem; none if it is in f32 and its entries exceed that range.
fn level<T: SumFactorization + Lanes, D: CellDevice<T> + PolynomialKernels<T>>(
    &OnCells { cpu, device, rule }: &OnCells<'_, D>,
    own: &TensorProblem<'_>,
    prepared: Option<D::Data>,
    transfer: Box<dyn Transfer<T, D>>,
) -> Result<Option<PLevel<T, D>>, SolveError> {
    let made = || MatrixFreeDevice::<T>::matrix_free(device, cpu, own, 1, (rule, None), prepared);
    let operator = part("operator", made)?;
    let diagonal = part("diagonal", || <D as MatrixFreeDevice<T>>::diagonal(&operator))?;
    if size_of::<T>() < size_of::<f64>() && is_beyond_f32(&diagonal) {
        return Ok(None);
    }
    let lines = device.lines(own, &diagonal)?;
    Ok(Some(PLevel {
        operator: <D as MatrixFreeDevice<T>>::into_operator(operator),
        lines,
        diagonal,
        transfer,
    }))
}

fn without_matrix<T>(diagonal: &[T]) -> Level {
    Level { n_rows: diagonal.len(), n_nonzeros: None, n_patches: None, format: None }
}

/// A preconditioner for vectors of a precision.
type Lowest<T, D> = Box<dyn Preconditioner<T, D>>;

/// Sets up algebraic multigrid for a problem of degree 1; returns it with its levels.
fn algebraic<T: SumFactorization + Lanes, D: LevelDevice<T>>(
    &OnCells { device, rule, .. }: &OnCells<'_, D>,
    options: &AmgOptions,
    problem: &TensorProblem<'_>,
    is_beyond_f32: bool,
    warnings: &mut Vec<String>,
) -> Result<(Lowest<T, D>, Vec<Level>), SolveError> {
    let form = problem.form();
    let assembled = || {
        let cells = CellMatrices::new(problem.space(), form.sigma, form.lambda, rule)?;
        assemble(device, problem, &cells, &|_| ())
    };
    let matrix = part("matrix of degree 1", assembled)?.matrix;
    let precision = if is_beyond_f32 { LevelPrecision::F64 } else { options.precision };
    let made = |precision| D::amg(&matrix, None, &options.config, precision);
    Ok(and_levels(part("algebraic multigrid", || in_precision(precision, made, warnings))?))
}

/// Returns the error for problems that p-multigrid does not support.
pub(crate) fn refuse(message: &str) -> SolveError {
    SolveError::solver("preconditioner", format!("p-multigrid {message}, or use \"jacobi\""))
}
