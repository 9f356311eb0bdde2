//! Batches of independent block tridiagonal systems with blocks of 2 to 10 rows.
//!
//! $$ A_i u_{i-1} + B_i u_i + C_i u_{i+1} = d_i, \qquad A_i, B_i, C_i \in ℝ^{M×M}, \quad i = 0, …, N-1 $$
//!
//! ```
//! use femtile_device::{Buffer, Cpu};
//! use femtile_tridiagonal::block::{
//!     BlockBands, BlockOrder, BlockShape, BlockTridiagonal, BlockTridiagonalConfig,
//! };
//!
//! # fn main() -> Result<(), femtile_linalg::LinalgError> {
//! // One system of two rows of 2 × 2 blocks: u₀ = (1, 2) and u₁ = (3, 4).
//! let device = Cpu::new(1)?;
//! let shape = BlockShape { block: 2, n_rows: 2, n_systems: 1, order: BlockOrder::SystemMajor };
//! let lower = Buffer::from_vec(&device, vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
//! let diagonal = Buffer::from_vec(&device, vec![4.0, 1.0, 0.0, 4.0, 4.0, 0.0, 1.0, 4.0])?;
//! let upper = Buffer::from_vec(&device, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])?;
//! let mut u = Buffer::from_vec(&device, vec![9.0, 12.0, 13.0, 21.0])?;
//! let mut solver = BlockTridiagonal::new(&device, shape, BlockTridiagonalConfig::default())?;
//! let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
//! assert!(solver.solve_in_place(&mut u, bands)?.is_solved());
//! assert!(u.to_host()?.iter().zip([1.0, 2.0, 3.0, 4.0]).all(|(u, v): (&f64, f64)| (u - v).abs() < 1e-14));
//! # Ok(())
//! # }
//! ```

mod choosing;
#[allow(unsafe_code)]
pub(crate) mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod elimination;
mod kernels;
mod outcome;
mod reference;
mod shape;
mod solver;
mod transpose;

pub use kernels::{BlockBands, BlockProblem, BlockTridiagonalKernels};
pub use outcome::{BlockFailure, BlockOutcome};
pub use shape::{BlockOrder, BlockShape, MAX_BLOCK, MIN_BLOCK};
pub use solver::{BlockTridiagonal, BlockTridiagonalConfig};
