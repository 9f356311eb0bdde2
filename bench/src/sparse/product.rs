//! The reference product that checks every format.

use femtile::device::HostDevice;
use femtile::linalg::sparse::Csr;

use super::right_vector;
use crate::BenchError;

/// The product with [`right_vector`] computed by plain loops, with a rounding error bound for each row.
#[derive(Debug, Clone)]
pub struct ReferenceProduct {
    y: Vec<f64>,
    tolerance: Vec<f64>,
}

impl ReferenceProduct {
    /// Computes the product and its bounds.
    ///
    /// $$ |\hat y_i - y_i| \le (n_i + 2)\,\varepsilon\,(|A||x|)_i $$
    ///
    /// bounds the difference of two sums of the $n_i$ entries of a row, in any order, with or without fused multiply-add.
    pub fn new<H: HostDevice>(a: &Csr<f64, H>) -> Self {
        let x = right_vector(a.n_cols());
        let (mut y, mut tolerance) = (Vec::with_capacity(a.n_rows()), Vec::with_capacity(a.n_rows()));
        for row in 0..a.n_rows() {
            let (mut n, mut sum, mut sum_abs) = (2.0, 0.0, 0.0);
            for (column, value) in a.row(row) {
                n += 1.0;
                sum += value * x[column];
                sum_abs += (value * x[column]).abs();
            }
            y.push(sum);
            tolerance.push(n * f64::EPSILON * sum_abs);
        }
        Self { y, tolerance }
    }

    /// Compares a product computed in another format.
    ///
    /// # Errors
    /// [`BenchError::Product`] with the first wrong row.
    pub fn check(&self, format: &str, y: &[f64]) -> Result<(), BenchError> {
        let rows = self.y.iter().zip(&self.tolerance).zip(y);
        // Sums that overflow depend on the order of summation.
        let is_right = |expected: f64, tolerance: f64, found: f64| {
            !tolerance.is_finite() || (found - expected).abs() <= tolerance
        };
        let wrong = rows.clone().position(|((expected, t), found)| !is_right(*expected, *t, *found));
        match wrong {
            None => Ok(()),
            Some(row) => {
                Err(BenchError::Product { format: format.into(), row, found: y[row], expected: self.y[row] })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use femtile::device::Reference;
    use femtile::linalg::sparse::csr::HostOffsets;

    use super::*;

    #[test]
    fn a_product_that_is_wrong_or_was_never_written_is_named_by_its_row() {
        let offsets = HostOffsets::from(vec![0, 1, 3, 3]);
        let a = Csr::from_parts(&Reference, 2, offsets, vec![0, 0, 1], vec![1.0, -1.0, 1.0]).unwrap();
        let expected = ReferenceProduct::new(&a);
        assert!(expected.check("any", &[1.0, 0.0625, 0.0]).is_ok());
        assert!(expected.check("any", &[1.0, 0.0625 + 1e-16, 0.0]).is_ok());
        for (row, wrong) in
            [[1.001, 0.0625, 0.0], [1.0, f64::NAN, 0.0], [1.0, 0.0625, 1e-300]].iter().enumerate()
        {
            let said = expected.check("HYB", wrong).unwrap_err().to_string();
            assert!(said.contains("HYB") && said.contains(&format!("row {row}")), "{said}");
        }
    }
}
