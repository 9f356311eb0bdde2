//! The smallest eigenvalues of a symmetric pencil $A x = \lambda M x$, on any device.
//!
//! [`Lobpcg`] iterates on a block of vectors with a preconditioner of A. Its work on vectors is two [`kernels`](BlockKernels); small
//! eigenvalue problems are solved on the host ([`symmetric_eigen`]).

mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod dense;
mod kernels;
mod lobpcg;
mod orthonormal;
#[cfg(test)]
mod tests;

pub use dense::{Dense, symmetric_eigen};
pub use kernels::BlockKernels;
pub use lobpcg::{Eigenpairs, Lobpcg, LobpcgConfig, Pencil};
