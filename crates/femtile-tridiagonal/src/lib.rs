//! Batches of independent tridiagonal systems that stand as lines in arrays of one to four dimensions.
//!
//! $$ a_i u_{i-1} + b_i u_i + c_i u_{i+1} = d_i, \qquad i = 0, …, N-1 $$
//!
//! ```
//! use femtile_device::{Buffer, Cpu};
//! use femtile_tridiagonal::{Bands, BatchLayout, Tridiagonal, TridiagonalConfig};
//!
//! # fn main() -> Result<(), femtile_linalg::LinalgError> {
//! // −u″ = 1 along the second axis of an array of 2 × 3 values, zero beyond the ends, spacing 1.
//! let device = Cpu::new(1)?;
//! let layout = BatchLayout::contiguous(&[2, 3])?;
//! let lower = Buffer::from_vec(&device, vec![-1.0; 6])?;
//! let diagonal = Buffer::from_vec(&device, vec![2.0; 6])?;
//! let upper = Buffer::from_vec(&device, vec![-1.0; 6])?;
//! let mut u = Buffer::from_vec(&device, vec![1.0; 6])?;
//! let mut solver = Tridiagonal::new(&device, &layout, 1, TridiagonalConfig::default())?;
//! let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
//! assert!(solver.solve_in_place(&mut u, bands)?.is_solved());
//! assert!((u.to_host()?[4] - 2.0_f64).abs() < 1e-15);
//! # Ok(())
//! # }
//! ```
//!
//! A batch is a `BatchLayout` and an axis; broadcast bands and permuted axes follow from strides. Bands are arrays
//! or a `BandRule`, a struct with a CPU body and CUDA source, so alternating directions store no coefficients. A
//! line that fails is filled with NaN, counted and reported; the others are solved. More:
//! `docs/developers/tridiagonal.md`.

#![deny(unsafe_code)]

mod bands;
pub mod block;
pub mod choice;
mod config;
#[allow(unsafe_code)]
pub(crate) mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod dominance;
pub mod factored;
mod hybrid;
mod kernels;
mod layout;
mod outcome;
mod pcr;
mod periodic;
mod pivoted;
mod reference;
mod solver;
pub mod split;
mod thomas;

use femtile_device::cuda::Specialisation;

pub use bands::{BandRule, Bands};
pub use config::{Algorithm, Ends, Stability, TridiagonalConfig};
pub use cuda::CudaBands;
pub use dominance::{Dominance, check};
pub use factored::FactoredTridiagonal;
pub use kernels::{BatchProblem, TridiagonalKernels, Work};
pub use layout::{BatchLayout, LineAxis, Lines, MAX_DIMENSIONS};
pub use outcome::{LineFailure, TridiagonalOutcome};
pub use solver::Tridiagonal;

/// The GPU programs that this crate ships, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<Specialisation> {
    cuda::specialisations().into_iter().chain(block::cuda::specialisations()).collect()
}
