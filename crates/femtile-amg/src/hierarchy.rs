use std::fmt;
use std::sync::Arc;

use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;
use femtile_sparse::{Format, ProductMatrix};

use crate::builder::{Builder, Groups, Known, near_nullspace_of};
use crate::kernels::{AmgKernels, Nodes};
use crate::level::{Coarsest, Level, LevelShape};
use crate::memory_limit;
use crate::patches::RowOrder;
use crate::setup::graph::Graph;
use crate::setup::rescaling::{Rescaling, is_badly_scaled};
use crate::setup::rows::Rows;
use crate::setup::tentative::NearNullspace;
use crate::{AmgConfig, AmgError, Smoother};

/// The matrices of all levels, the given one first, in the precision `H`.
///
/// # Source
/// Smoothed aggregation: `[vanek1996]`; aggregates: `[fu2014]`, section 5.
#[derive(Debug)]
pub struct Hierarchy<H: Scalar, D: Device> {
    pub(crate) levels: Vec<Level<H, D>>,
    pub(crate) coarsest: Coarsest<H, D>,
    groups: Vec<Groups<D>>,
    /// With patch smoothers, the permutation of the finest level.
    pub(crate) order: Option<Arc<RowOrder<D>>>,
    /// The first matrix is the given one times this number, and scaled by `factors`.
    pub(crate) scale: f64,
    /// The scaling factor of each row and column of the first matrix, in its order; none if the matrix is
    /// well scaled.
    pub(crate) factors: Option<Buffer<H, D>>,
    shapes: Vec<LevelShape>,
    n_null: usize,
    is_stalled: bool,
    pub(crate) config: AmgConfig,
}

