//! Scalars, devices, and buffers in the memory of a device.
//!
//! A [`Device`] owns memory and threads; a [`Buffer`] is an array on one device. Algorithms are
//! generic over `D: Device` and reach the hardware only through a small kernel trait
//! beside each algorithm.
//!
//! # Safe calls
//!
//! Code without `unsafe` cannot corrupt memory through these crates. Methods of kernel traits check lengths. Index
//! lists that cannot be checked in constant time are constructed by the library only (private fields, the sealed
//! trait `StoredMatrix`), or are bounded when they are used (`Convert::gather`). What cannot be checked is
//! `unsafe`: `Driver`, `CudaHook::new`, `CudaBands::new`, `MergedOperator`.
#![deny(unsafe_code)]

mod buffer;
#[allow(unsafe_code)]
pub mod cpu;
#[allow(unsafe_code)]
pub mod cuda;
mod error;
mod host_memory;
mod host_memory_device;
mod part;
mod reference;
mod scalar;

pub use buffer::{Buffer, BufferMut, Device, HostDevice, MemorySpace, MemoryUse};
pub use cpu::{Cpu, parallel};
pub use cuda::Cuda;
pub use error::DeviceError;
pub use host_memory::host_memory_bytes;
pub use part::{TimedPart, part, take_parts, time_parts};
pub use reference::Reference;
pub use scalar::{Element, Scalar};
