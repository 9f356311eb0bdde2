//! Halo exchanges and sums over ranks on the device that holds the vectors.
//!
//! On GPUs with peer access, an exchange is a kernel that packs exports, an event in the stream, and a kernel
//! on each neighbour that reads the exports in place. Sums over ranks are read in the same way and added in
//! the order of ranks. The host only sends the other ranks a message that the event is recorded (`peers`), so
//! it runs ahead of the GPUs. Iterations are not captured into graphs, because a graph cannot contain events
//! of other ranks. Without peer access, or if ranks are processes, values go through the host.
//!
//! Ranks that share a device handle, and so a stream, capture nothing (`Unrecorded`): a capture would include
//! what other threads queue meanwhile. NCCL is not used: it cannot run several ranks on one GPU, as the tests
//! do. Kernels that spin until others set a flag are not used: if a rank fails, the others would run forever.

mod cpu;
#[allow(unsafe_code)]
mod cuda;
#[allow(unsafe_code)]
mod divide;
#[allow(unsafe_code)]
mod peer_link;
#[allow(unsafe_code)]
mod peers;

use std::ops::Range;

use femtile_device::cuda::Specialisation;
use femtile_device::{Buffer, Scalar};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::{Csr, CsrKernels};

pub(crate) use peers::PeerSums;

use crate::{Halo, LocalUnknowns, OwnedRows};

/// Returns the programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    cuda::specialisations().into_iter().chain(divide::specialisations()).collect()
}

/// Kernels of a rank on vectors of owned unknowns and ghosts, on a CPU or a GPU.
///
/// # Shapes
/// `owned: [n_owned]`, `ghosts: [n_ghosts]` of a [`Halo`]; `part: [n_owned + n_ghosts]`.
/// # Errors
/// [`LinalgError::Length`] if the lengths of vectors are wrong; [`LinalgError::Rank`]; errors of the device.
pub trait RankKernels<T: Scalar>: CsrKernels<T> {
    /// Data of a halo exchange on the device.
    type Link: Send + Sync;
    /// The numbers of a [`LocalUnknowns`] on the device.
    type Positions: Send + Sync;

    /// Prepares the exchanges of a halo. Collective.
    fn link(&self, halo: &Halo) -> Result<Self::Link, LinalgError>;

    /// Copies the numbers of a part to the device.
    fn positions(&self, unknowns: &LocalUnknowns) -> Result<Self::Positions, LinalgError>;

    /// Updates the ghosts from their owners, and calls `meanwhile` while messages are in transit. Collective.
    fn import(
        &self,
        link: (&Halo, &Self::Link),
        ghosts: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        meanwhile: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError>;

    /// Adds the values of ghosts to their owners' values, in the order of ranks. Collective.
    fn add_to_owners(
        &self,
        link: (&Halo, &Self::Link),
        owned: &mut Buffer<T, Self>,
        ghosts: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// Computes $y = A x$ with the owned columns. Rows from `first` on are not complete yet.
    fn own_product(
        &self,
        a: &dyn LinearOperator<T, Self>,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        hook: (&dyn Hook<T>, usize),
    ) -> Result<(), LinalgError>;

    /// Adds `sums` to the last rows, and calls the hook for rows that [`RankKernels::own_product`] left out.
    fn complete(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        sums: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;

    /// Splits the first `n_owned` rows of a part's matrix; columns from `n_owned` on are ghosts.
    ///
    /// # Cost
    /// Reads the matrix twice and writes it.
    fn divide(&self, a: Csr<T, Self>, n_owned: usize) -> Result<OwnedRows<T, Self>, LinalgError>;

    /// Writes owned values, then ghosts.
    fn join(
        &self,
        part: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        ghosts: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// Copies as many entries of x as y has, from `first` on.
    fn section(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>, first: usize) -> Result<(), LinalgError>;

    /// Copies a range of x to the entries of y from `first` on.
    fn put(
        &self,
        y: &mut Buffer<T, Self>,
        first: usize,
        x: (&Buffer<T, Self>, Range<usize>),
    ) -> Result<(), LinalgError>;

    /// Writes owned values and ghosts in the order of the part; zeros if `ghosts` is none.
    fn spread(
        &self,
        of: (&LocalUnknowns, &Self::Positions),
        part: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        ghosts: Option<&Buffer<T, Self>>,
    ) -> Result<(), LinalgError>;

    /// Extracts the owned values from those on the part. A hook gets them together with the input vector of
    /// the product.
    fn take(
        &self,
        of: (&LocalUnknowns, &Self::Positions),
        owned: &mut Buffer<T, Self>,
        part: &Buffer<T, Self>,
        hook: Option<(&dyn Hook<T>, &Buffer<T, Self>)>,
    ) -> Result<(), LinalgError>;
}
