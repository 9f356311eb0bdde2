use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows, RankKernels};
use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::precondition::polynomial::PolynomialKernels;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::choice::Described;
use femtile_sparse::csr::{Csr, CsrKernels};
use femtile_sparse::ell_warp::EllWarpKernels;

use crate::level::{Coarsest, Level};
use crate::patches::{PatchKernels, PatchOrder, PatchedLevel};
use crate::setup::rank_matrix::RankMatrix;
use crate::vectors::Vectors;
use crate::{AmgConfig, Graph};

/// Aggregates of the nodes of a level, each a node of the next level.
#[derive(Debug, Clone)]
pub struct DeviceAggregates<D: Device> {
    /// Number of aggregates.
    pub(crate) n: usize,
    /// The aggregate of each node; all bits are set for a node in no aggregate.
    pub(crate) of_node: Arc<Buffer<u32, D>>,
    /// With patch smoothers.
    pub(crate) order: Option<PatchOrder<D>>,
}

/// The origin of the aggregates of a level.
#[derive(Debug)]
pub enum Grouping<'a, D: Device> {
    /// Around roots of the graph of strong connections.
    Connections,
    /// Around roots of a graph of the nodes.
    Graph(&'a Graph),
    /// The aggregates of another matrix with the same number of rows.
    Known(&'a DeviceAggregates<D>),
}

impl<D: Device> DeviceAggregates<D> {
    /// Number of aggregates.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The aggregate of each node; all bits are set for a node in no aggregate.
    pub fn of_node(&self) -> &Buffer<u32, D> {
        &self.of_node
    }
}

/// A level set up by a device: its smoother and the next level, whose matrix is on the host if it is divided among ranks.
#[derive(Debug)]
pub struct Coarsened<H: Scalar, D: Device, A = Csr<H, D>, N = Nodes<D>> {
    /// The reciprocals of the diagonal, raised if necessary.
    pub inverse_diagonal: Buffer<H, D>,
    /// With patch smoothers; the rows of P are in the order of the patches then.
    pub patched: Option<PatchedLevel<H, D>>,
    /// The largest eigenvalue of the scaled matrix.
    pub largest: f64,
    /// The prolongator P.
    pub p: Csr<H, D>,
    /// Its transpose.
    pub r: Csr<H, D>,
    /// $P^\mathsf{T} A P$.
    pub coarse: A,
    /// The halo of the columns of P; none if the rank has all of them.
    pub halo: Option<Halo>,
    /// The nodes of the next level.
    pub parts: DeviceAggregates<D>,
    /// Weights and marks of these nodes; the vectors of the near-nullspace if there are several, as [`Amg::new`](crate::Amg::new)
    /// takes them.
    pub nodes: N,
}

/// The nodes of a level below the finest one.
#[derive(Debug)]
pub struct Nodes<D: Device> {
    /// The number of nodes of the finest level in each.
    pub weights: Buffer<u32, D>,
    /// 1 for each row that comes mostly from nodes whose positive entries hide the direction of strong
    /// coupling, 0 for others. None if there are no such rows.
    pub from_doubtful: Option<Buffer<u32, D>>,
}

/// The order of rows in a sweep of Gauss–Seidel's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Ascending, from a zero iterate.
    ForwardFromZero,
    /// Ascending.
    Forward,
    /// Descending.
    Backward,
}

/// The vectors of a sweep.
#[derive(Debug)]
pub struct Swept<'a, H: Scalar, D: AmgKernels<H>> {
    /// The right side.
    pub b: &'a Buffer<H, D>,
    /// The reciprocals of the diagonal $\tilde D$.
    pub inverse_diagonal: &'a Buffer<H, D>,
    /// The iterate.
    pub x: &'a mut Buffer<H, D>,
    /// The iterate before the sweep, which is overwritten.
    pub before: &'a mut Buffer<H, D>,
}

