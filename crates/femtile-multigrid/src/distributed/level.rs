//! A level of which each rank has layers.

use std::ops::Range;

use femtile_comm::{Comm, RankKernels};
use femtile_device::{Buffer, Scalar};

use super::exchange::{Exchange, Planes};
use super::slabs::Slabs;
use crate::grid::BoxGrid;
use crate::kernels::BoxKernels;
use crate::{MultigridError, Smoother};

/// How a level is divided, and the layers that each rank has of it.
#[derive(Debug, Clone)]
pub(super) struct Division {
    pub grid: BoxGrid,
    pub slabs: Slabs,
    pub layers: Vec<Range<usize>>,
}

impl Division {
    /// Returns the planes of nodes of a rank.
    pub fn planes(&self, rank: usize) -> Range<usize> {
        let Range { start, end } = self.layers[rank];
        self.grid.degree() * start..self.grid.degree() * end + 1
    }

    /// Returns the number of nodes of a plane.
    pub fn n_plane(&self) -> usize {
        let nodes = self.grid.nodes();
        nodes[..self.grid.dimension() - 1].iter().product()
    }

    /// Returns the nodes of a rank.
    pub fn nodes(&self, rank: usize) -> Range<usize> {
        let Range { start, end } = self.planes(rank);
        self.n_plane() * start..self.n_plane() * end
    }

    pub fn exchange<T: Scalar, D: RankKernels<T>>(
        &self,
        device: &D,
        comm: &Comm,
    ) -> Result<Exchange<T, D>, MultigridError> {
        let all: Vec<Range<usize>> = (0..comm.n_ranks()).map(|rank| self.planes(rank)).collect();
        let (degree, n_nodes) = (self.grid.degree(), self.n_plane());
        Ok(Exchange::new(device, comm, &Planes { slabs: &self.slabs, degree, n_nodes, all: &all })?)
    }
}

/// A level above the collected one.
pub(super) struct PartLevel<T: Scalar, D: BoxKernels<T> + RankKernels<T>> {
    pub local: Local<T, D>,
    pub exchange: Exchange<T, D>,
}

/// The part of a level that needs no other rank.
pub(super) struct Local<T: Scalar, D: BoxKernels<T>> {
    pub smoother: D::BoxSmoother,
    /// To the layers of this level joined.
    pub transfer: D::BoxTransfer,
    /// The first node of the joined layers in the vector of the next level.
    pub below: usize,
}

/// The distributed vectors of a level, and those of its layers joined.
pub(super) struct PartVectors<T: Scalar, D: BoxKernels<T>> {
    pub x: Buffer<T, D>,
    pub b: Buffer<T, D>,
    pub coarse: Buffer<T, D>,
}

/// A level without its exchange, and its vectors.
pub(super) struct LocalLevel<T: Scalar, D: BoxKernels<T>> {
    pub level: Local<T, D>,
    pub vectors: PartVectors<T, D>,
}

impl<T: Scalar, D: BoxKernels<T>> LocalLevel<T, D> {
    /// Sets up a level above another.
    pub fn new(
        device: &D,
        comm: &Comm,
        [coarse, fine]: [&Division; 2],
        smoother: Smoother,
    ) -> Result<Self, MultigridError> {
        let (rank, last) = (comm.rank(), fine.grid.dimension() - 1);
        let layers = fine.layers[rank].clone();
        let part = fine.grid.layers(layers.clone());
        let factor = fine.grid.widths(last).len() / coarse.grid.widths(last).len();
        let joined = layers.start / factor..layers.end / factor;
        let half = coarse.grid.layers(joined.clone());
        let zeros = |n: usize| Buffer::zeros(device, n);
        let n = part.n_nodes();
        let vectors = PartVectors { x: zeros(n)?, b: zeros(n)?, coarse: zeros(half.n_nodes())? };
        let level = Local {
            smoother: device.box_smoother(&part, smoother)?,
            transfer: device.box_transfer(&half, &part)?,
            below: (joined.start - coarse.layers[rank].start) * fine.grid.degree() * coarse.n_plane(),
        };
        Ok(Self { level, vectors })
    }
}
