use femtile::device::{Buffer, Cpu};
use femtile::linalg::vector::VectorKernels;

use femtile_conformance::suite::problems::Random;

use crate::cpus;

#[test]
fn sums_have_the_same_bits_for_any_threads_and_any_simd() {
    for n in [10_007, 123_457] {
        let mut random = Random::new(7);
        let (x, y): (Vec<f64>, Vec<f64>) = (random.vector(n), random.vector(n));
        let bits = |cpu: &Cpu| {
            let (x, y) = (Buffer::from_host(cpu, &x).unwrap(), Buffer::from_host(cpu, &y).unwrap());
            (cpu.dot(&x, &y).unwrap().to_bits(), cpu.sum(&x).unwrap().to_bits())
        };
        let all: Vec<_> = cpus().iter().map(bits).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
    }
}

#[test]
fn sums_of_f32_are_kept_in_f64() {
    let n = 20_000_000;
    let cpu = &cpus()[0];
    let ones = Buffer::from_vec(cpu, vec![1.0f32; n]).unwrap();
    assert_eq!(cpu.sum(&ones).unwrap(), n as f64);
}
