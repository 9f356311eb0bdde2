use femtile_device::Scalar;

use super::Factor;

/// As [`super::contract`] with `lanes` tensors side by side, by plain loops.
#[inline(always)]
pub fn contract<T: Scalar>(factor: &Factor<T>, (inner, lanes): (usize, usize), x: &[T], y: &mut [T]) {
    let stripe = inner * lanes;
    let tensors = x.chunks_exact(factor.n_cols * stripe).zip(y.chunks_exact_mut(factor.n_rows * stripe));
    for (x, y) in tensors {
        for row in 0..factor.n_rows {
            for at in 0..stripe {
                let mut sum = T::ZERO;
                for column in 0..factor.n_cols {
                    sum += factor.entries[row * factor.n_cols + column] * x[column * stripe + at];
                }
                y[row * stripe + at] = sum;
            }
        }
    }
}
