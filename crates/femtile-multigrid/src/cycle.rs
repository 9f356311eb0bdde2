use femtile_device::Cpu;
use femtile_tensor::Contract;

use crate::error::need;
use crate::grid::BoxGrid;
use crate::level::{Level, Vectors};
use crate::smoother::Patches;
use crate::{BoxOperator, MultigridError, PostOrder, Smoother};

/// The most cells times degree along an axis of the coarsest level, whose solve takes the fourth power of them.
const MAX_COARSE_NODES: usize = 32;

/// What a cycle is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MultigridConfig {
    /// What it smooths with, once before and once after the coarser levels.
    pub smoother: Smoother,
    /// In which order it does so afterwards.
    pub post: PostOrder,
}

/// Geometric multigrid for −Δu = f with u = 0 on the boundary of a box.
///
/// # Shapes
/// Vectors have a value for each node of the finest grid, zero on the boundary.
/// # Source
/// `[cui2024]`, section 2.
#[derive(Debug, Clone)]
pub struct Multigrid<T> {
    pub(crate) cpu: Cpu,
    coarse: BoxGrid,
    coarsest: Patches<T>,
    /// Above the coarsest one.
    pub(crate) levels: Vec<Level<T>>,
    coarse_operator: BoxOperator<T>,
    post: PostOrder,
}

impl<T: Contract> Multigrid<T> {
    /// So many levels, of which the first is solved exactly and each further one halves all cells.
    ///
    /// # Errors
    /// [`MultigridError::Coarsest`] where an axis of the coarsest grid has no node inside or too many,
    /// [`MultigridError::Levels`] where there is none or the finest has too many nodes.
    pub fn new(
        cpu: &Cpu,
        coarse: &BoxGrid,
        n_levels: usize,
        config: MultigridConfig,
    ) -> Result<Self, MultigridError> {
        for axis in 0..coarse.dimension() {
            let (cells, most) = (coarse.widths(axis).len(), MAX_COARSE_NODES / coarse.degree());
            let least = if coarse.degree() == 1 { 2 } else { 1 };
            if !(least..=most).contains(&cells) {
                return Err(MultigridError::Coarsest { axis, cells, least, most });
            }
        }
        check_levels(coarse, n_levels)?;
        let mut levels: Vec<Level<T>> = Vec::new();
        for _ in 1..n_levels {
            let grid = levels.last().map_or(coarse, |level| &level.grid);
            let level = Level::new(cpu, grid, config.smoother);
            levels.push(level);
        }
        Ok(Self {
            cpu: cpu.clone(),
            coarse: coarse.clone(),
            coarsest: Patches::whole(cpu, coarse),
            coarse_operator: BoxOperator::new(cpu, coarse),
            levels,
            post: config.post,
        })
    }

    /// The finest grid.
    pub fn grid(&self) -> &BoxGrid {
        self.grid_of(self.levels.len())
    }

    /// A grid, by its level from the coarsest, 0, on.
    pub(crate) fn grid_of(&self, level: usize) -> &BoxGrid {
        level.checked_sub(1).map_or(&self.coarse, |above| &self.levels[above].grid)
    }

    /// The operator on the finest grid.
    pub fn operator(&self) -> &BoxOperator<T> {
        self.levels.last().map_or(&self.coarse_operator, |level| &level.operator)
    }

    /// One step of the smoother on the finest grid, in the order before the correction by coarser levels or in the other.
    ///
    /// # Errors
    /// [`MultigridError::Length`] when a vector does not fit.
    pub fn smooth(&self, x: &mut [T], b: &[T], order: PostOrder) -> Result<(), MultigridError> {
        self.fits(x, b)?;
        match self.levels.last() {
            Some(level) => level.sweep.step(x, b, order),
            None => self.coarsest.step(x, b, order),
        }
        Ok(())
    }

    /// One V-cycle for A x = b on the finest grid.
    ///
    /// # Errors
    /// [`MultigridError::Length`] when a vector does not fit.
    /// # Source
    /// `[cui2024]`, Alg. 2.1.
    pub fn v_cycle(&self, x: &mut [T], b: &[T]) -> Result<(), MultigridError> {
        self.fits(x, b)?;
        self.cycle(x, b, &mut self.vectors());
        Ok(())
    }

    pub(crate) fn fits(&self, x: &[T], b: &[T]) -> Result<(), MultigridError> {
        let n = self.grid().n_nodes();
        need("x", n, x.len())?;
        need("b", n, b.len())
    }

    /// Room for a cycle: vectors of all levels but the coarsest.
    pub(crate) fn vectors(&self) -> Vec<Vectors<T>> {
        let zeros = |level: usize| vec![T::ZERO; self.grid_of(level).n_nodes()];
        let of = |level: usize| Vectors { x: zeros(level - 1), b: zeros(level - 1), r: zeros(level) };
        (1..=self.levels.len()).map(of).collect()
    }

    /// A V-cycle that begins on the finest of the levels that `vectors` belong to.
    pub(crate) fn cycle(&self, x: &mut [T], b: &[T], vectors: &mut [Vectors<T>]) {
        let Some((own, coarser)) = vectors.split_last_mut() else {
            return self.coarsest.step(x, b, PostOrder::Same);
        };
        let Level { operator, sweep, transfer, .. } = &self.levels[coarser.len()];
        sweep.step(x, b, PostOrder::Same);
        operator.residual(&mut own.r, b, x);
        transfer.restrict(&self.cpu, &mut own.b, &own.r);
        own.x.fill(T::ZERO);
        self.cycle(&mut own.x, &own.b, coarser);
        transfer.prolongate(&self.cpu, x, &own.x);
        sweep.step(x, b, self.post);
    }
}

fn check_levels(coarse: &BoxGrid, levels: usize) -> Result<(), MultigridError> {
    let refuse = |message: String| Err(MultigridError::Levels { levels, message });
    if levels == 0 {
        return refuse("at least one is needed".into());
    }
    let nodes = |level: usize| -> f64 {
        let along = |axis: usize| coarse.degree() as f64 * coarse.widths(axis).len() as f64;
        (0..coarse.dimension()).map(|axis| along(axis) * 2f64.powi(level as i32) + 1.0).product()
    };
    let finest = nodes(levels - 1);
    if finest > f64::from(u32::MAX) {
        let gibibytes = 8.0 * finest / f64::from(1 << 30);
        return refuse(format!(
            "the finest grid would have {finest:.3e} nodes, {gibibytes:.0} GiB a vector; choose fewer"
        ));
    }
    Ok(())
}
