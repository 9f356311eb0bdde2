//! The driver's pool of freed memory.

use std::ffi::c_int;

use cudarc::driver::result::{self, DriverError as Refusal};
use cudarc::driver::sys::{self, CUmemPool_attribute_enum as Attribute};

/// Makes the driver keep all freed memory for this process, so that allocating is cheap.
pub(super) fn keep_all(ordinal: usize) -> Result<(), Refusal> {
    let mut keep = u64::MAX;
    let threshold = Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is a 64-bit number.
    unsafe {
        let pool = result::device::get_default_mem_pool(result::device::get(ordinal as c_int)?)?;
        result::mem_pool::set_attribute(pool, threshold, (&raw mut keep).cast())
    }
}

/// Lets other GPUs read the memory of the pool of a GPU; returns whether all of them can reach it.
pub(super) fn open_to(ordinal: usize, others: &[usize], has_pool: bool) -> Result<bool, Refusal> {
    let own = result::device::get(ordinal as c_int)?;
    for &other in others.iter().filter(|&&other| other != ordinal) {
        let device = result::device::get(other as c_int)?;
        let mut can: c_int = 0;
        // SAFETY: both devices were just given out by the driver.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, device, own) }.result()?;
        if can == 0 || !has_pool {
            return Ok(false);
        }
        let access = sys::CUmemAccessDesc {
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE,
                id: other as c_int,
            },
            flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: one description is given, which the driver copies.
        let given = unsafe {
            let pool = result::device::get_default_mem_pool(own)?;
            sys::cuMemPoolSetAccess(pool, &raw const access, 1).result()
        };
        // Some virtual machines refuse what the question before has promised.
        if given.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the bytes that the pool keeps.
pub(super) fn kept(ordinal: usize) -> Result<usize, Refusal> {
    let attribute = |which| {
        let mut bytes = 0_u64;
        // SAFETY: the attributes below are 64-bit numbers.
        unsafe {
            let pool = result::device::get_default_mem_pool(result::device::get(ordinal as c_int)?)?;
            result::mem_pool::get_attribute(pool, which, (&raw mut bytes).cast())?;
        }
        Ok(bytes)
    };
    let reserved = attribute(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
    let used = attribute(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
    Ok(reserved.saturating_sub(used) as usize)
}
