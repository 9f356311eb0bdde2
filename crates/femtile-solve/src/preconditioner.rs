//! Preconditioners set up from the owned rows of a matrix, on one rank or several.

use std::sync::Arc;

use femtile_amg::{AmgDevice, AmgError, AnyAmg, BoxedAmg, LevelShape};
use femtile_comm::{Comm, Halo, OwnedRows};
use femtile_device::{Device, Scalar};
use femtile_linalg::precondition::{Diagonal, MeanFree};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_mesh::Mesh;
use femtile_sparse::Format;
use femtile_sparse::csr::Csr;
use femtile_sparse::reserve_workspace;

use crate::check::graph_error;
use crate::from_mesh::graph_of;
use crate::method::SolveDevice;
use crate::ranks::rows::agreed;
use crate::{AmgGraph, AmgOptions, LevelPrecision, PreconditionerConfig, SolveError};

/// A level of multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Rows of its matrix; of geometric multigrid, which has none, its unknowns.
    pub n_rows: usize,
    /// Non-zeros of its matrix, if there is one.
    pub n_nonzeros: Option<usize>,
    /// Patches of its rows, if they smooth.
    pub n_patches: Option<usize>,
    /// The format of its matrix, if products with it smooth.
    pub format: Option<Format>,
}

/// A preconditioner with its levels, the finest first; none if it is no multigrid.
pub(crate) type Preconditioning<D, T = f64> = (Box<dyn Preconditioner<T, D>>, Vec<Level>);

/// The place of a rank's unknowns among those of a problem, and what multigrid takes from the problem.
pub(crate) struct RowsOfProblem<'a> {
    /// The exchange of ghosts, without any if the rank is alone.
    pub halo: Arc<Halo>,
    /// The number of each owned unknown in the problem; none if it is that of its row.
    pub numbers: Option<&'a [u32]>,
    /// The number of unknowns of all ranks.
    pub n: usize,
    /// Whether the solution is unique only up to a constant.
    pub is_pure_neumann: bool,
    /// The near-nullspace of multigrid in these rows, all vectors of a row together; constants if there is none, on all ranks
    /// alike.
    pub near_nullspace: Option<&'a [f64]>,
    /// The mesh of linear elements whose graph aggregates may follow; none if ranks divide the matrix.
    pub mesh: Option<&'a Mesh>,
}

impl<'a> RowsOfProblem<'a> {
    /// All `n` unknowns of a problem, on a rank that is alone.
    pub fn all(n: usize) -> Self {
        let halo = Arc::new(Halo::alone(n));
        Self { halo, numbers: None, n, is_pure_neumann: false, near_nullspace: None, mesh: None }
    }

    /// The unknowns of a rank with their numbers in a problem of `n` unknowns.
    pub fn of_rank(halo: &Arc<Halo>, numbers: &'a [u32], n: usize) -> Self {
        Self { halo: Arc::clone(halo), numbers: Some(numbers), ..Self::all(n) }
    }

    fn comm(&self) -> &Comm {
        self.halo.comm()
    }
}

/// Removes the mean from preconditioned residuals if the solution is determined up to a constant.
///
/// A diagonal enlarges no constants, and stays one.
pub(crate) fn without_constants<D: VectorKernels<f64>>(
    device: &D,
    (of, levels): Preconditioning<D>,
    rows: &RowsOfProblem<'_>,
) -> Result<Preconditioning<D>, LinalgError> {
    if !rows.is_pure_neumann || of.diagonal().is_some() {
        return Ok((of, levels));
    }
    let comm = rows.comm().clone();
    Ok((Box::new(MeanFree::new(device, of, comm, rows.halo.n_owned(), rows.n)?), levels))
}

/// Returns multigrid as a preconditioner with its levels.
pub(crate) fn and_levels<T: Scalar, D: Device>(amg: BoxedAmg<T, D>) -> Preconditioning<D, T> {
    let levels = levels_of(amg.as_ref());
    (amg, levels)
}

/// Describes levels that have a matrix each.
pub(crate) fn levels_of<T: Scalar, D: Device>(amg: &dyn AnyAmg<T, D>) -> Vec<Level> {
    let (hierarchy, formats) = (amg.hierarchy(), amg.hierarchy().formats());
    let level = |(number, shape): (usize, &LevelShape)| Level {
        n_rows: shape.n_rows,
        n_nonzeros: Some(shape.n_nonzeros),
        n_patches: Some(shape.n_patches).filter(|n| *n > 0),
        format: formats.get(number).copied().filter(|_| shape.n_patches == 0),
    };
    hierarchy.shapes().iter().enumerate().map(level).collect()
}

/// Sets up multigrid in the precision of the settings, or with a warning in f64 if f32 fails.
pub(crate) fn in_precision<A>(
    precision: LevelPrecision,
    mut made: impl FnMut(LevelPrecision) -> Result<A, AmgError>,
    warnings: &mut Vec<String>,
) -> Result<A, AmgError> {
    match made(precision) {
        Err(error) if precision == LevelPrecision::F32 && error.is_of_precision() => {
            let amg = made(LevelPrecision::F64)?;
            warnings.push(f64_in_place_of_f32(&error));
            Ok(amg)
        }
        made => made,
    }
}

/// Returns the warning that levels requested in f32 are kept in f64.
pub(crate) fn f64_in_place_of_f32(error: &AmgError) -> String {
    format!("multigrid keeps its levels in f64, as f32 failed: {error}")
}

