//! Bandwidth bound of products on a device.

use femtile::device::cuda::measure;
use femtile::device::{Cpu, Cuda};
use femtile::linalg::sparse::choice::Described;
use serde::Serialize;

use super::{Peer, Stopwatch};
use crate::BenchError;

/// Bytes of each vector that the bandwidth of a CPU is measured with: longer than common last-level caches.
const VECTOR_BYTES: usize = 64 << 20;

/// A measured bandwidth, and the cache that may beat it.
#[derive(Debug, Clone, Serialize)]
pub struct Bound {
    /// Name of the bandwidth.
    pub name: &'static str,
    /// 10⁹ bytes a second.
    pub gb_per_s: f64,
    /// The last-level cache; none if the system does not report it.
    pub cache_bytes: Option<usize>,
}

/// A device on which formats are compared.
pub trait Compared: Described + Stopwatch {
    /// Measures what bounds products: reading on a CPU, copying on a GPU.
    ///
    /// # Errors
    /// Errors of the device.
    fn bound(&self) -> Result<Bound, BenchError>;

    /// Returns the peer library and its number of threads.
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

/// Returns the size of the largest cache of the first core, as Linux reports it.
fn last_cache_bytes() -> Option<usize> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = folder.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("size")).ok());
    sizes.filter_map(|size| bytes(size.trim())).max()
}

/// Bytes of a size such as `32768K`.
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
