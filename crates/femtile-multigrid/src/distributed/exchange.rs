//! The planes of nodes that others own.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use femtile_comm::{Comm, Halo, RankKernels};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;

use super::slabs::Slabs;

/// Brings the values of others to the planes of a vector of a part of a grid that they own.
pub(super) struct Exchange<T: Scalar, D: RankKernels<T>> {
    device: D,
    halo: Halo,
    link: D::Link,
    ghosts: Mutex<Buffer<T, D>>,
    /// The number of values below those of the rank, and the entry from which on those above follow.
    below: usize,
    above: usize,
}

/// The planes of a rank that has `all` in its vector.
pub(super) struct Planes<'a> {
    pub slabs: &'a Slabs,
    pub degree: usize,
    /// Nodes of a plane.
    pub n_nodes: usize,
    /// The planes in the vector of each rank.
    pub all: &'a [Range<usize>],
}

fn common(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    let begin = one.start.max(other.start);
    begin..one.end.min(other.end).max(begin)
}

impl<T: Scalar, D: RankKernels<T>> Exchange<T, D> {
    /// Prepares the exchange of these planes. Collective.
    pub fn new(device: &D, comm: &Comm, planes: &Planes<'_>) -> Result<Self, LinalgError> {
        let (rank, n) = (comm.rank(), planes.n_nodes);
        let owned: Vec<Range<usize>> =
            (0..comm.n_ranks()).map(|rank| planes.slabs.planes(planes.degree, rank)).collect();
        let own = &planes.all[rank];
        let others = (0..comm.n_ranks()).filter(|&other| other != rank);
        let export = |other: usize| {
            let sent = common(&owned[rank], &planes.all[other]);
            let first = sent.start.saturating_sub(own.start) * n;
            (other, (first..first + sent.len() * n).map(|place| place as u32).collect::<Vec<_>>())
        };
        let exports = others.clone().map(export).filter(|(_, places)| !places.is_empty()).collect();
        let import = |other: usize| (other, common(&owned[other], own).len() * n);
        let imports: Vec<(usize, usize)> = others.map(import).filter(|(_, n)| *n > 0).collect();
        let halo = Halo::of_known(comm, own.len() * n, exports, &imports)?;
        let below = imports.iter().filter(|(other, _)| *other < rank).map(|(_, n)| n).sum();
        let above = own.len() * n - (halo.n_ghosts() - below);
        let ghosts = Mutex::new(Buffer::zeros(device, halo.n_ghosts())?);
        Ok(Self { device: device.clone(), link: device.link(&halo)?, halo, ghosts, below, above })
    }

    /// Brings the values of others. Collective.
    pub fn refresh(&self, x: &mut Buffer<T, D>) -> Result<(), LinalgError> {
        let mut ghosts = self.ghosts.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.import((&self.halo, &self.link), &mut ghosts, x, &mut || Ok(()))?;
        self.device.put(x, 0, (&ghosts, 0..self.below))?;
        self.device.put(x, self.above, (&ghosts, self.below..ghosts.len()))
    }
}
