//! Results in the memory of a GPU, for other packages to take over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use femtile::device::cuda::KeptContext;
use femtile::device::{Buffer, Cuda, DeviceError, Scalar};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::dlpack;
use crate::errors::Raise;

/// Shape and strides of an array, in entries.
pub type Layout = (Vec<i64>, Vec<i64>);

/// Values in either precision.
#[derive(Debug)]
pub enum Values {
    /// 32 bits.
    F32(Buffer<f32, Cuda>),
    /// 64 bits.
    F64(Buffer<f64, Cuda>),
}

impl From<Buffer<f32, Cuda>> for Values {
    fn from(values: Buffer<f32, Cuda>) -> Self {
        Self::F32(values)
    }
}

impl From<Buffer<f64, Cuda>> for Values {
    fn from(values: Buffer<f64, Cuda>) -> Self {
        Self::F64(values)
    }
}

impl Values {
    fn gpu(&self) -> &Cuda {
        match self {
            Self::F32(values) => values.device(),
            Self::F64(values) => values.device(),
        }
    }

    fn address(&self) -> u64 {
        match self {
            Self::F32(values) => values.address(),
            Self::F64(values) => values.address(),
        }
    }

    fn bytes_per_value(&self) -> i64 {
        match self {
            Self::F32(_) => size_of::<f32>() as i64,
            Self::F64(_) => size_of::<f64>() as i64,
        }
    }
}

/// Values that other packages may refer to.
#[derive(Debug)]
struct Shared {
    values: Values,
    is_exported: AtomicBool,
    /// The context of the thread that gives the values back, restored after that.
    kept: Option<KeptContext>,
}

impl Drop for Shared {
    /// Others have queued work on the values in streams of theirs, which ends before the memory is used again.
    fn drop(&mut self) {
        self.kept = KeptContext::new();
        if *self.is_exported.get_mut() {
            // An error here is one of the others' work, which they will find.
            let _ = self.values.gpu().driver().synchronize_all();
        }
    }
}

/// An array in the memory of a GPU; CuPy, PyTorch, JAX and Numba take it over without a copy.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct GpuArray {
    shared: Arc<Shared>,
    layout: Layout,
}

impl GpuArray {
    /// An array of values.
    pub fn new(values: impl Into<Values>, layout: Layout) -> Self {
        let shared = Shared { values: values.into(), is_exported: AtomicBool::new(false), kept: None };
        Self { shared: Arc::new(shared), layout }
    }

    /// An array of zeros with as many entries as the shape has.
    pub fn buffer<T: Scalar>(gpu: &Cuda, (shape, _): &Layout) -> Result<Buffer<T, Cuda>, DeviceError> {
        Buffer::zeros(gpu, shape.iter().map(|&n| n.max(0) as usize).product())
    }
}

#[pymethods]
impl GpuArray {
    /// The shape.
    #[getter]
    fn shape(&self) -> Vec<i64> {
        self.layout.0.clone()
    }

    /// Device of DLPack: its kind, 2 for CUDA, and its number.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (dlpack::CUDA, self.shared.values.gpu().properties().ordinal as i32)
    }

    /// Exports the array; the stream of the caller goes on after the work that makes the values.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if dl_device.is_some_and(|asked| asked != self.__dlpack_device__()) || copy == Some(true) {
            let message = "the array is exported where it lies, without a copy";
            return Err(pyo3::exceptions::PyBufferError::new_err(message));
        }
        // By the protocol none is the legacy default stream, and -1 asks for no order.
        let stream = stream.unwrap_or(1);
        if stream >= 0 {
            let _kept = KeptContext::new();
            // SAFETY: the caller has said that this is its stream.
            unsafe { self.shared.values.gpu().driver().hold_stream((stream as u64).max(1)) }
                .map_err(|error| error.raise(py))?;
        }
        self.shared.is_exported.store(true, Ordering::Relaxed);
        let values = &self.shared.values;
        let exported = dlpack::Exported {
            address: values.address(),
            ordinal: values.gpu().properties().ordinal as i32,
            bits: 8 * values.bytes_per_value() as u8,
            layout: self.layout.clone(),
            _owner: self.shared.clone(),
        };
        exported.capsule(py, max_version.is_some_and(|(major, _)| major >= 1))
    }

    /// The array as Numba and others take it.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.shared.is_exported.store(true, Ordering::Relaxed);
        let (values, (shape, strides)) = (&self.shared.values, &self.layout);
        let bytes = values.bytes_per_value();
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("<f{bytes}"))?;
        interface.set_item("data", (values.address(), false))?;
        interface.set_item("shape", pyo3::types::PyTuple::new(py, shape)?)?;
        let strides = strides.iter().map(|stride| stride * bytes).collect::<Vec<_>>();
        interface.set_item("strides", pyo3::types::PyTuple::new(py, strides)?)?;
        interface.set_item("stream", values.gpu().driver().stream())?;
        Ok(interface)
    }
}
