use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::Hook;

use super::{EllWarp, EllWarpConfig};
use crate::Csr;

/// The acts on an ELL-WARP matrix with values of type `V` and vectors of type `T` that a device carries out.
pub trait EllWarpKernels<T: Scalar, V: Scalar>: Device {
    /// Lanes that slices may have here, powers of two.
    const LANES: &'static [usize];

    /// $y = A x$ with the calls that [`Hook`] promises.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads each stored value and its column once, 4 to 16 bytes a slice, x as often as caches let it go; writes y.
    /// # Source
    /// `[wong2015]`, Listings 2 and 3. Differs: a slice may have several rows a thread, columns may be distances.
    fn ell_warp_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;

    /// Lays the entries of `csr` out in slices.
    ///
    /// # Cost
    /// That of [`EllWarp::convert`].
    /// # Errors
    /// Those of [`EllWarp::from_csr`].
    fn ell_warp_convert(
        &self,
        csr: &Csr<V, Self>,
        config: &EllWarpConfig,
    ) -> Result<EllWarp<T, Self, V>, LinalgError>;

    /// Counts the entries that [`EllWarpKernels::ell_warp_convert`] would store, padding included.
    ///
    /// # Cost
    /// Reads each offset twice; a GPU is waited for once.
    /// # Errors
    /// Those of [`EllWarp::from_csr`].
    fn ell_warp_stored(&self, csr: &Csr<V, Self>, config: &EllWarpConfig) -> Result<usize, LinalgError>;

    /// Takes the values of a matrix with the pattern that `a` was made from.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `csr` has another number of rows or non-zeros.
    /// # Cost
    /// Reads and writes each value once; 4 bytes a row, with [`super::Numbering::SortedColumns`] 4 an entry as well.
    fn ell_warp_refill(&self, a: &mut EllWarp<T, Self, V>, csr: &Csr<V, Self>) -> Result<(), LinalgError>;

    /// `to[place] = from[rows[place]]`, with the row at each place of `a`.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector has not an entry for each row.
    fn ell_warp_sort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError>;

    /// `to[rows[place]] = from[place]`, with the row at each place of `a`.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector has not an entry for each row.
    fn ell_warp_unsort(
        &self,
        to: &mut Buffer<T, Self>,
        from: &Buffer<T, Self>,
        a: &EllWarp<T, Self, V>,
    ) -> Result<(), LinalgError>;
}
