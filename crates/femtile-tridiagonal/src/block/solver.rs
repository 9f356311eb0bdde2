use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;

use super::{BlockBands, BlockFailure, BlockOutcome, BlockProblem, BlockShape, BlockTridiagonalKernels};
use crate::{Algorithm, Stability, Work};

/// Settings for solving a batch of block tridiagonal systems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BlockTridiagonalConfig {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether rows are exchanged within a block; never between blocks.
    pub stability: Stability,
}

/// Solves batches of block tridiagonal systems by the block Thomas algorithm, or by block cyclic reduction.
///
/// $$ C_i^* = (B_i - A_i C_{i-1}^*)^{-1} C_i, \quad d_i^* = (B_i - A_i C_{i-1}^*)^{-1} (d_i - A_i d_{i-1}^*), \quad
///    u_i = d_i^* - C_i^* u_{i+1} $$
///
/// No inverse is formed: each pair of $C_i^*$ and $d_i^*$ is the solution of one system with M + 1 right sides.
///
/// # Shapes
/// As [`BlockShape`] states.
/// # Source
/// `[laszlo2016]`, Alg. 12. Differs: pivots are checked; a CPU has a SIMD lane a system.
#[derive(Debug)]
pub struct BlockTridiagonal<T: Scalar, D: BlockTridiagonalKernels<T>> {
    device: D,
    problem: BlockProblem,
    work: Work<T, D>,
}

impl<T: Scalar, D: BlockTridiagonalKernels<T>> BlockTridiagonal<T, D> {
    /// A solver for batches of this shape.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when blocks have less than 2 or more than 10 rows, or the device lacks the algorithm.
    pub fn new(device: &D, shape: BlockShape, config: BlockTridiagonalConfig) -> Result<Self, LinalgError> {
        shape.check()?;
        let mut problem = BlockProblem { shape, algorithm: config.algorithm, stability: config.stability };
        problem.algorithm = device.block_choice(&problem)?;
        let work = Work { status: Buffer::from_host(device, &FRESH)?, scratch: None };
        Ok(Self { device: device.clone(), problem, work })
    }

    /// The algorithm that solves.
    pub fn algorithm(&self) -> Algorithm {
        self.problem.algorithm
    }

    /// Solves, `u` holding the right sides before; does not wait for a GPU.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when an array has not the length of the shape; errors of the device.
    pub fn queue_in_place(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: BlockBands<'_, T, D>,
    ) -> Result<(), LinalgError> {
        self.queue_any(u, bands, None)
    }

    /// Solves into `u` for the right sides `d`; does not wait for a GPU.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when an array has not the length of the shape; errors of the device.
    pub fn queue(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: BlockBands<'_, T, D>,
        d: &Buffer<T, D>,
    ) -> Result<(), LinalgError> {
        self.queue_any(u, bands, Some(d))
    }

    /// Waits for the solves queued since the last call and returns their outcome.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn outcome(&mut self) -> Result<BlockOutcome, LinalgError> {
        let status = self.work.status.to_host()?;
        let (n_failed, key) = (status[0], status[1]);
        if n_failed == 0 {
            return Ok(BlockOutcome { n_failed, first: None });
        }
        self.work.status.upload(&FRESH)?;
        let n = self.problem.shape.n_rows.max(1) as u64;
        let first = BlockFailure { system: (key / n) as usize, row: (key % n) as usize };
        Ok(BlockOutcome { n_failed, first: Some(first) })
    }

    /// [`BlockTridiagonal::queue_in_place`], then [`BlockTridiagonal::outcome`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn solve_in_place(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: BlockBands<'_, T, D>,
    ) -> Result<BlockOutcome, LinalgError> {
        self.queue_in_place(u, bands)?;
        self.outcome()
    }

    /// [`BlockTridiagonal::queue`], then [`BlockTridiagonal::outcome`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn solve(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: BlockBands<'_, T, D>,
        d: &Buffer<T, D>,
    ) -> Result<BlockOutcome, LinalgError> {
        self.queue(u, bands, d)?;
        self.outcome()
    }

    fn queue_any(
        &mut self,
        u: &mut Buffer<T, D>,
        bands: BlockBands<'_, T, D>,
        d: Option<&Buffer<T, D>>,
    ) -> Result<(), LinalgError> {
        self.device.block_solve(&self.problem, u, bands, d, &mut self.work)
    }
}

/// The status before anything failed.
const FRESH: [u64; 2] = [0, u64::MAX];
