//! The patch smoother: $A = A_I + A_B + A_D$, with the blocks of $A_I$ solved inexactly in fast memory.
//!
//! It is the only smoother that decides the order of the rows of a level: those of a patch follow each other. The rest of
//! the crate asks [`Smoother::has_patches`], gets that order as [`Patches`] or, from a GPU, as [`PatchOrder`], and sets
//! up and applies a [`PatchSmoother`]. On a GPU, `cuda::coarsen` completes a level in the order of its patches.

mod damping;
mod kernels;
mod matrix;
mod order;
mod partition;
mod reference;
mod smoother;

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
#[cfg(test)]
mod tests;

pub use kernels::PatchKernels;
pub use matrix::{PatchFormat, PatchMatrix};
pub use order::PatchedLevel;
pub(crate) use order::{PatchOrder, RowOrder};
pub use partition::DoublePartition;
pub(crate) use partition::Patches;
pub use smoother::PatchSmoother;

use crate::{AmgError, Smoother};

impl Smoother {
    /// Returns whether the rows of a level are ordered by patches.
    pub(crate) fn has_patches(self) -> bool {
        matches!(self, Self::Patch { .. })
    }

    /// Refuses nodes with more rows than a patch may have.
    pub(crate) fn check_node(self, n_rows: usize) -> Result<(), AmgError> {
        let most = partition::MOST_ROWS;
        if !self.has_patches() || n_rows <= most as usize {
            return Ok(());
        }
        let message = format!("a patch has at most {most} rows, a node up to {n_rows}: choose Chebyshev");
        Err(AmgError::Setting { field: "smoother", message })
    }
}
