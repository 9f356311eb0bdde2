use crate::buffer::same_length;
use crate::{Device, DeviceError, Element, HostDevice};

/// The oracle: one thread, plain loops, nothing clever. Every other device is tested against it.
#[derive(Debug, Clone, Default)]
pub struct Reference;

impl Device for Reference {
    type Memory<T: Element> = Vec<T>;
    type Recording = ();
    type Readback = Vec<u8>;

    fn description(&self) -> String {
        "reference".into()
    }

    fn allocate<T: Element>(&self, len: usize) -> Result<Vec<T>, DeviceError> {
        Ok(vec![T::zeroed(); len])
    }

    fn adopt<T: Element>(&self, host: Vec<T>) -> Result<Vec<T>, DeviceError> {
        Ok(host)
    }

    fn upload<T: Element>(&self, memory: &mut Vec<T>, host: &[T]) -> Result<(), DeviceError> {
        same_length("upload", memory.len(), host.len())?;
        memory.copy_from_slice(host);
        Ok(())
    }

    fn download<T: Element>(&self, host: &mut [T], memory: &Vec<T>) -> Result<(), DeviceError> {
        same_length("download", host.len(), memory.len())?;
        host.copy_from_slice(memory);
        Ok(())
    }

    fn lend<T: Element>(memory: &Vec<T>) -> Option<&[T]> {
        Some(memory)
    }

    fn begin_read<T: Element>(&self, memory: &Vec<T>, len: usize) -> Result<Vec<u8>, DeviceError> {
        same_length("begin_read", len, memory.len())?;
        Ok(bytemuck::cast_slice(memory).to_vec())
    }

    fn end_read<T: Element>(&self, readback: Vec<u8>) -> Result<Vec<T>, DeviceError> {
        Ok(crate::buffer::values_of(&readback))
    }
}

impl HostDevice for Reference {
    fn slice<T: Element>(memory: &Vec<T>) -> &[T] {
        memory
    }

    fn slice_mut<T: Element>(memory: &mut Vec<T>) -> &mut [T] {
        memory
    }
}
