use std::sync::{Arc, Mutex, PoisonError};

use femtile_comm::{Halo, OwnedRows};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner, need};
use femtile_sparse::csr::Csr;
use femtile_sparse::reserve_workspace;

use crate::cycle::apply;
use crate::hierarchy::Hierarchy;
use crate::kernels::AmgKernels;
use crate::levels::Levels;
use crate::memory_limit::offload_for_levels;
use crate::vectors::{Vectors, vectors};
use crate::{AmgConfig, AmgError, Cycle, Graph};

/// One cycle of smoothed-aggregation multigrid as a preconditioner: symmetric and positive definite for a symmetric
/// positive definite matrix, but a K cycle, which is not linear. Levels are kept in the precision `H`, by default f32,
/// vectors of the solve in `T`.
///
/// # Cost
/// About $2 + 2 s$ products on the finest level for s steps of the smoother before and after, times the
/// operator complexity, with 8 bytes per non-zero in f32.
/// # Source
/// `[fu2014]`, section 5; `[vanek1996]`.
#[derive(Debug)]
pub struct Amg<H: Scalar, D: AmgKernels<H>> {
    pub(crate) levels: Levels<H, D>,
    vectors: Mutex<Vec<Vectors<H, D>>>,
    /// The number that residuals are divided by, so that they do not overflow or underflow in `H`.
    size: ResidualSize,
}

impl<H: Scalar, D: AmgKernels<H>> Amg<H, D> {
    /// Sets up the levels of a symmetric positive (semi)definite matrix. `near_nullspace` holds vectors that
    /// the smoother hardly changes, `n_vectors` values per row; constants by default.
    ///
    /// # Errors
    /// A matrix that is not symmetric positive (semi)definite, see [`AmgError`]; settings out of range; errors of the device.
    pub fn new<T: Scalar>(
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::on_graph(a, None, near_nullspace, config)
    }

    /// [`Amg::new`] with aggregates of the first level from a graph, if there is one.
    pub(crate) fn on_graph<T: Scalar>(
        a: &Csr<T, D>,
        graph: Option<&Graph>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        let device = a.values().device();
        Self::of(Levels::new(device, a, graph, near_nullspace, config)?, device)
    }

    /// Sets up a hierarchy for the rows of a rank: levels are divided among ranks like the matrix until the next one is
    /// small; every rank has that one whole. Collective.
    ///
    /// `near_nullspace` holds the rank's rows of vectors that the smoother hardly changes, `n_vectors` values per row;
    /// constants by default. Nodes of several rows belong to one rank, and are ghosts of another, with all of their rows.
    ///
    /// # Cost
    /// A cycle has one ghost exchange per product on a divided level, two for the transfers, and gathers the first level
    /// that is whole.
    /// # Errors
    /// As [`Amg::new`]; on several ranks also [`AmgError::Setting`] for smoothers other than polynomials, nodes that are
    /// divided among ranks and vectors that differ in number; [`LinalgError::Rank`].
    pub fn on_ranks(
        device: &D,
        a: &OwnedRows<f64, D>,
        halo: &Arc<Halo>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::of(Levels::on_ranks(device, (a, halo), near_nullspace, config)?, device)
    }

    /// [`Amg::new`] for a device whose memory may be too small: the matrix moves to the host in favour of data that is read
    /// more often, and back as far as it fits. Aggregates of the first level come from `graph`, if there is one, such as the
    /// graph of a mesh; its nodes are those of the matrix.
    ///
    /// # Errors
    /// As [`Amg::new`]; [`AmgError::Setting`] if the graph has another number of nodes.
    pub fn with_memory_limit<T: Scalar>(
        a: &mut Csr<T, D>,
        graph: Option<&Graph>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        offload_for_levels::<T, H, D>(a)?;
        let amg = Self::on_graph(a, graph, near_nullspace, config)?;
        reserve_workspace(a)?;
        Ok(amg)
    }

    fn of(levels: Levels<H, D>, device: &D) -> Result<Self, AmgError> {
        let vectors = Mutex::new(vectors(device, &levels)?);
        Ok(Self { levels, vectors, size: ResidualSize::default() })
    }

    /// Replaces the values on the same pattern, with the same aggregates.
    ///
    /// # Errors
    /// As [`Amg::new`]; [`AmgError::Setting`] if levels are divided among ranks.
    pub fn refill<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
    ) -> Result<(), AmgError> {
        self.levels.refill(a, near_nullspace)?;
        self.vectors = Mutex::new(vectors(a.values().device(), &self.levels)?);
        Ok(())
    }

    /// Returns the sizes of the levels, whose `Display` is a table.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.levels.hierarchy
    }
}

impl<T: Scalar, H: Scalar, D: AmgKernels<H> + Convert<T, H> + Convert<H, T>> Preconditioner<T, D>
    for Amg<H, D>
{
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        let device = r.device().clone();
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(finest) = vectors.first_mut() else { return Ok(()) };
        let gather = self.levels.gather.as_ref();
        let n = gather.map_or(finest.own.b.len(), |gather| gather.n);
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        let mut of_rank = gather.map(|gather| Buffer::zeros(&device, gather.n)).transpose()?;
        let b = of_rank.as_mut().unwrap_or(&mut finest.own.b);
        let size = self.size.get();
        match &self.levels.order {
            Some(order) => Convert::<T, H>::gather(&device, b, 1.0 / size, r, &order.rows)?,
            None => Convert::<T, H>::convert(&device, b, 1.0 / size, r)?,
        }
        if let (Some(gather), Some(of_rank)) = (gather, &of_rank) {
            gather.whole(&mut finest.own.b, of_rank)?;
        }
        if let Some(factors) = &self.levels.factors {
            device.scale_by(&mut finest.own.next, factors, &finest.own.b)?;
            device.copy(&mut finest.own.b, &finest.own.next)?;
        }
        let levels = (self.levels.levels.as_slice(), &self.levels.coarsest);
        apply(&device, self.levels.hierarchy.config.cycle, levels, &mut vectors)?;
        let (scale, finest) = (self.levels.scale * size, &mut vectors[0].own);
        let x = match &self.levels.factors {
            Some(factors) => {
                device.scale_by(&mut finest.next, factors, &finest.x)?;
                &finest.next
            }
            None => &finest.x,
        };
        let x = match (gather, &mut of_rank) {
            (Some(gather), Some(of_rank)) => {
                gather.own(of_rank, x)?;
                of_rank
            }
            _ => x,
        };
        match &self.levels.order {
            Some(order) => Convert::<H, T>::gather(&device, z, scale, x, &order.places),
            None => Convert::<H, T>::convert(&device, z, scale, x),
        }
    }

    fn is_fixed(&self) -> bool {
        self.levels.hierarchy.config.cycle != Cycle::K
    }

    /// Concurrent solves should have residuals of similar norm: the last one that begins sets it.
    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}
