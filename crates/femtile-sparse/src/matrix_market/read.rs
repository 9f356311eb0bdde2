//! The reader: a line at a time into triplets.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use femtile_device::{Reference, Scalar};

use super::header::{Field, Header, Layout, Symmetry};
use super::lines::{Lines, quoted, word, words};
use super::value::{value, whole};
use super::{MatrixMarket, MatrixMarketError};
use crate::{Csr, Gathered, Triplets};

/// Settings for reading a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadConfig {
    /// Refuse files that hold places alone, whose values would be taken as ones.
    pub values_needed: bool,
}

/// Reads a Matrix Market file, plain or compressed; the values of a pattern are ones.
///
/// # Cost
/// The file is streamed; an entry takes `8 + size` bytes while it is read and `12 + 2 size` while rows are
/// sorted, twice that for symmetric files.
/// # Errors
/// [`MatrixMarketError`] with the path, and with the line where the content is at fault.
pub fn read<T: Scalar>(path: &Path) -> Result<MatrixMarket<T>, MatrixMarketError> {
    read_with(path, &ReadConfig::default())
}

/// Reads a Matrix Market file as `config` says.
///
/// # Errors
/// As [`read`].
pub fn read_with<T: Scalar>(path: &Path, config: &ReadConfig) -> Result<MatrixMarket<T>, MatrixMarketError> {
    let opened = File::open(path);
    let file =
        opened.map_err(|source| MatrixMarketError::Io { path: path.into(), action: "read", source })?;
    parse(path, file, config)
}

/// Reads a Matrix Market file from its bytes; `path` names it in errors.
///
/// # Errors
/// As [`read`].
pub fn parse<T: Scalar>(
    path: &Path,
    bytes: impl Read,
    config: &ReadConfig,
) -> Result<MatrixMarket<T>, MatrixMarketError> {
    let mut lines = Lines::new(path, bytes)?;
    let header = Header::read(&mut lines)?;
    if config.values_needed && header.field == Field::Pattern {
        let advice = "this file says where entries are but not what they are; take one with `real` values";
        return Err(lines.unsupported("pattern files where values are needed", advice));
    }
    let mut notes = Notes::default();
    let triplets = match header.layout {
        Layout::Coordinate => coordinate(&mut lines, &header, &mut notes)?,
        Layout::Array => array(&mut lines, &header, &mut notes)?,
    };
    let Gathered { matrix, n_not_finite, .. } = triplets.into_csr(&Reference)?;
    if n_not_finite > 0 {
        let message = format!("entries of the same place add up beyond the range of {}", T::NAME);
        return Err(lines.error(message));
    }
    let n_duplicates = notes.n_read - n_held(&matrix, header.symmetry);
    let notes = notes.into_text(&header, n_duplicates);
    let Header { field, symmetry, comments, .. } = header;
    Ok(MatrixMarket { matrix, field, symmetry, comments, n_duplicates, notes })
}

/// Counts while entries are read.
#[derive(Default)]
struct Notes {
    /// Entries of the file that became entries of the matrix.
    n_read: usize,
    /// Zeros among the values.
    n_zeros: usize,
}

impl Notes {
    fn into_text(self, header: &Header, n_duplicates: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if header.field == Field::Pattern {
            notes.push("the file is a pattern: every value is taken as 1".into());
        }
        if n_duplicates > 0 {
            notes.push(format!("entries that came again and were added up: {n_duplicates}"));
        }
        match (self.n_zeros, header.layout) {
            (0, _) => {}
            (n, Layout::Coordinate) => notes.push(format!("zeros among the entries, which stay stored: {n}")),
            (n, Layout::Array) => notes.push(format!("zeros of the array, which are not stored: {n}")),
        }
        notes
    }
}

fn coordinate<T: Scalar>(
    lines: &mut Lines<'_>,
    header: &Header,
    notes: &mut Notes,
) -> Result<Triplets<T>, MatrixMarketError> {
    let mut triplets = Triplets::new(header.n_rows, header.n_cols);
    while lines.advance_to_words()? {
        if notes.n_read == header.n_entries {
            return Err(too_many(lines, header));
        }
        let (row, column, value) = entry::<T>(lines, header)?;
        notes.n_read += 1;
        notes.n_zeros += usize::from(value == T::ZERO);
        push(&mut triplets, header.symmetry, row, column, value)?;
    }
    complete(lines, header, notes.n_read)?;
    Ok(triplets)
}

/// The entry on the current line, counted from 0.
#[inline]
fn entry<T: Scalar>(lines: &Lines<'_>, header: &Header) -> Result<(usize, usize, T), MatrixMarketError> {
    let mut text = lines.text();
    let (first, second) = (word(&mut text), word(&mut text));
    let third = if header.field == Field::Pattern { Some(&b"1"[..]) } else { word(&mut text) };
    let (Some(first), Some(second), Some(third), None) = (first, second, third, word(&mut text)) else {
        return Err(wrong_words(lines, header));
    };
    let index = |word: &[u8], what| whole(word).ok_or_else(|| no_index(lines, word, what));
    let (row, column) = (index(first, "row")?, index(second, "column")?);
    let value = value(lines, header.field, third)?;
    if row == 0 || column == 0 || row > header.n_rows || column > header.n_cols {
        return Err(outside(lines, header, [row, column], third));
    }
    if header.symmetry != Symmetry::General && row <= column {
        check_triangle(lines, header.symmetry, [row, column], value)?;
    }
    Ok((row - 1, column - 1, value))
}

