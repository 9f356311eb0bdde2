use crate::Element;
use crate::host_memory_device::HostMemoryDevice;

/// The oracle: one thread and plain loops. Every other device is tested against it.
#[derive(Debug, Clone, Default)]
pub struct Reference;

impl HostMemoryDevice for Reference {
    fn describe(&self) -> String {
        "reference".into()
    }

    fn zeros<T: Element>(len: usize) -> Vec<T> {
        vec![T::zeroed(); len]
    }
}
