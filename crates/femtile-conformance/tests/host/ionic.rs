//! Models of the membrane on the CPU: the conformance suite, and the bits of the reference.

use femtile::device::{Cpu, cpu::SimdLevel};
use femtile_conformance::suite::FULL;

/// CPU devices of every SIMD level this processor has, with 1, 2 and 3 threads.
fn devices(_check: &str) -> Vec<Cpu> {
    let levels = SimdLevel::available().into_iter().zip((1..=3).cycle());
    levels.map(|(simd, n)| Cpu::with_simd(n, simd).expect("a level that is available")).collect()
}

femtile_conformance::membranes!(devices, FULL);
