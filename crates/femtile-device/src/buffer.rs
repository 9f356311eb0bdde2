//! Devices, and arrays in their memory.
//!
//! A `Buffer` owns its memory and a handle of its device. Copies between host and device are explicit and return
//! errors. On host devices `from_vec` takes over the vector without a copy. `Borrowed` and `BorrowedMut` are
//! buffers around slices of the caller, such as arrays of NumPy. `BufferMut` lends a part of a buffer for writing.
//! It cannot be replaced or resized, so kernels can rely on its length.

use std::borrow::Cow;
use std::fmt::Debug;

use crate::{DeviceError, Element};

/// A memory that a device can access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemorySpace {
    /// The memory of the device.
    Device,
    /// The memory of the host, accessed through a bus.
    Host,
}

/// Present and peak bytes of the arrays of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Present bytes in device memory.
    pub device: usize,
    /// Peak bytes in device memory.
    pub device_peak: usize,
    /// Present bytes in host memory, accessed through a bus.
    pub host: usize,
    /// Peak bytes in host memory.
    pub host_peak: usize,
}

/// Owns arrays and runs kernels: a CPU with its threads, or a GPU.
///
/// Cloning a device clones a handle; all clones are the same device. Kernels are not methods of
/// this trait: each algorithm declares the few it needs in its own small trait.
pub trait Device: Clone + Debug + Send + Sync + 'static {
    /// The raw storage behind a [`Buffer`].
    type Memory<T: Element>: Send + Sync;

    /// The state of [`Device::repeat`] between calls.
    type Recording: Default + Debug + Send;

    /// A copy to the host, begun by [`Device::begin_read`].
    type Readback;

    /// Returns the name of this device for reports, such as `cpu (8 threads, avx2)`.
    fn description(&self) -> String;

    /// Allocates `len` values, all zero bits.
    fn allocate<T: Element>(&self, len: usize) -> Result<Self::Memory<T>, DeviceError>;

    /// Takes over the values of `host`, without a copy if the device works in host memory.
    fn adopt<T: Element>(&self, host: Vec<T>) -> Result<Self::Memory<T>, DeviceError> {
        let mut memory = self.allocate(host.len())?;
        self.upload(&mut memory, &host)?;
        Ok(memory)
    }

    /// Copies `host` into `memory`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    fn upload<T: Element>(&self, memory: &mut Self::Memory<T>, host: &[T]) -> Result<(), DeviceError>;

    /// Copies `memory` into `host`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    fn download<T: Element>(&self, host: &mut [T], memory: &Self::Memory<T>) -> Result<(), DeviceError>;

    /// Returns the values in place, if the host shares the memory.
    fn lend<T: Element>(_memory: &Self::Memory<T>) -> Option<&[T]> {
        None
    }

    /// Returns the address of an array, which changes when it is replaced or moved.
    fn address<T: Element>(memory: &Self::Memory<T>) -> u64;

    /// Begins a copy of all `len` values to the host; work queued later does not wait for it.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the array has another length.
    fn begin_read<T: Element>(
        &self,
        memory: &Self::Memory<T>,
        len: usize,
    ) -> Result<Self::Readback, DeviceError>;

    /// Waits for a copy and returns the values, as they were when the copy was begun.
    fn end_read<T: Element>(&self, readback: Self::Readback) -> Result<Vec<T>, DeviceError>;

    /// Runs `work` `times` times. A device that launches kernels may record them once and replay the recording, so `work`
    /// must launch the same kernels on the same arrays every time; otherwise the recorded launches are repeated. After an
    /// array of a recording is freed, the work is recorded again.
    fn repeat<E: From<DeviceError>>(
        &self,
        _recording: &mut Self::Recording,
        times: usize,
        work: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        (0..times).try_for_each(|_| work())
    }

    /// Returns the bytes left in [`MemorySpace::Device`] if further arrays go to [`MemorySpace::Host`]; else
    /// none.
    fn available_bytes(&self) -> Option<usize> {
        None
    }

    /// Runs `work` with `bytes` bytes of [`MemorySpace::Device`] reserved for later.
    fn with_reserved_bytes<R>(&self, _bytes: usize, work: impl FnOnce() -> R) -> R {
        work()
    }

    /// Moves an array; returns false if it does not fit in `place`.
    fn relocate<T: Element>(
        &self,
        _memory: &mut Self::Memory<T>,
        place: MemorySpace,
    ) -> Result<bool, DeviceError> {
        Ok(place == MemorySpace::Device)
    }

    /// Returns the bytes that arrays occupy, if the device counts them.
    fn memory_use(&self) -> Option<MemoryUse> {
        None
    }

    /// Returns the number of kernel launches so far; zero on devices without launches.
    fn kernel_launches(&self) -> u64 {
        0
    }
}

/// A device whose memory the host can address: its buffers lend slices.
pub trait HostDevice: Device {
    /// The values as a slice.
    fn slice<T: Element>(memory: &Self::Memory<T>) -> &[T];
    /// The values as a mutable slice.
    fn slice_mut<T: Element>(memory: &mut Self::Memory<T>) -> &mut [T];
}

/// An array of `len` values that lives on one device.
///
/// A buffer owns its memory and a handle of its device. Copies to and from the host are explicit. Kernels rely on its
/// length, so nobody changes the memory behind it:
///
/// ```compile_fail,E0599
/// # fn main() -> Result<(), femtile_device::DeviceError> {
/// let cpu = femtile_device::Cpu::new(1)?;
/// let mut x = femtile_device::Buffer::from_vec(&cpu, vec![1.0, 2.0])?;
/// *x.memory_mut() = Vec::new();
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T: Element, D: Device> {
    memory: D::Memory<T>,
    len: usize,
    device: D,
}

