//! The levels of multigrid.

use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use crate::builder::{Builder, Groups, Known, near_nullspace_of};
use crate::distributed::{check_for_ranks, near_nullspace_of_rank};
use crate::hierarchy::Hierarchy;
use crate::kernels::AmgKernels;
use crate::level::{Coarsest, Level};
use crate::memory_limit;
use crate::patches::RowOrder;
use crate::setup::graph::Graph;
use crate::setup::rescaling::{Rescaling, is_badly_scaled};
use crate::setup::rows::Rows;
use crate::transfer::Gather;
use crate::{AmgConfig, AmgError, Smoother};

/// The matrices of all levels, the given one first, in the precision `H`.
///
/// # Source
/// Smoothed aggregation: `[vanek1996]`; aggregates: `[fu2014]`, section 5.
#[derive(Debug)]
pub(crate) struct Levels<H: Scalar, D: AmgKernels<H>> {
    pub levels: Vec<Level<H, D>>,
    pub coarsest: Coarsest<H, D>,
    groups: Vec<Groups<D>>,
    /// If several ranks have the given matrix, but none of the levels.
    pub gather: Option<Gather>,
    /// With patch smoothers, the permutation of the finest level.
    pub order: Option<Arc<RowOrder<D>>>,
    /// The first matrix is the given one times this number, and scaled by `factors`.
    pub scale: f64,
    /// The scaling factor of each row and column of the first matrix, in its order; none if the matrix is
    /// well scaled.
    pub factors: Option<Buffer<H, D>>,
    pub hierarchy: Hierarchy,
}

