use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, Preconditioner, need};
use femtile_tensor::Contract;

use crate::level::Room;
use crate::vector::widen;
use crate::{BoxGrid, Multigrid, MultigridConfig, MultigridError, PostOrder};

/// One V-cycle from zero as a preconditioner, in the precision `T`, for solves in double precision: symmetric and positive
/// definite, as it smooths in reversed order afterwards.
///
/// # Cost
/// Two steps of the smoother and one product on the finest level, times $2^d / (2^d - 1)$ for all others.
/// # Source
/// `[cui2024]`, section 4.2.
#[derive(Debug)]
pub struct GeometricMultigrid<T> {
    multigrid: Multigrid<T>,
    room: Mutex<Room<T>>,
}

impl<T: Contract> GeometricMultigrid<T> {
    /// Levels as in [`Multigrid::new`].
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, n_levels: usize) -> Result<Self, MultigridError> {
        let config = MultigridConfig { post: PostOrder::Reversed, ..MultigridConfig::default() };
        let multigrid = Multigrid::new(cpu, coarse, n_levels, config)?;
        let room = Mutex::new(multigrid.room());
        Ok(Self { multigrid, room })
    }

    /// The levels.
    pub fn multigrid(&self) -> &Multigrid<T> {
        &self.multigrid
    }
}

impl<T: Contract> Preconditioner<f64, Cpu> for GeometricMultigrid<T> {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        let n = self.multigrid.grid().n_nodes();
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let scale = self.multigrid.correction(&mut room, r.as_slice());
        widen(self.multigrid.cpu(), z.as_mut_slice(), scale, &room.x);
        Ok(())
    }
}
