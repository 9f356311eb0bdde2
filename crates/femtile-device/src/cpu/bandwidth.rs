//! Memory bandwidth, measured with the threads and instructions that solvers use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Cpu, SharedMut, try_zeroed_vec};
use crate::DeviceError;

const BLOCK: usize = 4096;
const REPEATS: usize = 10;
/// Values of a line of the cache.
const LINE: usize = 8;

/// Measured bandwidth of the memory, the best of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// Dot product of two long vectors: 16 bytes per entry, none written; 10⁹ bytes a second.
    pub read_gb_per_s: f64,
    /// $a_i = b_i + s c_i$: 24 bytes per entry, not counting that the cache also reads `a`; 10⁹ bytes a
    /// second.
    pub triad_gb_per_s: f64,
    /// Length of each vector in bytes.
    pub vector_bytes: usize,
    /// Threads that took part.
    pub threads: usize,
}

impl Cpu {
    /// Measures the bandwidth with three vectors of `vector_bytes` each, which takes some tenths of a second.
    ///
    /// The vectors should be longer than the last-level cache; 256 MiB is, on most machines.
    ///
    /// # Errors
    /// [`DeviceError::HostMemory`] if there is no memory for them.
    pub fn measure_bandwidth(&self, vector_bytes: usize) -> Result<Bandwidth, DeviceError> {
        let n = (vector_bytes / 8).max(1);
        self.install(|| {
            let mut vectors = self.three_vectors(n)?;
            let [a, b, c] = &mut vectors;
            let read = fastest(|| self.time_dot(b, c));
            let triad = fastest(|| self.time_triad(a, b, c));
            Ok(Bandwidth {
                read_gb_per_s: 16e-9 * n as f64 / read,
                triad_gb_per_s: 24e-9 * n as f64 / triad,
                vector_bytes: 8 * n,
                threads: self.threads(),
            })
        })
    }

    /// Measures $a_i = b_i + s c_i$ with non-temporal stores of `a`, which is therefore not read: 24 bytes
    /// per entry, in 10⁹ bytes a second, the best of several runs. An upper bound for methods that stream.
    ///
    /// # Errors
    /// As [`Cpu::measure_bandwidth`].
    pub fn measure_streamed_triad(&self, vector_bytes: usize) -> Result<f64, DeviceError> {
        let n = (vector_bytes / 8).max(LINE);
        self.install(|| {
            let mut vectors = self.three_vectors(n)?;
            let [a, b, c] = &mut vectors;
            let first = a.as_ptr().align_offset(8 * LINE);
            let n_lines = (n - first) / LINE;
            let a = SharedMut::new(a);
            let seconds = fastest(|| {
                let begun = Instant::now();
                self.for_ranges(n_lines, BLOCK / LINE, |lines| {
                    let range = first + lines.start * LINE..first + lines.end * LINE;
                    // SAFETY: the ranges of one `for_ranges` do not overlap.
                    streamed_triad(self, unsafe { a.range(range.clone()) }, &b[range.clone()], &c[range]);
                });
                begun.elapsed().as_secs_f64()
            });
            Ok(24e-9 * (n_lines * LINE) as f64 / seconds)
        })
    }

    /// Three vectors, each part first written by the thread that works on it.
    fn three_vectors(&self, n: usize) -> Result<[Vec<f64>; 3], DeviceError> {
        let mut vectors = [try_zeroed_vec::<f64>(n)?, try_zeroed_vec(n)?, try_zeroed_vec(n)?];
        for (vector, value) in vectors.iter_mut().zip([0.0, 1.0, 2.0]) {
            let shared = SharedMut::new(vector);
            self.for_ranges(n, BLOCK, |range| {
                // SAFETY: the ranges of one `for_ranges` do not overlap.
                unsafe { shared.range(range) }.fill(value);
            });
        }
        Ok(vectors)
    }

