use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;

use super::{Ell, EllKernels};
use crate::formats::HookKernels;
use crate::formats::rows::NO_COLUMN;

impl<T: Scalar> EllKernels<T> for Reference {
    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let (columns, values) = (a.columns.as_slice(), a.values.as_slice());
        self.hook_rows(y, x, hook, |y| {
            for (row, y) in y.as_mut_slice().iter_mut().enumerate() {
                let places = (0..a.steps * a.config.threads_per_row).map(|j| a.place(row, j));
                let entries = places.take_while(|&place| columns[place] != NO_COLUMN);
                *y = entries.map(|place| values[place] * x.as_slice()[columns[place] as usize]).sum();
            }
            Ok(())
        })
    }
}
