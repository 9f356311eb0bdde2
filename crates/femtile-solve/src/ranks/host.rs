//! The ranks of one machine.

use femtile_comm::Comm;

use super::Ranks;
use crate::SolveError;

/// The number of ranks before this one on the same machine, and of all of them. All ranks call it.
pub(super) fn place_on(comm: &Comm) -> Result<(usize, usize), SolveError> {
    let name = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = comm.all_gather(&name)?;
    let count = |names: &[Vec<u8>]| names.iter().filter(|other| **other == name).count();
    Ok((count(&names[..comm.rank()]), count(&names)))
}

impl Ranks {
    /// Returns the number of processes on this machine that solve the problem together, and their share of it; none of one rank
    /// alone. All ranks call it.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where another rank ended.
    pub fn share_of_host(&self) -> Result<Option<(usize, f64)>, SolveError> {
        Ok(match self {
            Self::Of(comm) if comm.n_ranks() > 1 => {
                let (_, here) = place_on(comm)?;
                Some((here, here as f64 / comm.n_ranks() as f64))
            }
            Self::Threads(n) if *n > 1 => Some((1, 1.0)),
            _ => None,
        })
    }
}