    fn time_dot(&self, b: &[f64], c: &[f64]) -> f64 {
        let sink = AtomicU64::new(0);
        let begun = Instant::now();
        self.for_ranges(b.len(), BLOCK, |range| {
            let sum = self.vectorize(
                #[inline(always)]
                || dot(&b[range.clone()], &c[range.clone()]),
            );
            sink.fetch_xor(sum.to_bits(), Ordering::Relaxed);
        });
        std::hint::black_box(sink.load(Ordering::Relaxed));
        begun.elapsed().as_secs_f64()
    }

    fn time_triad(&self, a: &mut [f64], b: &[f64], c: &[f64]) -> f64 {
        let a = SharedMut::new(a);
        let begun = Instant::now();
        self.for_ranges(b.len(), BLOCK, |range| {
            // SAFETY: the ranges of one `for_ranges` do not overlap.
            let a = unsafe { a.range(range.clone()) };
            self.vectorize(
                #[inline(always)]
                || {
                    for ((a, b), c) in a.iter_mut().zip(&b[range.clone()]).zip(&c[range.clone()]) {
                        *a = b + 0.5 * c;
                    }
                },
            );
        });
        begun.elapsed().as_secs_f64()
    }
}

/// Computes the triad on whole cache lines, with non-temporal stores if the processor has them.
fn streamed_triad(cpu: &Cpu, a: &mut [f64], b: &[f64], c: &[f64]) {
    #[cfg(target_arch = "x86_64")]
    if matches!(cpu.simd(), super::SimdLevel::Avx2 | super::SimdLevel::Avx512) {
        // SAFETY: a `Cpu` has these levels only where the processor has AVX; `a` begins and ends lines of the cache.
        return unsafe { streamed_triad_avx(a, b, c) };
    }
    let _ = cpu;
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 0.5 * c;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn streamed_triad_avx(a: &mut [f64], b: &[f64], c: &[f64]) {
    use std::arch::x86_64::*;
    let s = _mm256_set1_pd(0.5);
    for ((a, b), c) in a.chunks_exact_mut(4).zip(b.chunks_exact(4)).zip(c.chunks_exact(4)) {
        // SAFETY: four values each, those of `a` aligned to 32 bytes, as the caller promises.
        unsafe {
            let product = _mm256_mul_pd(s, _mm256_loadu_pd(c.as_ptr()));
            _mm256_stream_pd(a.as_mut_ptr(), _mm256_add_pd(_mm256_loadu_pd(b.as_ptr()), product));
        }
    }
    _mm_sfence();
}

fn fastest(mut seconds: impl FnMut() -> f64) -> f64 {
    (0..REPEATS).map(|_| seconds()).fold(f64::INFINITY, f64::min)
}

#[inline(always)]
fn dot(b: &[f64], c: &[f64]) -> f64 {
    let mut lanes = [0.0; 32];
    let (b, b_rest) = b.as_chunks::<32>();
    let (c, c_rest) = c.as_chunks::<32>();
    for (b, c) in b.iter().zip(c) {
        for lane in 0..32 {
            lanes[lane] += b[lane] * c[lane];
        }
    }
    let rest: f64 = b_rest.iter().zip(c_rest).map(|(b, c)| b * c).sum();
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dot_product_is_right_for_odd_lengths() {
        for n in [0, 1, 31, 32, 33, 1000, 4097] {
            let b: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let expected: f64 = b.iter().map(|b| b * b).sum();
            assert_eq!(dot(&b, &b), expected);
        }
    }

    #[test]
    fn bandwidth_is_a_positive_number() -> Result<(), DeviceError> {
        let bandwidth = Cpu::new(2)?.measure_bandwidth(1 << 20)?;
        assert!(bandwidth.read_gb_per_s > 0.0 && bandwidth.triad_gb_per_s.is_finite());
        assert_eq!((bandwidth.vector_bytes, bandwidth.threads), (1 << 20, 2));
        assert!(Cpu::new(2)?.measure_streamed_triad(1 << 20)? > 0.0);
        Ok(())
    }

    #[test]
    fn vectors_that_the_system_cannot_give_are_an_error() {
        let needed = isize::MAX as usize - 7;
        let refused = Cpu::new(1).and_then(|cpu| cpu.measure_bandwidth(needed));
        assert_eq!(refused, Err(DeviceError::HostMemory { needed }));
    }
}
