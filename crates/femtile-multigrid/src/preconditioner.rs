use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, Preconditioner, need};
use femtile_tensor::Contract;

use crate::level::Vectors;
use crate::{BoxGrid, Multigrid, MultigridConfig, MultigridError, PostOrder, Smoother};

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

#[derive(Debug)]
struct Room<T> {
    x: Vec<T>,
    b: Vec<T>,
    vectors: Vec<Vectors<T>>,
}

impl<T: Contract> GeometricMultigrid<T> {
    /// Levels as in [`Multigrid::new`].
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, n_levels: usize) -> Result<Self, MultigridError> {
        Self::with_smoother(cpu, coarse, n_levels, Smoother::default())
    }

    /// The same with a smoother of choice.
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn with_smoother(
        cpu: &Cpu,
        coarse: &BoxGrid,
        n_levels: usize,
        smoother: Smoother,
    ) -> Result<Self, MultigridError> {
        let config = MultigridConfig { smoother, post: PostOrder::Reversed };
        let multigrid = Multigrid::new(cpu, coarse, n_levels, config)?;
        let zeros = vec![T::ZERO; multigrid.grid().n_nodes()];
        let room = Room { x: zeros.clone(), b: zeros, vectors: multigrid.vectors() };
        Ok(Self { multigrid, room: Mutex::new(room) })
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
        let Room { x, b, vectors } = &mut *room;
        // In single precision only ratios of what is small have to be kept: the cycle is linear.
        let largest = r.as_slice().iter().fold(0.0_f64, |largest, r| largest.max(r.abs()));
        let scale = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
        for (b, r) in b.iter_mut().zip(r.as_slice()) {
            *b = T::from_f64(r / scale);
        }
        x.fill(T::ZERO);
        self.multigrid.cycle(x, b, vectors);
        for (z, x) in z.as_mut_slice().iter_mut().zip(x.iter()) {
            *z = scale * x.to_f64();
        }
        Ok(())
    }
}
