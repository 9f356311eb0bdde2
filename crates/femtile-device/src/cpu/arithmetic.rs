use std::hint::black_box;
use std::time::Instant;

use pulp::{Simd, WithSimd};

use super::wide::Wide;
use super::{Cpu, SimdLevel};

/// Independent sums, enough to hide a latency of four cycles at two instructions a cycle.
const CHAINS: usize = 12;
/// Steps of one run: some 10 ms.
const STEPS: usize = 2_000_000;
const RUNS: usize = 5;

impl Cpu {
    /// Measures the fused multiply-adds of f64 vectors that one core starts per second, the best of five
    /// runs, and returns it with the lanes of a vector. Without SIMD, these are separate multiplications and
    /// additions of scalars.
    pub fn measure_arithmetic(&self) -> (f64, usize) {
        let run = || match self.simd() {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 if let Some(simd) = pulp::x86::V3::try_new() => Simd::vectorize(simd, Chains),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 if let Some(simd) = pulp::x86::V4::try_new() => Simd::vectorize(simd, Chains),
            _ => Simd::vectorize(pulp::Scalar::new(), Chains),
        };
        let (mut seconds, mut lanes) = (f64::INFINITY, 1);
        for _ in 0..RUNS {
            let begun = Instant::now();
            lanes = run();
            seconds = seconds.min(begun.elapsed().as_secs_f64());
        }
        ((CHAINS * STEPS) as f64 / seconds, lanes)
    }
}

struct Chains;

impl WithSimd for Chains {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> usize {
        let factor = black_box(f64::splat(simd, 0.999));
        let addend = black_box(f64::splat(simd, 1e-3));
        let mut sums = [f64::splat(simd, 1.0); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = f64::plus_product(simd, addend, *sum, factor);
            }
        }
        black_box(sums);
        f64::lanes::<S>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_starts_some_millions_at_least() {
        for level in SimdLevel::available() {
            let (rate, lanes) = Cpu::with_simd(1, level).unwrap().measure_arithmetic();
            assert!(rate > 1e6 && lanes.is_power_of_two(), "{level}: {rate:e} of {lanes} lanes");
        }
    }
}
