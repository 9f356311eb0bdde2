//! Smoothers on boxes: multiplicative and additive Schwarz on vertex patches, Chebyshev polynomials, Gauss–Seidel.
//!
//! Local solves on patches use the fast diagonalization method. Mapped cells use separable surrogates, or factored
//! matrices at coefficient jumps.

mod additive_patch;
mod chebyshev;
mod cholesky;
mod direct;
mod exact;
mod gauss_seidel;
mod local;
mod mapped_patch;
mod vertex_patch;

use femtile_device::cpu::SimdLevel;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_sum_factorization::SumFactorization;

use crate::MultigridError;
use crate::grid::BoxGrid;
use crate::kernels::Refresh;
use crate::rows::RowChebyshev;
pub(crate) use additive_patch::{AdditivePatches, LARGEST, STEPS, hat};
use chebyshev::Chebyshev;
pub(crate) use chebyshev::{PRODUCTS, RANGE, largest_eigenvalue};
pub(crate) use cholesky::Cholesky;
use direct::Direct;
pub(crate) use direct::{band_width, for_entries, unknowns};
pub(crate) use exact::{JumpPatch, JumpPatches, MOST_BYTES};
use gauss_seidel::GaussSeidel;
pub(crate) use local::scale;
use mapped_patch::MappedPatches;
pub(crate) use mapped_patch::patch_weights;
use vertex_patch::Patches;

/// The highest degree up to which polynomials by rows take less time than vertex patches. On one core, about 3 million
/// unknowns to 1e-9, the times of patches over theirs: with AVX-512, degree 1 to 8, 4.8, 2.0, 1.4, 1.05, 1.1, 0.95, 0.7 and
/// 0.85; with AVX2, degree 6 to 8, 1.7, 1.1 and 0.9 to 1.2.
fn rows_pay(simd: SimdLevel) -> usize {
    if simd == SimdLevel::Avx512 { 5 } else { 7 }
}

/// The smoother of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Smoother {
    /// The fastest to a given tolerance, as measured:
    /// - On a processor, for rectangles with coefficient one without thin axes: [`Smoother::Chebyshev`] up to
    ///   degree 5, or up to 7 with SIMD vectors shorter than those of AVX-512. Its products are several times
    ///   faster than a step on patches.
    /// - On a processor otherwise: [`Smoother::VertexPatch`].
    /// - On GPUs: [`Smoother::VertexPatch`] for equal rectangles with coefficient one, else
    ///   [`Smoother::AdditivePatch`]. The residuals of a multiplicative step, one per colour, cost more than
    ///   a few more iterations.
    #[default]
    Auto,
    /// Multiplicative Schwarz on vertex patches, coloured: exact local solves for rectangles with coefficient one and at
    /// coefficient jumps, separable surrogates otherwise.
    VertexPatch,
    /// Additive Schwarz on vertex patches, weighted by hat functions: a symmetric step with one residual of the whole
    /// grid, which saves work on mapped cells.
    AdditivePatch,
    /// A Chebyshev polynomial in $D^{-1} A$: less work per step, more cycles.
    Chebyshev,
    /// Gauss–Seidel in node order on one thread, for comparison.
    GaussSeidel,
}

impl Smoother {
    /// Returns whether it has vertex patches.
    pub fn has_patches(self) -> bool {
        matches!(self, Self::Auto | Self::VertexPatch | Self::AdditivePatch)
    }

    /// Returns the smoother that [`Smoother::Auto`] stands for on a grid on a processor, and others unchanged.
    pub(crate) fn resolved(self, simd: SimdLevel, grid: &BoxGrid) -> Self {
        match self {
            Self::Auto
                if !grid.is_mapped() && grid.degree() <= rows_pay(simd) && grid.thin_axes() == [false; 3] =>
            {
                Self::Chebyshev
            }
            Self::Auto => Self::VertexPatch,
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
    AdditivePatch(Box<AdditivePatches<T>>),
    Direct(Direct),
    RowChebyshev(RowChebyshev<T>),
    Chebyshev(Chebyshev<T>),
    GaussSeidel(GaussSeidel<T>),
}

impl<T: SumFactorization> BoxSmoother<T> {
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
            (Smoother::Auto, _) => return Self::new(cpu, grid, smoother.resolved(cpu.simd(), grid)),
            (Smoother::VertexPatch, None) => {
                Self::VertexPatch(Patches::around_vertices(cpu, grid, grid.thin_axes()))
            }
            (Smoother::VertexPatch, Some(geometry)) => {
                Self::MappedPatch(Box::new(MappedPatches::new(cpu, grid, geometry, grid.thin_axes())))
            }
            (Smoother::AdditivePatch, _) => Self::AdditivePatch(Box::new(AdditivePatches::new(cpu, grid)?)),
            (Smoother::Chebyshev, None) => Self::RowChebyshev(RowChebyshev::new(cpu, grid)),
            (Smoother::Chebyshev, Some(geometry)) => Self::Chebyshev(Chebyshev::new(cpu, grid, geometry)),
            (Smoother::GaussSeidel, None) => Self::GaussSeidel(GaussSeidel::new(grid)),
            (Smoother::GaussSeidel, Some(_)) => return Err(MultigridError::GaussSeidel),
        })
    }

    /// The exact solver of the coarsest grid.
    pub fn coarsest(cpu: &Cpu, grid: &BoxGrid) -> Result<Self, MultigridError> {
        Ok(match grid.mapping() {
            None => Self::VertexPatch(Patches::whole(cpu, grid)),
            Some(geometry) => Self::Direct(Direct::new(cpu, grid, geometry)?),
        })
    }

    /// Applies one step to A x = b; `is_zero` says that x is zero. `between` is called as [`RowChebyshev::step`] says, by others
    /// never.
    pub fn step(
        &self,
        x: &mut Buffer<T, Cpu>,
        b: &[T],
        (order, is_zero): (PostOrder, bool),
        between: &mut Refresh<'_, T, Cpu>,
    ) -> Result<(), LinalgError> {
        if let Self::RowChebyshev(chebyshev) = self {
            return chebyshev.step(x, b, is_zero, between);
        }
        let x = x.as_mut_slice();
        match self {
            Self::RowChebyshev(_) => {}
            Self::VertexPatch(patches) => patches.step(x, b, order),
            Self::MappedPatch(patches) => patches.step(x, b, order),
            Self::AdditivePatch(patches) => patches.step(x, b),
            Self::Direct(direct) => direct.solve(x, b),
            Self::Chebyshev(chebyshev) => chebyshev.step(x, b),
            Self::GaussSeidel(point) => point.step(x, b, order),
        }
        Ok(())
    }
}
