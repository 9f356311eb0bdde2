//! What takes short waves out of the error: exact solves on patches of cells, or on single nodes, one after another.

mod chebyshev;
mod local;
mod point;
mod vertex_patch;

use femtile_device::Cpu;
use femtile_tensor::Contract;

use crate::grid::BoxGrid;
use chebyshev::Chebyshev;
use point::PointGaussSeidel;
pub(crate) use vertex_patch::Patches;

/// On what the smoother solves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Smoother {
    /// On the nodes inside the cells around every vertex, by colours.
    #[default]
    VertexPatch,
    /// On none: a polynomial of products and the diagonal. Less work a step, more cycles.
    Chebyshev,
    /// On every node by itself, in the order of their numbers and on one thread: to compare with.
    Point,
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
    Chebyshev(Chebyshev<T>),
    Point(PointGaussSeidel<T>),
}

impl<T: Contract> Sweep<T> {
    pub fn new(cpu: &Cpu, grid: &BoxGrid, smoother: Smoother) -> Self {
        match smoother {
            Smoother::VertexPatch => Self::VertexPatch(Patches::around_vertices(cpu, grid)),
            Smoother::Chebyshev => Self::Chebyshev(Chebyshev::new(cpu, grid)),
            Smoother::Point => Self::Point(PointGaussSeidel::new(grid)),
        }
    }

    /// One step for A x = b.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        match self {
            Self::VertexPatch(patches) => patches.step(x, b, order),
            Self::Chebyshev(chebyshev) => chebyshev.step(x, b),
            Self::Point(point) => point.step(x, b, order),
        }
    }
}
