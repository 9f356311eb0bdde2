//! Arrays of NumPy as vectors and slices, and back.

use femtile::Cpu;
use femtile::linalg::sparse::csr::{Csr, HostOffsets};
use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::errors::{Raise, of_argument};

/// Indices as SciPy has them.
#[derive(FromPyObject)]
pub enum Indices<'py> {
    /// 32 bits.
    Narrow(PyReadonlyArray1<'py, i32>),
    /// 64 bits.
    Wide(PyReadonlyArray1<'py, i64>),
}

impl Indices<'_> {
    /// Copies the indices; none where one is negative or needs more than 32 bits.
    fn narrow(&self) -> Option<Vec<u32>> {
        let all = |found: &mut dyn Iterator<Item = Option<u32>>| found.collect::<Option<Vec<u32>>>();
        match self {
            Self::Narrow(indices) => {
                all(&mut indices.as_slice().ok()?.iter().map(|&i| u32::try_from(i).ok()))
            }
            Self::Wide(indices) => all(&mut indices.as_slice().ok()?.iter().map(|&i| u32::try_from(i).ok())),
        }
    }

    fn wide(&self) -> Option<Vec<u64>> {
        match self {
            Self::Narrow(indices) => {
                indices.as_slice().ok()?.iter().map(|&i| u64::try_from(i).ok()).collect()
            }
            Self::Wide(indices) => indices.as_slice().ok()?.iter().map(|&i| u64::try_from(i).ok()).collect(),
        }
    }
}

/// The arrays of a matrix in compressed sparse rows: its columns, row offsets, columns of entries, values.
pub type CsrArrays<'py, T> = (usize, Indices<'py>, Indices<'py>, PyReadonlyArray1<'py, T>);

/// Copies a matrix; its structure is checked.
pub fn csr<T: Element + femtile::device::Scalar>(
    py: Python<'_>,
    cpu: &Cpu,
    (n_cols, offsets, columns, values): &CsrArrays<'_, T>,
) -> PyResult<Csr<T, Cpu>> {
    let wrong = |message: &str| of_argument(py, "A", message);
    let columns = columns.narrow().ok_or_else(|| wrong("a column is negative or above 4,294,967,295"))?;
    let offsets = match offsets.narrow() {
        Some(offsets) => HostOffsets::Narrow(offsets),
        None => HostOffsets::Wide(offsets.wide().ok_or_else(|| wrong("a row offset is negative"))?),
    };
    let values = values.as_slice()?.to_vec();
    let made = py.detach(|| cpu.install(|| Csr::from_parts(cpu, *n_cols, offsets, columns, values)));
    made.map_err(|error| error.raise(py))
}

/// An array of NumPy that takes over a vector.
pub fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    values.into_pyarray(py)
}

/// An array of rows of `width` entries, or of plain entries where the width is one.
pub fn rows<T: Element>(py: Python<'_>, values: Vec<T>, width: usize) -> PyResult<Bound<'_, PyAny>> {
    let n = values.len() / width.max(1);
    let flat = array(py, values);
    if width == 1 { Ok(flat.into_any()) } else { Ok(flat.reshape([n, width])?.into_any()) }
}
