use femtile_device::Scalar;

/// The Cholesky factor L of a symmetric positive definite band matrix, $A = L L^\mathsf{T}$.
///
/// # Source
/// `[golub2013]`, section 4.3.5.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky<T> {
    /// Entries of a row up to its diagonal, whose reciprocal is stored.
    width: usize,
    /// `[n][width]`.
    entries: Vec<T>,
}

impl Cholesky<f64> {
    /// Factors a matrix given by its rows up to the diagonal, `[n][width]`; entries before the first column are ignored.
    ///
    /// # Panics
    /// When the matrix is not positive definite.
    pub fn new(width: usize, entries: Vec<f64>) -> Self {
        Self::try_new(width, entries).expect("the matrix is positive definite")
    }

    /// As [`Cholesky::new`]; none if the matrix is not positive definite.
    pub fn try_new(width: usize, mut entries: Vec<f64>) -> Option<Self> {
        for i in 0..entries.len() / width {
            let (above, row) = entries.split_at_mut(i * width);
            let row = &mut row[..width];
            let first = i.saturating_sub(width - 1);
            for j in first..i {
                // Row j up to column j; both rows from their first common column.
                let other = &above[j * width..][..width];
                let [own_at, other_at] = [width - 1 + j - i, width - 1];
                let n = (j - first).min(other_at).min(own_at);
                let sum: f64 = (1..=n).map(|k| row[own_at - k] * other[other_at - k]).sum();
                row[own_at] = (row[own_at] - sum) * other[other_at];
            }
            let sum: f64 = row[..width - 1].iter().map(|l| l * l).sum();
            let rest = row[width - 1] - sum;
            if rest.is_nan() || rest <= 0.0 {
                return None;
            }
            row[width - 1] = rest.sqrt().recip();
        }
        Some(Self { width, entries })
    }

    /// Returns the inverse of the matrix, `[n][n]`; $n^3 / 3$ multiplications for a full one.
    pub fn inverse(&self) -> Vec<f64> {
        let n = self.entries.len() / self.width;
        let mut inverse = vec![0.0; n * n];
        for row in 0..n {
            let behind = &mut inverse[row * n + row..(row + 1) * n];
            behind[0] = 1.0;
            self.solve_from(row, behind);
            (row + 1..n).for_each(|column| inverse[column * n + row] = inverse[row * n + column]);
        }
        inverse
    }

    /// Converts to another precision.
    pub fn to<T: Scalar>(&self) -> Cholesky<T> {
        Cholesky {
            width: self.width,
            entries: self.entries.iter().map(|&entry| T::from_f64(entry)).collect(),
        }
    }
}

impl<T: Scalar> Cholesky<T> {
    /// $x \leftarrow A^{-1} x$.
    pub fn solve(&self, x: &mut [T]) {
        self.solve_from(0, x);
    }

    /// Returns entries from `first` on of $A^{-1} x$ if earlier entries of x are zero. The slice begins at
    /// `first`.
    fn solve_from(&self, first: usize, x: &mut [T]) {
        let width = self.width;
        let rows = || self.entries.chunks_exact(width).skip(first).enumerate();
        for (i, row) in rows() {
            let n = i.min(width - 1);
            let known = &x[i - n..i];
            let sum: T = row[width - 1 - n..width - 1].iter().zip(known).map(|(l, x)| *l * *x).sum();
            x[i] = (x[i] - sum) * row[width - 1];
        }
        for (i, row) in rows().rev() {
            let n = i.min(width - 1);
            x[i] *= row[width - 1];
            let found = x[i];
            let to = x[i - n..i].iter_mut();
            to.zip(&row[width - 1 - n..width - 1]).for_each(|(x, l)| *x -= *l * found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_of_bands_have_small_residuals() {
        for (n, width) in [(1, 1), (2, 2), (7, 3), (19, 19), (40, 6)] {
            let entry = |i: usize, j: usize| {
                let (low, high) = (i.min(j), i.max(j));
                match high - low {
                    0 => width as f64,
                    gap if gap < width => (1.3 * low as f64 + 0.7 * high as f64).sin(),
                    _ => 0.0,
                }
            };
            let at = |i: usize, k: usize| (i + k + 1).checked_sub(width).map_or(0.0, |j| entry(i, j));
            let rows = (0..n * width).map(|place| at(place / width, place % width)).collect();
            let b: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
            let (cholesky, mut x) = (Cholesky::new(width, rows), b.clone());
            cholesky.solve(&mut x);
            for (i, b) in b.iter().enumerate() {
                let product: f64 = (0..n).map(|j| entry(i, j) * x[j]).sum();
                assert!((product - b).abs() < 1e-12, "{n} {width}, row {i}");
            }
            let inverse = cholesky.inverse();
            for (i, x) in x.iter().enumerate() {
                let product: f64 = inverse[i * n..(i + 1) * n].iter().zip(&b).map(|(f, b)| f * b).sum();
                assert!((product - x).abs() < 1e-12, "inverse {n} {width}, row {i}");
            }
        }
    }
}
