use femtile_device::{Buffer, Device, Scalar};

use crate::LinalgError;
use crate::tridiagonal::Lines;

/// A matrix that was eliminated: one value a row in each array.
#[derive(Debug)]
pub struct Factors<T: Scalar, D: Device> {
    /// $a_i$, 0 in the first row.
    pub lower: Buffer<T, D>,
    /// $r_i = 1 / (b_i - a_i c^*_{i-1})$.
    pub inverse: Buffer<T, D>,
    /// $c^*_i = c_i r_i$, 0 in the last row.
    pub upper: Buffer<T, D>,
}

/// What solves systems with a matrix that was eliminated.
pub trait FactoredKernels<T: Scalar>: Device {
    /// Solves all lines into `u`, whose values are the right sides where `d` is none.
    ///
    /// $$ d^*_i = (d_i - a_i d^*_{i-1}) r_i, \qquad u_i = d^*_i - c^*_i u_{i+1} $$
    ///
    /// # Shapes
    /// `u` and `d` hold what `lines` reaches; the factors one value a row.
    /// # Cost
    /// Reads 1 value a row and writes 1; no division.
    fn factored_solve(
        &self,
        lines: &Lines,
        factors: &Factors<T, Self>,
        u: &mut Buffer<T, Self>,
        d: Option<&Buffer<T, Self>>,
    ) -> Result<(), LinalgError>;
}