impl<T: Element, D: Device> Debug for Buffer<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer of {} values on {}", self.len, self.device.description())
    }
}

impl<T: Element, D: Device> Buffer<T, D> {
    /// Allocates `len` zeros on `device`.
    pub fn zeros(device: &D, len: usize) -> Result<Self, DeviceError> {
        Ok(Self { memory: device.allocate(len)?, len, device: device.clone() })
    }

    /// Copies `host` to `device`.
    pub fn from_host(device: &D, host: &[T]) -> Result<Self, DeviceError> {
        let mut buffer = Self::zeros(device, host.len())?;
        buffer.upload(host)?;
        Ok(buffer)
    }

    /// Takes over the values of `host`, without a copy if the device works in host memory.
    pub fn from_vec(device: &D, host: Vec<T>) -> Result<Self, DeviceError> {
        let len = host.len();
        Ok(Self { memory: device.adopt(host)?, len, device: device.clone() })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that holds the values.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The raw storage, for kernels.
    pub fn memory(&self) -> &D::Memory<T> {
        &self.memory
    }

    /// Returns the address of the values on their device; it changes when the buffer is replaced or moved.
    pub fn address(&self) -> u64 {
        D::address(&self.memory)
    }

    /// Moves the values to other memory; returns false if they do not fit there.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn move_to(&mut self, place: MemorySpace) -> Result<bool, DeviceError> {
        self.device.relocate(&mut self.memory, place)
    }

    /// Copies `host`, into the same memory if the length is unchanged.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn assign(&mut self, host: &[T]) -> Result<(), DeviceError> {
        if self.len != host.len() {
            *self = Self::zeros(&self.device, host.len())?;
        }
        self.upload(host)
    }

    /// Overwrites all values with those of `host`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    pub fn upload(&mut self, host: &[T]) -> Result<(), DeviceError> {
        same_length("upload", self.len, host.len())?;
        self.device.upload(&mut self.memory, host)
    }

    /// Copies all values into `host`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    pub fn download(&self, host: &mut [T]) -> Result<(), DeviceError> {
        same_length("download", host.len(), self.len)?;
        self.device.download(host, &self.memory)
    }

    /// Begins a copy of all values to the host, for [`Device::end_read`].
    pub fn begin_read(&self) -> Result<D::Readback, DeviceError> {
        self.device.begin_read(&self.memory, self.len)
    }

    /// Returns all values for the host to read, without a copy if it shares the memory.
    pub fn host_view(&self) -> Result<Cow<'_, [T]>, DeviceError> {
        match D::lend(&self.memory) {
            Some(values) => Ok(Cow::Borrowed(values)),
            None => Ok(Cow::Owned(self.to_host()?)),
        }
    }

    /// Copies all values to a vector on the host.
    pub fn to_host(&self) -> Result<Vec<T>, DeviceError> {
        let mut host = vec![T::zeroed(); self.len];
        self.download(&mut host)?;
        Ok(host)
    }
}

impl<T: Element> Buffer<T, crate::Cpu> {
    /// A buffer around an array of the host.
    pub(crate) fn of_array(device: &crate::Cpu, memory: crate::cpu::HostArray<T>) -> Self {
        Self { len: memory.len(), memory, device: device.clone() }
    }
}

impl<T: Element> Buffer<T, crate::Cuda> {
    /// A buffer around an array of a GPU.
    pub(crate) fn of_memory(device: &crate::Cuda, memory: crate::cuda::CudaMemory, len: usize) -> Self {
        Self { len, memory, device: device.clone() }
    }
}

impl<T: Element, D: HostDevice> Buffer<T, D> {
    /// The values, in place.
    pub fn as_slice(&self) -> &[T] {
        D::slice(&self.memory)
    }

    /// The values, in place and writable.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        D::slice_mut(&mut self.memory)
    }
}

/// The values of a buffer, to be overwritten: it cannot be replaced, nor can their number change.
///
/// ```compile_fail,E0594
/// use femtile_device::{Buffer, BufferMut, Cpu};
/// # fn main() -> Result<(), femtile_device::DeviceError> {
/// let cpu = Cpu::new(1)?;
/// let mut x = Buffer::from_vec(&cpu, vec![1.0, 2.0])?;
/// let mut values = BufferMut::new(&mut x);
/// *values = Buffer::zeros(&cpu, 1)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BufferMut<'a, T: Element, D: Device>(&'a mut Buffer<T, D>);

impl<'a, T: Element, D: Device> BufferMut<'a, T, D> {
    /// The values of `buffer`.
    pub fn new(buffer: &'a mut Buffer<T, D>) -> Self {
        Self(buffer)
    }

    /// Overwrites all values with those of `host`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    pub fn upload(&mut self, host: &[T]) -> Result<(), DeviceError> {
        self.0.upload(host)
    }
}

impl<T: Element, D: HostDevice> BufferMut<'_, T, D> {
    /// The values, in place and writable.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.0.as_mut_slice()
    }
}

impl<T: Element> BufferMut<'_, T, crate::Cuda> {
    /// The array as an argument that a kernel writes.
    pub fn write(&mut self) -> crate::cuda::Write<T> {
        self.0.write()
    }
}

impl<T: Element, D: Device> std::ops::Deref for BufferMut<'_, T, D> {
    type Target = Buffer<T, D>;

    fn deref(&self) -> &Buffer<T, D> {
        self.0
    }
}

pub(crate) fn same_length(field: &'static str, expected: usize, found: usize) -> Result<(), DeviceError> {
    if expected == found { Ok(()) } else { Err(DeviceError::LengthMismatch { field, expected, found }) }
}

/// Values from their bytes, wherever these lie.
pub(crate) fn values_of<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}
