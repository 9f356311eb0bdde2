//! Distributed solves: ranks, messages between them, and distributed matrices.
//!
//! A rank is an MPI process or a thread of this process; [`Comm`] hides which. Each rank owns some of the
//! unknowns, and has copies of others, its ghosts, as far as its rows need them ([`Halo`]). Collective
//! functions block until every rank has called them.
//!
//! The `Transport` of a `Comm` is MPI or the memory of the process. It is a trait object, so solvers are
//! compiled only once; a virtual call costs nothing beside a message. An error on one rank ends all ranks:
//! threads detect it while they wait, processes are ended by `MPI_Abort`.
#![deny(unsafe_code)]

mod comm;
mod distributed_operator;
#[allow(unsafe_code)]
mod ghosted;
mod halo;
mod kernels;
mod krylov;
mod link_costs;
mod matrix;
pub mod threads;

pub use comm::{Comm, Incoming, Outgoing, Transport};
pub use distributed_operator::{DistributedOperator, DistributedTransfer, LocalUnknowns};
pub use ghosted::GhostedProduct;
pub use halo::Halo;
pub use kernels::RankKernels;
pub use krylov::{KrylovDevice, KrylovMethod};
pub use link_costs::{LinkCosts, measure_link};
pub use matrix::{Border, DistributedMatrix, OwnedRows};

/// Returns the CUDA programs of this crate, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<femtile_device::cuda::Specialisation> {
    kernels::specialisations()
}
