use femtile_device::{Buffer, Reference};

use super::Dense;
use crate::LinalgError;
use crate::vector::VectorKernels;

/// Terms of a combination at once.
const TERMS: usize = 4;

/// The acts of block methods on sets of vectors. By default they are made of those on single vectors.
///
/// # Shapes
/// All vectors have the same length n.
/// # Errors
/// [`LinalgError::Length`] when they do not.
pub trait BlockKernels: VectorKernels<f64> {
    /// $X^\mathsf{T} Y$. Reads n values of each vector at least once.
    fn gram(&self, x: &[&Buffer<f64, Self>], y: &[&Buffer<f64, Self>]) -> Result<Dense, LinalgError> {
        let rows = x.iter().flat_map(|x| y.iter().map(|y| self.dot(x, y)));
        Ok(Dense::of_values(y.len(), rows.collect::<Result<_, _>>()?))
    }

    /// $X C$, a vector for each column of C. Reads n values of each vector of X at least once, writes n of each column.
    ///
    /// # Errors
    /// As above; for another number of rows of C than vectors.
    fn multiply(&self, x: &[&Buffer<f64, Self>], c: &Dense) -> Result<Vec<Buffer<f64, Self>>, LinalgError> {
        let n = length(x, c)?;
        let column = |j: usize| {
            let (mut y, mut sum) = (Buffer::zeros(self, n)?, Buffer::zeros(self, n)?);
            for (k, part) in x.chunks(TERMS).enumerate() {
                let terms: Vec<_> =
                    part.iter().enumerate().map(|(i, &x)| (c[(k * TERMS + i, j)], x)).collect();
                self.combine(&mut sum, &terms)?;
                self.axpby(&mut y, 1.0, &sum, 1.0)?;
            }
            Ok(y)
        };
        (0..c.n_columns()).map(column).collect()
    }
}

impl BlockKernels for Reference {}

/// Returns the length of the vectors of two sets.
pub(super) fn common_length<D: VectorKernels<f64>>(
    x: &[&Buffer<f64, D>],
    y: &[&Buffer<f64, D>],
) -> Result<usize, LinalgError> {
    let n = x.first().or(y.first()).map_or(0, |x| x.len());
    x.iter().try_for_each(|x| crate::need("x", n, x.len()))?;
    y.iter().try_for_each(|y| crate::need("y", n, y.len()))?;
    Ok(n)
}

/// Returns the length of the vectors of a product $X C$.
pub(super) fn length<D: VectorKernels<f64>>(x: &[&Buffer<f64, D>], c: &Dense) -> Result<usize, LinalgError> {
    let n = common_length(x, &[])?;
    if c.n_columns() > 0 {
        crate::need("c", x.len(), c.n_rows())?;
    }
    Ok(n)
}