impl<H: Scalar, D: AmgKernels<H>> Swept<'_, H, D> {
    /// Refuses vectors of another length than the matrix, and matrices that are not square.
    ///
    /// # Errors
    /// [`LinalgError::Length`], with the name of the argument.
    pub(crate) fn check(&self, a: &Csr<H, D>) -> Result<(), LinalgError> {
        let n = a.n_rows();
        need("columns", n, a.n_cols())?;
        need("b", n, self.b.len())?;
        need("inverse_diagonal", n, self.inverse_diagonal.len())?;
        need("x", n, self.x.len())?;
        need("before", n, self.before.len())
    }
}

/// The levels of a V cycle below one whose residual is known.
#[derive(Debug)]
pub struct Tail<'a, H: Scalar, D: AmgKernels<H>> {
    /// From the level with the residual to the first of these.
    pub(crate) restriction: &'a Csr<H, D>,
    pub(crate) residual: &'a Buffer<H, D>,
    pub(crate) levels: &'a [Level<H, D>],
    pub(crate) coarsest: &'a Coarsest<H, D>,
    /// Of these levels and the coarsest one.
    pub(crate) vectors: &'a mut [Vectors<H, D>],
}

/// A level above one whose prolongator is known.
#[derive(Debug)]
pub struct AboveKnown<H: Scalar, D: Device> {
    /// The reciprocals of the diagonal, raised where rows have large absolute sums.
    pub inverse_diagonal: Buffer<H, D>,
    /// The largest eigenvalue of $D^{-1} A$.
    pub largest: f64,
    /// The transpose of the prolongator.
    pub r: Csr<H, D>,
    /// The matrix of the known level.
    pub coarse: Csr<H, D>,
}

