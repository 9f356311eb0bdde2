use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Scalar};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner};
use femtile_sparse::csr::Csr;
use femtile_sparse::reserve_workspace;

use crate::cycle::apply;
use crate::hierarchy::Hierarchy;
use crate::kernels::AmgKernels;
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
    hierarchy: Hierarchy<H, D>,
    vectors: Mutex<Vec<Vectors<H, D>>>,
    /// The number that residuals are divided by, so that they do not overflow or underflow in `H`.
    size: ResidualSize,
}

impl<H: Scalar, D: AmgKernels<H>> Amg<H, D> {
    /// Sets up a hierarchy for a matrix; `near_nullspace` as in [`Hierarchy::new`].
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn new<T: Scalar>(
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::of(Hierarchy::new(a.values().device(), a, near_nullspace, config)?, a.values().device())
    }

    /// [`Amg::new`] for a device whose memory may be too small: the matrix moves to the host in favour of data that is read
    /// more often, and back as far as it fits.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn with_memory_limit<T: Scalar>(
        a: &mut Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        offload_for_levels::<T, H, D>(a)?;
        let amg = Self::new(a, near_nullspace, config)?;
        reserve_workspace(a)?;
        Ok(amg)
    }

    /// [`Amg::with_memory_limit`] with aggregates of the first level from a graph, such as that of a mesh.
    ///
    /// # Errors
    /// As [`Hierarchy::with_graph`].
    pub fn from_graph_with_memory_limit<T: Scalar>(
        a: &mut Csr<T, D>,
        graph: &Graph,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        offload_for_levels::<T, H, D>(a)?;
        let device = a.values().device().clone();
        let amg = Self::of(Hierarchy::with_graph(&device, a, graph, near_nullspace, config)?, &device)?;
        reserve_workspace(a)?;
        Ok(amg)
    }

    /// Makes a preconditioner from a hierarchy.
    pub(crate) fn of(hierarchy: Hierarchy<H, D>, device: &D) -> Result<Self, AmgError> {
        let vectors = Mutex::new(vectors(device, &hierarchy)?);
        Ok(Self { hierarchy, vectors, size: ResidualSize::default() })
    }

    /// Replaces the values on the same pattern.
    ///
    /// # Errors
    /// As [`Hierarchy::refill`].
    pub fn refill<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
    ) -> Result<(), AmgError> {
        self.hierarchy.refill(a, near_nullspace)?;
        self.vectors = Mutex::new(vectors(a.values().device(), &self.hierarchy)?);
        Ok(())
    }

    /// Returns the hierarchy.
    pub fn hierarchy(&self) -> &Hierarchy<H, D> {
        &self.hierarchy
    }
}

impl<T: Scalar, H: Scalar, D: AmgKernels<H> + Convert<T, H> + Convert<H, T>> Preconditioner<T, D>
    for Amg<H, D>
{
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        let n = self.hierarchy.shapes().first().map_or(0, |shape| shape.n_rows);
        for (field, found) in [("z", z.len()), ("r", r.len())] {
            if found != n {
                return Err(LinalgError::Length { field, expected: n, found });
            }
        }
        let device = r.device().clone();
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(finest) = vectors.first_mut() else { return Ok(()) };
        let size = self.size.get();
        match &self.hierarchy.order {
            Some(order) => {
                Convert::<T, H>::gather(&device, &mut finest.own.b, 1.0 / size, r, &order.rows)?;
            }
            None => Convert::<T, H>::convert(&device, &mut finest.own.b, 1.0 / size, r)?,
        }
        if let Some(factors) = &self.hierarchy.factors {
            device.scale_by(&mut finest.own.next, factors, &finest.own.b)?;
            device.copy(&mut finest.own.b, &finest.own.next)?;
        }
        let levels = (self.hierarchy.levels.as_slice(), &self.hierarchy.coarsest);
        apply(&device, self.hierarchy.config.cycle, levels, &mut vectors)?;
        let (scale, finest) = (self.hierarchy.scale * size, &mut vectors[0].own);
        let x = match &self.hierarchy.factors {
            Some(factors) => {
                device.scale_by(&mut finest.next, factors, &finest.x)?;
                &finest.next
            }
            None => &finest.x,
        };
        match &self.hierarchy.order {
            Some(order) => Convert::<H, T>::gather(&device, z, scale, x, &order.places),
            None => Convert::<H, T>::convert(&device, z, scale, x),
        }
    }

    fn is_fixed(&self) -> bool {
        self.hierarchy.config.cycle != Cycle::K
    }

    /// Concurrent solves should have residuals of similar norm: the last one that begins sets it.
    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}
