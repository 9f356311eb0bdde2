//! Checks that multigrid supports a matrix.

use femtile_device::{Scalar, parallel};

use crate::AmgError;
use crate::setup::rows::{RowAccess, Rows};

/// The largest relative asymmetry that is attributed to rounding.
const TOLERANCE: f64 = 1e-6;
/// Rows that one piece of work takes.
const PIECE: usize = 4096;

/// Returns the diagonal of a matrix that was multiplied by `scale`; refuses entries that are not finite, and diagonal
/// entries that are not positive.
pub(crate) fn diagonal<T: Scalar>(a: &Rows<T>, scale: f64) -> Result<Vec<T>, AmgError> {
    let of_row = |row: usize| {
        let (columns, values) = a.row(row);
        let own = columns.iter().position(|&column| column as usize == row).map_or(T::ZERO, |i| values[i]);
        let sum: T = values.iter().copied().sum();
        if sum.is_finite() && own > T::ZERO { own } else { T::ZERO }
    };
    let diagonal = parallel::map(a.n_rows(), PIECE, of_row);
    match diagonal.iter().position(|own| *own == T::ZERO) {
        Some(row) => refuse_row(a, row, scale).map(|()| diagonal),
        None => Ok(diagonal),
    }
}

/// Returns the smallest allowed diagonal entry for a largest entry between 1 and 2: squares of entries are compared.
pub(crate) fn smallest<T: Scalar>() -> f64 {
    if T::EPSILON.to_f64() > 1e-10 { 1e-15 } else { 1e-140 }
}

/// Refuses diagonal entries that are too small beside a largest entry between 1 and 2.
pub(crate) fn range<T: Scalar>(diagonal: &[T]) -> Result<(), AmgError> {
    match diagonal.iter().position(|own| own.to_f64() < smallest::<T>()) {
        Some(row) => Err(AmgError::Range { row, ratio: diagonal[row].to_f64() }),
        None => Ok(()),
    }
}

/// Returns the error of an invalid row.
fn refuse_row<T: Scalar>(a: &Rows<T>, row: usize, scale: f64) -> Result<(), AmgError> {
    let (columns, values) = a.row(row);
    if let Some(i) = values.iter().position(|value| !value.is_finite()) {
        let (column, value) = (columns[i] as usize, values[i].to_f64() / scale);
        return Err(AmgError::NotFinite { row, column, value });
    }
    Err(AmgError::Diagonal { row, value: diagonal_entry(a, row) / scale })
}

/// Returns the diagonal entry of a row, 0 if absent.
pub(crate) fn diagonal_entry<T: Scalar>(a: &Rows<T>, row: usize) -> f64 {
    let (columns, values) = a.row(row);
    columns.iter().position(|&column| column as usize == row).map_or(0.0, |i| values[i].to_f64())
}

/// Compares $x^\mathsf{T} A y$ with $y^\mathsf{T} A x$ for two pseudorandom vectors, and searches for the asymmetric entry
/// only if they differ.
pub(crate) fn symmetry<T: Scalar>(a: &Rows<T>, scale: f64) -> Result<(), AmgError> {
    let of_row = |row: usize| [1, 2].map(|stream| mixed(row as u64, stream) as f32);
    let vectors = parallel::map(a.n_rows(), PIECE, of_row);
    let of_piece = |piece: usize| {
        let mut sums = [0.0_f64; 2];
        for row in piece * PIECE..((piece + 1) * PIECE).min(a.n_rows()) {
            let (columns, values) = a.row(row);
            let (mut ax, mut ay, mut size) = (0.0_f64, 0.0_f64, 0.0_f64);
            for (&column, value) in columns.iter().zip(values) {
                let (value, [x, y]) = (value.to_f64(), vectors[column as usize].map(f64::from));
                ax += value * x;
                ay += value * y;
                size += value * value;
            }
            let [x, y] = vectors[row].map(f64::from);
            sums[0] += x * ay - y * ax;
            sums[1] += size;
        }
        sums
    };
    let pieces = parallel::map(a.n_rows().div_ceil(PIECE), 1, of_piece);
    let difference: f64 = pieces.iter().map(|sums| sums[0]).sum();
    let size = pieces.iter().map(|sums| sums[1]).sum::<f64>().sqrt();
    if is_symmetric(difference, size) {
        return Ok(());
    }
    first_asymmetry(a, size, scale)
}

/// Returns whether the difference of $x^\mathsf{T} A y$ and $y^\mathsf{T} A x$ is rounding, for a matrix with
/// this Frobenius norm. Entries of x and y are below one.
pub(crate) fn is_symmetric(difference: f64, size: f64) -> bool {
    difference.abs() <= TOLERANCE * size
}

/// Returns a pseudorandom number in [−1, 1) for an index.
fn mixed(i: u64, stream: u64) -> f64 {
    let mixed = (i ^ stream << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

fn first_asymmetry<T: Scalar>(a: &Rows<T>, size: f64, scale: f64) -> Result<(), AmgError> {
    let transpose = a.transpose();
    let (mut square, mut first) = (0.0, None);
    for row in 0..a.n_rows() {
        let mut other: Vec<(u32, f64)> = entries(&transpose, row);
        for (column, value) in entries(a, row) {
            let mirror = match other.iter().position(|&(c, _)| c == column) {
                Some(i) => other.swap_remove(i).1,
                None => 0.0,
            };
            square += (value - mirror) * (value - mirror);
            if first.is_none() && (value - mirror).abs() > TOLERANCE * value.abs().max(mirror.abs()) {
                first = Some((row, column as usize, value, mirror));
            }
        }
        square += other.iter().map(|(_, mirror)| mirror * mirror).sum::<f64>();
        if let (None, Some(&(column, mirror))) = (first, other.first()) {
            first = Some((row, column as usize, 0.0, mirror));
        }
    }
    let asymmetry = square.sqrt() / size;
    match first {
        Some((row, column, value, mirror)) if asymmetry > TOLERANCE => {
            let (value, mirror) = (value / scale, mirror / scale);
            Err(AmgError::NotSymmetric { row, column, value, mirror, asymmetry })
        }
        _ => Ok(()),
    }
}

fn entries<T: Scalar>(a: &Rows<T>, row: usize) -> Vec<(u32, f64)> {
    let (columns, values) = a.row(row);
    columns.iter().zip(values).map(|(&column, value)| (column, value.to_f64())).collect()
}
