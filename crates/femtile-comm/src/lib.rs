//! Solves on several ranks: who they are, what they tell each other, and matrices that are divided among them.
//!
//! A rank is a process of MPI or a thread of this process; [`Comm`] hides which. Each owns some of the unknowns, and keeps
//! copies of others, its ghosts, as far as its rows need them ([`Halo`]).
//!
//! The `Transport` of a `Comm` is MPI or the memory of the process. It is an object behind a pointer, so solves are
//! compiled once for all of them; a call costs nothing beside a message. An error of a rank, which may be inside
//! any call of the others, ends all ranks: threads find it while they wait, processes by `MPI_Abort`.
#![deny(unsafe_code)]

mod comm;
#[allow(unsafe_code)]
mod ghosted;
mod halo;
mod kernels;
mod link_costs;
mod matrix;
mod part;
pub mod threads;

pub use comm::{Comm, Incoming, Outgoing, Transport};
pub use ghosted::GhostedProduct;
pub use halo::Halo;
pub use kernels::RankKernels;
pub use link_costs::{LinkCosts, measure_link};
pub use matrix::{DistributedMatrix, GhostedMatrix};
pub use part::{PartOperator, PartTransfer, PartUnknowns};

/// Returns the CUDA programs of this crate, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<femtile_device::cuda::Specialisation> {
    kernels::specialisations()
}
