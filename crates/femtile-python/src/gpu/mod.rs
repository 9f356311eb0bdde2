//! Arrays of other packages in the memory of GPUs: addresses in, arrays that other packages take out.
//!
//! The Python sources check shapes, strides, dtypes, devices and alignment before addresses come here, and keep the arrays
//! alive during a call.
//!
//! DLPack tells the owner our stream before its memory is read. Afterwards its stream waits for ours by an event;
//! if that stream is not known, the host waits. A result is exported as a capsule of DLPack that holds the buffer.
//! When it is given back, the whole GPU is waited for, because other libraries may use it in any of their streams.
//! The context that was current in the thread is restored (`KeptContext`), as it decides the device of other
//! libraries.

mod array;
mod dlpack;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use femtile::device::{Cuda, DeviceError, cuda};
use pyo3::prelude::*;

pub use array::{GpuArray, Layout, Values};
pub use dlpack::Imported;

use crate::errors::Raise;

static GPUS: Mutex<BTreeMap<usize, Cuda>> = Mutex::new(BTreeMap::new());

/// Streams of callers by their handles: those whose work comes before, and those that go on after the work; none where these
/// are not known, so that the host waits.
pub type Streams = (Vec<u64>, Option<Vec<u64>>);

/// Returns a GPU; it is opened once.
pub fn gpu(ordinal: usize) -> Result<Cuda, DeviceError> {
    let mut gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gpu) = gpus.get(&ordinal) {
        return Ok(gpu.clone());
    }
    let _kept = cuda::KeptContext::new();
    let opened = Cuda::new(ordinal)?;
    gpus.insert(ordinal, opened.clone());
    Ok(opened)
}

/// Returns the stream that a GPU works in, by its handle.
#[pyfunction]
pub fn gpu_stream(py: Python<'_>, ordinal: usize) -> PyResult<u64> {
    let gpu = py.detach(|| gpu(ordinal)).map_err(|error| error.raise(py))?;
    Ok(gpu.driver().stream())
}

/// Returns the number of the GPU that an address belongs to; none where it belongs to none.
#[pyfunction]
pub fn gpu_of(py: Python<'_>, address: u64) -> PyResult<Option<usize>> {
    cuda::gpu_of(address).map_err(|error| error.raise(py))
}

/// Does work on a GPU after that of the callers and before what they do next; their context stays current.
pub fn ordered<R, E: From<DeviceError>>(
    gpu: &Cuda,
    (before, after): &Streams,
    work: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    let _kept = cuda::KeptContext::new();
    for &stream in before {
        // SAFETY: the packages of the arrays have said that these are their streams.
        unsafe { gpu.driver().wait_for_stream(stream) }?;
    }
    let done = work();
    match after {
        Some(streams) if done.is_ok() => {
            for &stream in streams {
                // SAFETY: as above.
                unsafe { gpu.driver().hold_stream(stream) }?;
            }
        }
        _ => gpu.synchronize()?,
    }
    done
}
