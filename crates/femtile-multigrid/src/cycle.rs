use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;

use crate::error::need;
use crate::grid::{BoxGrid, MAX_COARSE_NODES};
use crate::kernels::BoxKernels;
use crate::level::{Level, Vectors, Workspace};
use crate::{MultigridError, PostOrder, Smoother};

/// Settings of a V-cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MultigridConfig {
    /// The smoother, applied once before and once after the coarse-grid correction.
    pub smoother: Smoother,
    /// The order of post-smoothing.
    pub post: PostOrder,
}

/// Geometric multigrid for −∇·(c∇u) = f on a box, u = 0 on its boundary except on free sides.
///
/// # Shapes
/// Vectors have a value for each node of the finest grid, zero at Dirichlet nodes.
/// # Source
/// `[cui2024]`, section 2.
#[derive(Debug, Clone)]
pub struct Multigrid<T: Scalar, D: BoxKernels<T> = Cpu> {
    device: D,
    coarse: BoxGrid,
    coarsest: D::BoxSmoother,
    /// Levels above the coarsest.
    pub(crate) levels: Vec<Level<T, D>>,
    operator: D::Operator,
    post: PostOrder,
}

impl<T: Scalar, D: BoxKernels<T>> Multigrid<T, D> {
    /// Sets up `n_levels` levels: the coarsest is solved exactly, each further level halves all cells.
    ///
    /// # Errors
    /// [`MultigridError::Coarsest`] if an axis of the coarsest grid has no interior node or too many;
    /// [`MultigridError::Levels`] without a level or with too many nodes on the finest grid.
    pub fn new(
        device: &D,
        coarse: &BoxGrid,
        n_levels: usize,
        config: MultigridConfig,
    ) -> Result<Self, MultigridError> {
        check_coarsest(coarse)?;
        check_levels(coarse, n_levels)?;
        let finer = |grid: &BoxGrid| Some(grid.refined());
        let grids: Vec<_> = std::iter::successors(Some(coarse.clone()), finer).take(n_levels).collect();
        Self::on_grids(device, &grids, config)
    }

    /// Sets up the levels below a given finest grid by semicoarsening, see [`BoxGrid::coarsened`].
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub fn from_finest(
        device: &D,
        finest: &BoxGrid,
        config: MultigridConfig,
    ) -> Result<Self, MultigridError> {
        Self::on_grids(device, &grids_below(finest)?, config)
    }

    /// Sets up levels on nested grids, the coarsest first.
    fn on_grids(device: &D, grids: &[BoxGrid], config: MultigridConfig) -> Result<Self, MultigridError> {
        let levels = grids.windows(2).map(|pair| Level::new(device, &pair[0], &pair[1], config.smoother));
        let levels = levels.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            operator: device.box_operator(levels.last().map_or(&grids[0], |level| &level.grid))?,
            coarsest: device.box_coarsest(&grids[0])?,
            coarse: grids[0].clone(),
            device: device.clone(),
            levels,
            post: config.post,
        })
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the grids of all levels, the coarsest first.
    pub fn grids(&self) -> impl DoubleEndedIterator<Item = &BoxGrid> {
        (0..=self.levels.len()).map(|level| self.grid_of(level))
    }

    /// Returns the finest grid.
    pub fn grid(&self) -> &BoxGrid {
        self.grid_of(self.levels.len())
    }

    /// Returns the grid of a level; 0 is the coarsest.
    fn grid_of(&self, level: usize) -> &BoxGrid {
        level.checked_sub(1).map_or(&self.coarse, |above| &self.levels[above].grid)
    }

    /// Returns the operator on the finest grid.
    pub fn operator(&self) -> &D::Operator {
        &self.operator
    }

    /// Applies one step of the smoother on the finest grid, in pre-smoothing order (`PostOrder::Same`) or reversed.
    ///
    /// # Errors
    /// [`MultigridError::Length`] for a vector of another length.
    pub fn smooth(
        &self,
        x: &mut Buffer<T, D>,
        b: &Buffer<T, D>,
        order: PostOrder,
    ) -> Result<(), MultigridError> {
        self.fits(x, b)?;
        let smoother = self.levels.last().map_or(&self.coarsest, |level| &level.smoother);
        Ok(self.device.box_smooth(smoother, x, b, order)?)
    }

    /// Applies one V-cycle to A x = b on the finest grid.
    ///
    /// # Errors
    /// [`MultigridError::Length`] for a vector of another length.
    /// # Source
    /// `[cui2024]`, Alg. 2.1.
    pub fn v_cycle(&self, x: &mut Buffer<T, D>, b: &Buffer<T, D>) -> Result<(), MultigridError> {
        self.fits(x, b)?;
        let mut vectors = self.workspace()?.vectors;
        let finest = self.finest_of(&mut vectors);
        self.device.copy(&mut finest.x, x)?;
        self.device.copy(&mut finest.b, b)?;
        self.cycle(&mut vectors)?;
        Ok(self.device.copy(x, &self.finest_of(&mut vectors).x)?)
    }

    fn fits(&self, x: &Buffer<T, D>, b: &Buffer<T, D>) -> Result<(), MultigridError> {
        let n = self.grid().n_nodes();
        need("x", n, x.len())?;
        need("b", n, b.len())
    }

    /// Allocates the vectors of a cycle.
    pub(crate) fn workspace(&self) -> Result<Workspace<T, D>, MultigridError> {
        let of_level = |level: usize| Vectors::zeros(&self.device, self.grid_of(level));
        let vectors = (0..=self.levels.len()).map(of_level).collect::<Result<_, _>>()?;
        Ok(Workspace { vectors, recording: D::Recording::default() })
    }

    /// Returns the vectors of the finest level.
    pub(crate) fn finest<'r>(&self, workspace: &'r mut Workspace<T, D>) -> &'r mut Vectors<T, D> {
        self.finest_of(&mut workspace.vectors)
    }

    fn finest_of<'r>(&self, vectors: &'r mut [Vectors<T, D>]) -> &'r mut Vectors<T, D> {
        &mut vectors[self.levels.len()]
    }

    /// Runs a V-cycle with a zero initial guess on all levels, replayed from a recording if the device
    /// supports it.
    pub(crate) fn recorded_cycle(&self, workspace: &mut Workspace<T, D>) -> Result<(), LinalgError> {
        let Workspace { vectors, recording } = workspace;
        self.device.repeat(recording, 1, &mut || self.cycle_from_zero(vectors))
    }

    /// Runs a V-cycle with a zero initial guess on the finest of these levels.
    pub(crate) fn cycle_from_zero(&self, vectors: &mut [Vectors<T, D>]) -> Result<(), LinalgError> {
        let finest = vectors.len() - 1;
        self.device.fill(&mut vectors[finest].x, T::ZERO)?;
        self.cycle_with(vectors, D::box_smooth_zero)
    }

    /// Runs a V-cycle that starts on the first of these levels; there is at least one.
    pub(crate) fn cycle(&self, vectors: &mut [Vectors<T, D>]) -> Result<(), LinalgError> {
        self.cycle_with(vectors, D::box_smooth)
    }

    /// Runs a V-cycle whose first step is `smooth`.
    fn cycle_with(
        &self,
        vectors: &mut [Vectors<T, D>],
        smooth: impl Fn(
            &D,
            &D::BoxSmoother,
            &mut Buffer<T, D>,
            &Buffer<T, D>,
            PostOrder,
        ) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        let device = &self.device;
        let (coarser, finest) = vectors.split_at_mut(vectors.len() - 1);
        let Vectors { x, b } = &mut finest[0];
        let Some(below) = coarser.len().checked_sub(1) else {
            return device.box_smooth(&self.coarsest, x, b, PostOrder::Same);
        };
        let Level { smoother, transfer, .. } = &self.levels[below];
        smooth(device, smoother, x, b, PostOrder::Same)?;
        device.box_restrict_residual(transfer, &mut coarser[below].b, b, x)?;
        self.cycle_from_zero(coarser)?;
        device.box_prolongate(transfer, x, &coarser[below].x)?;
        device.box_smooth(smoother, x, b, self.post)
    }
}

