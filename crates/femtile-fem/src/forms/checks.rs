//! Checks of ellipticity, point by point.

use femtile_form::{Coefficient, FormError, Points, multiple_of_identity};

/// Refuses a negative value.
pub fn not_negative(field: &'static str, values: &[f64], points: &Points) -> Result<(), FormError> {
    match values.iter().position(|&value| value < 0.0) {
        Some(i) => {
            let (cell, point) = (points.cells[i] as usize, points.point(i));
            Err(FormError::Negative { field, cell, point, value: values[i], unknown: points.unknown(i) })
        }
        None => Ok(()),
    }
}

/// Refuses a scalar conductivity that is not positive.
pub fn positive(values: &[f64], points: &Points) -> Result<(), FormError> {
    match values.iter().position(|&value| value <= 0.0) {
        Some(i) => Err(indefinite(multiple_of_identity(values[i]), points, i)),
        None => Ok(()),
    }
}

/// Returns whether the form has a reaction but no conduction.
pub(super) fn is_projection(sigma: &Coefficient, lambda: &Coefficient) -> bool {
    sigma.as_constant() == Some(0.0) && lambda.as_constant() != Some(0.0)
}

/// Refuses a conductivity that is not symmetric positive definite.
pub fn definite(tensors: &[[[f64; 3]; 3]], points: &Points, dimension: usize) -> Result<(), FormError> {
    match tensors.iter().position(|tensor| !is_definite(tensor, dimension)) {
        Some(i) => Err(indefinite(tensors[i], points, i)),
        None => Ok(()),
    }
}

fn indefinite(tensor: [[f64; 3]; 3], points: &Points, i: usize) -> FormError {
    let (cell, point, unknown) = (points.cells[i] as usize, points.point(i), points.unknown(i));
    FormError::Indefinite { field: "sigma", cell, point, tensor, unknown }
}

/// Returns whether the leading block is symmetric to rounding and all its leading minors are positive.
fn is_definite(t: &[[f64; 3]; 3], dimension: usize) -> bool {
    let block = || (0..dimension).flat_map(|i| (0..dimension).map(move |j| (i, j)));
    let largest = block().map(|(i, j)| t[i][j].abs()).fold(0.0, f64::max);
    if !block().all(|(i, j)| (t[i][j] - t[j][i]).abs() <= 1e-12 * largest) {
        return false;
    }
    // Entries are scaled so that minors of very large or small tensors neither overflow nor vanish.
    let s = |i: usize, j: usize| t[i][j] / largest;
    let second = s(0, 0) * s(1, 1) - s(0, 1) * s(1, 0);
    let third = s(2, 0) * (s(0, 1) * s(1, 2) - s(0, 2) * s(1, 1))
        - s(2, 1) * (s(0, 0) * s(1, 2) - s(0, 2) * s(1, 0))
        + s(2, 2) * second;
    s(0, 0) > 0.0 && second > 0.0 && (dimension < 3 || third > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definiteness_follows_the_leading_block() {
        let tensor = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, -1.0]];
        assert!(is_definite(&tensor, 2) && !is_definite(&tensor, 3));
        let skew = [[2.0, 1.0, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1.0]];
        assert!(!is_definite(&skew, 2));
        for scale in [1e-200, 1e200] {
            let tensor =
                [[3.0, 1.0, 0.5], [1.0, 2.0, 0.2], [0.5, 0.2, 1.0]].map(|row| row.map(|x| x * scale));
            assert!(is_definite(&tensor, 3));
        }
        assert!(!is_definite(&[[0.0; 3]; 3], 3));
    }
}
