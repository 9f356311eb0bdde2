//! Preconditioners set up from a matrix.

use femtile_amg::{AmgError, AnyAmg, BoxedAmg, LevelShape};
use femtile_device::{Device, Scalar};
use femtile_linalg::precondition::{Diagonal, MeanFree};
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_mesh::Mesh;
use femtile_sparse::Format;
use femtile_sparse::csr::Csr;
use femtile_sparse::reserve_workspace;

use crate::from_mesh::graph_of;
use crate::method::SolveDevice;
use crate::{LevelPrecision, PreconditionerConfig, SolveError};

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

/// Removes the mean from preconditioned residuals of `n` unknowns if the solution is determined up to a
/// constant.
///
/// A diagonal enlarges no constants, and stays one.
pub(crate) fn without_constants<D: SolveDevice>(
    device: &D,
    (of, levels): Preconditioning<D>,
    n: usize,
    is_pure_neumann: bool,
) -> Result<Preconditioning<D>, LinalgError> {
    if !is_pure_neumann || of.diagonal().is_some() {
        return Ok((of, levels));
    }
    Ok((Box::new(MeanFree::new(device, n, of)?), levels))
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

/// Makes a preconditioner from a matrix, that of linear elements on `mesh` if there is one. Methods set up from cells were
/// refused before, and `auto` is resolved.
pub(crate) fn preconditioner<D: SolveDevice>(
    device: &D,
    config: &PreconditionerConfig,
    mesh: Option<&Mesh>,
    matrix: &mut Csr<f64, D>,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    let graph = mesh.filter(|_| config.needs_graph_of_mesh()).map(graph_of).transpose()?;
    let graph = graph.as_ref();
    if !matches!(config, PreconditionerConfig::Amg(_)) {
        reserve_workspace(matrix)?;
    }
    Ok(match config {
        PreconditionerConfig::None => (Box::new(Diagonal::identity(device, matrix.n_rows())?), Vec::new()),
        PreconditionerConfig::Amg(options) => {
            let made = |precision| D::amg_with_memory_limit(matrix, graph, None, &options.config, precision);
            and_levels(in_precision(options.precision, made, warnings)?)
        }
        _ => (Box::new(Diagonal::new(matrix)?), Vec::new()),
    })
}
