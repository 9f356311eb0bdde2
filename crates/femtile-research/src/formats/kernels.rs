use femtile::device::{Buffer, Device, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;

/// Tile sizes of products that divide the entries of a matrix, not its rows, into equal tiles.
pub trait TileKernels: Device {
    /// Returns the entries of a tile.
    fn tile_entries(&self) -> usize;

    /// Returns the number of open sums at the ends of tiles in a product of `n_entries` entries.
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
