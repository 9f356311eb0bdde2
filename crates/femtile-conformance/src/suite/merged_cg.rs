//! Conjugate gradients merged with the loop of the operator: held to plain ones.

use std::ops::ControlFlow;
use std::time::Duration;

use femtile::device::{Buffer, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{CgOutcome, KrylovConfig};
use femtile::linalg::krylov::merged_cg::{MergedCg, MergedCgKernels};
use femtile::linalg::krylov::{Monitor, Stop};
use femtile::linalg::precondition::{Diagonal, Jacobi};
use femtile::linalg::sparse::csr::CsrKernels;

use super::Scope;
use super::cg::{config, solve};
use super::problems::{CsrArrays, Random, laplacian};

/// A device that solves by merged conjugate gradients in both precisions.
pub trait MergedDevice:
    MergedCgKernels<f64> + MergedCgKernels<f32> + CsrKernels<f64> + CsrKernels<f32>
{
}

impl<D> MergedDevice for D where
    D: MergedCgKernels<f64> + MergedCgKernels<f32> + CsrKernels<f64> + CsrKernels<f32>
{
}

fn merged<T: Scalar, D: MergedCgKernels<T> + CsrKernels<T>>(
    device: &D,
    parts: &CsrArrays<T>,
    b: &[T],
    x: &mut Vec<T>,
    config: KrylovConfig,
    monitor: &mut dyn Monitor,
) -> CgOutcome {
    let a = parts.on(device);
    let m = Jacobi::new(&a).unwrap();
    let b = Buffer::from_host(device, b).unwrap();
    let mut solution = Buffer::from_host(device, x).unwrap();
    let outcome = MergedCg::new(config).solve(&mut solution, &a, &m, &b, &SingleRank, monitor).unwrap();
    *x = solution.to_host().unwrap();
    outcome
}

fn agree<T: Scalar, D: MergedCgKernels<T> + CsrKernels<T>>(
    device: &D,
    n: usize,
    tolerance: f64,
    [of_x, of_residuals]: [f64; 2],
) {
    let mut random = Random::new(3 + n as u64);
    let (parts, b) = (laplacian::<T>(n, &mut random), random.vector::<T>(n * n));
    let start = random.vector::<T>(n * n);
    let (mut expected, mut x) = (start.clone(), start);
    let plain = solve(device, &parts, &b, &mut expected, config(tolerance), false, &mut ());
    let found = merged(device, &parts, &b, &mut x, config(tolerance), &mut ());
    assert_eq!((found.stop, plain.stop), (Stop::Converged, Stop::Converged));
    assert_eq!(found.residuals.len(), found.iterations + 1);
    let slack = (plain.iterations / 50).max(1);
    assert!(
        found.iterations.abs_diff(plain.iterations) <= slack,
        "{} {}",
        found.iterations,
        plain.iterations
    );
    let floor = 100.0 * T::EPSILON.to_f64();
    assert!(found.true_relative_residual <= (2.0 * plain.true_relative_residual).max(floor));
    for (x, expected) in x.iter().zip(&expected) {
        assert!((*x - *expected).to_f64().abs() < of_x, "{x} {expected}");
    }
    let residuals = found.residuals.iter().zip(&plain.residuals).take(20).enumerate();
    for (iteration, (found, expected)) in residuals {
        // A prediction is a difference of numbers of the size of the residual before.
        if *expected > 10.0 * tolerance {
            let close = (found - expected).abs() <= of_residuals * expected;
            assert!(close, "iteration {iteration}: {found:e} {expected:e}");
        }
    }
}

/// Solutions, counts and the first twenty residuals are those of plain conjugate gradients, in both precisions.
pub fn merged_cg_agrees_with_plain_cg<D: MergedDevice>(device: &D, scope: &Scope) {
    for side in [1, 2, 3, 7, scope.side] {
        agree::<f64, _>(device, side, 1e-12, [1e-9, 1e-8]);
        agree::<f32, _>(device, side, 1e-5, [1e-2, 1e-2]);
    }
}

/// Where one step solves nearly all, no residual made up by rounding is reported.
pub fn an_almost_exact_step_claims_nothing<D: MergedDevice>(device: &D, _: &Scope) {
    for (size, noise) in [(64, 0.0), (97, 1e-9), (97, 1e-6), (200, 1e-3)] {
        let mut random = Random::new(size as u64);
        // Nearly the identity: the Jacobi preconditioner solves all but the noise.
        let rows = (0..size).map(|row| {
            let mut entries = vec![(row, 2.0 + row as f64)];
            if noise != 0.0 && row > 0 {
                entries.insert(0, (row - 1, noise));
            }
            if noise != 0.0 && row + 1 < size {
                entries.push((row + 1, noise));
            }
            entries
        });
        let parts = CsrArrays::<f64>::from_rows(size, rows.collect());
        let b = random.vector::<f64>(size);
        for tolerance in [1e-4, 1e-10, 1e-13] {
            let mut x = vec![0.0; size];
            let outcome = merged(device, &parts, &b, &mut x, config(tolerance), &mut ());
            assert_eq!(outcome.stop, Stop::Converged);
            assert!(outcome.true_relative_residual <= 2.0 * tolerance, "{noise} {outcome:?}");
        }
    }
}

/// A right side of zeros gives zeros, and a start that meets the tolerance stays.
pub fn merged_cg_ends_at_once_where_it_can<D: MergedDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(1);
    let (parts, b) = (laplacian::<f64>(4, &mut random), random.vector::<f64>(16));
    let mut x = vec![7.0; 16];
    let outcome = merged(device, &parts, &[0.0; 16], &mut x, config(1e-10), &mut ());
    assert_eq!((outcome.stop, outcome.iterations, &x), (Stop::Converged, 0, &vec![0.0; 16]));
    let _ = merged(device, &parts, &b, &mut x, config(1e-12), &mut ());
    let again = merged(device, &parts, &b, &mut x, config(1e-10), &mut ());
    assert_eq!((again.stop, again.iterations), (Stop::Converged, 0));
}

