//! ELL-WARP as a class.

use femtile::Cpu;
use femtile::device::Scalar;
use femtile::device::cpu::{Borrowed, BorrowedMut};
use femtile::linalg::sparse::{EllWarp, MatrixFormat, ProductMatrix};
use femtile::linalg::{LinalgError, LinearOperator};
use numpy::{Element, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::{Parts, csr};
use crate::errors::Raise;
use crate::threads::cpu;

/// A matrix in slices of rows, in either precision.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Slices(Either);

enum Either {
    F32(EllWarp<f32, Cpu>),
    F64(EllWarp<f64, Cpu>),
}

/// A matrix of SciPy in either precision.
#[derive(FromPyObject)]
pub enum AnyParts<'py> {
    /// 32 bits a number.
    F32(Parts<'py, f32>),
    /// 64 bits a number.
    F64(Parts<'py, f64>),
}

#[pymethods]
impl Slices {
    #[new]
    fn new(py: Python<'_>, matrix: AnyParts<'_>, threads: usize) -> PyResult<Self> {
        let cpu = cpu(py, threads)?;
        let made = match matrix {
            AnyParts::F32(parts) => {
                let a = csr(py, &cpu, &parts)?;
                py.detach(|| cpu.install(|| in_slices(a)).map(Either::F32))
            }
            AnyParts::F64(parts) => {
                let a = csr(py, &cpu, &parts)?;
                py.detach(|| cpu.install(|| in_slices(a)).map(Either::F64))
            }
        };
        Ok(Self(made.map_err(|error| error.raise(py))?))
    }

    /// Computes y = A x.
    fn apply(&self, py: Python<'_>, y: &Bound<'_, PyAny>, x: &Bound<'_, PyAny>) -> PyResult<()> {
        match &self.0 {
            Either::F32(a) => product(py, a, y, x),
            Either::F64(a) => product(py, a, y, x),
        }
    }

    /// Number of stored entries, padding included.
    fn n_stored(&self) -> usize {
        match &self.0 {
            Either::F32(a) => a.n_stored(),
            Either::F64(a) => a.n_stored(),
        }
    }
}

fn in_slices<T: Scalar>(a: femtile::linalg::sparse::Csr<T, Cpu>) -> Result<EllWarp<T, Cpu>, LinalgError>
where
    Cpu: femtile::linalg::sparse::csr::CsrKernels<T>
        + femtile::linalg::sparse::ell_warp::EllWarpKernels<T, T>
        + femtile::linalg::sparse::choice::Described,
{
    match ProductMatrix::new(a, MatrixFormat::EllWarp, 1, &[])?.0 {
        ProductMatrix::Slices(slices) => Ok(slices),
        ProductMatrix::Rows(_) => {
            Err(LinalgError::Setting { field: "A", message: "cannot be put into slices".into() })
        }
    }
}

fn product<T: Scalar + Element>(
    py: Python<'_>,
    a: &EllWarp<T, Cpu>,
    y: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
) -> PyResult<()>
where
    EllWarp<T, Cpu>: LinearOperator<T, Cpu>,
{
    let wrong = |_| PyTypeError::new_err("x and y have the precision of the matrix");
    let mut y: PyReadwriteArray1<'_, T> = y.extract().map_err(wrong)?;
    let x: PyReadonlyArray1<'_, T> = x.extract().map_err(wrong)?;
    let (y, x) = (y.as_slice_mut()?, x.as_slice()?);
    let cpu = a.device();
    let done = py.detach(|| {
        let (mut y, x) = (BorrowedMut::new(cpu, y), Borrowed::new(cpu, x));
        // SAFETY: a product overwrites the values of the buffer and leaves it where it is.
        let y = unsafe { y.buffer() };
        cpu.install(|| a.apply(y, &x))
    });
    done.map_err(|error| error.raise(py))
}
