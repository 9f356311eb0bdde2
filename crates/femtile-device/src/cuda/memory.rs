//! Accounts of the memory of a GPU.
//!
//! There is a limit, there are reserved bytes (`Device::with_reserved_bytes`), and arrays may overflow into pinned
//! host memory (`MemorySpace::Host`), which kernels address in the same way. Conjugate gradients (`femtile-sparse`,
//! `workspace.rs`) and multigrid (`femtile-amg`, `memory_limit.rs`) move whole matrices between the two before a
//! solve, never during it, so recordings stay valid. Nothing is prefetched on a second stream: kernels that stream
//! a matrix come close to the bandwidth of the bus.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Cuda, PendingCopy};
use crate::{DeviceError, MemorySpace, MemoryUse};

/// Smaller arrays may take reserved bytes: together they are negligible.
const SMALL: usize = 1 << 20;

/// The environment variable that limits the GPU memory of arrays.
const VARIABLE: &str = "FEMTILE_CUDA_MEMORY";

/// Returns the limit of the environment, or the error in its value.
pub(super) fn allowed() -> Result<Option<usize>, String> {
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    let text = text.to_string_lossy();
    let advice = || format!("{VARIABLE}={text} is no number of bytes; write one such as 8GiB or 500MB");
    bytes_of(&text).map(Some).ok_or_else(advice)
}

fn bytes_of(text: &str) -> Option<usize> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok()?;
    let unit = match text[end..].trim() {
        "" | "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * unit;
    (0.0..1e18).contains(&bytes).then_some(bytes as usize)
}

/// Returns the bytes of host memory that arrays may use: three quarters of the available memory.
pub(super) fn sensible_on_host() -> usize {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let of_system = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
    };
    let of_container = || {
        let [most, now] = ["max", "current"].map(|which| number(&format!("/sys/fs/cgroup/memory.{which}")));
        Some(most?.saturating_sub(now?))
    };
    let available = of_system().into_iter().chain(of_container()).min();
    available.map_or(usize::MAX, |bytes| bytes / 4 * 3)
}

/// Limits of each memory.
#[derive(Debug, Clone, Copy)]
struct Rules {
    used: MemoryUse,
    /// Bytes that arrays may take in the memory of the GPU.
    limit: usize,
    /// Bytes of these that are reserved.
    left: usize,
    /// Bytes that arrays which do not fit there may take on the host; none if they may not.
    overflow: Option<usize>,
}

/// Keeps count of the arrays of a GPU.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    rules: Mutex<Rules>,
}

impl MemoryBudget {
    /// Begins with no arrays and no limit but the driver's.
    pub fn new() -> Self {
        let rules = Rules { used: MemoryUse::default(), limit: usize::MAX, left: 0, overflow: None };
        Self { rules: Mutex::new(rules) }
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes that arrays take.
    pub fn used(&self) -> MemoryUse {
        self.rules().used
    }

    /// Returns the limit of arrays on the GPU if `free` bytes are free there.
    pub fn limit_with(&self, free: usize) -> usize {
        let rules = self.rules();
        rules.limit.min(rules.used.device.saturating_add(free))
    }

    /// Sets the limit of arrays on the GPU, in bytes.
    pub fn limit_to(&self, bytes: usize) {
        self.rules().limit = bytes;
    }

    /// Sets the limit of arrays on the host that do not fit on the GPU, in bytes.
    pub fn overflow(&self, most: usize) {
        self.rules().overflow = Some(most);
    }

    /// Returns whether an array of this size fits within the limit on the host.
    fn overflows(&self, bytes: usize) -> bool {
        let rules = self.rules();
        rules.overflow.is_some_and(|most| rules.used.host.saturating_add(bytes) <= most)
    }

    /// Returns the bytes that arrays may still use on the GPU if others go to the host.
    pub fn free(&self) -> Option<usize> {
        let rules = self.rules();
        rules.overflow.map(|_| rules.limit.saturating_sub(rules.used.device + rules.left))
    }

    /// Adds to the reserved bytes; a negative number releases them.
    pub fn leave(&self, bytes: isize) {
        let mut rules = self.rules();
        rules.left = rules.left.saturating_add_signed(bytes);
    }

    fn count(&self, place: MemorySpace, bytes: isize) {
        let used = &mut self.rules().used;
        let (now, peak) = match place {
            MemorySpace::Device => (&mut used.device, &mut used.device_peak),
            MemorySpace::Host => (&mut used.host, &mut used.host_peak),
        };
        *now = now.saturating_add_signed(bytes);
        *peak = (*peak).max(*now);
    }
}

/// An array in the memory of a GPU, or in memory of the host that kernels reach; given back in the order of the
/// stream when it is dropped.
#[derive(Debug)]
pub struct CudaMemory {
    device: Cuda,
    address: u64,
    bytes: usize,
    place: MemorySpace,
    /// Whether it belongs to another library, which gives it back.
    is_borrowed: bool,
}

impl CudaMemory {
    /// `bytes` bytes of another library, in the memory of the GPU.
    pub(super) fn borrowed(device: &Cuda, address: u64, bytes: usize) -> Self {
        Self { device: device.clone(), address, bytes, place: MemorySpace::Device, is_borrowed: true }
    }