/// The kernels of algebraic multigrid, with all levels in the precision `H`.
pub trait AmgKernels<H: Scalar>:
    PolynomialKernels<H>
    + CsrKernels<H>
    + EllWarpKernels<H, H>
    + PatchKernels<H>
    + RankKernels<H>
    + Convert<f64, H>
    + Described
{
    /// Runs work on the host with the threads of the device.
    fn amg_on_host<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// Returns whether [`AmgKernels::amg_coarsen`] sets levels up, so that it is worth to bring a matrix here.
    fn amg_is_set_up_here(&self) -> bool {
        false
    }

    /// Returns a copy of a matrix in the precision of the levels and the power of two that scales it. The
    /// largest scaled entry is between 1 and 2. None on devices that leave the set-up to the host.
    ///
    /// # Cost
    /// Reads the matrix, its values twice, and writes it.
    #[allow(clippy::type_complexity)]
    fn amg_scaled<T: Scalar>(&self, _a: &Csr<T, Self>) -> Result<Option<(Csr<H, Self>, f64)>, LinalgError> {
        Ok(None)
    }

    /// Returns the largest magnitude, NaN if one of the values is.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] on devices that leave the set-up to the host.
    fn amg_largest(&self, _values: &Buffer<f64, Self>) -> Result<f64, LinalgError> {
        let message = "this device leaves the set-up to the host".into();
        Err(LinalgError::Setting { field: "device", message })
    }

    /// Sets up the next level of a matrix with constants as near-nullspace. `nodes` are those of the level,
    /// none on the finest level. `thresholds` are those of strong connections and of entries that smooth the
    /// prolongator. Returns none if the host has to do it, or has to report what is wrong with the matrix.
    ///
    /// # Cost
    /// Some fifteen passes over the non-zeros, and the Galerkin product.
    fn amg_coarsen(
        &self,
        _a: &Csr<H, Self>,
        _nodes: Option<&Nodes<Self>>,
        _thresholds: [f64; 2],
        _config: &AmgConfig,
        _by: Grouping<'_, Self>,
    ) -> Result<Option<Coarsened<H, Self>>, LinalgError> {
        Ok(None)
    }

    /// As [`AmgKernels::amg_coarsen`] with several vectors `near_nullspace`, row by row, for nodes of `block` rows.
    ///
    /// # Cost
    /// Some fifteen passes over the non-zeros, and the Galerkin product; the near-nullspace and its orthonormalization on the host.
    #[allow(clippy::type_complexity)]
    fn amg_coarsen_nodes(
        &self,
        _a: &Csr<H, Self>,
        _near_nullspace: &[f64],
        _block: usize,
        _thresholds: [f64; 2],
        _config: &AmgConfig,
        _by: Grouping<'_, Self>,
    ) -> Result<Option<Coarsened<H, Self, Csr<H, Self>, Vec<f64>>>, LinalgError> {
        Ok(None)
    }

    /// Sets up the level above one whose prolongator is known, for nodes of `block` rows. None if the host has to do it, or has to
    /// report what is wrong with the matrix.
    ///
    /// # Cost
    /// Some six passes over the non-zeros, and the Galerkin product.
    fn amg_above_known(
        &self,
        _a: &Csr<H, Self>,
        _p: &Csr<H, Self>,
        _block: usize,
    ) -> Result<Option<AboveKnown<H, Self>>, LinalgError> {
        Ok(None)
    }

    /// Returns whether absolute sums of rows are so much larger than those of the matrix scaled to a diagonal of ones that it is
    /// to be scaled before levels with several vectors are set up. None on devices that leave the set-up to the host.
    fn amg_is_lopsided(&self, _a: &Csr<H, Self>) -> Result<Option<bool>, LinalgError> {
        Ok(None)
    }

    /// As [`AmgKernels::amg_coarsen`] for the rows of a rank. None, on all ranks alike, if hosts have to do it or have to
    /// report what is wrong with the matrix. Collective.
    ///
    /// # Cost
    /// As [`AmgKernels::amg_coarsen`], and the rows of the prolongator and of the next matrix at the borders of ranks through the
    /// host.
    fn amg_coarsen_on_ranks(
        &self,
        _rows: (&OwnedRows<H, Self>, &Arc<Halo>),
        _nodes: Option<&Nodes<Self>>,
        _thresholds: [f64; 2],
        _config: &AmgConfig,
    ) -> Result<Option<Coarsened<H, Self, RankMatrix<H>>>, LinalgError> {
        Ok(None)
    }

    /// Applies a sweep of Gauss–Seidel's method in each block of `block` rows, with the iterate before the sweep in other
    /// blocks: $x = x + (\tilde D + L)^{-1} (b - A x)$ with the lower part L of the blocks, or the upper one.
    ///
    /// `x` is overwritten; with [`Sweep::ForwardFromZero`] it is zero and not read.
    ///
    /// # Cost
    /// One product, half of one from zero; in addition reads 2n values and writes n.
    /// # Errors
    /// [`LinalgError::Setting`] on devices without such sweeps, [`LinalgError::Length`] for vectors of another length.
    fn amg_sweep(
        &self,
        _sweep: Sweep,
        _a: &Csr<H, Self>,
        _block: usize,
        _vectors: Swept<'_, H, Self>,
    ) -> Result<(), LinalgError> {
        let message = "Gauss-Seidel sweeps need a CPU: choose Chebyshev".into();
        Err(LinalgError::Setting { field: "smoother", message })
    }

    /// Returns $x^\mathsf{T} y$ on the host, for K cycles.
    ///
    /// # Cost
    /// Reads 2n values.
    /// # Errors
    /// [`LinalgError::Setting`] on devices on which the host would have to wait.
    fn amg_dot(&self, _x: &Buffer<H, Self>, _y: &Buffer<H, Self>) -> Result<f64, LinalgError> {
        let message = "K cycles need a CPU: choose V or W".into();
        Err(LinalgError::Setting { field: "cycle", message })
    }

    /// Restricts the residual and runs a V cycle over the levels below, up to the iterate of the first of
    /// them, in one step. Returns false if the device runs the steps one by one.
    fn amg_tail(&self, _tail: Tail<'_, H, Self>) -> Result<bool, LinalgError> {
        Ok(false)
    }

    /// Computes $x \mathrel{+}= P e$; `product` is room for $P e$.
    ///
    /// # Cost
    /// One product with P; reads and writes n values.
    fn amg_correct(
        &self,
        x: &mut Buffer<H, Self>,
        product: &mut Buffer<H, Self>,
        p: &Csr<H, Self>,
        e: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        p.apply(product, e)?;
        self.axpby(x, H::ONE, product, H::ONE)
    }
}
