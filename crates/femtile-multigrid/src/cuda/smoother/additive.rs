use std::sync::{Mutex, MutexGuard, PoisonError};

use femtile_device::cuda::{Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};
use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_linalg::LinalgError;

use super::super::CudaBoxOperator;
use super::super::shape::PatchShape;
use super::skeleton::{self, paddings};
use super::{
    COLOUR_HEADER, Compiled, MODES_HEADER, NODES_HEADER, PatchKernel, WEIGHTS_HEADER, tables::Modes,
};
use crate::MultigridError;
use crate::grid::BoxGrid;
use crate::smoother::AdditivePatches;

static ADDITIVE: Program = Program {
    name: NAME,
    source: include_str!("additive.cu"),
    headers: &[RECIPROCAL_HEADER, STRIDED_HEADER, MODES_HEADER, COLOUR_HEADER, NODES_HEADER, WEIGHTS_HEADER],
};

/// Data of the additive Schwarz smoother besides the patches.
#[derive(Debug)]
pub(super) struct Additive<T: Scalar> {
    operator: CudaBoxOperator<T>,
    residual: Mutex<Buffer<T, Cuda>>,
    /// $\omega$.
    pub damping: f64,
}

impl<T: Scalar> Additive<T> {
    pub fn new(device: &Cuda, grid: &BoxGrid) -> Result<Self, MultigridError> {
        Ok(Self {
            operator: CudaBoxOperator::new(device, grid)?,
            residual: Mutex::new(Buffer::zeros(device, grid.n_nodes())?),
            damping: AdditivePatches::<f64>::damping(&Cpu::new(1)?, grid, [false; 3])?,
        })
    }

    /// $b - A x$.
    pub fn residual(
        &self,
        b: &Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
    ) -> Result<MutexGuard<'_, Buffer<T, Cuda>>, LinalgError> {
        let mut r = self.residual.lock().unwrap_or_else(PoisonError::into_inner);
        self.operator.residual(&mut r, b, x)?;
        Ok(r)
    }
}

/// Returns the lines of a patch, one thread each.
pub(super) fn lines(degree: usize) -> usize {
    (2 * degree - 1).pow(2)
}

/// Returns the shared memory of a team in bytes.
pub(super) fn bytes<T: Scalar>(degree: usize) -> usize {
    let n = 2 * degree - 1;
    let (row, layer) = paddings::<T>(n);
    ((n - 1) * (row + layer) + n) * size_of::<T>()
}

/// The variant of the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kind {
    /// For patches on free sides, or for all others.
    pub is_mirrored: bool,
    /// With factors of stiffness for each patch, or for equal cells.
    pub is_by_patch: bool,
}

/// The name of the kernel.
pub const NAME: &str = "vertex_patch_additive";

/// Returns the program of a variant, with its launch shape.
pub fn compiled<T: Scalar>(degree: usize, kind: Kind) -> Compiled {
    let shape = skeleton::shape::<T>(degree, PatchKernel::Additive);
    Compiled { program: program::<T>(degree, shape, kind), shape, bytes: bytes::<T>(degree) }
}

/// Returns the program of a variant.
pub(super) fn program<T: Scalar>(degree: usize, shape: PatchShape, kind: Kind) -> Specialisation {
    let (row, layer) = paddings::<T>(2 * degree - 1);
    let program = ADDITIVE
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_IS_MIRRORED", u8::from(kind.is_mirrored))
        .define("FEMTILE_BY_PATCH", u8::from(kind.is_by_patch))
        .define("FEMTILE_ROW", row)
        .define("FEMTILE_LAYER", layer)
        .header("tables.cuh", Modes::new(degree).text());
    shape.define(program)
}
