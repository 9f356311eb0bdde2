//! The ranks that take part in a solve; [`SingleRank`] stands for a single rank.
//!
//! Krylov methods obtain global sums from a `Communicator`: `SingleRank`, or `Comm` of `femtile-comm`. No algorithm
//! assumes a single rank. Vectors hold the unknowns that a rank owns, so sums over them are global.

use femtile_device::{Buffer, Device};

use crate::LinalgError;

/// The ranks of a distributed solve, seen from one of them.
pub trait Communicator: Sync {
    /// This rank, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn n_ranks(&self) -> usize;

    /// Replaces each of `values` by its sum over all ranks.
    ///
    /// # Errors
    /// [`LinalgError`] when another rank cannot be reached.
    fn sum<D: Device>(&self, values: &mut Buffer<f64, D>) -> Result<(), LinalgError>;

    /// As [`Communicator::sum`], while `work` is done. `work` does not touch the values. It may exchange
    /// values with other ranks if all ranks do the same there.
    ///
    /// # Errors
    /// Those of the sum and of `work`.
    fn sum_during<D: Device>(
        &self,
        values: &mut Buffer<f64, D>,
        work: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        self.sum(values)?;
        work()
    }
}

/// The communicator of a single rank: every sum is already complete.
#[derive(Debug, Clone, Copy, Default)]
pub struct SingleRank;

impl Communicator for SingleRank {
    fn rank(&self) -> usize {
        0
    }

    fn n_ranks(&self) -> usize {
        1
    }

    fn sum<D: Device>(&self, _values: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        Ok(())
    }
}
