use femtile::device::{Cpu, Reference, Scalar};
use femtile::tridiagonal::{Algorithm, Ends, TridiagonalConfig, TridiagonalKernels, TridiagonalOutcome};
use femtile_conformance::suite::FULL;
use femtile_conformance::suite::problems::Random;
use femtile_conformance::suite::tridiagonal::{Batch, row_major};

use crate::cpus;

mod on_cpus {
    use super::{Cpu, FULL, cpus};

    fn devices(_check: &str) -> Vec<Cpu> {
        cpus()
    }

    femtile_conformance::tridiagonal!(devices, FULL);
}

mod on_the_reference {
    use super::{FULL, Reference};

    fn devices(_check: &str) -> Vec<Reference> {
        vec![Reference]
    }

    femtile_conformance::tridiagonal!(devices, FULL);
}

fn solved<T: Scalar, D: TridiagonalKernels<T>>(
    device: &D,
    batch: &Batch<T>,
    algorithm: Algorithm,
) -> (Vec<T>, TridiagonalOutcome) {
    let config = TridiagonalConfig { algorithm, ..TridiagonalConfig::default() };
    batch.solve(device, config).expect("an algorithm of the host")
}

fn dominant<T: Scalar>(shape: [usize; 2], axis: usize) -> Batch<T> {
    Batch::dominant(&shape, &row_major(&shape), axis, Ends::Open, &mut Random::new(shape[0] as u64))
}

#[test]
fn solutions_have_the_same_bits_for_any_threads_any_simd_and_the_reference() {
    for (shape, axis) in [([67, 100], 1), ([100, 67], 0), ([300, 264], 0), ([264, 300], 1)] {
        let (double, single) = (dominant::<f64>(shape, axis), dominant::<f32>(shape, axis));
        let expected = solved(&Reference, &double, Algorithm::Thomas);
        let expected_single = solved(&Reference, &single, Algorithm::Thomas);
        for cpu in cpus() {
            assert!(solved(&cpu, &double, Algorithm::Thomas) == expected, "{cpu:?}, {shape:?}");
            assert!(solved(&cpu, &single, Algorithm::Thomas) == expected_single, "{cpu:?}, {shape:?}");
        }
    }
}

#[test]
fn long_systems_and_many_short_ones_are_solved() {
    let widest = cpus().pop().expect("a CPU");
    let shapes = [[1, 100_003], [3, 100_003], [1, 40], [31, 40], [33, 40], [65_536, 5]];
    for (axis, shape) in shapes.into_iter().flat_map(|shape| [(1, shape), (0, [shape[1], shape[0]])]) {
        let batch = dominant::<f64>(shape, axis);
        let (u, outcome) = solved(&widest, &batch, Algorithm::Auto);
        assert!(outcome.is_solved());
        assert!(batch.backward_error(&u, Ends::Open, |_| true) <= 20.0 * f64::EPSILON, "{shape:?}");
    }
}

#[test]
fn batches_beyond_the_caches_have_the_bits_of_the_reference() {
    let batch = dominant::<f64>([257, 4101], 0);
    let expected = solved(&Reference, &batch, Algorithm::Thomas);
    for cpu in cpus() {
        assert!(solved(&cpu, &batch, Algorithm::Thomas) == expected, "{cpu:?}");
    }
}

fn mean_square_difference<T: Scalar>() -> f64 {
    let (batch, cpu) = (dominant::<T>([64, 256], 1), cpus().pop().expect("a CPU"));
    let [one, other] = [Algorithm::Hybrid, Algorithm::Thomas].map(|name| solved(&cpu, &batch, name).0);
    let squares = one.iter().zip(&other).map(|(x, y)| (*x - *y).to_f64().powi(2));
    squares.sum::<f64>() / one.len() as f64
}

#[test]
fn the_hybrid_algorithm_differs_from_elimination_as_little_as_published() {
    assert!(mean_square_difference::<f64>() <= 1e-18);
    assert!(mean_square_difference::<f32>() <= 1e-9);
}
