//! Algebraic multigrid for symmetric positive definite sparse matrices, by smoothed aggregation.
//!
//! ```
//! use femtile_amg::{Amg, AmgConfig};
//! use femtile_device::{Buffer, Cpu};
//! use femtile_linalg::comm::SingleRank;
//! use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
//! use femtile_sparse::Triplets;
//!
//! let (cpu, n) = (Cpu::new(0)?, 1_000);
//! let mut triplets = Triplets::new(n, n);
//! for i in 0..n {
//!     triplets.push(i, i, 2.0)?;
//!     if i > 0 {
//!         triplets.push(i, i - 1, -1.0)?;
//!         triplets.push(i - 1, i, -1.0)?;
//!     }
//! }
//! let a = triplets.into_csr(&cpu)?.matrix;
//! let amg = Amg::<f32, _>::new(&a, None, &AmgConfig::default())?;
//! println!("{}", amg.hierarchy());
//!
//! let b = Buffer::from_vec(&cpu, vec![1.0; n])?;
//! let mut x = Buffer::zeros(&cpu, n)?;
//! let method = ConjugateGradient::new(KrylovConfig::default());
//! let outcome = method.solve(&mut x, &a, &amg, &b, &SingleRank, &mut ())?;
//! assert!(outcome.iterations < 30);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A hierarchy is set up by threads on the host (`setup/`). A GPU sets up levels of more than 1,500 rows or 20,000
//! non-zeros (`cuda/setup/`), of constants and of several vectors. `AmgKernels::amg_coarsen` returns
//! the reason if the GPU leaves a level to the host. Both build the same prolongator from the same aggregates, but
//! they aggregate in different orders.
//!
//! Levels are kept in f32 by default, scaled by a power of two; `femtile-solve` switches to f64 if f32 fails
//! (`AmgError::is_of_precision`). Smoothers and residual norms are hooks on the products, so a cycle runs on every
//! device and in a recorded graph. A preconditioner that is not a fixed map, such as a K cycle, makes conjugate
//! gradients flexible (`Preconditioner::is_fixed`). All orders are fixed by the matrix: the bits are the same for
//! any number of threads. [`AggregationAmg`] is for matrices that are not symmetric. More: `docs/developers/multigrid.md`.
#![deny(unsafe_code)]

mod aggregation;
mod builder;
mod check;
mod coarse_space;
mod coarsen;
mod config;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;
mod cycle;
mod device;
mod distributed;
mod error;
mod hierarchy;
mod k_cycle;
mod kernels;
mod level;
mod levels;
mod memory_limit;
mod patches;
mod preconditioner;
mod reference;
mod relaxation;
mod setup;
mod solver;
mod transfer;
mod vectors;

pub use aggregation::{AggregationAmg, AggregationConfig};
pub use coarse_space::CoarseSpace;
pub use config::{AmgConfig, Cycle, Smoother};
pub use cuda::{programs as cuda_programs, specialisations as cuda_specialisations};
pub use device::{AmgDevice, AnyAmg, BoxedAmg};
pub use error::AmgError;
pub use hierarchy::Hierarchy;
pub use kernels::{AmgKernels, Coarsened, DeviceAggregates, Grouping, Nodes, Sweep, Swept, Tail};
pub use level::LevelShape;
pub use patches::{DoublePartition, PatchFormat, PatchKernels, PatchMatrix, PatchSmoother, PatchedLevel};
pub use preconditioner::Amg;
pub use setup::graph::Graph;
pub use setup::nullspace::{NullVector, nullspace};
pub use setup::rank_matrix::RankMatrix;
pub use solver::AmgSolver;
