use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;

use super::coarsest::CudaCoarsest;
use super::mapped::CudaInverse;
use super::plane::PlanePatches;
use super::{
    CudaBoxOperator, CudaMappedPatches, CudaPatches, CudaTransfer, PatchKernel, check_patches, equal_widths,
};
use crate::cell_patches::vertex_patches;
use crate::kernels::BoxKernels;
use crate::{BoxGrid, MultigridError, PostOrder, Smoother};

static VECTOR: Program = Program { name: "box_vector", source: include_str!("vector.cu"), headers: &[] };
const THREADS: u32 = 256;

/// Returns the program of operations on vectors.
pub(super) fn program<T: Scalar>() -> Specialisation {
    VECTOR.of::<T>()
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f64>(), program::<f32>()]
}

/// A smoother, or the exact solver of the coarsest grid.
#[derive(Debug, Clone)]
pub enum CudaSmoother<T: Scalar> {
    /// Vertex patches of equal hexahedra, or one patch of all cells.
    Patches(Arc<CudaPatches<T>>),
    /// The same of equal rectangles.
    Plane(Arc<PlanePatches<T>>),
    /// Vertex patches of cells of any widths, shapes and coefficients.
    Mapped(Arc<CudaMappedPatches<T>>),
    /// The exact solver of a coarsest grid of rectangles with coefficient one.
    Coarsest(Arc<CudaCoarsest<T>>),
    /// The exact solver of a coarsest grid of other cells, or of quadrilaterals.
    Inverse(Arc<CudaInverse<T>>),
}

/// A transfer between two grids, with workspace for a residual on the finer one.
#[derive(Debug)]
pub struct CudaBoxTransfer<T: Scalar> {
    transfer: CudaTransfer<T>,
    operator: CudaBoxOperator<T>,
    workspace: Mutex<Buffer<T, Cuda>>,
}

impl<T: Scalar> BoxKernels<T> for Cuda {
    type Operator = Arc<CudaBoxOperator<T>>;
    type BoxSmoother = CudaSmoother<T>;
    type BoxTransfer = Arc<CudaBoxTransfer<T>>;

    fn box_operator(&self, grid: &BoxGrid) -> Result<Self::Operator, MultigridError> {
        Ok(Arc::new(CudaBoxOperator::new(self, grid)?))
    }

    fn box_smoother(&self, grid: &BoxGrid, smoother: Smoother) -> Result<Self::BoxSmoother, MultigridError> {
        if smoother == Smoother::Chebyshev {
            let message = "only vertex patches have kernels: choose that smoother, or leave it out".into();
            return Err(MultigridError::Gpu { message });
        }
        check_patches(grid)?;
        Ok(match grid.dimension() {
            _ if equal_widths(grid).is_err() => {
                CudaSmoother::Mapped(Arc::new(CudaMappedPatches::new(self, grid)?))
            }
            2 => CudaSmoother::Plane(Arc::new(PlanePatches::new(self, grid)?)),
            _ => {
                let kernel = PatchKernel::fastest::<T>(grid);
                CudaSmoother::Patches(Arc::new(CudaPatches::new(self, grid, kernel, None)?))
            }
        })
    }

    fn box_patches(&self, grid: &BoxGrid, _smoother: Smoother) -> Option<usize> {
        Some(vertex_patches(grid, [false; 3]).iter().map(Vec::len).product())
    }

    fn box_largest(&self, smoother: &Self::BoxSmoother) -> Option<f64> {
        match smoother {
            CudaSmoother::Mapped(patches) => Some(patches.largest()),
            _ => None,
        }
    }

    fn box_set_largest(&self, smoother: &mut Self::BoxSmoother, largest: f64) -> Result<(), MultigridError> {
        match smoother {
            CudaSmoother::Mapped(patches) => patches.set_largest(largest),
            _ => Ok(()),
        }
    }

    fn box_coarsest(&self, grid: &BoxGrid) -> Result<Self::BoxSmoother, MultigridError> {
        let is_pair = |axis: usize| matches!(grid.widths(axis), [one, other] if one == other);
        let is_patch = grid.mapping().is_none()
            && (0..grid.dimension()).all(is_pair)
            && !grid.free_sides().as_flattened().contains(&true);
        Ok(match (grid.dimension(), is_patch) {
            (2, true) => CudaSmoother::Plane(Arc::new(PlanePatches::new(self, grid)?)),
            (3, true) => {
                CudaSmoother::Patches(Arc::new(CudaPatches::new(self, grid, PatchKernel::Whole, None)?))
            }
            (3, false) if grid.mapping().is_none() => {
                CudaSmoother::Coarsest(Arc::new(CudaCoarsest::new(self, grid)?))
            }
            _ => CudaSmoother::Inverse(Arc::new(CudaInverse::new(self, grid)?)),
        })
    }

    fn box_transfer(&self, coarse: &BoxGrid, fine: &BoxGrid) -> Result<Self::BoxTransfer, MultigridError> {
        Ok(Arc::new(CudaBoxTransfer {
            transfer: CudaTransfer::new(self, coarse, fine)?,
            operator: CudaBoxOperator::new(self, fine)?,
            workspace: Mutex::new(Buffer::zeros(self, fine.n_nodes())?),
        }))
    }

    fn box_residual(
        &self,
        a: &Self::Operator,
        r: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        a.residual(r, b, x)
    }

    fn box_smooth(
        &self,
        smoother: &Self::BoxSmoother,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        match smoother {
            CudaSmoother::Patches(patches) => patches.step(x, b, order),
            CudaSmoother::Plane(patches) => patches.step(x, b, order),
            CudaSmoother::Mapped(patches) => patches.step(x, b),
            CudaSmoother::Coarsest(coarsest) => coarsest.solve(x, b),
            CudaSmoother::Inverse(inverse) => inverse.solve(x, b),
        }
    }

    fn box_smooth_zero(
        &self,
        smoother: &Self::BoxSmoother,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        match smoother {
            CudaSmoother::Mapped(patches) => patches.step_from_zero(x, b),
            _ => self.box_smooth(smoother, x, b, order),
        }
    }

    fn box_restrict(
        &self,
        transfer: &Self::BoxTransfer,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        transfer.transfer.restrict(coarse, b)
    }

    fn box_restrict_residual(
        &self,
        transfer: &Self::BoxTransfer,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        let mut r = transfer.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        transfer.operator.residual(&mut r, b, x)?;
        transfer.transfer.restrict(coarse, &r)
    }

    fn box_prolongate(
        &self,
        transfer: &Self::BoxTransfer,
        x: &mut Buffer<T, Self>,
        coarse: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        transfer.transfer.prolongate(x, coarse)
    }

    fn box_add(&self, y: &mut Buffer<f64, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        let n = x.len();
        femtile_linalg::need("y", n, y.len())?;
        let kernel = Kernel::<(Write<f64>, f64, Read<T>, u64)>::new("box_add");
        let arguments = (y.write(), alpha, x.read(), n as u64);
        // SAFETY: both vectors have n values.
        Ok(unsafe { self.launch(&program::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}
