use femtile_device::{Buffer, Reference, Scalar};

use super::{FactoredKernels, Factors};
use crate::LinalgError;
use crate::tridiagonal::Lines;

impl<T: Scalar> FactoredKernels<T> for Reference {
    fn factored_solve(
        &self,
        lines: &Lines,
        factors: &Factors<T, Self>,
        u: &mut Buffer<T, Self>,
        d: Option<&Buffer<T, Self>>,
    ) -> Result<(), LinalgError> {
        let [a, r, c] = [&factors.lower, &factors.inverse, &factors.upper].map(|factor| factor.as_slice());
        for line in 0..lines.n_lines() {
            let place = |row: usize| lines.start(line) + row * lines.stride;
            for row in 0..lines.length {
                let value = d.unwrap_or(u).as_slice()[place(row)];
                let before = if row > 0 { a[row] * u.as_slice()[place(row - 1)] } else { T::ZERO };
                u.as_mut_slice()[place(row)] = (value - before) * r[row];
            }
            for row in (0..lines.length.saturating_sub(1)).rev() {
                let behind = c[row] * u.as_slice()[place(row + 1)];
                u.as_mut_slice()[place(row)] -= behind;
            }
        }
        Ok(())
    }
}
