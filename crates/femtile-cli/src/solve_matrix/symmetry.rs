//! Symmetry check of a matrix.

use std::fmt;

use femtile::device::Cpu;
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::Csr;

/// Differences of two entries below this part of the largest of them and of the diagonal are rounding.
const ROUNDING: f64 = 1e-10;

/// Two entries that should be equal and are not.
#[derive(Debug, PartialEq)]
pub struct Pair {
    row: usize,
    column: usize,
    value: f64,
    mirrored: f64,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, column, value, mirrored } = self;
        write!(
            f,
            "the entry of row {row}, column {column} is {value}, that of row {column}, column {row} is {mirrored} (counted \
             from 0)"
        )
    }
}

/// Compares a square matrix with its transpose, and returns the first pair of entries that differ.
///
/// # Errors
/// Errors of the transpose.
pub fn first_asymmetry(a: &Csr<f64, Cpu>) -> Result<Option<Pair>, LinalgError> {
    let transpose = a.transpose()?;
    let diagonal: Vec<f64> = (0..a.n_rows()).map(|row| entry(a, row, row).abs()).collect();
    let differ = |row: usize, column: usize, value: f64, mirrored: f64| {
        let scale = (diagonal[row] * diagonal[column]).sqrt().max(value.abs()).max(mirrored.abs());
        (value - mirrored).abs() > ROUNDING * scale
    };
    for row in 0..a.n_rows() {
        let (mut own, mut other) = (a.row(row).peekable(), transpose.row(row).peekable());
        loop {
            // An entry that one of the two does not store is zero.
            let column = match (own.peek(), other.peek()) {
                (Some((i, _)), Some((j, _))) => *i.min(j),
                (Some((i, _)), None) | (None, Some((i, _))) => *i,
                (None, None) => break,
            };
            let value = own.next_if(|(i, _)| *i == column).map_or(0.0, |(_, value)| value);
            let mirrored = other.next_if(|(i, _)| *i == column).map_or(0.0, |(_, value)| value);
            if differ(row, column, value, mirrored) {
                return Ok(Some(Pair { row, column, value, mirrored }));
            }
        }
    }
    Ok(None)
}

fn entry(a: &Csr<f64, Cpu>, row: usize, column: usize) -> f64 {
    a.row(row).find(|(found, _)| *found == column).map_or(0.0, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use femtile::linalg::sparse::Triplets;

    use super::*;

    fn found(entries: &[(usize, usize, f64)]) -> Option<Pair> {
        let mut triplets = Triplets::new(3, 3);
        entries.iter().for_each(|&(row, column, value)| triplets.push(row, column, value).unwrap());
        first_asymmetry(&triplets.into_csr(&Cpu::new(1).unwrap()).unwrap().matrix).unwrap()
    }

    #[test]
    fn rounding_is_no_asymmetry_and_anything_more_is() {
        let with = |value: f64| [(0, 0, 4.0), (1, 1, 4.0), (0, 1, -1e-3), (1, 0, value)];
        assert_eq!(found(&with(-1e-3)), None);
        assert_eq!(found(&with(-1e-3 + 1e-12)), None);
        let pair = Pair { row: 0, column: 1, value: -1e-3, mirrored: -1e-3 + 1e-8 };
        assert_eq!(found(&with(-1e-3 + 1e-8)), Some(pair));
    }

    #[test]
    fn an_entry_without_its_mirror_image_is_found_from_either_side() {
        let pair = Pair { row: 0, column: 2, value: 0.0, mirrored: 1.0 };
        assert_eq!(found(&[(0, 0, 1.0), (2, 0, 1.0), (2, 2, 1.0)]), Some(pair));
        let pair = Pair { row: 0, column: 2, value: 1.0, mirrored: 0.0 };
        assert_eq!(found(&[(0, 0, 1.0), (0, 2, 1.0)]), Some(pair));
        assert_eq!(found(&[(0, 0, 1.0), (0, 2, 0.0), (1, 1, 2.0)]), None);
    }
}
