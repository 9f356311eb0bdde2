//! Models of the membrane on the CPU: the conformance suite, and the bits of the reference.

use femtile::device::{Cpu, Reference, cpu::SimdLevel};
use femtile_cardiac::ionic::{GatePrecision, LocalScheme, Model};
use femtile_conformance::suite::{FULL, ionic::run};

/// CPU devices of every SIMD level this processor has, with 1, 2 and 3 threads.
fn devices(_check: &str) -> Vec<Cpu> {
    let levels = SimdLevel::available().into_iter().zip((1..=3).cycle());
    levels.map(|(simd, n)| Cpu::with_simd(n, simd).expect("a level that is available")).collect()
}

femtile_conformance::membranes!(devices, FULL);

#[test]
fn steps_have_the_bits_of_the_reference_on_every_path_and_number_of_threads() {
    for name in Model::names() {
        let model = Model::named(name).unwrap();
        let bits = |(v, states): (Vec<f64>, Vec<Vec<f64>>)| -> Vec<u64> {
            v.into_iter().chain(states.into_iter().flatten()).map(f64::to_bits).collect()
        };
        for scheme in [LocalScheme::RushLarsen, LocalScheme::RushLarsen2] {
            for gates in [GatePrecision::Double, GatePrecision::Single] {
                let expected = bits(run(&Reference, &model, (scheme, gates), None, 1027));
                for device in devices("bits") {
                    let found = bits(run(&device, &model, (scheme, gates), None, 1027));
                    assert_eq!(found, expected, "{name}, {scheme:?}, {gates:?}, {device:?}");
                }
            }
        }
    }
}
