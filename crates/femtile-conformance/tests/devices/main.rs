//! The conformance suite on GPUs, real and emulated, and the emulator itself.

#[cfg(target_os = "linux")]
mod announced;
#[cfg(target_os = "linux")]
mod counting;
mod cuda;
mod cuda_samples;
#[cfg(target_os = "linux")]
mod emulated;
#[cfg(target_os = "linux")]
mod emulated_borrowed;
#[cfg(target_os = "linux")]
mod emulated_boxes;
#[cfg(target_os = "linux")]
mod emulated_cases;
mod emulated_components;
#[cfg(target_os = "linux")]
mod emulated_device;
#[cfg(target_os = "linux")]
mod emulated_library;
#[cfg(target_os = "linux")]
mod emulated_places;
#[cfg(target_os = "linux")]
mod emulated_solver;
#[cfg(target_os = "linux")]
mod emulator;
#[cfg(target_os = "linux")]
mod emulator_corners;
#[cfg(target_os = "linux")]
mod failing;
