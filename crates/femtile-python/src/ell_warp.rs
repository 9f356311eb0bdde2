//! ELL-WARP as a class.

use femtile::Cpu;
use femtile::device::cpu::{Borrowed, BorrowedMut};
use femtile::device::{Buffer, Cuda, Device, Scalar, cuda};
use femtile::linalg::sparse::{Csr, EllWarp, MatrixFormat, ProductMatrix};
use femtile::linalg::{LinalgError, LinearOperator};
use numpy::{Element, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::{CsrArrays, csr};
use crate::errors::Raise;
use crate::gpu::{GpuArray, Streams, Values, gpu, ordered};
use crate::threads::cpu;

/// A matrix in slices of rows, in either precision.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Slices(Either);

enum Either {
    F32(EllWarp<f32, Cpu>),
    F64(EllWarp<f64, Cpu>),
    OnGpuF32(EllWarp<f32, Cuda>),
    OnGpuF64(EllWarp<f64, Cuda>),
}

/// A matrix of SciPy in either precision.
#[derive(FromPyObject)]
pub enum AnyCsrArrays<'py> {
    /// 32 bits a number.
    F32(CsrArrays<'py, f32>),
    /// 64 bits a number.
    F64(CsrArrays<'py, f64>),
}

#[pymethods]
impl Slices {
    #[new]
    fn new(
        py: Python<'_>,
        matrix: AnyCsrArrays<'_>,
        threads: usize,
        ordinal: Option<usize>,
    ) -> PyResult<Self> {
        let cpu = cpu(py, threads)?;
        let made = match matrix {
            AnyCsrArrays::F32(parts) => {
                let a = csr(py, &cpu, &parts)?;
                py.detach(|| match ordinal {
                    None => cpu.install(|| in_slices(a)).map(Either::F32),
                    Some(ordinal) => on_gpu(&gpu(ordinal)?, a).map(Either::OnGpuF32),
                })
            }
            AnyCsrArrays::F64(parts) => {
                let a = csr(py, &cpu, &parts)?;
                py.detach(|| match ordinal {
                    None => cpu.install(|| in_slices(a)).map(Either::F64),
                    Some(ordinal) => on_gpu(&gpu(ordinal)?, a).map(Either::OnGpuF64),
                })
            }
        };
        Ok(Self(made.map_err(|error: LinalgError| error.raise(py))?))
    }

    /// Computes y = A x.
    fn apply(&self, py: Python<'_>, y: &Bound<'_, PyAny>, x: &Bound<'_, PyAny>) -> PyResult<()> {
        match &self.0 {
            Either::F32(a) => product(py, a, y, x),
            Either::F64(a) => product(py, a, y, x),
            Either::OnGpuF32(_) | Either::OnGpuF64(_) => Err(PyTypeError::new_err("the matrix is on a GPU")),
        }
    }

    /// Computes y = A x on the GPU of the matrix from the address of x; returns y where it has no address.
    fn apply_on_gpu(
        &self,
        py: Python<'_>,
        y: Option<u64>,
        x: u64,
        streams: Streams,
    ) -> PyResult<Option<GpuArray>> {
        match &self.0 {
            Either::OnGpuF32(a) => product_on_gpu(py, a, (y, x), &streams),
            Either::OnGpuF64(a) => product_on_gpu(py, a, (y, x), &streams),
            Either::F32(_) | Either::F64(_) => Err(PyTypeError::new_err("the matrix is not on a GPU")),
        }
    }

    /// Number of stored entries, padding included.
    fn n_stored(&self) -> usize {
        match &self.0 {
            Either::F32(a) => a.n_stored(),
            Either::F64(a) => a.n_stored(),
            Either::OnGpuF32(a) => a.n_stored(),
            Either::OnGpuF64(a) => a.n_stored(),
        }
    }
}

fn on_gpu<T: Scalar>(gpu: &Cuda, a: Csr<T, Cpu>) -> Result<EllWarp<T, Cuda>, LinalgError>
where
    Cuda: femtile::linalg::sparse::csr::CsrKernels<T>
        + femtile::linalg::sparse::ell_warp::EllWarpKernels<T, T>
        + femtile::linalg::sparse::choice::Described,
{
    let _kept = cuda::KeptContext::new();
    let made = in_slices(a.copy_to(gpu)?);
    gpu.synchronize()?;
    made
}

fn product_on_gpu<T: Scalar>(
    py: Python<'_>,
    a: &EllWarp<T, Cuda>,
    (y, x): (Option<u64>, u64),
    streams: &Streams,
) -> PyResult<Option<GpuArray>>
where
    EllWarp<T, Cuda>: LinearOperator<T, Cuda>,
    Values: From<Buffer<T, Cuda>>,
{
    let gpu = a.device();
    let layout = (vec![a.n_rows() as i64], vec![1]);
    // SAFETY: the Python sources have checked the arrays and hold them until the stream of their package waits for this work.
    let borrowed = |address, n| unsafe { cuda::Borrowed::<T>::new(gpu, address, n) };
    let work = || -> Result<_, LinalgError> {
        let x = borrowed(x, a.n_cols());
        let Some(y) = y else {
            let mut y = GpuArray::buffer::<T>(gpu, &layout)?;
            a.apply(&mut y, &x)?;
            return Ok(Some(GpuArray::new(y, layout.clone())));
        };
        let mut y = borrowed(y, a.n_rows());
        // SAFETY: a product overwrites the values of the buffer and leaves it where it is.
        a.apply(unsafe { y.buffer_mut() }, &x)?;
        Ok(None)
    };
    py.detach(|| ordered(gpu, streams, work)).map_err(|error| error.raise(py))
}

fn in_slices<T: Scalar, D>(a: Csr<T, D>) -> Result<EllWarp<T, D>, LinalgError>
where
    D: Device
        + femtile::linalg::sparse::csr::CsrKernels<T>
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
