use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::LinalgError;

use super::{Merge, MergeKernels};

impl<T: Scalar> MergeKernels<T> for Reference {
    fn merge_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Merge<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        let x = x.as_slice();
        for (row, y) in y.as_mut_slice().iter_mut().enumerate() {
            *y = a.matrix.row(row).map(|(column, value)| value * x[column]).sum();
        }
        Ok(())
    }
}
