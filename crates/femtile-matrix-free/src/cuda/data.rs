//! The data of an operator on a GPU that the host computes.

use std::sync::Arc;

use femtile_device::{Scalar, part};
use femtile_fem::{Coefficient, FemError};
use femtile_linalg::LinalgError;
use femtile_space::geometry::{CellRule, MetricEvaluation};
use femtile_space::{SpaceError, TensorSpace};

use super::batches::Batches;
use super::config::{CellField, CudaMatrixFreeConfig, LaunchShape};
use super::metric;
use super::program::Variant;
use crate::local_numbering::LocalNumbering;
use crate::metric::{Metrics, Terms};

/// Groups that keep all multiprocessors of a large GPU busy to the end.
const GROUPS: usize = 2048;

/// The data of a [`CudaMatrixFree`](super::CudaMatrixFree) that the host computes without a GPU: the order in which cells are
/// visited, numbers of their unknowns, and metrics.
#[derive(Debug)]
pub struct CudaMatrixFreeData<T: Scalar> {
    /// Rows of a component: those that a rank owns, of a part.
    pub(super) n_dofs: usize,
    /// Unknowns of other ranks.
    pub(super) n_ghosts: usize,
    n_cells: usize,
    cut: Cut,
    pub(super) variant: Variant,
    pub(super) batches: Arc<Batches>,
    pub(super) metric: Vec<T>,
    pub(super) constrained: Vec<u32>,
}

/// Settings of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub cells: usize,
    pub per_group: usize,
    pub components: usize,
}

/// The cells of an operator and the terms that it computes on them.
#[derive(Clone, Copy)]
pub(super) struct OfCells<'a> {
    pub space: &'a TensorSpace<'a>,
    pub terms: Terms<'a>,
    pub rule: CellRule,
    pub constrained: &'a [u32],
    /// The numbers of a rank's part.
    pub numbers: Option<LocalNumbering<'a>>,
}

impl<T: Scalar> CudaMatrixFreeData<T> {
    /// Computes the data of the operator of `terms`; the arguments are those of
    /// [`CudaMatrixFree::new`](super::CudaMatrixFree::new).
    ///
    /// # Errors
    /// As there, except those of the device.
    pub fn new(
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        rule: CellRule,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        Self::compute(OfCells { space, terms, rule, constrained, numbers: None }, config, &|_, _| None)
    }

    /// As [`CudaMatrixFreeData::new`], on the space and with the constrained rows of another operator. Its
    /// order of cells is reused if the settings allow.
    ///
    /// # Errors
    /// As [`CudaMatrixFreeData::new`].
    ///
    /// # Panics
    /// If the space has another number of unknowns or cells.
    pub fn beside<U: Scalar>(
        other: &CudaMatrixFreeData<U>,
        space: &TensorSpace<'_>,
        terms: Terms<'_>,
        rule: CellRule,
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        let is_same = (other.n_dofs, other.n_cells) == (space.n_dofs(), space.n_cells());
        assert!(is_same, "the space of the other operator");
        let of = OfCells { space, terms, rule, constrained: &other.constrained, numbers: None };
        // Runs of unknowns in batches have the lengths of their degree, and irregular cells have lists.
        let of_batches = |variant: &Variant| (variant.dimension, variant.degree, variant.has_lists);
        let chosen = |variant: &Variant, cut| {
            let fits = cut == other.cut && of_batches(variant) == of_batches(&other.variant);
            fits.then(|| other.batches.clone())
        };
        Self::compute(of, config, &chosen)
    }

    /// Puts together the data of an operator on a whole mesh.
    pub(super) fn of_parts(
        space: &TensorSpace<'_>,
        constrained: &[u32],
        (variant, cut): (Variant, Cut),
        batches: Batches,
        metric: Vec<T>,
    ) -> Self {
        Self {
            n_dofs: space.n_dofs(),
            n_ghosts: 0,
            n_cells: space.n_cells(),
            cut,
            variant,
            batches: Arc::new(batches),
            metric,
            constrained: constrained.to_vec(),
        }
    }

