//! The linear system on a rank, with any operator.

use std::sync::Arc;

use femtile_amg::{AmgDevice, AmgError};
use femtile_comm::{Comm, DistributedMatrix, Halo, LocalUnknowns, OwnedRows};
use femtile_device::Scalar;
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use super::device::RankDevice;
use super::mean_free::MeanFree;
use super::rows::agreed;
use crate::auto::Solves;
use crate::check::graph_error;
use crate::format::{Formatted, citations_of, formatted};
use crate::preconditioner::{Preconditioning, and_levels, f64_in_place_of_f32};
use crate::system::SystemSummary;
use crate::{AmgGraph, AmgOptions, LevelPrecision, PreconditionerConfig, SolveError, SolverConfig};

/// The owned rows of a linear system, with a preconditioner.
pub(crate) struct DistributedSystem<D: RankDevice> {
    pub operator: Box<dyn LinearOperator<f64, D>>,
    pub preconditioner: Box<dyn Preconditioner<f64, D>>,
    /// The right side, with Dirichlet values lifted.
    pub rhs: Vec<f64>,
    pub parts: SystemSummary,
    pub warnings: Vec<String>,
    pub unknowns: RankUnknowns,
}

/// The unknowns on a rank.
pub(crate) struct RankUnknowns {
    /// The node of each unknown, or for elements of any degree its number in the space, in the mesh of the
    /// problem: the whole mesh or the part.
    pub owned: Vec<u32>,
    /// Owned unknowns and ghosts among those of the part.
    pub local: Arc<LocalUnknowns>,
    /// The components of each unknown, which follow each other in vectors; all other numbers are those of
    /// unknowns, except in the near-nullspace.
    pub components: usize,
    /// Entries of vectors with Dirichlet values, and these values, if the caller does not know them.
    pub given: Vec<(u32, f64)>,
    /// The near-nullspace of multigrid in these rows, all vectors of a row together; constants if there is none, on all ranks
    /// alike.
    pub near_nullspace: Option<Vec<f64>>,
    /// Whether the global solution is unique only up to a constant.
    pub is_pure_neumann: bool,
    /// As in `femtile_fem::AssembledSystem`.
    pub imbalance: f64,
}

impl RankUnknowns {
    /// Describes rows of a system whose solution is unique, without Dirichlet values to be set.
    pub fn new(owned: Vec<u32>, local: Arc<LocalUnknowns>) -> Self {
        let (given, near_nullspace) = (Vec::new(), None);
        Self { owned, local, components: 1, given, near_nullspace, is_pure_neumann: false, imbalance: 0.0 }
    }

    /// Returns the halo of the unknowns.
    pub fn halo(&self) -> &Arc<Halo> {
        self.local.halo()
    }

    /// Returns the values of each component at the owned unknowns.
    pub fn by_component(&self, w: Vec<f64>) -> Vec<Vec<f64>> {
        match self.components {
            1 => vec![w],
            n => (0..n).map(|component| w.iter().copied().skip(component).step_by(n).collect()).collect(),
        }
    }
}

impl<D: RankDevice> DistributedSystem<D> {
    /// Makes the system of an assembled matrix with the preconditioner of the settings, on the device of the
    /// rank; `n` is the global number of unknowns. Collective.
    pub fn of_matrix(
        device: &D,
        config: &SolverConfig,
        (matrix, rhs): (OwnedRows<f64, D>, Vec<f64>),
        unknowns: RankUnknowns,
        n: usize,
    ) -> Result<Self, SolveError> {
        let halo = unknowns.halo();
        let mut warnings = Vec::new();
        let (preconditioner, levels) =
            preconditioning(device, config, &matrix, (&unknowns, n), &mut warnings)?;
        let Formatted { operator, format, reason } = formatted(matrix.own, config, Solves::One)?;
        let operator = DistributedMatrix::new(operator, matrix.border, Arc::clone(halo))?;
        let parts = SystemSummary {
            format: format.name(),
            format_reason: Some(reason),
            citations: citations_of(format, &levels),
            levels,
            geometries: Vec::new(),
            has_full_start: false,
        };
        Ok(Self { operator: Box::new(operator), preconditioner, rhs, parts, warnings, unknowns })
    }
}

/// Makes the preconditioner of the settings for the owned rows, and describes its levels; `n` is the global
/// number of unknowns. Collective.
pub(crate) fn preconditioning<D: RankDevice>(
    device: &D,
    config: &SolverConfig,
    matrix: &OwnedRows<f64, D>,
    (unknowns, n): (&RankUnknowns, usize),
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, SolveError> {
    let (halo, owned) = (unknowns.halo(), &unknowns.owned);
    let comm = halo.comm();
    // Errors of all ranks must surface here, not during a solve.
    let in_global = |error| match error {
        LinalgError::Diagonal { row, value } => LinalgError::Diagonal { row: owned[row] as usize, value },
        other => other,
    };
    let diagonal = || -> Result<Diagonal<f64, D>, SolveError> {
        agreed(comm, Diagonal::new(&matrix.own).map_err(|error| in_global(error).into()))
    };
    Ok(match &config.preconditioner {
        PreconditionerConfig::None => {
            (Box::new(Diagonal::identity(device, matrix.own.n_rows())?), Vec::new())
        }
        PreconditionerConfig::Amg(options) => {
            diagonal()?;
            let near_nullspace = unknowns.near_nullspace.as_deref();
            let made = multigrid((device, matrix), (halo, near_nullspace), options, warnings)?;
            without_constants(device, made, comm, (n, unknowns.is_pure_neumann), owned.len())?
        }
        _ => (Box::new(diagonal()?), Vec::new()),
    })
}

/// Projects constants out of the result of a preconditioner of `n` unknowns, if the solution is unique only
/// up to a constant.
pub(super) fn without_constants<D: RankDevice>(
    device: &D,
    (of, levels): Preconditioning<D>,
    comm: &Comm,
    (n, is_pure_neumann): (usize, bool),
    n_owned: usize,
) -> Result<Preconditioning<D>, SolveError> {
    if !is_pure_neumann {
        return Ok((of, levels));
    }
    Ok((Box::new(MeanFree::new(device, of, comm.clone(), [n, n_owned])?), levels))
}

/// Distributed algebraic multigrid with its levels, in the precision of the settings.
pub(super) fn multigrid<T: Scalar, D: AmgDevice<T>>(
    (device, matrix): (&D, &OwnedRows<f64, D>),
    (halo, near_nullspace): (&Arc<Halo>, Option<&[f64]>),
    options: &AmgOptions,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D, T>, SolveError> {
    if options.graph == AmgGraph::Mesh {
        return Err(graph_error("on several ranks aggregates follow the matrix: use \"matrix\"".into()));
    }
    let made = |precision| device.amg_on_ranks(matrix, halo, near_nullspace, &options.config, precision);
    let (mut precision, mut amg) = (options.precision, made(options.precision));
    if let (LevelPrecision::F32, Err(error @ (AmgError::Indefinite { .. } | AmgError::Resolution { .. }))) =
        (precision, &amg)
    {
        // All ranks have these errors alike.
        warnings.push(f64_in_place_of_f32(error));
        (precision, amg) = (LevelPrecision::F64, made(LevelPrecision::F64));
    }
    let amg = amg.map_err(|error| match error.is_of_precision() && precision == LevelPrecision::F32 {
        true => SolveError::setting(
            &["solver".into(), "amg".into(), "precision".into()],
            format!("levels in f32 failed ({error}): use \"f64\", which one rank alone would go on with"),
        ),
        false => error.into(),
    })?;
    Ok(and_levels(amg))
}
