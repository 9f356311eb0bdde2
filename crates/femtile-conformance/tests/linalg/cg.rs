use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::{Buffer, Cpu, Reference};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::ConjugateGradient;
use femtile::linalg::precondition::Diagonal;
use femtile::linalg::sparse::Csr;
use femtile::linalg::{LinalgError, Preconditioner};
use femtile_conformance::suite::cg::{config, solve};
use femtile_conformance::suite::problems::{CsrArrays, Random, laplacian};

use crate::cpus;

#[test]
fn two_unknowns_take_two_steps_to_the_exact_solution() {
    let parts = CsrArrays::<f64>::from_rows(2, vec![vec![(0, 4.0), (1, 1.0)], vec![(0, 1.0), (1, 3.0)]]);
    let mut x = vec![0.0; 2];
    let outcome = solve(&Reference, &parts, &[1.0, 2.0], &mut x, config(1e-14), false, &mut ());
    assert_eq!((outcome.stop, outcome.iterations, outcome.residuals.len()), (Stop::Converged, 2, 3));
    assert!((x[0] - 1.0 / 11.0).abs() < 1e-15 && (x[1] - 7.0 / 11.0).abs() < 1e-15);
}

#[test]
fn the_solution_has_the_same_bits_for_any_threads_and_any_simd() {
    for n in [1, 2, 13, 101, 150] {
        let mut random = Random::new(n as u64);
        let (parts, b) = (laplacian::<f64>(n, &mut random), random.vector(n * n));
        let solution = |cpu: &Cpu, hidden| {
            let mut x = vec![0.0; n * n];
            let outcome = solve(cpu, &parts, &b, &mut x, config(1e-10), hidden, &mut ());
            assert_eq!(outcome.stop, Stop::Converged);
            assert!(outcome.true_relative_residual < 2e-10);
            x
        };
        for hidden in [false, true] {
            let first = solution(&cpus()[0], hidden);
            for cpu in cpus() {
                assert_eq!(solution(&cpu, hidden), first, "{cpu:?}");
            }
        }
    }
}

#[test]
fn a_tolerance_that_is_not_positive_is_refused() {
    let cpu = &cpus()[0];
    let a = laplacian::<f64>(2, &mut Random::new(1)).on(cpu);
    let b = Buffer::zeros(cpu, 4).unwrap();
    let mut x = Buffer::zeros(cpu, 4).unwrap();
    let m = Diagonal::identity(cpu, 4).unwrap();
    for tolerance in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let cg = ConjugateGradient::new(config(tolerance));
        let error = cg.solve(&mut x, &a, &m, &b, &SingleRank, &mut ()).unwrap_err();
        assert!(error.to_string().starts_with("tolerance"), "{error}");
    }
}

/// The inverse of a matrix, with errors of up to 40 percent that differ from one application to the next.
struct Perturbed<'a> {
    a: &'a Csr<f64, Cpu>,
    count: AtomicUsize,
    is_fixed: bool,
}

impl Preconditioner<f64, Cpu> for Perturbed<'_> {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        z.as_mut_slice().fill(0.0);
        let none = Diagonal::identity(r.device(), r.len())?;
        let outcome =
            ConjugateGradient::new(config(1e-12)).solve(z, self.a, &none, r, &SingleRank, &mut ())?;
        assert_eq!(outcome.stop, Stop::Converged);
        for (i, z) in z.as_mut_slice().iter_mut().enumerate() {
            *z *= 1.0 + 0.4 * ((37 * i + 61 * count) % 101) as f64 / 101.0;
        }
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        self.is_fixed
    }
}

#[test]
fn a_preconditioner_that_changes_needs_the_flexible_method() {
    let cpu = &cpus()[0];
    let mut random = Random::new(8);
    let a = laplacian::<f64>(40, &mut random).on(cpu);
    let b = Buffer::from_vec(cpu, random.vector(1600)).unwrap();
    let iterations = |is_fixed| {
        let mut x = Buffer::zeros(cpu, 1600).unwrap();
        let m = Perturbed { a: &a, count: AtomicUsize::new(0), is_fixed };
        let cg = ConjugateGradient::new(config(1e-10));
        let outcome = cg.solve(&mut x, &a, &m, &b, &SingleRank, &mut ()).unwrap();
        assert!(is_fixed || outcome.stop == Stop::Converged);
        outcome.iterations
    };
    let (flexible, plain) = (iterations(false), iterations(true));
    assert!(2 * flexible <= plain, "{flexible} iterations, {plain} as if nothing changed");
}

/// A preconditioner that is not positive definite.
struct Negative;

impl Preconditioner<f64, Cpu> for Negative {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        for (z, r) in z.as_mut_slice().iter_mut().zip(r.as_slice()) {
            *z = -r;
        }
        Ok(())
    }
}

#[test]
fn a_negative_preconditioner_breaks_down_before_x_moves() {
    let cpu = &cpus()[0];
    let a = laplacian::<f64>(5, &mut Random::new(1)).on(cpu);
    let b = Buffer::from_vec(cpu, vec![1.0; 25]).unwrap();
    let mut x = Buffer::zeros(cpu, 25).unwrap();
    let cg = ConjugateGradient::new(config(1e-10));
    let outcome = cg.solve(&mut x, &a, &Negative, &b, &SingleRank, &mut ()).unwrap();
    assert_eq!(outcome.stop, Stop::Breakdown { quantity: "r·z", value: -25.0 });
    assert_eq!((outcome.iterations, x.to_host().unwrap()), (0, vec![0.0; 25]));
}
