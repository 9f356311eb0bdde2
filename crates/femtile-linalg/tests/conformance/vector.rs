use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::vector::VectorKernels;

use crate::problems::Random;
use crate::{SIZES, cpus};

fn nan<T: Scalar, D: VectorKernels<T>>(device: &D, n: usize) -> Buffer<T, D> {
    Buffer::from_vec(device, vec![T::from_f64(f64::NAN); n]).unwrap()
}

fn agree<T: Scalar, D: VectorKernels<T>>(device: &D, n: usize, tolerance: f64) {
    let mut random = Random::new(n as u64);
    let (x, y): (Vec<T>, Vec<T>) = (random.vector(n), random.vector(n));
    let oracle = Reference;
    let (rx, ry) = (Buffer::from_host(&oracle, &x).unwrap(), Buffer::from_host(&oracle, &y).unwrap());
    let (dx, dy) = (Buffer::from_host(device, &x).unwrap(), Buffer::from_host(device, &y).unwrap());
    let scale = n as f64 + 1.0;

    let (found, expected) = (device.dot(&dx, &dy).unwrap(), oracle.dot(&rx, &ry).unwrap());
    assert!((found - expected).abs() <= 1e-15 * scale, "dot of {n}: {found} {expected}");
    let (found, expected) = (device.sum(&dx).unwrap(), oracle.sum(&rx).unwrap());
    assert!((found - expected).abs() <= 1e-15 * scale, "sum of {n}: {found} {expected}");

    let mut copied = nan(device, n);
    device.copy(&mut copied, &dx).unwrap();
    assert_eq!(copied.to_host().unwrap(), x);
    device.fill(&mut copied, T::from_f64(2.5)).unwrap();
    assert_eq!(copied.to_host().unwrap(), vec![T::from_f64(2.5); n]);

    let mut scaled = nan(device, n);
    device.scale_by(&mut scaled, &dx, &dy).unwrap();
    let (alpha, beta) = (T::from_f64(0.3), T::from_f64(-1.7));
    let mut moved = Buffer::from_host(device, &y).unwrap();
    device.axpby(&mut moved, alpha, &dx, beta).unwrap();
    let (scaled, moved) = (scaled.to_host().unwrap(), moved.to_host().unwrap());
    for i in 0..n {
        assert_eq!(scaled[i], x[i] * y[i]);
        assert!((moved[i] - (alpha * x[i] + beta * y[i])).to_f64().abs() <= tolerance);
    }
}

#[test]
fn vector_kernels_agree_with_the_reference() {
    for &n in SIZES {
        for cpu in cpus() {
            agree::<f64, _>(&cpu, n, 1e-15);
            agree::<f32, _>(&cpu, n, 1e-6);
        }
        agree::<f64, _>(&Reference, n, 0.0);
        agree::<f32, _>(&Reference, n, 0.0);
    }
}

#[test]
fn sums_have_the_same_bits_for_any_threads_and_any_simd() {
    for n in [10_007, 123_457] {
        let mut random = Random::new(7);
        let (x, y): (Vec<f64>, Vec<f64>) = (random.vector(n), random.vector(n));
        let bits = |cpu: &femtile_device::Cpu| {
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

#[test]
fn vectors_of_different_length_are_refused() {
    let cpu = &cpus()[0];
    let (mut x, y) = (Buffer::<f64, _>::zeros(cpu, 3).unwrap(), Buffer::zeros(cpu, 4).unwrap());
    assert!(cpu.dot(&x, &y).is_err());
    assert!(cpu.axpby(&mut x, 1.0, &y, 1.0).is_err());
    assert!(x.upload(&[1.0; 4]).is_err());
}
