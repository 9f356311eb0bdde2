//! Finding and starting the NVIDIA driver.

use std::ffi::c_int;

use cudarc::driver::{result, sys};

use super::locate;
use super::nvidia::absent;
use super::refusal::words;
use crate::DeviceError;

/// The oldest driver that has all that is used: CUDA 12.0.
const OLDEST: c_int = 12_000;

/// Loads the driver's library that the environment names, so that cudarc finds it by its name.
fn preload() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Some(path) = std::env::var_os(locate::DRIVER_VARIABLE) {
            // SAFETY: the user vouches that this is the driver's library.
            if let Ok(library) = unsafe { libloading::Library::new(path) } {
                std::mem::forget(library);
            }
        }
    });
}

/// Checks that there is a driver, without starting it.
pub(super) fn check_driver(ordinal: usize) -> Result<(), DeviceError> {
    driver_version().map(|_| ()).map_err(|reason| absent(ordinal, reason))
}

/// Returns the version of the driver.
fn driver_version() -> Result<c_int, String> {
    preload();
    // SAFETY: looking for a library has no preconditions.
    if !unsafe { sys::is_culib_present() } {
        return Err(format!(
            "there is no NVIDIA driver (libcuda); solve with `cpu`, install the driver, or name its library in {}",
            locate::DRIVER_VARIABLE
        ));
    }
    let mut version = 0;
    // SAFETY: the library is there, and the pointer is that of a number.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(words)?;
    if version < OLDEST {
        return Err(format!(
            "the NVIDIA driver knows CUDA {}.{} at most, and 12.0 is needed; update the driver or solve with `cpu`",
            version / 1000,
            version % 1000 / 10
        ));
    }
    Ok(version)
}

/// Starts the driver; returns the number of GPUs and the version of the driver.
pub(super) fn start() -> Result<(usize, c_int), String> {
    let version = driver_version()?;
    result::init().map_err(|refusal| format!("the NVIDIA driver does not start: {}", words(refusal)))?;
    let count = result::device::get_count().map_err(words)?;
    Ok((usize::try_from(count).unwrap_or(0), version))
}
