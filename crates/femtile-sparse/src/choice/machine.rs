use femtile_device::{Cpu, Cuda, Device, Reference};

/// The parameters of a device in the cost model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Machine {
    /// A CPU.
    Cpu {
        /// Lanes of f64 in a SIMD register, and of a slice.
        lanes: usize,
    },
    /// A GPU.
    Gpu {
        /// Number of multiprocessors.
        n_multiprocessors: usize,
        /// Bytes of its second-level cache.
        cache_bytes: usize,
    },
}

/// A device for which formats can be chosen.
pub trait Described: Device {
    /// Returns the parameters of the cost model.
    fn machine(&self) -> Machine;
}

impl Described for Cuda {
    fn machine(&self) -> Machine {
        let properties = self.properties();
        Machine::Gpu { n_multiprocessors: properties.n_multiprocessors, cache_bytes: properties.l2_bytes }
    }
}

impl Described for Cpu {
    fn machine(&self) -> Machine {
        Machine::Cpu { lanes: if self.simd() == femtile_device::cpu::SimdLevel::Avx512 { 8 } else { 4 } }
    }
}

impl Described for Reference {
    fn machine(&self) -> Machine {
        Machine::Cpu { lanes: 4 }
    }
}