/// Refuses what a file that holds one triangle must not hold, where the row is not below the diagonal.
fn check_triangle<T: Scalar>(
    lines: &Lines<'_>,
    symmetry: Symmetry,
    [row, column]: [usize; 2],
    value: T,
) -> Result<(), MatrixMarketError> {
    if row < column {
        return Err(lines.error(format!(
            "row {row}, column {column} lies above the diagonal, but a {symmetry} file holds the lower \
             triangle alone; write `general` in the banner if the file holds both triangles, or swap rows and \
             columns if it holds the upper one"
        )));
    }
    if symmetry == Symmetry::SkewSymmetric && value != T::ZERO {
        return Err(lines.error(format!(
            "the diagonal entry of row {row} is {value}, but a skew-symmetric matrix has zeros there; write \
             `general` in the banner if the file holds all entries"
        )));
    }
    Ok(())
}

fn array<T: Scalar>(
    lines: &mut Lines<'_>,
    header: &Header,
    notes: &mut Notes,
) -> Result<Triplets<T>, MatrixMarketError> {
    let first_row = |column: usize| match header.symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => column,
        Symmetry::SkewSymmetric => column + 1,
    };
    let mut triplets = Triplets::new(header.n_rows, header.n_cols);
    let (mut row, mut column, mut n_values) = (first_row(0), 0, 0);
    while lines.advance_to_words()? {
        for word in words(lines.text()) {
            if n_values == header.n_entries {
                return Err(too_many(lines, header));
            }
            n_values += 1;
            let value = value(lines, header.field, word)?;
            if value == T::ZERO {
                notes.n_zeros += 1;
            } else {
                notes.n_read += 1;
                push(&mut triplets, header.symmetry, row, column, value)?;
            }
            row += 1;
            if row == header.n_rows {
                column += 1;
                row = first_row(column);
            }
        }
    }
    complete(lines, header, n_values)?;
    Ok(triplets)
}

/// Adds an entry and, where the file holds one triangle, its mirror image.
#[inline]
fn push<T: Scalar>(
    triplets: &mut Triplets<T>,
    symmetry: Symmetry,
    row: usize,
    column: usize,
    value: T,
) -> Result<(), MatrixMarketError> {
    triplets.push(row, column, value)?;
    match symmetry {
        Symmetry::Symmetric if row != column => triplets.push(column, row, value)?,
        Symmetry::SkewSymmetric if row != column => triplets.push(column, row, -value)?,
        _ => {}
    }
    Ok(())
}

/// Entries of a matrix that its file holds when each comes once.
fn n_held<T: Scalar>(matrix: &Csr<T, Reference>, symmetry: Symmetry) -> usize {
    match symmetry {
        Symmetry::General => matrix.n_nonzeros(),
        _ => {
            (0..matrix.n_rows()).map(|row| matrix.row(row).filter(|&(column, _)| column <= row).count()).sum()
        }
    }
}

/// Refuses a file that ended before its entries were complete.
fn complete(lines: &Lines<'_>, header: &Header, n_read: usize) -> Result<(), MatrixMarketError> {
    if n_read == header.n_entries {
        return Ok(());
    }
    Err(lines.error(format!(
        "the file ends here, but {} of its {} entries are missing; it was cut short, or the counts in line {} \
         are wrong",
        header.n_entries - n_read,
        header.n_entries,
        header.line
    )))
}

#[cold]
fn too_many(lines: &Lines<'_>, header: &Header) -> MatrixMarketError {
    lines.error(format!(
        "an entry more than the {} that line {} announces; correct the counts there, or remove what follows",
        header.n_entries, header.line
    ))
}

#[cold]
fn wrong_words(lines: &Lines<'_>, header: &Header) -> MatrixMarketError {
    let found = words(lines.text()).count();
    let needed = if header.field == Field::Pattern { "row and column" } else { "row, column and value" };
    lines.error(format!("{found} words where {needed} are needed: {}", quoted(lines.text().trim_ascii())))
}

#[cold]
fn no_index(lines: &Lines<'_>, word: &[u8], what: &str) -> MatrixMarketError {
    lines.error(format!("the {what} {} is no whole number above 0", quoted(word)))
}

#[cold]
fn outside(lines: &Lines<'_>, header: &Header, [row, column]: [usize; 2], value: &[u8]) -> MatrixMarketError {
    let Header { n_rows, n_cols, line, .. } = header;
    lines.error(format!(
        "row {row}, column {column} (value {}) lies outside the {n_rows} × {n_cols} of line {line}; rows and \
         columns are counted from 1",
        quoted(value)
    ))
}
