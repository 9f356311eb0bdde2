//! The bandwidth that bounds sparse products on a device.

use femtile::device::cuda::measure;
use femtile::device::{Cpu, Cuda};
use femtile::linalg::sparse::choice::Described;
use serde::Serialize;

use super::Peer;
use crate::{BenchError, Stopwatch};

/// Bytes of each vector in the bandwidth measurement of a CPU: more than common last-level caches hold.
const VECTOR_BYTES: usize = 64 << 20;

/// A measured memory bandwidth, and the size of the cache above it.
#[derive(Debug, Clone, Serialize)]
pub struct Bound {
    /// The kind of bandwidth.
    pub name: &'static str,
    /// Bandwidth in 10⁹ bytes per second.
    pub gb_per_s: f64,
    /// Size of the last-level cache; none where the system does not report it.
    pub cache_bytes: Option<usize>,
}

/// A device that surveys run on.
pub trait Compared: Described + Stopwatch {
    /// Measures the bandwidth: of reading on a CPU, of copying on a GPU.
    ///
    /// # Errors
    /// Errors of the device.
    fn bound(&self) -> Result<Bound, BenchError>;

    /// Returns the vendor library to compare with, and its number of threads.
    fn peer(&self) -> (Peer, usize);
}

impl Compared for Cpu {
    fn bound(&self) -> Result<Bound, BenchError> {
        let gb_per_s = self.measure_bandwidth(VECTOR_BYTES)?.read_gb_per_s;
        Ok(Bound { name: "read bandwidth", gb_per_s, cache_bytes: last_cache_bytes() })
    }

    fn peer(&self) -> (Peer, usize) {
        (Peer::Mkl, self.threads())
    }
}

impl Compared for Cuda {
    fn bound(&self) -> Result<Bound, BenchError> {
        let gb_per_s = 1e-9 * measure(self)?.copy_bytes_per_second;
        let cache_bytes = Some(self.properties().l2_bytes);
        Ok(Bound { name: "copy bandwidth", gb_per_s, cache_bytes })
    }

    fn peer(&self) -> (Peer, usize) {
        (Peer::Cusparse, 0)
    }
}

/// Returns the largest cache of the first core, from `/sys`.
fn last_cache_bytes() -> Option<usize> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = folder.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("size")).ok());
    sizes.filter_map(|size| bytes(size.trim())).max()
}

/// Parses a size such as `32768K` into bytes.
fn bytes(size: &str) -> Option<usize> {
    let (number, unit) = match size.strip_suffix(['K', 'M']) {
        Some(number) if size.ends_with('K') => (number, 1 << 10),
        Some(number) => (number, 1 << 20),
        None => (size, 1),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_read_with_their_units() {
        assert_eq!(
            ["32768K", "2M", "512", "K", "1G"].map(bytes),
            [Some(32 << 20), Some(2 << 20), Some(512), None, None]
        );
    }
}
