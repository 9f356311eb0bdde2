use femtile_device::{Device, HostDevice};
use femtile_linalg::sparse::{Csr, Format, SparseKernels, SparseMatrix};
use femtile_linalg::{LinalgError, LinearOperator};

/// A format that stores more entries than this for each non-zero is skipped.
const MAX_PADDING: f64 = 64.0;

/// A sparse format that a survey can time: a [`Format`] of the library, or one that the caller implements.
pub trait SurveyFormat<D: Device, H: HostDevice> {
    /// Returns the name of the format in reports.
    fn name(&self) -> String;

    /// Returns the reason to skip this format for `a`, found without storing the matrix.
    fn refusal(&self, _a: &Csr<f64, H>) -> Option<String> {
        None
    }

    /// Stores `a` in this format on `device`.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the format cannot hold the matrix; errors of the device.
    fn store(&self, device: &D, a: &Csr<f64, H>) -> Result<Stored<D>, LinalgError>;
}

/// A matrix stored in a format.
pub struct Stored<D: Device> {
    /// The product with the matrix.
    pub operator: Box<dyn LinearOperator<f64, D>>,
    /// Stored entries over non-zeros.
    pub padding: f64,
    /// Bytes that one product moves.
    pub bytes: usize,
}

impl<D: SparseKernels<f64>, H: HostDevice> SurveyFormat<D, H> for Format {
    fn name(&self) -> String {
        Format::name(self)
    }

    fn refusal(&self, a: &Csr<f64, H>) -> Option<String> {
        // ELLPACK gives every row the length of the longest.
        let Self::Ell(_) = self else { return None };
        let longest = a.row_lengths().into_iter().max().unwrap_or(0);
        let padding = a.n_rows() as f64 * f64::from(longest) / a.n_nonzeros().max(1) as f64;
        (padding > MAX_PADDING).then(|| format!("it would store {padding:.0} entries for each of the matrix"))
    }

    fn store(&self, device: &D, a: &Csr<f64, H>) -> Result<Stored<D>, LinalgError> {
        let matrix = SparseMatrix::new(device, a, *self)?;
        Ok(Stored { padding: matrix.padding(), bytes: matrix.product_bytes(), operator: Box::new(matrix) })
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::Reference;
    use femtile_linalg::sparse::csr::HostOffsets;
    use femtile_linalg::sparse::{EllConfig, EllWarpConfig};

    use super::*;

    /// A full first row above rows of one entry.
    fn arrow(n: usize) -> Csr<f64, Reference> {
        let offsets = HostOffsets::from_row_lengths((0..n).map(|row| if row == 0 { n } else { 1 }));
        let columns: Vec<u32> = (0..n as u32).chain(1..n as u32).collect();
        let values = vec![0.5; columns.len()];
        Csr::from_parts(&Reference, n, offsets, columns, values).unwrap()
    }

    #[test]
    fn ellpack_is_skipped_where_one_row_would_pad_all_others() {
        let is_skipped =
            |n, format: Format| SurveyFormat::<Reference, Reference>::refusal(&format, &arrow(n)).is_some();
        let (ell, sliced) = (Format::Ell(EllConfig::PLAIN), Format::EllWarp(EllWarpConfig::new(8)));
        assert_eq!(
            [is_skipped(40, ell), is_skipped(400, ell), is_skipped(400, sliced)],
            [false, true, false]
        );
    }
}
