use femtile::device::{Buffer, Device, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;

/// What products share that cut the entries of a matrix, not its rows, into equal tiles.
pub trait TileKernels: Device {
    /// Entries of a tile.
    fn tile_entries(&self) -> usize;

    /// Sums that a product of `n_entries` entries needs room for, because tiles leave them open.
    fn tile_carries(&self, n_entries: usize) -> usize;
}

/// Hooks of products whose rows have no single owner.
pub trait HookKernels<T: Scalar>: Device {
    /// Calls `product`, which computes $y = A x$, between the calls that [`Hook`] promises.
    ///
    /// # Cost
    /// One more pass over y, and over what the hook reads, where there is a hook.
    fn hook_rows(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
        product: impl FnOnce(&mut Buffer<T, Self>) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError>;
}
