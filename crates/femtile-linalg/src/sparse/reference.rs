use femtile_device::{Buffer, Reference, Scalar};

use super::{HookKernels, TileKernels};
use crate::LinalgError;
use crate::hooks::Hook;
use crate::vector::sum::BLOCK;

impl TileKernels for Reference {
    fn tile_entries(&self) -> usize {
        BLOCK
    }

    /// None: plain loops leave nothing open.
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
        let n = y.len();
        if x.len() != n {
            return product(y);
        }
        hook.pre(0..n);
        product(y)?;
        for start in (0..n).step_by(BLOCK) {
            let rows = start..(start + BLOCK).min(n);
            hook.post(rows.clone(), &x.as_slice()[rows.clone()], &y.as_slice()[rows]);
        }
        Ok(())
    }
}
