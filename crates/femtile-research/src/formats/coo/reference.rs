use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::LinalgError;

use super::{Coo, CooKernels};

impl<T: Scalar> CooKernels<T> for Reference {
    fn coo_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
        add: bool,
    ) -> Result<(), LinalgError> {
        let (y, x) = (y.as_mut_slice(), x.as_slice());
        if !add {
            y.fill(T::ZERO);
        }
        let places = a.rows.as_slice().iter().zip(a.columns.as_slice());
        for ((&row, &column), &value) in places.zip(a.values.as_slice()) {
            y[row as usize] += value * x[column as usize];
        }
        Ok(())
    }
}