    /// Calls `chosen` once the kernel and the settings of batches are known; it may have batches already.
    pub(super) fn compute(
        of: OfCells<'_>,
        config: CudaMatrixFreeConfig,
        chosen: &dyn Fn(&Variant, Cut) -> Option<Arc<Batches>>,
    ) -> Result<Self, FemError> {
        let OfCells { space, terms, rule, constrained, numbers } = of;
        let components = config.components;
        if components == 0 {
            let message = "a field has one component at least".into();
            return Err(LinalgError::Setting { field: "components", message }.into());
        }
        let n_rows = space.n_dofs().saturating_mul(components);
        if n_rows >= u32::MAX as usize {
            return Err(SpaceError::TooManyDofs { n_dofs: n_rows as f64 }.into());
        }
        let metrics = part("metrics", || Metrics::new(space, terms, rule))?;
        let one = Coefficient::Constant(1.0);
        let of_ones =
            terms.are_at_points().then(|| Metrics::new(space, terms.with(&one), rule)).transpose()?;
        let of_map = of_ones.as_ref().unwrap_or(&metrics);
        let metric = part("choice of metric", || choose_metric((of_map, terms), space, config.metric))?;
        let field = CellField { dimension: space.dimension(), degree: space.degree(), components };
        let own = Variant::of(field, terms, rule, (metric, space.n_irregular() > 0));
        let shape = config.shape.unwrap_or(own.shape);
        let per_group = config.cells_per_group.unwrap_or_else(|| cells_per_group(space, shape));
        let has_ghosts = numbers.is_some();
        let (variant, cut) =
            (Variant { shape, has_ghosts, ..own }, Cut { cells: shape.cells, per_group, components });
        let batches = match chosen(&variant, cut) {
            Some(batches) => batches,
            None => Arc::new(part("batches of cells", || {
                Batches::new(space, (cut.cells, per_group), components, (constrained, numbers))
            })?),
        };
        let filled = || metric::fill([&metrics, of_map], space, &batches, &variant);
        let metric = part("stored metrics", filled)?;
        let (n_dofs, n_cells) = (numbers.map_or(space.n_dofs(), |numbers| numbers.n_owned), space.n_cells());
        let n_ghosts = space.n_dofs() - n_dofs;
        let mut constrained = constrained.to_vec();
        if let Some(LocalNumbering { of, n_owned }) = numbers {
            let rows = constrained.iter().map(|&row| of[row as usize]);
            constrained = rows.filter(|&row| (row as usize) < n_owned).collect();
            constrained.sort_unstable();
        }
        Ok(Self { n_dofs, n_ghosts, n_cells, variant, cut, batches, metric, constrained })
    }
}

/// Returns the requested metric if it fits, else the cheapest.
fn choose_metric(
    (metrics, terms): (&Metrics<'_>, Terms<'_>),
    space: &TensorSpace<'_>,
    wanted: Option<MetricEvaluation>,
) -> Result<MetricEvaluation, FemError> {
    if wanted == Some(MetricEvaluation::Stored) {
        return Ok(MetricEvaluation::Stored);
    }
    let of_maps = metric::of_maps(metrics, space.n_cells())?;
    let cheapest = terms.metric_on_gpus(of_maps);
    match wanted {
        None => Ok(cheapest),
        Some(wanted)
            if wanted == of_maps || (wanted == MetricEvaluation::Computed && metrics.is_trilinear()) =>
        {
            Ok(wanted)
        }
        Some(wanted) => {
            let (wanted, cheapest) = (wanted.name(), cheapest.name());
            let message = format!(
                "{wanted} does not fit these cells and coefficients: take {cheapest}, or leave it open"
            );
            Err(LinalgError::Setting { field: "metric", message }.into())
        }
    }
}

/// Returns the cells per group: some thousand unknowns, but few enough that all multiprocessors have work.
pub(super) fn cells_per_group(space: &TensorSpace<'_>, shape: LaunchShape) -> usize {
    let most = match (space.dimension(), space.degree()) {
        (2, degree) => (4096 / degree.pow(2)).clamp(64, 1024),
        (_, 1) => 512,
        (_, 2) => 256,
        (_, 3 | 4) => 128,
        _ => 64,
    };
    let enough = space.n_cells() / GROUPS;
    // Fewer than eight batches would be half empty, as cells of a batch must not be neighbours.
    if enough < 8 * shape.cells { shape.cells } else { enough.min(most.max(8 * shape.cells)) }
}