impl<H: Scalar, D: AmgKernels<H>> Hierarchy<H, D> {
    /// Sets up the levels of a symmetric positive (semi)definite matrix. `near_nullspace` holds vectors that
    /// the smoother hardly changes, `n_vectors` values per row; constants by default.
    ///
    /// # Errors
    /// A matrix that is not symmetric positive (semi)definite, see [`AmgError`]; settings out of range; errors of the device.
    pub fn new<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        Self::build(device, a, near_nullspace, config, Known { groups: &[], graph: None })
    }

    /// As [`Hierarchy::new`] with aggregates of the first level from `graph`, such as the graph of a mesh.
    /// Its nodes are those of the matrix.
    ///
    /// # Errors
    /// As [`Hierarchy::new`]; [`AmgError::Setting`] if the graph has another number of nodes.
    pub fn with_graph<T: Scalar>(
        device: &D,
        a: &Csr<T, D>,
        graph: &Graph,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        if graph.n_nodes() * config.block_size != a.n_rows() {
            let (nodes, rows, block) = (graph.n_nodes(), a.n_rows(), config.block_size);
            let message =
                format!("{nodes} nodes with {block} rows each are not the {rows} rows of the matrix");
            return Err(AmgError::Setting { field: "graph", message });
        }
        Self::build(device, a, near_nullspace, config, Known { groups: &[], graph: Some(graph) })
    }

    /// Replaces the values on the same pattern: aggregates are reused unless the number of rows differs, all else is
    /// computed again.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn refill<T: Scalar>(
        &mut self,
        a: &Csr<T, D>,
        near_nullspace: Option<&[f64]>,
    ) -> Result<(), AmgError> {
        let device = a.values().device();
        let known = Known { groups: &self.groups, graph: None };
        *self = Self::build(device, a, near_nullspace, &self.config, known)?;
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
        let is_plain = near_nullspace.is_none()
            && !is_grouped_on_host
            && config.block_size == 1
            && !matches!(config.smoother, Smoother::GaussSeidel { .. });
        let mut builder = Builder::new(device, config, known, 0);
        builder.rescaling[0] = finds;
        let coarsest = device.with_reserved_bytes(memory_limit::vectors::<T, H>(a.n_rows()), || {
            let (rows, vectors) = match if is_plain { builder.on_device(a)? } else { None } {
                Some(rest) => rest,
                None if builder.rescaling[1] => return Ok(None),
                None => {
                    let vectors = near_nullspace_of(a.n_rows(), near_nullspace, config)?;
                    config.check_nodes(vectors.n_vectors)?;
                    let rows = builder.take(a)?;
                    let is_bad = || is_badly_scaled(&rows, vectors.n_vectors, config.block_size);
                    if finds && device.amg_on_host(is_bad) {
                        return Ok(None);
                    }
                    (rows, vectors)
                }
            };
            let coarsest = device.amg_on_host(|| builder.run(rows, vectors))?;
            device.amg_on_host(|| builder.check_resolution(a, near_nullspace))?;
            memory_limit::return_levels(&mut builder.levels)?;
            let levels = std::mem::take(&mut builder.levels);
            builder.levels =
                levels.into_iter().map(|level| level.in_format(config)).collect::<Result<_, _>>()?;
            Ok::<_, AmgError>(Some(coarsest))
        })?;
        Ok(coarsest.map(|coarsest| Self::from_builder(builder, coarsest)))
    }

    fn from_builder(builder: Builder<'_, H, D>, coarsest: Coarsest<H, D>) -> Self {
        let Builder { scale, levels, groups, order, shapes, n_zero, is_stalled, config, .. } = builder;
        Self {
            levels,
            coarsest,
            groups,
            order,
            scale,
            factors: None,
            shapes,
            n_null: n_zero,
            is_stalled,
            config: config.clone(),
        }
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

    /// Sets up the levels from one with this number on, whose matrix has been scaled; `b` is its near-nullspace.
    pub(crate) fn below(
        device: &D,
        (a, b): (Rows<H>, NearNullspace),
        above: usize,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        let mut builder = Builder::new(device, config, Known { groups: &[], graph: None }, above);
        let made = match b.weights().filter(|_| device.amg_is_set_up_here()) {
            Some(weights) => {
                let weights = Buffer::from_vec(device, weights).map_err(LinalgError::from)?;
                let nodes = (above > 0).then_some(Nodes { weights, from_doubtful: None });
                builder.on_device_from(a.clone().into_device(device)?, nodes)?
            }
            None => None,
        };
        let (rows, vectors) = made.unwrap_or((a, b));
        let coarsest = device.amg_on_host(|| builder.run(rows, vectors))?;
        let levels = std::mem::take(&mut builder.levels);
        builder.levels = levels.into_iter().map(|level| level.in_format(config)).collect::<Result<_, _>>()?;
        Ok(Self::from_builder(builder, coarsest))
    }

    /// Returns the settings.
    pub fn config(&self) -> &AmgConfig {
        &self.config
    }

    /// Returns the dimension of the null space that coarser levels have found, to their precision; a single level finds it in
    /// the matrix itself.
    pub fn n_null(&self) -> usize {
        self.n_null
    }

    /// Returns whether coarsening ended early: no strength of connection makes the next level much smaller, and the coarsest
    /// one is too large to be solved.
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Returns the sizes of the levels, the finest first.
    pub fn shapes(&self) -> &[LevelShape] {
        &self.shapes
    }

    /// Returns the format of the matrix of each level that is smoothed, the finest first.
    pub fn formats(&self) -> Vec<Format> {
        let smoothed = match &self.coarsest {
            Coarsest::Direct(_) => None,
            Coarsest::Smoothed { a, .. } => Some(a.as_ref()),
        };
        self.levels.iter().map(|level| &level.a).chain(smoothed).map(ProductMatrix::format).collect()
    }

    /// Returns the non-zeros of all levels over those of the first: the cost of a cycle relative to the matrix.
    pub fn operator_complexity(&self) -> f64 {
        let all: usize = self.shapes.iter().map(|shape| shape.n_nonzeros).sum();
        all as f64 / self.shapes.first().map_or(1, |shape| shape.n_nonzeros.max(1)) as f64
    }

    /// Returns the rows of all levels over those of the first.
    pub fn grid_complexity(&self) -> f64 {
        let all: usize = self.shapes.iter().map(|shape| shape.n_rows).sum();
        all as f64 / self.shapes.first().map_or(1, |shape| shape.n_rows.max(1)) as f64
    }
}

/// The table of levels.
impl<H: Scalar, D: AmgKernels<H>> fmt::Display for Hierarchy<H, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_patches = self.shapes.iter().any(|shape| shape.n_patches > 0);
        let patches = if has_patches { "     patches  rows each" } else { "" };
        writeln!(f, "level        rows    non-zeros  a row  aggregates  rows each{patches}")?;
        for (number, shape) in self.shapes.iter().enumerate() {
            let LevelShape { n_rows, n_nonzeros, n_aggregates, n_patches, .. } = *shape;
            let per_row = n_nonzeros as f64 / n_rows.max(1) as f64;
            write!(f, "{number:>5}  {n_rows:>10}  {n_nonzeros:>11}  {per_row:>5.1}")?;
            for n in [n_aggregates, n_patches] {
                if n > 0 {
                    write!(f, "  {n:>10}  {:>9.1}", n_rows as f64 / n as f64)?;
                }
            }
            writeln!(f)?;
        }
        write!(
            f,
            "operator complexity {:.2}, grid complexity {:.2}",
            self.operator_complexity(),
            self.grid_complexity()
        )
    }
}