impl<H: Scalar, D: AmgKernels<H>> Levels<H, D> {
    /// Sets up the levels of a matrix, with aggregates of the first one from a graph if there is one; see
    /// [`Amg::new`](crate::Amg::new).
    pub fn new<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        graph: Option<&Graph>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        if let Some(nodes) = graph.map(Graph::n_nodes).filter(|nodes| nodes * config.block_size != a.n_rows())
        {
            let (rows, block) = (a.n_rows(), config.block_size);
            let message =
                format!("{nodes} nodes with {block} rows each are not the {rows} rows of the matrix");
            return Err(AmgError::Setting { field: "graph", message });
        }
        Self::build(device, a, near_nullspace, config, Known { groups: &[], graph })
    }

    /// Replaces the values on the same pattern: aggregates are reused unless the number of rows differs, all else is
    /// computed again.
    pub fn refill<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
    ) -> Result<(), AmgError> {
        let is_divided = self.levels.first().is_some_and(|level| level.a.border.is_some());
        if is_divided || self.gather.is_some() {
            let message = "several ranks set their levels up again in place of a refill";
            return Err(AmgError::Setting { field: "matrix", message: message.into() });
        }
        let device = a.values().device();
        let known = Known { groups: &self.groups, graph: None };
        *self = Self::build(device, a, near_nullspace, &self.hierarchy.config, known)?;
        Ok(())
    }

    /// Sets up the levels. A badly scaled matrix is scaled first.
    fn build<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        known: Known<'_, D>,
    ) -> Result<Self, AmgError> {
        if a.n_rows() != a.n_cols() {
            return Err(AmgError::NotSquare { n_rows: a.n_rows(), n_cols: a.n_cols() });
        }
        config.check_for(a.n_rows())?;
        if known.graph.is_some() && config.coarse_space.is_some() {
            let message = "aggregates of a graph are those of the first level: leave one of both out".into();
            return Err(AmgError::Setting { field: "coarse_space", message });
        }
        let as_given = |finds| Self::levels_of(device, a, near_nullspace, config, (known, finds));
        if let Some(made) = as_given(true)? {
            return Ok(made);
        }
        let (rows, scale) = device.amg_on_host(|| Rows::<f64>::of(a))?;
        let made = match device.amg_on_host(|| Rescaling::of(&rows, near_nullspace, config.block_size)) {
            Some(rescaling) => {
                let values = device.amg_on_host(|| rescaling.values(&rows));
                let scaled = a.with_values(Buffer::from_vec(device, values)?)?;
                drop(rows);
                let near_nullspace = rescaling.near_nullspace.as_deref();
                let config = &AmgConfig { coarse_space: None, ..config.clone() };
                Self::levels_of(device, &scaled, near_nullspace, config, (known, false))
                    .map_err(|error| error.before_scaling(&rescaling.factors, scale))?
                    .map(|made| made.with_factors(device, &rescaling.factors, scale))
                    .transpose()?
            }
            None => as_given(false)?,
        };
        made.ok_or_else(|| AmgError::Setting { field: "matrix", message: "cannot be scaled".into() })
    }

    /// Sets up the levels of a matrix as it is. Returns none if `finds` is set and the matrix is to be
    /// scaled.
    fn levels_of<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        (known, finds): (Known<'_, D>, bool),
    ) -> Result<Option<Self>, AmgError> {
        let is_grouped_on_host = matches!(known.groups.first(), Some(Groups::OnHost(_)));
        // Aggregates of a small level below a known one are of the host, whoever set up the first.
        let is_grouped_on_host = is_grouped_on_host && config.coarse_space.is_none();
        let may_be_there = !is_grouped_on_host && !matches!(config.smoother, Smoother::GaussSeidel { .. });
        let is_plain = may_be_there && near_nullspace.is_none() && config.block_size == 1;
        let mut builder = Builder::new(device, config, known);
        builder.rescaling[0] = finds;
        let coarsest = device.with_reserved_bytes(memory_limit::vectors::<T, H>(a.n_rows()), || {
            let mut made = if is_plain { builder.on_device(a)? } else { None };
            let mut vectors = None;
            if made.is_none() && !builder.rescaling[1] {
                let of_host = near_nullspace_of(a.n_rows(), near_nullspace, config)?;
                config.check_nodes(of_host.n_vectors)?;
                if may_be_there && of_host.n_vectors > 1 {
                    made = builder.nodes_on_device(a, &of_host)?;
                }
                vectors = Some(of_host);
            }
            let (rows, vectors) = match (made, vectors) {
                (Some(rest), _) => rest,
                (None, Some(vectors)) if !builder.rescaling[1] => {
                    let rows = builder.take(a)?;
                    let is_bad = || is_badly_scaled(&rows, vectors.n_vectors, config.block_size);
                    if finds && device.amg_on_host(is_bad) {
                        return Ok(None);
                    }
                    (rows, vectors)
                }
                _ => return Ok(None),
            };
            let coarsest = device.amg_on_host(|| builder.run(rows, vectors))?;
            device.amg_on_host(|| builder.check_resolution(a, near_nullspace))?;
            memory_limit::return_levels(&mut builder.levels)?;
            builder.convert()?;
            Ok::<_, AmgError>(Some(coarsest))
        })?;
        Ok(coarsest.map(|coarsest| Self::from_builder(builder, coarsest)))
    }

    fn from_builder(builder: Builder<'_, H, D>, coarsest: Coarsest<H, D>) -> Self {
        let Builder { scale, levels, groups, gather, order, shapes, n_zero, is_stalled, config, .. } =
            builder;
        let smoothed = match &coarsest {
            Coarsest::Direct(_) => None,
            Coarsest::Smoothed { a, .. } => Some(a.as_ref()),
        };
        let matrices = levels.iter().map(|level: &Level<H, D>| &level.a).chain(smoothed);
        let formats = matrices.map(|a| a.own.format()).collect();
        let hierarchy = Hierarchy { config: config.clone(), shapes, formats, n_null: n_zero, is_stalled };
        Self { levels, coarsest, groups, gather, order, scale, factors: None, hierarchy }
    }

    /// Sets up the levels of a matrix that is divided among ranks, see [`Amg::on_ranks`](crate::Amg::on_ranks). Collective.
    pub fn on_ranks(
        device: &D,
        (a, halo): (&OwnedRows<f64, D>, &Arc<Halo>),
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        if halo.comm().n_ranks() == 1 {
            return Self::new(device, &a.own, None, near_nullspace, config);
        }
        check_for_ranks(config)?;
        let b = near_nullspace_of_rank(halo, near_nullspace, config)?;
        let mut builder = Builder::new(device, config, Known { groups: &[], graph: None });
        let divided = builder.divided((a, halo), b, near_nullspace.is_none())?;
        let (a, b) = builder.gathered(divided)?;
        let made = builder.on_device_again(&a, &b)?;
        let (rows, vectors) = made.unwrap_or((a, b));
        let coarsest = device.amg_on_host(|| builder.run(rows, vectors))?;
        builder.convert()?;
        Ok(Self::from_builder(builder, coarsest))
    }

    /// Stores the factors of rows and columns; all entries were scaled by `scale` before.
    fn with_factors(mut self, device: &D, factors: &[f64], scale: f64) -> Result<Self, AmgError> {
        let mut factors: Vec<H> = factors.iter().map(|&factor| H::from_f64(factor)).collect();
        if let Some(order) = &self.order {
            let order = order.rows.to_host().map_err(LinalgError::from)?;
            factors = order.iter().map(|&row| factors[row as usize]).collect();
        }
        self.scale *= scale;
        self.factors = Some(Buffer::from_vec(device, factors).map_err(LinalgError::from)?);
        Ok(self)
    }
}
