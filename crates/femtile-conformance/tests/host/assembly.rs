//! Assembly on the CPU: the conformance suite.

use femtile::device::{Cpu, cpu::SimdLevel};
use femtile_conformance::suite::FULL;
use femtile_conformance::suite::samples::{Sample, tetrahedra};

/// CPU devices of every SIMD level this processor has, with 1, 2 and 3 threads.
fn devices(_check: &str) -> Vec<Cpu> {
    let levels = SimdLevel::available().into_iter().zip((1..=3).cycle());
    levels.map(|(simd, n)| Cpu::with_simd(n, simd).expect("a level that is available")).collect()
}

femtile_conformance::assembly!(devices, FULL);
femtile_conformance::refill!(devices, FULL);

#[test]
fn sample_meshes_are_filled_in_with_the_same_bits_at_any_number_of_threads() {
    let files = tetrahedra("sample_meshes_are_filled_in_with_the_same_bits_at_any_number_of_threads");
    let mut n_filled = 0;
    for file in &files {
        let sample = Sample::read(file);
        let [one, two, three] =
            [1, 2, 3].map(|n_threads| sample.refill_agrees(&Cpu::new(n_threads).expect("a CPU")));
        assert!(one == two, "{}: one thread against two", sample.name);
        assert!(one == three, "{}: one thread against three", sample.name);
        n_filled += usize::from(one.is_some());
    }
    assert!(files.is_empty() || n_filled > 0, "all samples are refused");
}
