//! The matrix, from a Matrix Market file or from SciPy.

use std::path::Path;

use femtile::device::Cpu;
use femtile::linalg::sparse::matrix_market::{self, ReadConfig};
use femtile::linalg::sparse::{Csr, Gathered, Triplets};

use super::has_extension;
use crate::arrays::{Archive, Array};
use crate::failure::Failure;

/// A square matrix of finite numbers, and notes about its file.
pub struct Input {
    pub matrix: Csr<f64, Cpu>,
    /// Entries of the file that were added to an earlier one of the same place.
    pub n_duplicates: usize,
    pub notes: Vec<String>,
}

impl Input {
    /// Reads the file.
    pub fn read(path: &Path, cpu: &Cpu) -> Result<Self, Failure> {
        let input = match has_extension(path, "npz") {
            true => from_scipy(path, cpu)?,
            false => from_matrix_market(path, cpu)?,
        };
        let (n_rows, n_cols) = (input.matrix.n_rows(), input.matrix.n_cols());
        let refuse = |message| Err(Failure::message(format!("{}: {message}", path.display())));
        if n_rows != n_cols {
            return refuse(format!("a matrix of {n_rows} × {n_cols} is not square"));
        }
        if n_rows == 0 {
            return refuse("the matrix has no rows".into());
        }
        Ok(input)
    }
}

fn from_matrix_market(path: &Path, cpu: &Cpu) -> Result<Input, Failure> {
    let read = matrix_market::read_with::<f64>(path, &ReadConfig { values_needed: true })?;
    let matrix = read.matrix.copy_to(cpu)?;
    Ok(Input { matrix, n_duplicates: read.n_duplicates, notes: read.notes })
}

/// Reads a file of `scipy.sparse.save_npz`.
fn from_scipy(path: &Path, cpu: &Cpu) -> Result<Input, Failure> {
    let refuse = |message: String| Failure::message(format!("{}: {message}", path.display()));
    let mut archive = Archive::open(path)?;
    if !archive.names().any(|name| name == "format") {
        let members: Vec<_> = archive.names().collect();
        let members = members.join(", ");
        return Err(refuse(format!(
            "there is no member `format`, as scipy.sparse.save_npz writes it; its members are: {members}"
        )));
    }
    let format = archive.read_word("format")?;
    let by_rows = match format.as_str() {
        "csr" => true,
        "csc" => false,
        _ => {
            let message = format!(
                "the matrix is in the format `{}`: save it as CSR, with .tocsr()",
                format.escape_debug()
            );
            return Err(refuse(message));
        }
    };
    let shape = archive.read_integers("shape")?;
    let &[n_rows, n_cols] = shape.as_slice() else {
        return Err(refuse(format!("a matrix has two axes, and its shape is {shape:?}")));
    };
    let size = |n: i64| usize::try_from(n).map_err(|_| refuse(format!("its shape is {shape:?}")));
    let (n_rows, n_cols) = (size(n_rows)?, size(n_cols)?);
    let (starts, others) = (archive.read_integers("indptr")?, archive.read_integers("indices")?);
    let values: Array = archive.read("data")?;
    let values = values.into_f64();
    let n_lines = if by_rows { n_rows } else { n_cols };
    check_starts(&starts, n_lines, others.len(), values.len()).map_err(refuse)?;

    let mut triplets = Triplets::new(n_rows, n_cols);
    for (line, ends) in starts.windows(2).enumerate() {
        for at in ends[0] as usize..ends[1] as usize {
            let (other, value) = (others[at], values[at]);
            let outside = || refuse(format!("`indices` holds {other} in a matrix of {n_rows} × {n_cols}"));
            let number = usize::try_from(other).map_err(|_| outside())?;
            let (row, column) = if by_rows { (line, number) } else { (number, line) };
            if !value.is_finite() {
                return Err(refuse(format!(
                    "the entry of row {row}, column {column} (counted from 0) is {value}"
                )));
            }
            triplets.push(row, column, value).map_err(|_| outside())?;
        }
    }
    let Gathered { matrix, n_duplicates, n_not_finite } = triplets.into_csr(cpu)?;
    match n_not_finite {
        0 => Ok(Input { matrix, n_duplicates, notes: Vec::new() }),
        _ => Err(refuse("entries of the same place add up beyond the range of float64".into())),
    }
}

/// Checks that the starts of rows or columns fit the entries.
fn check_starts(starts: &[i64], n_lines: usize, n_indices: usize, n_values: usize) -> Result<(), String> {
    if n_indices != n_values {
        return Err(format!("{n_indices} `indices` and {n_values} `data` do not belong together"));
    }
    if n_lines.checked_add(1) != Some(starts.len()) {
        return Err(format!("`indptr` has {} entries, and {n_lines} + 1 are needed", starts.len()));
    }
    let ends_fit = starts.first() == Some(&0) && starts.last() == i64::try_from(n_values).ok().as_ref();
    match ends_fit && starts.is_sorted() {
        true => Ok(()),
        false => Err(format!("`indptr` does not ascend from 0 to the {n_values} entries")),
    }
}
