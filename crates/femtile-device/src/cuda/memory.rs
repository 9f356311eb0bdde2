use super::Cuda;
use crate::DeviceError;

/// An array in the memory of a GPU; given back in the order of the stream when it is dropped.
#[derive(Debug)]
pub struct CudaMemory {
    device: Cuda,
    address: u64,
    bytes: usize,
}

impl CudaMemory {
    /// `bytes` bytes with undefined contents; none at all where that is zero.
    pub(super) fn new(device: &Cuda, bytes: usize) -> Result<Self, DeviceError> {
        let address = if bytes == 0 { 0 } else { device.driver().allocate(bytes)? };
        Ok(Self { device: device.clone(), address, bytes })
    }

    pub(super) fn zero(&self) -> Result<(), DeviceError> {
        if self.bytes == 0 { Ok(()) } else { self.device.driver().zero(self.address, self.bytes) }
    }

    /// Where it begins, in the address space of the GPU; 0 when it is empty.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.device.driver().free(self.address);
        }
    }
}
