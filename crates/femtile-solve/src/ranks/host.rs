//! Ranks on one host.

use femtile_comm::Comm;
use femtile_mesh::CellKind;

use super::Ranks;
use crate::{DeviceChoice, SolveError, SolverConfig, tensor};

/// The number of lower ranks on the same host, and of all ranks there. Collective.
pub(super) fn place_on(comm: &Comm) -> Result<(usize, usize), SolveError> {
    let name = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = comm.all_gather(&name)?;
    let count = |names: &[Vec<u8>]| names.iter().filter(|other| **other == name).count();
    Ok((count(&names[..comm.rank()]), count(&names)))
}

impl Ranks {
    /// Returns the number of processes of this run on this host, and their share of all processes; none if
    /// there is only one rank. Collective.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if another rank failed.
    pub fn share_of_host(&self) -> Result<Option<(usize, f64)>, SolveError> {
        Ok(match self {
            Self::Of(comm) if comm.n_ranks() > 1 && comm.shares_memory() => Some((1, 1.0)),
            Self::Of(comm) if comm.n_ranks() > 1 => {
                let (_, here) = place_on(comm)?;
                Some((here, here as f64 / comm.n_ranks() as f64))
            }
            Self::Threads(n) if *n > 1 => Some((1, 1.0)),
            _ => None,
        })
    }
}

/// Returns whether the GPUs of several ranks hold the assembled matrix and the preconditioner of a problem on
/// cells of this kind. Otherwise the host makes them.
pub fn has_gpus_of_ranks(config: &SolverConfig, kind: CellKind) -> bool {
    let has_gpu = matches!(config.device, DeviceChoice::Cuda(_));
    config.ranks.n() > 1 && has_gpu && !tensor::is_for(kind)
}
