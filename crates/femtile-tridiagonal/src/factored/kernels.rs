use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;

use crate::{Bands, BatchProblem, TridiagonalKernels, Work};

/// One matrix for all lines: one value a row in each array.
#[derive(Debug)]
pub struct Factors<T: Scalar, D: Device> {
    /// $a_i$.
    pub lower: Buffer<T, D>,
    /// $b_i$.
    pub diagonal: Buffer<T, D>,
    /// $c_i$.
    pub upper: Buffer<T, D>,
    /// $r_i = 1 / (b_i - a_i c^*_{i-1})$; of open systems.
    pub inverse: Buffer<T, D>,
    /// $c^*_i = c_i r_i$; of open systems.
    pub c_star: Buffer<T, D>,
}

/// The kernels for systems that all have the same matrix.
pub trait FactoredKernels<T: Scalar>: TridiagonalKernels<T> {
    /// Queues the solution of all lines into `u`, whose values are the right sides where `d` is none; by default with
    /// the bands of the matrix repeated for each line, which then come from a cache.
    ///
    /// $$ d^*_i = (d_i - a_i d^*_{i-1}) r_i, \qquad u_i = d^*_i - c^*_i u_{i+1} $$
    ///
    /// # Shapes
    /// `u` and `d` hold what the lines of `problem` reach, whose bands do not move from line to line.
    /// # Cost
    /// Reads 1 value a row and writes 1.
    fn factored_solve(
        &self,
        problem: &BatchProblem,
        factors: &Factors<T, Self>,
        u: &mut Buffer<T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        let Factors { lower, diagonal, upper, .. } = factors;
        self.tridiagonal_solve(problem, u, Bands::Arrays { lower, diagonal, upper }, d, work)
    }
}
