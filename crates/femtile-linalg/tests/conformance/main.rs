//! Every device and precision against the reference, and the reference against numbers one can check.

mod cg;
mod csr;
mod problems;
mod vector;

use femtile_device::{Cpu, cpu::SimdLevel};

/// Lengths that no lane width, block or thread count divides evenly, and those next to them.
pub const SIZES: &[usize] = &[0, 1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 4095, 4096, 4097, 10_007, 40_961];

/// CPU devices of every SIMD level this processor has, with 1, 2 and 3 threads.
pub fn cpus() -> Vec<Cpu> {
    let threads = |simd| (1..=3).map(move |n| Cpu::with_simd(n, simd).expect("a level that is available"));
    SimdLevel::available().into_iter().flat_map(threads).collect()
}
