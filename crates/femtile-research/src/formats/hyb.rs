//! Hybrid: what most rows have in ELLPACK, the rest of the long ones in coordinates.

use femtile::device::{Buffer, HostDevice, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::Csr;

use super::{Coo, Ell, FormatKernels};

/// A sparse matrix as the sum of one in ELLPACK and one in coordinates.
///
/// The first part is as wide as at least a third of the rows are long: the rule takes an entry in ELLPACK to be three
/// times as fast as one in coordinates.
///
/// # Cost
/// A product is those of both parts; the second reads and writes y once more where it has entries.
/// # Source
/// `[wong2015]`, section 4, HYB; the width is by the rule of Bell and Garland, without their least number of rows.
#[derive(Debug)]
pub struct Hyb<T: Scalar, D: FormatKernels<T>> {
    regular: Ell<T, D>,
    rest: Coo<T, D>,
}

impl<T: Scalar, D: FormatKernels<T>> Hyb<T, D> {
    /// The matrix `a` on `device`.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] where a part has more than $2^{32} - 1$ stored entries in ELLPACK; errors of the device.
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>) -> Result<Self, LinalgError> {
        let width = width(&a.row_lengths());
        Ok(Self { regular: Ell::of_width(device, a, width)?, rest: Coo::behind(device, a, width)? })
    }

    /// Returns the number of stored entries.
    pub fn n_stored(&self) -> usize {
        self.regular.values.len() + self.rest.values.len()
    }

    /// Computes $y = A x$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector does not fit; errors of the device.
    pub fn apply(&self, y: &mut Buffer<T, D>, x: &Buffer<T, D>) -> Result<(), LinalgError> {
        let device = x.device();
        device.ell_apply(y, &self.regular, x)?;
        if self.rest.values.is_empty() { Ok(()) } else { device.coo_add(y, &self.rest, x) }
    }
}

/// The largest number of entries that at least a third of the rows have.
fn width(lengths: &[u32]) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let third = lengths.len().div_ceil(3);
    third.checked_sub(1).map_or(0, |last| sorted[last] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_rows_is_as_long_as_the_regular_part_is_wide() {
        assert_eq!(width(&[5, 1, 1]), 5);
        assert_eq!(width(&[9, 5, 1, 1]), 5);
        assert_eq!(width(&[2, 2, 0, 0, 0, 0, 7]), 2);
        assert_eq!(width(&[]), 0);
    }
}
