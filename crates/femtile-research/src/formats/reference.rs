use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::{Hook, hook_rows};
use femtile::linalg::vector::sum::BLOCK;

use super::{HookKernels, TileKernels};

impl TileKernels for Reference {
    fn tile_entries(&self) -> usize {
        BLOCK
    }

    /// None: plain loops leave no sum open.
    fn tile_carries(&self, _n_entries: usize) -> usize {
        0
    }
}

impl<T: Scalar> HookKernels<T> for Reference {
    fn hook_rows(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
        product: impl FnOnce(&mut Buffer<T, Self>) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        hook_rows(hook, y, x, product)
    }
}
