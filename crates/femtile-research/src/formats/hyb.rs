//! Hybrid: what most rows have in ELLPACK, the rest of the long ones in coordinates.

use femtile::device::{Buffer, Device, HostDevice, Reference, Scalar};
use femtile::linalg::hooks::{Hook, NoHook};
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::{LinalgError, LinearOperator, need_product};

use super::coo::{Coo, CooKernels, Entries};
use super::ell::{Ell, EllConfig, EllKernels};
use super::linear_operator;
use super::rows::{csr_from_rows, padding};

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
pub struct Hyb<T: Scalar, D: CooKernels<T>> {
    regular: Ell<T, D>,
    rest: Coo<T, D>,
}

/// The products of both parts.
pub trait HybKernels<T: Scalar>: CooKernels<T> + EllKernels<T> {}

impl<T: Scalar, D: CooKernels<T> + EllKernels<T>> HybKernels<T> for D {}

impl<T: Scalar, D: HybKernels<T>> Hyb<T, D> {
    /// The matrix `a` on `device`.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] where a part has more than $2^{32} - 1$ stored entries in ELLPACK; errors of the device.
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>) -> Result<Self, LinalgError> {
        let width = width(&a.row_lengths());
        let regular = Ell::of_width(device, a, width, EllConfig::PLAIN)?;
        let mut rest = Entries { rows: vec![], columns: vec![], values: vec![] };
        for row in 0..a.n_rows() {
            for (column, value) in a.row(row).skip(width) {
                rest.rows.push(row as u32);
                rest.columns.push(column as u32);
                rest.values.push(value);
            }
        }
        Ok(Self { regular, rest: Coo::from_entries(device, [a.n_rows(), a.n_cols()], rest)? })
    }

    /// The same matrix in compressed sparse rows on `device`.
    ///
    /// # Errors
    /// Errors of the devices.
    pub fn to_csr<E: Device>(&self, device: &E) -> Result<Csr<T, E>, LinalgError> {
        let (regular, rest) = (self.regular.to_csr(&Reference)?, self.rest.to_csr(&Reference)?);
        let (mut lengths, mut columns, mut values) = (vec![], vec![], vec![]);
        for row in 0..regular.n_rows() {
            let before = columns.len();
            for (column, value) in regular.row(row).chain(rest.row(row)) {
                columns.push(column as u32);
                values.push(value);
            }
            lengths.push((columns.len() - before) as u32);
        }
        csr_from_rows(device, regular.n_cols(), &lengths, columns, values)
    }

    /// Entries in ELLPACK and in coordinates, without padding.
    pub fn parts(&self) -> [usize; 2] {
        [self.regular.n_nonzeros(), self.rest.n_nonzeros()]
    }

    /// Stored entries over non-zeros; 1 where there are none.
    pub fn padding(&self) -> f64 {
        padding(self.regular.n_stored() + self.rest.n_nonzeros(), self.parts().iter().sum())
    }

    /// Bytes that one product must move: those of both parts, and no second one where it is empty.
    pub fn product_bytes(&self) -> usize {
        if self.rest.n_nonzeros() == 0 {
            return self.regular.product_bytes();
        }
        self.regular.product_bytes() + self.rest.product_bytes()
    }
}

/// The largest number of entries that at least a third of the rows have.
fn width(lengths: &[u32]) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let third = lengths.len().div_ceil(3);
    third.checked_sub(1).map_or(0, |last| sorted[last] as usize)
}

linear_operator!(
    Hyb,
    HybKernels<T>,
    |a| [a.regular.n_rows(), a.regular.n_cols(), a.regular.device()],
    |y, x, hook| {
        if a.rest.n_nonzeros() == 0 {
            return a.regular.apply_with(y, x, hook);
        }
        let device = a.device();
        device.hook_rows(y, x, hook, |y| {
            device.ell_apply(y, &a.regular, x, &NoHook)?;
            device.coo_apply(y, &a.rest, x, true)
        })
    }
);

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
