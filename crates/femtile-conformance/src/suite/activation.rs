//! Activation maps, held to the reference.

use femtile::device::{Buffer, Reference};
use femtile_cardiac::ActivationConfig;
use femtile_cardiac::activation::{ActivationKernels, ActivationMap, Interval};

use super::Scope;
use super::problems::Random;

/// The times that random potentials between −1 and 1 leave, of points that cross levels often.
fn times<D: ActivationKernels>(device: &D, n: usize) -> [Vec<f64>; 4] {
    let config = ActivationConfig { threshold: 0.3, rest: -1.0, repolarised: 0.9 };
    let mut random = Random::new(n as u64 + 1);
    let start: Vec<f64> = random.vector(n);
    let mut v = Buffer::from_host(device, &start).unwrap();
    let mut map = ActivationMap::new(&config, &v).unwrap();
    for step in 0..12 {
        let next: Vec<f64> = random.vector(n);
        v.upload(&next).unwrap();
        map.record(&v, Interval { begin: f64::from(step), length: 1.0 }).unwrap();
    }
    let found = map.times().unwrap();
    [found.first, found.last, found.repolarisation, found.duration]
}

/// Times are those of plain loops up to the rounding of a fused product.
pub fn times_agree_with_the_reference<D: ActivationKernels>(device: &D, _: &Scope) {
    for n in [0, 1, 2, 31, 257, 1009] {
        let (found, expected) = (times(device, n), times(&Reference, n));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.len(), n);
            for (point, (a, b)) in found.iter().zip(expected).enumerate() {
                let agree = (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-13 * 12.0;
                assert!(agree, "{n} points, point {point}: {a} {b}");
            }
        }
        if n > 100 {
            let n_complete = expected[3].iter().filter(|duration| **duration > 0.0).count();
            assert!(n_complete > n / 4, "{n_complete} of {n} points have an action potential");
        }
    }
}
