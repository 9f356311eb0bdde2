use crate::{Device, DeviceError, Element, HostDevice};

/// The oracle: one thread, plain loops, nothing clever. Every other device is tested against it.
#[derive(Debug, Clone, Default)]
pub struct Reference;

impl Device for Reference {
    type Memory<T: Element> = Vec<T>;

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
        memory.copy_from_slice(host);
        Ok(())
    }

    fn download<T: Element>(&self, host: &mut [T], memory: &Vec<T>) -> Result<(), DeviceError> {
        host.copy_from_slice(memory);
        Ok(())
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