/// Returns the grids of all levels below a finest one, the coarsest first.
fn grids_below(finest: &BoxGrid) -> Result<Vec<BoxGrid>, MultigridError> {
    let mut grids: Vec<_> = std::iter::successors(Some(finest.clone()), BoxGrid::coarsened).collect();
    grids.reverse();
    check_coarsest(&grids[0])?;
    check_nodes(finest, grids.len(), 1.0)?;
    Ok(grids)
}

/// Checks, without a device, that a finest grid has valid coarser levels.
///
/// # Errors
/// As [`Multigrid::from_finest`].
pub fn check_coarsening(finest: &BoxGrid) -> Result<(), MultigridError> {
    let grids = grids_below(finest)?;
    match grids[0].mapping() {
        Some(_) => crate::smoother::band_width(&grids[0]).map(drop),
        None => Ok(()),
    }
}

fn check_coarsest(coarse: &BoxGrid) -> Result<(), MultigridError> {
    for axis in 0..coarse.dimension() {
        let (cells, most) = (coarse.widths(axis).len(), MAX_COARSE_NODES / coarse.degree());
        let has_unknown = coarse.degree() > 1 || coarse.free_sides()[axis] != [false; 2];
        let least = if has_unknown { 1 } else { 2 };
        if !(least..=most).contains(&cells) {
            return Err(MultigridError::Coarsest { axis, cells, least, most });
        }
    }
    Ok(())
}

fn check_levels(coarse: &BoxGrid, levels: usize) -> Result<(), MultigridError> {
    if levels == 0 {
        return Err(MultigridError::Levels { levels, message: "at least one is required".into() });
    }
    check_nodes(coarse, levels, 2f64.powi(levels as i32 - 1))
}

/// Checks that the number of nodes fits 32 bits when the cells along each axis of `grid` are multiplied by
/// `cells`.
fn check_nodes(grid: &BoxGrid, levels: usize, cells: f64) -> Result<(), MultigridError> {
    let along = |axis: usize| (grid.degree() * grid.widths(axis).len()) as f64 * cells + 1.0;
    let nodes: f64 = (0..grid.dimension()).map(along).product();
    if nodes <= f64::from(u32::MAX) {
        return Ok(());
    }
    let gibibytes = 8.0 * nodes / f64::from(1 << 30);
    let message =
        format!("the finest grid would have {nodes:.3e} nodes, {gibibytes:.0} GiB a vector; choose fewer");
    Err(MultigridError::Levels { levels, message })
}
