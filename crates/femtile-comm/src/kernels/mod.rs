//! Acts of ranks on the device that holds their vectors.
//!
//! On GPUs an exchange is a kernel that packs exports, a mark in the stream, and a kernel of each neighbour that
//! reads the exports in place. Sums over ranks are read in the same way and added in the order of ranks. The host
//! only tells the other ranks by a message that the mark is set (`peers`), so it runs ahead of the GPUs. Iterations
//! are not recorded, because marks of other ranks are no part of a recording. If GPUs cannot reach each other, or
//! ranks are processes, values go through the host.
//!
//! Ranks that share a handle, and so a stream, record nothing (`Unrecorded`): a recording takes up what other
//! threads queue meanwhile. NCCL is not used: it cannot run several ranks on one GPU, as the tests do. Kernels that
//! spin until others set a flag are not used: if a rank fails, the others would run for ever.

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

use crate::{GhostedMatrix, Halo, PartUnknowns};

/// Returns the programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    cuda::specialisations().into_iter().chain(divide::specialisations()).collect()
}

/// The acts of a rank on vectors of its unknowns and ghosts, on a CPU or a GPU.
///
/// # Shapes
/// `owned: [n_owned]`, `ghosts: [n_ghosts]` of a [`Halo`]; `part: [n_owned + n_ghosts]`.
/// # Errors
/// [`LinalgError::Length`] if vectors do not fit; [`LinalgError::Rank`]; errors of the device.
pub trait RankKernels<T: Scalar>: CsrKernels<T> {
    /// Data of an exchange on the device.
    type Link: Send + Sync;
    /// The numbers of a [`PartUnknowns`] on the device.
    type Numbers: Send + Sync;

    /// Prepares the exchange of a halo.
    fn link(&self, halo: &Halo) -> Result<Self::Link, LinalgError>;

    /// Brings the numbers of a part to the device.
    fn numbers(&self, unknowns: &PartUnknowns) -> Result<Self::Numbers, LinalgError>;

    /// Copies values of other ranks to the ghosts, and runs `meanwhile` while they are on their way.
    /// Collective.
    fn import(
        &self,
        link: (&Halo, &Self::Link),
        ghosts: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        meanwhile: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError>;

    /// Adds the values of ghosts to those of their owners, in the order of ranks. Collective.
    fn add_to_owners(
        &self,
        link: (&Halo, &Self::Link),
        owned: &mut Buffer<T, Self>,
        ghosts: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// Computes $y = A x$ of the columns that a rank owns; the rows from `first` on are not complete then.
    fn own_product(
        &self,
        a: &dyn LinearOperator<T, Self>,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        hook: (&dyn Hook<T>, usize),
    ) -> Result<(), LinalgError>;

    /// Adds `sums` to the last rows, and calls the hook if [`RankKernels::own_product`] has not.
    fn complete(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        sums: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;

    /// Divides the first `n_owned` rows of the matrix of a part, whose other columns are those of ghosts.
    ///
    /// # Cost
    /// Reads the matrix twice and writes it.
    fn divide(&self, a: Csr<T, Self>, n_owned: usize) -> Result<GhostedMatrix<T, Self>, LinalgError>;

    /// Writes owned values, then ghosts.
    fn join(
        &self,
        part: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        ghosts: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// Copies the entries of x from `first` on, as many as y has.
    fn section(&self, y: &mut Buffer<T, Self>, x: &Buffer<T, Self>, first: usize) -> Result<(), LinalgError>;

    /// Copies a range of x to the entries of y from `first` on.
    fn put(
        &self,
        y: &mut Buffer<T, Self>,
        first: usize,
        x: (&Buffer<T, Self>, Range<usize>),
    ) -> Result<(), LinalgError>;

    /// Writes owned values and ghosts in the order of a part; zeros if there are no `ghosts`.
    fn spread(
        &self,
        of: (&PartUnknowns, &Self::Numbers),
        part: &mut Buffer<T, Self>,
        owned: &Buffer<T, Self>,
        ghosts: Option<&Buffer<T, Self>>,
    ) -> Result<(), LinalgError>;

    /// Writes the owned ones among the values of a part, and calls the hook with the vector of owned values
    /// that they are the product with, if there is one.
    fn take(
        &self,
        of: (&PartUnknowns, &Self::Numbers),
        owned: &mut Buffer<T, Self>,
        part: &Buffer<T, Self>,
        hook: Option<(&dyn Hook<T>, &Buffer<T, Self>)>,
    ) -> Result<(), LinalgError>;
}