    /// `bytes` bytes with undefined contents; no memory for zero bytes.
    pub(super) fn new(device: &Cuda, bytes: usize) -> Result<Self, DeviceError> {
        match Self::at(device, bytes, MemorySpace::Device) {
            Err(DeviceError::OutOfMemory { .. }) if device.budget().overflows(bytes) => {
                Self::at(device, bytes, MemorySpace::Host)
            }
            made => made,
        }
    }

    fn at(device: &Cuda, bytes: usize, place: MemorySpace) -> Result<Self, DeviceError> {
        let address = match place {
            _ if bytes == 0 => 0,
            MemorySpace::Device => {
                check(device, bytes)?;
                device.driver().allocate(bytes)?
            }
            MemorySpace::Host => device.driver().allocate_on_host(bytes)?,
        };
        device.budget().count(place, bytes as isize);
        Ok(Self { device: device.clone(), address, bytes, place, is_borrowed: false })
    }

    pub(super) fn zero(&self) -> Result<(), DeviceError> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the bytes are those of this allocation.
        unsafe { self.device.driver().zero(self.address, self.bytes) }
    }

    /// Moves the array; returns false if it does not fit there.
    pub(super) fn relocate(&mut self, place: MemorySpace) -> Result<bool, DeviceError> {
        if self.place == place || self.bytes == 0 {
            return Ok(true);
        }
        if self.is_borrowed || (place == MemorySpace::Host && !self.device.budget().overflows(self.bytes)) {
            return Ok(false);
        }
        let moved = match Self::at(&self.device, self.bytes, place) {
            Err(DeviceError::OutOfMemory { .. }) => return Ok(false),
            moved => moved?,
        };
        // SAFETY: both allocations have as many bytes.
        unsafe { self.device.driver().copy(moved.address, self.address, self.bytes) }?;
        *self = moved;
        Ok(true)
    }

    /// Returns its address on the GPU; 0 when it is empty.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Copies all bytes from the host.
    pub(super) fn upload(&mut self, device: &Cuda, host: &[u8]) -> Result<(), DeviceError> {
        self.check_copy("upload", device, self.bytes, host.len())?;
        if host.is_empty() {
            return Ok(());
        }
        // SAFETY: the allocation is one of this device and has as many bytes.
        unsafe { device.driver().upload(self.address, host) }
    }

    /// Copies all bytes to the host.
    pub(super) fn download(&self, device: &Cuda, host: &mut [u8]) -> Result<(), DeviceError> {
        self.check_copy("download", device, host.len(), self.bytes)?;
        if host.is_empty() {
            return Ok(());
        }
        // SAFETY: the allocation is one of this device and has as many bytes.
        unsafe { device.driver().download(host, self.address) }
    }

    /// Begins a copy of all bytes to the host; none when it is empty.
    pub(super) fn begin_download(
        &self,
        device: &Cuda,
        bytes: usize,
    ) -> Result<Option<PendingCopy>, DeviceError> {
        self.check_copy("begin_read", device, bytes, self.bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        // SAFETY: the allocation is one of this device and has as many bytes.
        unsafe { device.driver().begin_download(self.address, bytes) }.map(Some)
    }

    /// Refuses a copy between arrays of different sizes or devices.
    fn check_copy(
        &self,
        field: &'static str,
        device: &Cuda,
        expected: usize,
        found: usize,
    ) -> Result<(), DeviceError> {
        if self.device.id() != device.id() {
            return Err(DeviceError::OtherDevice { kernel: field, argument: 0, device: device.to_string() });
        }
        if expected != found {
            return Err(DeviceError::LengthMismatch { field, expected, found });
        }
        Ok(())
    }
}

/// Refuses an array beyond the limit or in reserved bytes.
fn check(device: &Cuda, bytes: usize) -> Result<(), DeviceError> {
    let Rules { used, limit, left, .. } = *device.budget().rules();
    let left = if bytes < SMALL { 0 } else { left };
    let free = limit.saturating_sub(used.device);
    if bytes.saturating_add(left) <= free {
        return Ok(());
    }
    let properties = device.properties();
    let device = format!("{device} ({})", properties.name);
    Err(DeviceError::OutOfMemory { device, needed: bytes, free, total: limit.min(properties.memory_bytes) })
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.device.recordings().give_up(self.address, self.bytes);
        if self.is_borrowed {
            return;
        }
        self.device.budget().count(self.place, -(self.bytes as isize));
        // SAFETY: the address is that of this allocation, which ends here; recordings that know it are not replayed
        // any more.
        unsafe {
            match self.place {
                MemorySpace::Device => self.device.driver().free(self.address),
                MemorySpace::Host => self.device.driver().free_on_host(self.address),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn numbers_of_bytes_have_units() {
        let cases = [("8GiB", 8 << 30), (" 1.5 MB ", 1_500_000), ("12", 12), ("3 KiB", 3072), ("0", 0)];
        for (text, bytes) in cases {
            assert_eq!(bytes_of(text), Some(bytes), "{text}");
        }
        for text in ["", "GiB", "-1", "8 gigs", "1e30", "nan"] {
            assert_eq!(bytes_of(text), None, "{text}");
        }
    }
}