/// Makes the preconditioner of the settings from owned rows. Methods set up from cells were refused before, and `auto` is
/// resolved. Collective.
///
/// # Errors
/// [`LinalgError::Diagonal`] on all ranks if one of them has such an entry.
pub(crate) fn preconditioning<D: SolveDevice>(
    config: &PreconditionerConfig,
    matrix: &mut OwnedRows<f64, D>,
    rows: &RowsOfProblem<'_>,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    let device = matrix.own.values().device().clone();
    if let PreconditionerConfig::Amg(options) = config {
        if rows.comm().n_ranks() > 1 {
            // Errors of all ranks must surface here, not during the setup of some.
            diagonal(&matrix.own, rows)?;
        }
        let made = multigrid(matrix, rows, options, warnings)?;
        return Ok(without_constants(&device, made, rows)?);
    }
    reserve_workspace(&mut matrix.own)?;
    let diagonal = match config {
        PreconditionerConfig::None => Diagonal::identity(&device, matrix.own.n_rows())?,
        _ => diagonal(&matrix.own, rows)?,
    };
    Ok((Box::new(diagonal), Vec::new()))
}

/// Jacobi's preconditioner of owned rows. Collective.
fn diagonal<D: SolveDevice>(
    own: &Csr<f64, D>,
    rows: &RowsOfProblem<'_>,
) -> Result<Diagonal<f64, D>, SolveError> {
    let made = Diagonal::new(own);
    let here = match &made {
        Err(LinalgError::Diagonal { row, value }) => {
            let number = rows.numbers.map_or(*row, |numbers| numbers[*row] as usize);
            vec![number as f64, *value]
        }
        _ => Vec::new(),
    };
    if let Some(first) = rows.comm().all_gather(&here)?.iter().find(|of_rank| !of_rank.is_empty()) {
        return Err(LinalgError::Diagonal { row: first[0] as usize, value: first[1] }.into());
    }
    Ok(agreed(rows.comm(), made)?)
}

/// Sets up algebraic multigrid in the precision of the settings, or with a warning in f64 if f32 fails. Collective.
///
/// # Errors
/// [`SolveError::Setting`] for aggregates that follow a mesh if there is none.
pub(crate) fn multigrid<T: Scalar, D: AmgDevice<T>>(
    matrix: &mut OwnedRows<f64, D>,
    rows: &RowsOfProblem<'_>,
    options: &AmgOptions,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D, T>, SolveError> {
    let AmgOptions { config, precision, graph } = options;
    let no_mesh = || graph_error("on several ranks aggregates follow the matrix: use \"matrix\"".into());
    let graph = match graph {
        AmgGraph::Mesh => Some(graph_of(rows.mesh.ok_or_else(no_mesh)?)?),
        AmgGraph::Matrix => None,
    };
    let near_nullspace = rows.near_nullspace;
    Ok(and_levels(match rows.comm().n_ranks() {
        1 => {
            let (own, graph) = (&mut matrix.own, graph.as_ref());
            let made = |precision| D::amg_with_memory_limit(own, graph, near_nullspace, config, precision);
            in_precision(*precision, made, warnings)?
        }
        _ => {
            let device = matrix.own.values().device();
            let made = |precision| device.amg_on_ranks(matrix, &rows.halo, near_nullspace, config, precision);
            in_precision_of_all(*precision, made, warnings)?
        }
    }))
}

/// As [`in_precision`] on several ranks: levels in f64 follow only errors that all ranks have.
fn in_precision_of_all<A>(
    precision: LevelPrecision,
    made: impl Fn(LevelPrecision) -> Result<A, AmgError>,
    warnings: &mut Vec<String>,
) -> Result<A, SolveError> {
    let is_single = precision == LevelPrecision::F32;
    match made(precision) {
        Err(error @ (AmgError::Indefinite { .. } | AmgError::Resolution { .. })) if is_single => {
            warnings.push(f64_in_place_of_f32(&error));
            Ok(made(LevelPrecision::F64)?)
        }
        Err(error) if is_single && error.is_of_precision() => Err(SolveError::setting(
            &["solver".into(), "amg".into(), "precision".into()],
            format!("levels in f32 failed ({error}): use \"f64\", which one rank alone would go on with"),
        )),
        made => Ok(made?),
    }
}

#[cfg(test)]
mod tests {
    use femtile_comm::threads;
    use femtile_device::Cpu;

    use super::*;

    #[test]
    fn a_wrong_diagonal_entry_is_the_same_error_on_all_ranks() {
        let entries = |row: usize| vec![(row, if row == 3 { -1.0 } else { 2.0 }), ((row + 1) % 4, 0.0)];
        let amg = PreconditionerConfig::Amg(AmgOptions::default());
        for config in [PreconditionerConfig::Jacobi, amg] {
            let work = |comm: Comm| -> Result<(), SolveError> {
                let cpu = Cpu::new(1)?;
                let (owned, mut matrix, halo) = OwnedRows::of_global(&cpu, &comm, 4, |row| row % 2, entries)?;
                let numbers: Vec<u32> = owned.iter().map(|&row| row as u32).collect();
                let rows = RowsOfProblem::of_rank(&halo, &numbers, 4);
                let error = preconditioning(&config, &mut matrix, &rows, &mut Vec::new()).err().unwrap();
                let expected = LinalgError::Diagonal { row: 3, value: -1.0 };
                assert_eq!(error.to_string(), SolveError::from(expected).to_string());
                Ok(())
            };
            threads::run(2, work, work).unwrap();
        }
    }
}
