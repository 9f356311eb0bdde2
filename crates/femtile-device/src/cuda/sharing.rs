//! GPUs that other libraries of the process use too: their streams, addresses and contexts.

use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::refusal::failed;
use super::start::start;
use crate::DeviceError;

/// Lets `later` wait for the work that is in `earlier` now.
///
/// # Safety
/// Both are streams of the current context.
pub(super) unsafe fn order(earlier: sys::CUstream, later: sys::CUstream) -> Result<(), DeviceError> {
    let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING;
    let wait = sys::CUevent_wait_flags_enum::CU_EVENT_WAIT_DEFAULT;
    let ordered = result::event::create(flags).and_then(|event| {
        // SAFETY: the event is fresh, the streams exist; the driver keeps the event until nothing waits for it.
        unsafe {
            let waits = result::event::record(event, earlier)
                .and_then(|()| result::stream::wait_event(later, event, wait));
            let _ = result::event::destroy(event);
            waits
        }
    });
    ordered.map_err(|refusal| failed("ordering streams", refusal))
}

/// Returns the number of the GPU that an address belongs to; none if the driver does not know it as memory of
/// a GPU.
///
/// # Errors
/// [`DeviceError::Absent`] if there is no driver.
pub fn gpu_of(address: u64) -> Result<Option<usize>, DeviceError> {
    start().map_err(|reason| super::nvidia::absent(0, reason))?;
    let attribute = |which| {
        let mut number: i32 = -1;
        // SAFETY: both attributes are 32-bit numbers, and the driver looks the address up without reading from it.
        let asked = unsafe { sys::cuPointerGetAttribute((&raw mut number).cast::<c_void>(), which, address) };
        asked.result().ok().map(|()| number)
    };
    let kind = attribute(sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    let is_of_gpu = kind == Some(sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE as i32);
    let ordinal = attribute(sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    Ok(ordinal.filter(|_| is_of_gpu).and_then(|ordinal| usize::try_from(ordinal).ok()))
}

/// Keeps the CUDA context of a thread: work on a GPU makes its own context current, and dropping this brings back the one
/// that was current before.
#[derive(Debug)]
pub struct KeptContext(u64);

impl KeptContext {
    /// Notes the present context; none if there is no driver.
    pub fn new() -> Option<Self> {
        start().ok()?;
        let context = result::ctx::get_current().ok()?;
        Some(Self(context.map_or(0, |context| context as u64)))
    }
}

impl Drop for KeptContext {
    fn drop(&mut self) {
        // SAFETY: the context was current in this thread, or there was none.
        let _ = unsafe { result::ctx::set_current(self.0 as sys::CUcontext) };
    }
}
