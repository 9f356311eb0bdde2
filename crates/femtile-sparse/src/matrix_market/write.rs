//! The writer: coordinates, one entry a line, each value as the shortest text that reads back the same.

use std::io::Write;
use std::path::Path;

use femtile_device::{HostDevice, Scalar};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::atomic::write_atomically;
use super::{MatrixMarketError, Symmetry};
use crate::Csr;

/// Settings for writing a matrix.
#[derive(Debug, Clone, Default)]
pub struct WriteConfig {
    /// Which triangles the file holds; the matrix must be as it says.
    pub symmetry: Symmetry,
    /// Comments below the banner.
    pub comments: Vec<String>,
}

/// Writes a matrix, compressed where the name ends in `.gz`; [`super::read`] gives the same bits back.
///
/// The file takes its name only when it is complete.
///
/// # Errors
/// [`MatrixMarketError::Matrix`] naming the first entry that is not finite or has no mirror image though
/// the configuration promises one; [`MatrixMarketError::Io`] with the path.
pub fn write<T: Scalar, D: HostDevice>(
    path: &Path,
    matrix: &Csr<T, D>,
    config: &WriteConfig,
) -> Result<(), MatrixMarketError> {
    let refuse = |message| MatrixMarketError::Matrix { path: path.into(), message };
    check_finite(matrix).map_err(refuse)?;
    if config.symmetry != Symmetry::General {
        check_symmetry(matrix, &matrix.transpose()?, config.symmetry).map_err(refuse)?;
    }
    let packed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let written = write_atomically(path, |out| {
        if packed {
            let mut out = GzEncoder::new(out, Compression::default());
            write_text(&mut out, matrix, config)?;
            out.finish().map(|_| ())
        } else {
            write_text(out, matrix, config)
        }
    });
    written.map_err(|source| MatrixMarketError::Io { path: path.into(), action: "write", source })
}

fn check_finite<T: Scalar, D: HostDevice>(matrix: &Csr<T, D>) -> Result<(), String> {
    for row in 0..matrix.n_rows() {
        if let Some((column, value)) = matrix.row(row).find(|(_, value)| !value.is_finite()) {
            return Err(format!("the entry of row {row}, column {column} is {value}"));
        }
    }
    Ok(())
}

fn check_symmetry<T: Scalar, D: HostDevice>(
    matrix: &Csr<T, D>,
    transpose: &Csr<T, D>,
    symmetry: Symmetry,
) -> Result<(), String> {
    if matrix.n_rows() != matrix.n_cols() {
        return Err(format!("a matrix of {} × {} is not {symmetry}", matrix.n_rows(), matrix.n_cols()));
    }
    let mirrored = |value: T| if symmetry == Symmetry::SkewSymmetric { -value } else { value };
    for row in 0..matrix.n_rows() {
        let mirror = transpose.row(row).map(|(column, value)| (column, mirrored(value)));
        if !matrix.row(row).eq(mirror) {
            return Err(format!("row {row} is not that of a {symmetry} matrix; write it as `general`"));
        }
    }
    Ok(())
}

fn write_text<T: Scalar, D: HostDevice>(
    out: &mut dyn Write,
    matrix: &Csr<T, D>,
    config: &WriteConfig,
) -> std::io::Result<()> {
    let held = |row: usize, column: usize| config.symmetry == Symmetry::General || column <= row;
    let in_row = |row| matrix.row(row).filter(move |&(column, _)| held(row, column));
    writeln!(out, "%%MatrixMarket matrix coordinate real {}", config.symmetry)?;
    for line in config.comments.iter().flat_map(|comment| comment.lines()) {
        writeln!(out, "% {line}")?;
    }
    let n_entries: usize = (0..matrix.n_rows()).map(|row| in_row(row).count()).sum();
    writeln!(out, "{} {} {n_entries}", matrix.n_rows(), matrix.n_cols())?;
    for row in 0..matrix.n_rows() {
        for (column, value) in in_row(row) {
            // Of all formats, `Debug` is the one that is shortest, exact and scientific where digits would be many.
            writeln!(out, "{} {} {value:?}", row + 1, column + 1)?;
        }
    }
    Ok(())
}
