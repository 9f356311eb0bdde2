//! Smoothers on boxes: Chebyshev polynomials, and Schwarz methods on vertex patches.
//!
//! Local solves on patches use the fast diagonalization method. Mapped cells use separable surrogates, or factored
//! matrices at coefficient jumps.

mod chebyshev;
mod cholesky;
mod direct;
mod exact;
mod local;
mod mapped_patch;
mod vertex_patch;

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_sum_factorization::SumFactorization;

use crate::MultigridError;
use crate::grid::BoxGrid;
use crate::kernels::Refresh;
use crate::rows::RowChebyshev;
use chebyshev::Chebyshev;
pub(crate) use chebyshev::{PRODUCTS, RANGE, largest_eigenvalue};
pub(crate) use cholesky::Cholesky;
use direct::Direct;
pub(crate) use direct::{band_width, for_entries, of_cell, unknowns};
pub(crate) use exact::{JumpPatch, JumpPatches, MOST_BYTES};
pub(crate) use local::scale;
use mapped_patch::MappedPatches;
pub(crate) use mapped_patch::{LARGEST, STEPS, hat, patch_weights};
use vertex_patch::Patches;

/// The smoother of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Smoother {
    /// [`Smoother::Chebyshev`] on a CPU; [`Smoother::VertexPatch`] on a GPU, and on a CPU for mapped quadrilaterals and
    /// for levels with a thin axis: one that can no longer be coarsened, and along which cells are the narrowest.
    ///
    /// On quadrilaterals both take about as long, unless coarse cells cut jumps of the coefficient: degree 7 then takes
    /// three times as many iterations with polynomials.
    #[default]
    Auto,
    /// A Chebyshev polynomial of degree 4 in $D^{-1} A$; on CPUs.
    Chebyshev,
    /// Schwarz on vertex patches. Multiplicative, by colours, for rectangles with coefficient one, whose local solves are
    /// exact; on a GPU these must be equal. Otherwise additive, with separable surrogates and exact local solves at
    /// coefficient jumps: the residuals of a multiplicative step, one per colour, would cost more than a few more
    /// iterations.
    VertexPatch,
}

impl Smoother {
    /// Returns the smoother that [`Smoother::Auto`] stands for on a grid on a CPU, and others unchanged.
    pub(crate) fn resolved(self, grid: &BoxGrid) -> Self {
        let needs_patches = || grid.dimension() == 2 && grid.is_mapped() || grid.thin_axes() != [false; 3];
        match self {
            Self::Auto if needs_patches() => Self::VertexPatch,
            Self::Auto => Self::Chebyshev,
            _ => self,
        }
    }
}

/// The order of patches in post-smoothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PostOrder {
    /// Last to first: a symmetric cycle, as conjugate gradients require.
    Reversed,
    /// As in pre-smoothing: fewer cycles in stand-alone multigrid and GMRES.
    #[default]
    Same,
}

/// A smoother, or the exact solver of the coarsest grid.
#[derive(Debug, Clone)]
pub enum BoxSmoother<T: Scalar> {
    VertexPatch(Patches<T>),
    MappedPatch(Box<MappedPatches<T>>),
    Direct(Direct),
    RowChebyshev(Box<RowChebyshev<T>>),
    Chebyshev(Chebyshev<T>),
}

impl<T: SumFactorization> BoxSmoother<T> {
    pub fn new(cpu: &Cpu, grid: &BoxGrid, smoother: Smoother) -> Result<Self, MultigridError> {
        Ok(match (smoother.resolved(grid), grid.mapping()) {
            (Smoother::Chebyshev, None) => Self::RowChebyshev(Box::new(RowChebyshev::new(cpu, grid))),
            (Smoother::Chebyshev, Some(geometry)) => Self::Chebyshev(Chebyshev::new(cpu, grid, geometry)?),
            (_, None) => Self::VertexPatch(Patches::around_vertices(cpu, grid, grid.thin_axes())),
            (_, Some(geometry)) => {
                let has_no_vertex =
                    |axis: usize| grid.widths(axis).len() == 1 && grid.free_sides()[axis] == [false; 2];
                if let Some(axis) = (0..grid.dimension()).find(|&axis| has_no_vertex(axis)) {
                    return Err(MultigridError::Layer { axis });
                }
                Self::MappedPatch(Box::new(MappedPatches::new(cpu, grid, geometry)?))
            }
        })
    }

    /// Returns the largest eigenvalue that the smoother of mapped cells has estimated.
    pub fn largest(&self) -> Option<f64> {
        match self {
            Self::MappedPatch(patches) => Some(patches.largest()),
            Self::Chebyshev(chebyshev) => Some(chebyshev.largest()),
            _ => None,
        }
    }

    /// Sets the largest eigenvalue, if the smoother estimates it.
    pub fn set_largest(&mut self, largest: f64) {
        match self {
            Self::MappedPatch(patches) => patches.set_largest(largest),
            Self::Chebyshev(chebyshev) => chebyshev.set_largest(largest),
            _ => {}
        }
    }

    /// The exact solver of the coarsest grid.
    pub fn coarsest(cpu: &Cpu, grid: &BoxGrid) -> Result<Self, MultigridError> {
        Ok(match grid.mapping() {
            None => Self::VertexPatch(Patches::whole(cpu, grid)),
            Some(geometry) => Self::Direct(Direct::new(cpu, grid, geometry)?),
        })
    }

    /// Applies one step to A x = b; `is_zero` says that x is zero. `between` is called as [`RowChebyshev::step`] says, by
    /// patches never.
    pub fn step(
        &self,
        x: &mut Buffer<T, Cpu>,
        b: &[T],
        (order, is_zero): (PostOrder, bool),
        between: &mut Refresh<'_, T, Cpu>,
    ) -> Result<(), LinalgError> {
        match self {
            Self::RowChebyshev(chebyshev) => return chebyshev.step(x, b, is_zero, between),
            Self::Chebyshev(chebyshev) => return chebyshev.step(x, b, is_zero, between),
            Self::VertexPatch(patches) => patches.step(x.as_mut_slice(), b, order),
            Self::MappedPatch(patches) => patches.step(x.as_mut_slice(), b),
            Self::Direct(direct) => direct.solve(x.as_mut_slice(), b),
        }
        Ok(())
    }
}
