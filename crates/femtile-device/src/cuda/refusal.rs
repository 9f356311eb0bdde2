//! Errors of the driver.

use cudarc::driver::result::DriverError as Refusal;
use cudarc::driver::sys;

use crate::DeviceError;

/// The message of the driver for a refusal.
pub(super) fn words(refusal: Refusal) -> String {
    let text = |found: Result<&std::ffi::CStr, Refusal>| {
        found.map_or_else(|_| "unknown".into(), |text| text.to_string_lossy().into_owned())
    };
    format!("{} ({})", text(refusal.error_string()), text(refusal.error_name()))
}

/// Returns the error of a call; faults of kernels, which any later call reports, have a variant of their own.
pub(super) fn failed(action: &'static str, refusal: Refusal) -> DeviceError {
    use sys::cudaError_enum as E;
    let is_fault = matches!(
        refusal.0,
        E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ASSERT
    );
    if is_fault {
        return DeviceError::Fault { kernels: String::new(), message: words(refusal) };
    }
    DeviceError::Driver { action, message: words(refusal) }
}
