use femtile_device::{Device, HostDevice};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::choice::Described;
use femtile_sparse::{Csr, Format, ProductMatrix, SparseKernels};

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

impl<D: SparseKernels<f64> + Described, H: HostDevice> SurveyFormat<D, H> for Format {
    fn name(&self) -> String {
        Format::name(self)
    }

    fn store(&self, device: &D, a: &Csr<f64, H>) -> Result<Stored<D>, LinalgError> {
        let matrix = ProductMatrix::from_csr(device, a, *self)?;
        let padding = matrix.n_stored() as f64 / a.n_nonzeros().max(1) as f64;
        Ok(Stored { padding, bytes: matrix.product_bytes(), operator: Box::new(matrix) })
    }
}