/// Stops after some iterations, as a user's Ctrl-C does.
struct After(usize);

impl Monitor for After {
    fn iteration(&mut self, iteration: usize, _: f64) -> ControlFlow<Stop> {
        if iteration >= self.0 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

/// For every stop after any number of iterations, x has taken all steps that are reported.
pub fn merged_cg_returns_the_iterate_that_it_reports<D: MergedDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(2));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let run = |config: KrylovConfig, monitor: &mut dyn Monitor| {
        let mut x = vec![0.0; n];
        let outcome = merged(device, &parts, &b, &mut x, config, monitor);
        assert!((outcome.true_relative_residual - outcome.relative_residual).abs() < 1e-12, "{outcome:?}");
        assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
        outcome
    };
    for limit in 1..7 {
        let limited = run(KrylovConfig { max_iterations: limit, ..config(1e-12) }, &mut ());
        assert_eq!((limited.stop, limited.iterations), (Stop::MaxIterations, limit));
        let interrupted = run(config(1e-12), &mut After(limit));
        assert_eq!(interrupted.stop, Stop::Interrupted);
        assert_eq!(interrupted.residuals[..=limit], limited.residuals);
    }
    let timed = run(KrylovConfig { time_limit: Some(Duration::ZERO), ..config(1e-12) }, &mut ());
    assert_eq!((timed.stop, timed.iterations), (Stop::TimeLimit, 0));
}

/// Matrices that are not positive definite and data that are not finite end the solve, and x stays.
pub fn merged_cg_breaks_down_with_numbers<D: MergedDevice>(device: &D, _: &Scope) {
    let indefinite = CsrArrays::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]]);
    let mut x = vec![0.0; 2];
    let outcome = merged(device, &indefinite, &[1.0, -1.0], &mut x, config(1e-10), &mut ());
    assert_eq!(outcome.stop, Stop::Breakdown { quantity: "p·Ap", value: -4.0 });
    assert_eq!(x, [0.0, 0.0]);
    let parts = laplacian::<f64>(3, &mut Random::new(1));
    for bad in [f64::NAN, f64::INFINITY] {
        let (mut x, mut b) = (vec![0.0; 9], [1.0; 9]);
        b[4] = bad;
        let outcome = merged(device, &parts, &b, &mut x, config(1e-10), &mut ());
        assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{:?}", outcome.stop);
        assert_eq!((outcome.iterations, x), (0, vec![0.0; 9]));
    }
}

/// A preconditioner that is no diagonal is refused with what to do.
pub fn merged_cg_refuses_what_is_no_diagonal<D: MergedDevice>(device: &D, _: &Scope) {
    struct Copying;
    impl<D: MergedDevice> femtile::linalg::Preconditioner<f64, D> for Copying {
        fn apply(
            &self,
            z: &mut Buffer<f64, D>,
            r: &Buffer<f64, D>,
        ) -> Result<(), femtile::linalg::LinalgError> {
            r.device().copy(z, r)
        }
    }
    let a = laplacian::<f64>(3, &mut Random::new(1)).on(device);
    let b = Buffer::zeros(device, 9).unwrap();
    let mut x = Buffer::zeros(device, 9).unwrap();
    let cg = MergedCg::new(config(1e-10));
    let error = cg.solve(&mut x, &a, &Copying, &b, &SingleRank, &mut ()).unwrap_err().to_string();
    assert!(error.contains("diagonal"), "{error}");
    let short = Diagonal::from_inverse(Buffer::zeros(device, 8).unwrap());
    assert!(cg.solve(&mut x, &a, &short, &b, &SingleRank, &mut ()).is_err());
}
