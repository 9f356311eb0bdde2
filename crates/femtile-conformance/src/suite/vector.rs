//! Updates, products and sums of vectors.

use femtile::device::{Buffer, Device, Reference, Scalar};
use femtile::linalg::vector::{DeviceSum, VectorKernels};

use super::problems::Random;
use super::{LinearDevice, Scope};

/// A vector of not-a-numbers, so that an entry left unwritten shows.
pub fn nan<T: Scalar, D: Device>(device: &D, n: usize) -> Buffer<T, D> {
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
    assert_eq!(device.dot(&dx, &dy).unwrap().to_bits(), found.to_bits(), "a sum has the same bits again");
    let (found, expected) = (device.sum(&dx).unwrap(), oracle.sum(&rx).unwrap());
    assert!((found - expected).abs() <= 1e-15 * scale, "sum of {n}: {found} {expected}");

    let mut sum = DeviceSum::new(device, n).unwrap();
    let usual = device.dot(&dx, &dy).unwrap();
    for _ in 0..2 {
        assert_eq!(device.dot_in(&mut sum, &dx, &dy).unwrap().to_bits(), usual.to_bits());
    }
    if n > 0 {
        let mut short = DeviceSum::new(device, n - 1).unwrap();
        assert!(device.dot_in(&mut short, &dx, &dy).is_err());
        assert!(device.sum_into(&mut short, &dx).is_err());
    }
    for n_summed in [n, 2 * n] {
        device.sum_into(&mut sum, &dx).unwrap();
        let mut free = Buffer::from_host(device, &x).unwrap();
        device.subtract_mean(&mut free, &sum, n_summed).unwrap();
        let mean = T::from_f64(expected / n_summed as f64);
        for (found, x) in free.to_host().unwrap().iter().zip(&x) {
            assert!((*found - (*x - mean)).to_f64().abs() <= 4.0 * tolerance, "{found:?} without the mean");
        }
    }

    let mut copied = nan(device, n);
    device.copy(&mut copied, &dx).unwrap();
    assert_eq!(copied.to_host().unwrap(), x);
    device.fill(&mut copied, T::from_f64(2.5)).unwrap();
    assert_eq!(copied.to_host().unwrap(), vec![T::from_f64(2.5); n]);

    for m in 1..=3 {
        // Every component is taken from one field and put into the place of another component in the next.
        let field: Vec<T> = random.vector(m * n);
        let from = Buffer::from_host(device, &field).unwrap();
        let (mut one, mut to) = (nan(device, n), nan(device, m * n));
        for c in 0..m {
            device.take_component(&mut one, &from, (c, m)).unwrap();
            device.put_component(&mut to, &one, ((c + 1) % m, m)).unwrap();
        }
        for (i, found) in to.to_host().unwrap().into_iter().enumerate() {
            assert_eq!(found, field[i - i % m + (i % m + m - 1) % m], "entry {i} of {m} components");
        }
    }

    let mut scaled = nan(device, n);
    device.scale_by(&mut scaled, &dx, &dy).unwrap();
    let (alpha, beta) = (T::from_f64(0.3), T::from_f64(-1.7));
    let mut moved = Buffer::from_host(device, &y).unwrap();
    device.axpby(&mut moved, alpha, &dx, beta).unwrap();
    let vectors = [(alpha, &dx), (beta, &dy), (T::ONE, &dx), (alpha, &dy)];
    for k in 1..=4 {
        let mut sum = nan(device, n);
        device.combine(&mut sum, &vectors[..k]).unwrap();
        for (i, found) in sum.to_host().unwrap().iter().enumerate() {
            let terms = [alpha * x[i], beta * y[i], x[i], alpha * y[i]];
            let expected = terms[..k].iter().fold(0.0, |sum, term| sum + term.to_f64());
            assert!((found.to_f64() - expected).abs() <= 4.0 * tolerance, "{k} terms");
        }
    }
    let (scaled, moved) = (scaled.to_host().unwrap(), moved.to_host().unwrap());
    for i in 0..n {
        assert_eq!(scaled[i], x[i] * y[i]);
        assert!((moved[i] - (alpha * x[i] + beta * y[i])).to_f64().abs() <= tolerance);
    }
}

/// Every act on vectors gives what plain loops give, and sums give the same bits when they are taken again.
pub fn vector_kernels_agree_with_the_reference<D: LinearDevice>(device: &D, scope: &Scope) {
    for &n in scope.sizes {
        agree::<f64, _>(device, n, 1e-15);
        agree::<f32, _>(device, n, 1e-6);
    }
}

/// Vectors that do not fit together are an error, not a fault.
pub fn vectors_of_different_length_are_refused<D: LinearDevice>(device: &D, _: &Scope) {
    let (mut x, y) = (Buffer::<f64, _>::zeros(device, 3).unwrap(), Buffer::zeros(device, 4).unwrap());
    assert!(device.dot(&x, &y).is_err());
    assert!(device.axpby(&mut x, 1.0, &y, 1.0).is_err());
    assert!(device.combine(&mut x, &[(1.0, &y)]).is_err());
    assert!(device.combine(&mut x, &[]).is_err());
    assert!(device.combine(&mut x, &[(1.0, &Buffer::zeros(device, 3).unwrap()); 5]).is_err());
    assert!(device.take_component(&mut x, &y, (0, 2)).is_err());
    // 2^62 + 1 times the four entries are four again where the product wraps.
    let [mut four, fours]: [Buffer<f64, D>; 2] =
        [Buffer::zeros(device, 4).unwrap(), Buffer::zeros(device, 4).unwrap()];
    assert!(device.take_component(&mut four, &fours, (1 << 40, (1 << 62) + 1)).is_err());
    assert!(device.put_component(&mut x, &y, (0, 1)).is_err());
    assert!(device.take_component(&mut x, &Buffer::zeros(device, 6).unwrap(), (2, 2)).is_err());
    assert!(x.upload(&[1.0; 4]).is_err());
}
