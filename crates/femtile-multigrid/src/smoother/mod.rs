//! What takes short waves out of the error: solves on patches of cells, or on single nodes, one after another or at once.

mod additive_patch;
mod chebyshev;
mod cholesky;
mod direct;
mod exact;
mod local;
mod mapped_patch;
mod point;
mod vertex_patch;

use femtile_device::Cpu;
use femtile_sum_factorization::SumFactorization;

use crate::MultigridError;
use crate::grid::BoxGrid;
pub(crate) use additive_patch::{AdditivePatches, hat};
use chebyshev::Chebyshev;
pub(crate) use cholesky::Cholesky;
use direct::Direct;
pub(crate) use direct::band_width;
pub(crate) use local::scale;
use mapped_patch::MappedPatches;
use point::PointGaussSeidel;
use vertex_patch::Patches;

/// On what the smoother solves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Smoother {
    /// On the nodes inside the cells around every vertex, by colours: exactly where these are rectangles with a coefficient of one or
    /// coefficients jump, for a separable surrogate elsewhere.
    #[default]
    VertexPatch,
    /// On the same nodes, all with the same residual, weighted by hats: a step is symmetric in itself and its residual is that of the
    /// whole grid, so that it takes less work where cells are no rectangles.
    AdditivePatch,
    /// On none: a polynomial of products and the diagonal. Less work a step, more cycles.
    Chebyshev,
    /// On every node by itself, in the order of their numbers and on one thread: to compare with.
    Point,
}

impl Smoother {
    /// Whether it solves on patches of cells.
    pub fn has_patches(self) -> bool {
        matches!(self, Self::VertexPatch | Self::AdditivePatch)
    }
}

/// In which order the smoother goes after the correction by the coarser level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PostOrder {
    /// From the last to the first, so that a cycle is symmetric, as conjugate gradients need it.
    Reversed,
    /// As before the correction: fewer cycles where there is nothing around them.
    #[default]
    Same,
}

/// A smoother of a level.
#[derive(Debug, Clone)]
pub enum Sweep<T> {
    VertexPatch(Patches<T>),
    MappedPatch(Box<MappedPatches<T>>),
    AdditivePatch(Box<AdditivePatches<T>>),
    Direct(Direct),
    Chebyshev(Chebyshev<T>),
    Point(PointGaussSeidel<T>),
}

impl<T: SumFactorization> Sweep<T> {
    pub fn new(cpu: &Cpu, grid: &BoxGrid, smoother: Smoother) -> Result<Self, MultigridError> {
        let has_no_vertex =
            |axis: usize| grid.widths(axis).len() == 1 && grid.free_sides()[axis] == [false; 2];
        let layer = || (0..grid.dimension()).find(|&axis| has_no_vertex(axis));
        if smoother.has_patches()
            && grid.mapping().is_some()
            && let Some(axis) = layer()
        {
            return Err(MultigridError::Layer { axis });
        }
        Ok(match (smoother, grid.mapping()) {
            (Smoother::VertexPatch, None) => {
                Self::VertexPatch(Patches::around_vertices(cpu, grid, grid.thin_axes()))
            }
            (Smoother::VertexPatch, Some(geometry)) => {
                Self::MappedPatch(Box::new(MappedPatches::new(cpu, grid, geometry, grid.thin_axes())))
            }
            (Smoother::AdditivePatch, _) => Self::AdditivePatch(Box::new(AdditivePatches::new(cpu, grid)?)),
            (Smoother::Chebyshev, _) => Self::Chebyshev(Chebyshev::new(cpu, grid)),
            (Smoother::Point, None) => Self::Point(PointGaussSeidel::new(grid)),
            (Smoother::Point, Some(_)) => return Err(MultigridError::Points),
        })
    }

    /// What solves exactly in one step.
    pub fn coarsest(cpu: &Cpu, grid: &BoxGrid) -> Result<Self, MultigridError> {
        Ok(match grid.mapping() {
            None => Self::VertexPatch(Patches::whole(cpu, grid)),
            Some(geometry) => Self::Direct(Direct::new(cpu, grid, geometry)?),
        })
    }

    /// One step for A x = b.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        match self {
            Self::VertexPatch(patches) => patches.step(x, b, order),
            Self::MappedPatch(patches) => patches.step(x, b, order),
            Self::AdditivePatch(patches) => patches.step(x, b),
            Self::Direct(direct) => direct.solve(x, b),
            Self::Chebyshev(chebyshev) => chebyshev.step(x, b),
            Self::Point(point) => point.step(x, b, order),
        }
    }
}
