//! The kernels of a cycle by plain loops: the oracle.

use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;

use crate::kernels::AmgKernels;

impl<H: Scalar> AmgKernels<H> for Reference {
    fn amg_dot(&self, x: &Buffer<H, Self>, y: &Buffer<H, Self>) -> Result<f64, LinalgError> {
        self.dot(x, y)
    }
}
