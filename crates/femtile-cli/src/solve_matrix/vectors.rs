//! Right sides, solutions and near-nullspaces: columns in files.

use std::io::{BufWriter, Write};
use std::path::Path;

use femtile::linalg::sparse::matrix_market::{self, ReadConfig};
use femtile::mesh::io::write_atomically;

use super::has_extension;
use crate::arrays::{Array, Output};
use crate::failure::Failure;

/// Vectors of one length, one after the other.
pub struct Vectors {
    n_rows: usize,
    n_columns: usize,
    /// The file has one axis.
    is_flat: bool,
    values: Vec<f64>,
}

/// Refuses an output whose format its name does not tell, before anything is solved.
pub fn check_name(output: &Path) -> Result<(), Failure> {
    if has_extension(output, "npy") || has_extension(output, "mtx") {
        return Ok(());
    }
    Err(Failure::message(format!("--output {}: the name must end in .npy or .mtx", output.display())))
}

impl Vectors {
    /// Reads right sides for a matrix of `n_rows`: a file, or `ones`.
    pub fn right_sides(given: Option<&Path>, n_rows: usize) -> Result<Self, Failure> {
        let vectors = match given {
            Some(path) if path.as_os_str() != "ones" => Self::read(path, n_rows, "right side")?,
            _ => Self { n_rows, n_columns: 1, is_flat: true, values: vec![1.0; n_rows] },
        };
        match vectors.n_columns {
            0 => Err(Failure::message("there is no right side: its file has no column")),
            _ => Ok(vectors),
        }
    }

    /// Reads vectors on which a matrix of `n_rows` is small.
    pub fn near_nullspace(path: &Path, n_rows: usize) -> Result<Self, Failure> {
        Self::read(path, n_rows, "near-nullspace")
    }

    fn read(path: &Path, n_rows: usize, what: &str) -> Result<Self, Failure> {
        let refuse = |message| Failure::message(format!("{}: {message}", path.display()));
        let vectors = match has_extension(path, "npy") {
            true => Self::from_array(Array::read(path)?).map_err(refuse)?,
            false => Self::from_matrix_market(path)?,
        };
        if vectors.n_rows != n_rows {
            let message = format!("the {what} has {} rows, and the matrix has {n_rows}", vectors.n_rows);
            return Err(refuse(message));
        }
        if let Some(at) = vectors.values.iter().position(|value| !value.is_finite()) {
            let (row, column, value) = (at % n_rows, at / n_rows, vectors.values[at]);
            let message =
                format!("the entry of row {row}, column {column} (counted from 0) of the {what} is {value}");
            return Err(refuse(message));
        }
        Ok(vectors)
    }

    fn from_array(array: Array) -> Result<Self, String> {
        let (n_rows, n_columns, is_flat) = match *array.shape.as_slice() {
            [n_rows] => (n_rows, 1, true),
            [n_rows, n_columns] => (n_rows, n_columns, false),
            _ => return Err(format!("a shape (N,) or (N, K) is needed, and it is {:?}", array.shape)),
        };
        let by_columns = array.is_fortran || n_columns <= 1;
        let values = array.into_f64();
        let values = match by_columns {
            true => values,
            false => (0..n_columns)
                .flat_map(|column| values.iter().skip(column).step_by(n_columns).copied())
                .collect(),
        };
        Ok(Self { n_rows, n_columns, is_flat, values })
    }

    fn from_matrix_market(path: &Path) -> Result<Self, Failure> {
        let read = matrix_market::read_with::<f64>(path, &ReadConfig { values_needed: true })?;
        let (n_rows, n_columns) = (read.matrix.n_rows(), read.matrix.n_cols());
        let n = n_rows.checked_mul(n_columns);
        let mut values = Vec::new();
        let reserved = n.map(|n| values.try_reserve_exact(n));
        let (Some(n), Some(Ok(()))) = (n, reserved) else {
            let message =
                format!("{}: there is no memory for {n_columns} columns of {n_rows} rows", path.display());
            return Err(Failure::message(message));
        };
        values.resize(n, 0.0);
        for row in 0..n_rows {
            read.matrix.row(row).for_each(|(column, value)| values[column * n_rows + row] = value);
        }
        Ok(Self { n_rows, n_columns, is_flat: false, values })
    }

    /// Returns vectors of the same shape.
    pub fn with_values(&self, values: Vec<f64>) -> Self {
        let Self { n_rows, n_columns, is_flat, .. } = *self;
        Self { n_rows, n_columns, is_flat, values }
    }

    /// Returns the number of vectors.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns one vector after the other.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns each vector.
    pub fn columns(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_rows)
    }

    /// Writes them as the name of the file says; it takes its name when it is complete.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        if has_extension(path, "npy") {
            let (flat, full) = ([self.n_rows], [self.n_rows, self.n_columns]);
            let shape = if self.is_flat { &flat[..] } else { &full };
            let bytes = bytemuck::cast_slice(&self.values);
            let array = Output { shape, is_fortran: !self.is_flat, dtype: "f8", bytes };
            return Ok(write_atomically(path, |out| array.write(out))?);
        }
        Ok(write_atomically(path, |out| {
            let mut out = BufWriter::new(out);
            writeln!(out, "%%MatrixMarket matrix array real general\n{} {}", self.n_rows, self.n_columns)?;
            // `Debug` gives the shortest text that reads back the same.
            self.values.iter().try_for_each(|value| writeln!(out, "{value:?}"))?;
            out.flush()
        })?)
    }
}
