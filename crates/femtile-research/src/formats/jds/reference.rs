use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;

use super::{Jds, JdsKernels};
use crate::formats::HookKernels;

impl<T: Scalar> JdsKernels<T> for Reference {
    fn jds_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Jds<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let (columns, values) = (a.columns.as_slice(), a.values.as_slice());
        self.hook_rows(y, x, hook, |y| {
            for (place, (&row, &length)) in a.rows.as_slice().iter().zip(a.lengths.as_slice()).enumerate() {
                let starts = a.starts.as_slice()[..length as usize].iter();
                let entries = starts.map(|&start| start as usize + place);
                let terms = entries.map(|entry| values[entry] * x.as_slice()[columns[entry] as usize]);
                y.as_mut_slice()[row as usize] = terms.sum();
            }
            Ok(())
        })
    }
}
