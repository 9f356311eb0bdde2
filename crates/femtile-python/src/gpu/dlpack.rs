//! DLPack, the exchange of arrays between packages: <https://dmlc.github.io/dlpack/latest/c_api.html>.

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::array::Layout;

/// The kind of device of NVIDIA GPUs.
pub const CUDA: i32 = 2;
/// The kind of number of IEEE 754.
const FLOAT: u8 = 2;
/// The flag of arrays that are not to be written.
const READ_ONLY: u64 = 1;
/// The version that is written; any minor version of it is read.
const VERSION: (u32, u32) = (1, 0);

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// An array taken over from a package; its memory is given back when this is dropped.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Imported(Holder);

enum Holder {
    Plain(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: the structure is only read, and its deleter may be called from any thread by the specification.
unsafe impl Send for Holder {}
// SAFETY: as above.
unsafe impl Sync for Holder {}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: the structure is valid until its deleter is called, which happens here alone.
        unsafe {
            match *self {
                Self::Plain(managed) => (*managed).deleter.into_iter().for_each(|delete| delete(managed)),
                Self::Versioned(managed) => (*managed).deleter.into_iter().for_each(|delete| delete(managed)),
            }
        }
    }
}

/// Address, shape, strides in entries where they are given, kind, bits and lanes of a number, kind and number of the device,
/// whether writing is forbidden.
type Description = (u64, Vec<i64>, Option<Vec<i64>>, (u8, u8, u16), (i32, i32), bool);

#[pymethods]
impl Imported {
    /// Takes over the array of a capsule.
    #[new]
    fn new(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(pointer) = take(capsule, VERSIONED, VERSIONED_USED)? {
            let managed = pointer.cast::<ManagedVersioned>();
            // SAFETY: the capsule has this name, so that its pointer is that of such a structure.
            let major = unsafe { (*managed).major };
            let held = Self(Holder::Versioned(managed));
            if major != VERSION.0 {
                let message = format!("DLPack {major} is not supported; version {} is", VERSION.0);
                return Err(PyBufferError::new_err(message));
            }
            return Ok(held);
        }
        let plain = take(capsule, PLAIN, PLAIN_USED)?;
        let managed = plain.ok_or_else(|| PyBufferError::new_err("no unused capsule of DLPack"))?;
        Ok(Self(Holder::Plain(managed.cast())))
    }

    /// Describes the array.
    fn description(&self) -> Description {
        // SAFETY: the structure is valid until it is dropped; shape and strides have an entry a dimension.
        unsafe {
            let (tensor, flags) = match self.0 {
                Holder::Plain(managed) => ((*managed).tensor, 0),
                Holder::Versioned(managed) => ((*managed).tensor, (*managed).flags),
            };
            let n = usize::try_from(tensor.ndim).unwrap_or(0);
            let list = |entries: *const i64| match entries.is_null() {
                true => None,
                false => Some(std::slice::from_raw_parts(entries, n).to_vec()),
            };
            (
                (tensor.data as u64).wrapping_add(tensor.byte_offset),
                list(tensor.shape).unwrap_or_default(),
                list(tensor.strides),
                (tensor.code, tensor.bits, tensor.lanes),
                (tensor.device_type, tensor.device_id),
                flags & READ_ONLY != 0,
            )
        }
    }
}

/// Takes the pointer out of a capsule of this name and marks the capsule as used; none where it has another name.
fn take(capsule: &Bound<'_, PyAny>, name: &CStr, used: &'static CStr) -> PyResult<Option<*mut c_void>> {
    // SAFETY: the object is alive; a capsule is asked for its pointer by its own name, and names are static.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
            return Ok(None);
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        if pointer.is_null() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(Some(pointer))
    }
}

/// An array to be exported, with what owns its memory.
pub struct Exported {
    /// The address of the first entry.
    pub address: u64,
    /// The number of the GPU.
    pub ordinal: i32,
    /// Bits of a number.
    pub bits: u8,
    /// Shape and strides.
    pub layout: Layout,
    /// Keeps the memory until the array is given back.
    pub _owner: Arc<dyn Any + Send + Sync>,
}

impl Exported {
    /// Returns the capsule of the array, of DLPack 1 or of the version before it.
    pub fn capsule(self, py: Python<'_>, is_versioned: bool) -> PyResult<Bound<'_, PyAny>> {
        // The structure owns this value, which owns the lists that the tensor points to.
        let mut kept = Box::new(self);
        let tensor = Tensor {
            data: kept.address as *mut c_void,
            device_type: CUDA,
            device_id: kept.ordinal,
            ndim: kept.layout.0.len() as i32,
            code: FLOAT,
            bits: kept.bits,
            lanes: 1,
            shape: kept.layout.0.as_mut_ptr(),
            strides: kept.layout.1.as_mut_ptr(),
            byte_offset: 0,
        };
        let context = Box::into_raw(kept).cast::<c_void>();
        let (pointer, name): (*mut c_void, &CStr) = if is_versioned {
            let (major, minor) = VERSION;
            let deleter = Some(delete_versioned as unsafe extern "C" fn(_));
            let managed = ManagedVersioned { major, minor, context, deleter, flags: 0, tensor };
            (Box::into_raw(Box::new(managed)).cast(), VERSIONED)
        } else {
            let managed = Managed { tensor, context, deleter: Some(delete) };
            (Box::into_raw(Box::new(managed)).cast(), PLAIN)
        };
        // SAFETY: the pointer is that of the structure of this name; its destructor is below.
        unsafe {
            let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy));
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }
}

/// Gives an array back.
///
/// # Safety
/// The structure came from [`Exported::capsule`] and is given back once.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both boxes were leaked there.
    unsafe {
        drop(Box::from_raw((*managed).context.cast::<Exported>()));
        drop(Box::from_raw(managed));
    }
}

/// As [`delete`].
///
/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: both boxes were leaked in `Exported::capsule`.
    unsafe {
        drop(Box::from_raw((*managed).context.cast::<Exported>()));
        drop(Box::from_raw(managed));
    }
}

/// Ends a capsule; an array that nobody has taken over is given back.
///
/// # Safety
/// Python calls this with a capsule of [`Exported::capsule`].
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule still has its first name where nobody has taken the array over.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}
