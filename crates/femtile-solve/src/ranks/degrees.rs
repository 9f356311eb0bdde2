//! Distributed p-multigrid: the levels of each part, and algebraic multigrid over all ranks for degree 1.

use std::sync::Arc;

use femtile_amg::AmgDevice;
use femtile_comm::{Comm, DistributedTransfer};
use femtile_device::cpu::vector::Lanes;
use femtile_linalg::Transfer;
use femtile_linalg::precondition::polynomial::PolynomialKernels;
use femtile_linalg::vector::Convert;
use femtile_matrix_free::CellRule;
use femtile_multigrid::{IdentityTransfer, PLevel, PMultigridConfig, PMultigridDevice};
use femtile_sum_factorization::SumFactorization;

use super::cells::{PartForm, PartProblem};
use super::device::{RankCells, RankDevice, RankDevices};
use super::mesh_on_ranks::WholeSpace;
use super::rows::agreed;
use crate::preconditioner::{Level, Preconditioning, multigrid};
use crate::tensor::{self, degrees};
use crate::{AmgOptions, LevelPrecision, PmgOptions, SolveError};

/// Data of the levels of a rank.
pub(super) struct Problems<'p, 'a> {
    pub finest: &'p PartProblem<'a>,
    /// The part, its space of the highest degree, and its form.
    pub own: Option<PartForm<'a>>,
    /// The global spaces of lower degree, the highest first.
    pub below: &'p [WholeSpace<'p>],
    pub rule: CellRule,
}

/// The warning about flat cells, which need line solves.
const FLAT: &str =
    "some cells are flat, and several ranks smooth by points: expect more iterations than on one rank";

/// Sets up p-multigrid over the degrees of [`tensor::degrees`]. Levels are in f64 if the range of f32 is too
/// small. Collective.
///
/// # Errors
/// [`SolveError::Setting`] if a level cannot be set up.
pub(super) fn preconditioner<D: RankDevice>(
    on: RankDevices<'_, D>,
    options: &PmgOptions,
    problems: &Problems<'_, '_>,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    let comm = on.comm;
    let spaces = problems.own.map(|(_, space, _)| degrees::spaces_below(space));
    let spaces = agreed(comm, spaces.transpose().map_err(SolveError::from))?.unwrap_or_default();
    let conditions =
        problems.own.map(|(_, _, form)| degrees::homogeneous(form.conditions)).unwrap_or_default();
    let of_degree = |(number, &whole): (usize, &WholeSpace<'_>)| {
        let own = problems
            .own
            .map(|(part, _, form)| (part, &spaces[number], degrees::without_data(&form, &conditions)));
        PartProblem::new(comm, whole, own)
    };
    let below = problems.below.iter().enumerate().map(of_degree).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&PartProblem<'_>> = std::iter::once(problems.finest).chain(&below).collect();
    let is_flat = all[all.len() - 1].problem.as_ref().is_some_and(tensor::has_flat_cells);
    let [is_flat] = comm.any([is_flat])?;
    if is_flat {
        warnings.push(FLAT.into());
    }
    let of = (&all[..], problems.rule);
    let mut amg = options.amg.clone();
    if options.precision == LevelPrecision::F32 {
        if let Some(made) = with_levels::<f32, D>(on, of, (options, &amg), warnings)? {
            return Ok(made);
        }
        warnings.push(degrees::BEYOND_F32.into());
        amg.precision = LevelPrecision::F64;
    }
    let made = with_levels::<f64, D>(on, of, (options, &amg), warnings)?;
    made.ok_or_else(|| degrees::refuse("cannot be set up: entries of its levels are out of range"))
}

/// Sets up levels in one precision; none if its range is too small on a rank.
fn with_levels<T: SumFactorization + Lanes, D>(
    on: RankDevices<'_, D>,
    (problems, rule): (&[&PartProblem<'_>], CellRule),
    (options, of_lowest): (&PmgOptions, &AmgOptions),
    warnings: &mut Vec<String>,
) -> Result<Option<Preconditioning<D>>, SolveError>
where
    D: RankDevice
        + RankCells<T>
        + PMultigridDevice<T>
        + AmgDevice<T>
        + Convert<T, f32>
        + Convert<f32, T>
        + Convert<T, f64>
        + Convert<f64, T>
        + Convert<T, T>,
{
    let RankDevices { cpu, device, comm } = on;
    let (mut levels, mut reports): (Vec<PLevel<T, D>>, Vec<Level>) = (Vec::new(), Vec::new());
    for pair in problems.windows(2) {
        let level = level::<T, D>(on, pair, rule)?;
        let is_single = size_of::<T>() < size_of::<f64>();
        let [is_beyond] = comm.any([is_single && degrees::is_beyond_f32(&level.diagonal)])?;
        if is_beyond {
            return Ok(None);
        }
        reports.push(without_matrix(comm, level.diagonal.len())?);
        levels.push(level);
    }
    let lowest = problems[problems.len() - 1];
    let (matrix, _) = agreed(comm, lowest.assembled(cpu, rule, &|_| ()))?;
    let rows = lowest.unknowns.rows();
    let (amg, of_amg) = multigrid(&mut device.rows(matrix)?, &rows, of_lowest, warnings)?;
    reports.extend(of_amg);
    let config = PMultigridConfig { sweeps: options.sweeps, ..PMultigridConfig::default() };
    let sums = |values: &mut [f64]| comm.sum_values(values);
    let (ranks, lowest) = ((&sums as &_, (comm.rank() as u64) << 32), (amg, lowest.unknowns.owned.len()));
    let cycle = device.p_multigrid(ranks, levels, lowest, config);
    let cycle = cycle.map_err(|error| {
        degrees::refuse(&format!("cannot be set up ({error}): check the coefficients and the shape of cells"))
    })?;
    Ok(Some((cycle, reports)))
}

/// Makes the level of the first of two problems, with the transfer to the second.
fn level<T: SumFactorization + Lanes, D>(
    RankDevices { cpu, device, comm }: RankDevices<'_, D>,
    pair: &[&PartProblem<'_>],
    rule: CellRule,
) -> Result<PLevel<T, D>, SolveError>
where
    D: RankCells<T> + PolynomialKernels<T>,
{
    let (fine, coarse) = (pair[0], pair[1]);
    let cells = agreed(comm, fine.operator::<T, D>((cpu, device), 1, rule, None))?;
    let diagonal = fine.diagonal::<T, D>(cells.as_ref())?;
    // Errors of all ranks must surface here, not during the setup of some.
    agreed(comm, fine.inverse_diagonal(cpu, diagonal.clone()))?;
    let part: Box<dyn Transfer<T, D>> = match (&fine.problem, &coarse.problem) {
        (Some(fine), Some(coarse)) => device.transfer(coarse, fine)?,
        _ => Box::new(IdentityTransfer(0)),
    };
    let unknowns = [&coarse.unknowns.local, &fine.unknowns.local].map(Arc::clone);
    let transfer = Box::new(DistributedTransfer::new(device, part, unknowns)?);
    Ok(PLevel { operator: fine.rows::<T, D>(device, 1, cells)?, diagonal, lines: None, transfer })
}

/// Describes a matrix-free level, with the sizes of all ranks added.
fn without_matrix(comm: &Comm, n_rows: usize) -> Result<Level, SolveError> {
    let n_rows = comm.all_gather(&[n_rows as u64])?.into_iter().flatten().sum::<u64>() as usize;
    Ok(Level { n_rows, n_nonzeros: None, n_patches: None, format: None })
}
