//! Devices that work in host memory: their arrays are vectors or borrowed slices, and copies are copies of slices.

use std::fmt::Debug;

use crate::buffer::{same_length, values_of};
use crate::cpu::HostArray;
use crate::{Device, DeviceError, Element, HostDevice};

/// A device whose arrays are on the host; the rest of [`Device`] and [`HostDevice`] follows.
pub trait HostMemoryDevice: Clone + Debug + Send + Sync + 'static {
    /// As [`Device::description`].
    fn describe(&self) -> String;

    /// Returns `len` zeros.
    fn zeros<T: Element>(len: usize) -> Vec<T>;
}

impl<D: HostMemoryDevice> Device for D {
    type Memory<T: Element> = HostArray<T>;
    type Recording = ();
    type Readback = Vec<u8>;

    fn description(&self) -> String {
        self.describe()
    }

    fn allocate<T: Element>(&self, len: usize) -> Result<HostArray<T>, DeviceError> {
        Ok(D::zeros(len).into())
    }

    fn adopt<T: Element>(&self, host: Vec<T>) -> Result<HostArray<T>, DeviceError> {
        Ok(host.into())
    }

    fn upload<T: Element>(&self, memory: &mut HostArray<T>, host: &[T]) -> Result<(), DeviceError> {
        same_length("upload", memory.len(), host.len())?;
        memory.copy_from_slice(host);
        Ok(())
    }

    fn download<T: Element>(&self, host: &mut [T], memory: &HostArray<T>) -> Result<(), DeviceError> {
        same_length("download", host.len(), memory.len())?;
        host.copy_from_slice(memory);
        Ok(())
    }

    fn lend<T: Element>(memory: &HostArray<T>) -> Option<&[T]> {
        Some(memory)
    }

    fn address<T: Element>(memory: &HostArray<T>) -> u64 {
        memory.as_ptr() as u64
    }

    fn begin_read<T: Element>(&self, memory: &HostArray<T>, len: usize) -> Result<Vec<u8>, DeviceError> {
        same_length("begin_read", len, memory.len())?;
        Ok(bytemuck::cast_slice::<T, u8>(memory).to_vec())
    }

    fn end_read<T: Element>(&self, readback: Vec<u8>) -> Result<Vec<T>, DeviceError> {
        Ok(values_of(&readback))
    }
}

impl<D: HostMemoryDevice> HostDevice for D {
    fn slice<T: Element>(memory: &HostArray<T>) -> &[T] {
        memory
    }

    fn slice_mut<T: Element>(memory: &mut HostArray<T>) -> &mut [T] {
        memory
    }
}
