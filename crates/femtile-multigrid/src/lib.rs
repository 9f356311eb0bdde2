//! Geometric multigrid for −∇·(c∇u) = f on boxes of quadrilaterals and hexahedra of any degree, also
//! deformed, and p-multigrid on any mesh of such cells. Smoothers are Chebyshev polynomials on CPUs, and Schwarz on
//! vertex patches, with local solves by fast diagonalization, on GPUs, on thin boxes and on mapped quadrilaterals.
//!
//! ```
//! use femtile_device::{Buffer, Cpu};
//! use femtile_multigrid::{BoxGrid, Multigrid, MultigridConfig};
//!
//! let cpu = Cpu::new(0)?;
//! // Cubic elements on 2 × 2 × 2 cubes, refined twice.
//! let coarse = BoxGrid::unit(3, 3, 2)?;
//! let multigrid = Multigrid::<f32>::new(&cpu, &coarse, 3, MultigridConfig::default())?;
//! let b = Buffer::from_vec(&cpu, multigrid.grid().load(|_| 1.0))?;
//! let mut u = Buffer::zeros(&cpu, b.len())?;
//! let outcome = multigrid.solve_full(&mut u, &b, 1e-9, 20)?;
//! assert!(outcome.is_converged && outcome.cycles() <= 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The algorithm (`cycle`, `full`) is written once against the device trait `BoxKernels`: smooth, restrict,
//! prolongate, convert precision. Levels are semicoarsened. On CPUs `rows/` treats rectangles with coefficient one,
//! `mapped/` all other cells; `cell_patches/` gathers cells and vertex patches into SIMD lanes. Derivations and measurements: `docs/developers/geometric-multigrid.md`.
#![deny(unsafe_code)]

mod axis;
mod cell_patches;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;
mod cycle;
mod device;
mod distributed;
mod eigen;
mod error;
mod full;
mod grid;
mod kernels;
mod level;
mod mapped;
mod nested;
mod operator;
mod p_multigrid;
mod preconditioner;
mod rows;
mod smoother;
mod transfer;

pub use cuda::{
    CudaBoxOperator, CudaPatches, CudaTransfer, PatchKernel, PatchShape, multigrid_programs,
    specialisations as cuda_specialisations, thin_axis, unsupported_on_gpu,
};
pub use cycle::{Multigrid, MultigridConfig, check_coarsening};
pub use device::{
    AnyMultigrid, BoxedDistributedMultigrid, BoxedNestedIteration, MultigridDevice, PMultigridDevice,
};
pub use distributed::{DistributedMultigrid, Slabs};
pub use error::MultigridError;
pub use full::FullOutcome;
pub use grid::BoxGrid;
pub use kernels::{BoxKernels, Refresh};
pub use nested::{NestedIteration, NestedOperator};
pub use operator::BoxOperator;
pub use p_multigrid::{
    IdentityTransfer, LineCell, LineCells, LineSolves, PLevel, PMultigrid, PMultigridConfig,
};
pub use preconditioner::GeometricMultigrid;
pub use smoother::{PostOrder, Smoother};

/// Parts of the GPU vertex-patch kernels, for crates with further kernels of the same smoother.
#[doc(hidden)]
pub mod patch_kernels {
    pub use crate::cuda::{COLOUR_HEADER, colour, patch_matrices, stiffness_scales};
}
