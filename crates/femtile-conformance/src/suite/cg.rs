//! Conjugate gradients: the solution, the residuals, and how a solve ends.

use std::ops::ControlFlow;
use std::time::Duration;

use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{CgKernels, CgOutcome, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::{Monitor, Stop};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::csr::CsrKernels;
use femtile::linalg::{LinalgError, Preconditioner};

use super::problems::{CsrArrays, Random, laplacian};
use super::{LinearDevice, Scope};

/// A preconditioner that hides its diagonal, so that CG takes its general path.
struct Hidden<T: Scalar, D: CgKernels<T>>(Jacobi<T, D>);

impl<T: Scalar, D: CgKernels<T>> Preconditioner<T, D> for Hidden<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.0.apply(z, r)
    }
}

/// Solves with Jacobi's preconditioner, from `x` and into it; a hidden one is applied by a pass of its own.
pub fn solve<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(
    device: &D,
    parts: &CsrArrays<T>,
    b: &[T],
    x: &mut Vec<T>,
    config: KrylovConfig,
    hidden: bool,
    monitor: &mut dyn Monitor,
) -> CgOutcome {
    let a = parts.on(device);
    let jacobi = Jacobi::new(&a).unwrap();
    let m: Box<dyn Preconditioner<T, D>> = if hidden { Box::new(Hidden(jacobi)) } else { Box::new(jacobi) };
    let b = Buffer::from_host(device, b).unwrap();
    let mut solution = Buffer::from_host(device, x).unwrap();
    let cg = ConjugateGradient::new(config);
    let outcome = cg.solve(&mut solution, &a, m.as_ref(), &b, &SingleRank, monitor).unwrap();
    *x = solution.to_host().unwrap();
    outcome
}

/// The settings of most checks.
pub fn config(tolerance: f64) -> KrylovConfig {
    KrylovConfig { tolerance, ..KrylovConfig::default() }
}

/// A preconditioner that does not say that it is always the same.
struct Unfixed<T: Scalar, D: CgKernels<T>>(Jacobi<T, D>);

impl<T: Scalar, D: CgKernels<T>> Preconditioner<T, D> for Unfixed<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.0.apply(z, r)
    }

    fn is_fixed(&self) -> bool {
        false
    }
}

fn flexible<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(device: &D, n: usize, tolerance: f64, slack: f64) {
    let mut random = Random::new(4);
    let (parts, b) = (laplacian::<T>(n, &mut random), random.vector::<T>(n * n));
    let mut x = vec![T::ZERO; n * n];
    let expected = solve(device, &parts, &b, &mut x, config(tolerance), true, &mut ());
    let a = parts.on(device);
    let m = Unfixed(Jacobi::new(&a).unwrap());
    let (b, mut y) =
        (Buffer::from_host(device, &b).unwrap(), Buffer::from_vec(device, vec![T::ZERO; n * n]).unwrap());
    let cg = ConjugateGradient::new(config(tolerance));
    let found = cg.solve(&mut y, &a, &m, &b, &SingleRank, &mut ()).unwrap();
    assert_eq!(found.stop, Stop::Converged);
    assert!(found.iterations.abs_diff(expected.iterations) <= 1);
    for (found, expected) in found.residuals.iter().zip(&expected.residuals).take(20) {
        assert!((found - expected).abs() <= slack * expected, "{found} {expected}");
    }
}

/// With a preconditioner that is always the same, the flexible method is the other one.
pub fn flexible_cg_is_cg_where_nothing_changes<D: LinearDevice>(device: &D, scope: &Scope) {
    flexible::<f64, _>(device, scope.side, 1e-12, 1e-8);
    flexible::<f32, _>(device, scope.side, 1e-5, 1e-2);
}

fn agree<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(
    device: &D,
    n: usize,
    tolerance: f64,
    [of_x, of_residuals]: [f64; 2],
) {
    let mut random = Random::new(3);
    let (parts, b) = (laplacian::<T>(n, &mut random), random.vector::<T>(n * n));
    let mut expected = vec![T::ZERO; n * n];
    let oracle = solve(&Reference, &parts, &b, &mut expected, config(tolerance), false, &mut ());
    for hidden in [false, true] {
        let mut x = vec![T::ZERO; n * n];
        let outcome = solve(device, &parts, &b, &mut x, config(tolerance), hidden, &mut ());
        assert_eq!(outcome.stop, Stop::Converged);
        assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
        assert!(outcome.iterations.abs_diff(oracle.iterations) <= 1);
        assert!(outcome.true_relative_residual <= 2.0 * tolerance);
        for (x, expected) in x.iter().zip(&expected) {
            assert!((*x - *expected).to_f64().abs() < of_x, "{x} {expected}");
        }
        for (found, expected) in outcome.residuals.iter().zip(&oracle.residuals).take(20) {
            assert!((found - expected).abs() <= of_residuals * expected);
        }
    }
}

/// Solutions, counts and the first twenty residuals are those of plain loops, fused or not, in both precisions.
pub fn cg_agrees_with_the_reference<D: LinearDevice>(device: &D, scope: &Scope) {
    agree::<f64, _>(device, scope.side, 1e-12, [1e-9, 1e-8]);
    agree::<f32, _>(device, scope.side, 1e-5, [1e-2, 1e-2]);
    agree::<f64, _>(device, 1, 1e-12, [1e-12, 1e-8]);
}

/// A right side of zeros has the solution zero, whatever the start.
pub fn a_zero_right_side_gives_zero_at_once<D: LinearDevice>(device: &D, _: &Scope) {
    let parts = laplacian::<f64>(4, &mut Random::new(1));
    let mut x = vec![7.0; 16];
    let outcome = solve(device, &parts, &[0.0; 16], &mut x, config(1e-10), false, &mut ());
    assert_eq!((outcome.stop, outcome.iterations), (Stop::Converged, 0));
    assert_eq!(x, [0.0; 16]);
}

/// A start that meets the tolerance is left as it is.
pub fn a_good_start_ends_at_once<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(9));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector(n));
    let mut x = vec![0.0; n];
    let _ = solve(device, &parts, &b, &mut x, config(1e-12), false, &mut ());
    let again = solve(device, &parts, &b, &mut x, config(1e-10), false, &mut ());
    assert_eq!((again.stop, again.iterations), (Stop::Converged, 0));
}

/// Stops after some iterations, as a user's Ctrl-C does.
struct After(usize);

impl Monitor for After {
    fn iteration(&mut self, iteration: usize, _: f64) -> ControlFlow<Stop> {
        if iteration >= self.0 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

/// For every stop, the number of iterations and the residuals are those of the x returned.
pub fn every_stop_keeps_the_iterate_that_it_reports<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(2));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let run = |config: KrylovConfig, b: &[f64], monitor: &mut dyn Monitor| {
        let mut x = vec![0.0; n];
        let outcome = solve(device, &parts, b, &mut x, config, false, monitor);
        assert!((outcome.true_relative_residual - outcome.relative_residual).abs() < 1e-12);
        assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
        outcome
    };
    let limited = run(KrylovConfig { max_iterations: 5, ..config(1e-12) }, &b, &mut ());
    assert_eq!((limited.stop, limited.iterations), (Stop::MaxIterations, 5));
    let interrupted = run(config(1e-12), &b, &mut After(5));
    assert_eq!(interrupted.stop, Stop::Interrupted);
    assert!(interrupted.iterations >= 5);
    assert_eq!(interrupted.residuals[..6], limited.residuals);
    let timed = run(KrylovConfig { time_limit: Some(Duration::ZERO), ..config(1e-12) }, &b, &mut ());
    assert_eq!((timed.stop, timed.iterations), (Stop::TimeLimit, 0));
    let impatient = KrylovConfig { stagnation_window: 3, look_every: Some(1), ..config(1e-12) };
    assert_eq!(run(impatient, &vec![1.0; n], &mut ()).stop, Stop::Stagnated);
    let diverged =
        run(KrylovConfig { divergence_factor: 0.5, look_every: Some(1), ..config(1e-12) }, &b, &mut ());
    assert_eq!(diverged.stop, Stop::Diverged);
}

fn indefinite() -> CsrArrays<f64> {
    CsrArrays::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]])
}

/// An indefinite matrix ends the solve with the number that shows it, and x stays.
pub fn an_indefinite_matrix_breaks_down_with_numbers<D: LinearDevice>(device: &D, _: &Scope) {
    let mut x = vec![0.0; 2];
    let outcome = solve(device, &indefinite(), &[1.0, -1.0], &mut x, config(1e-10), false, &mut ());
    assert_eq!(outcome.stop, Stop::Breakdown { quantity: "p·Ap", value: -4.0 });
    assert_eq!(x, [0.0, 0.0]);
}

/// The iterates, their number and the residuals have the same bits however often the host looks.
pub fn how_often_the_host_looks_changes_nothing<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(6));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let run = |parts: &CsrArrays<f64>, b: &[f64], max_iterations, look_every| {
        let mut x = vec![0.0; b.len()];
        let config = KrylovConfig { max_iterations, look_every, ..config(1e-9) };
        (solve(device, parts, b, &mut x, config, false, &mut ()), x)
    };
    let indefinite = indefinite();
    for (parts, b, limit) in [(&parts, b.as_slice(), 1000), (&parts, &b, 10), (&indefinite, &[2.0, -1.0], 9)]
    {
        let expected = run(parts, b, limit, Some(1));
        for look_every in [0, 2, 7, 1000] {
            assert_eq!(run(parts, b, limit, Some(look_every)), expected, "every {look_every}");
        }
    }
}

/// Right sides whose squares leave the range of numbers have the solution of any other, scaled, to the last bit.
pub fn right_sides_of_any_size_are_solved<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(3));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let run = |exponent: i32| {
        let scaled: Vec<f64> = b.iter().map(|b| b * 2f64.powi(exponent)).collect();
        let mut x = vec![0.0; n];
        let outcome = solve(device, &parts, &scaled, &mut x, config(1e-10), false, &mut ());
        (outcome.stop, outcome.iterations, x.iter().map(|x| x * 2f64.powi(-exponent)).collect::<Vec<_>>())
    };
    let expected = run(0);
    assert_eq!(expected.0, Stop::Converged);
    for exponent in [-900, -600, 600, 900] {
        assert_eq!(run(exponent), expected, "2^{exponent}");
    }
}

/// Data that are not finite end the solve before x moves.
pub fn a_right_side_that_is_not_finite_breaks_down_at_once<D: LinearDevice>(device: &D, _: &Scope) {
    let parts = laplacian::<f64>(3, &mut Random::new(1));
    for bad in [f64::NAN, f64::INFINITY] {
        let (mut x, mut b) = (vec![0.0; 9], [1.0; 9]);
        b[4] = bad;
        let outcome = solve(device, &parts, &b, &mut x, config(1e-10), false, &mut ());
        assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{:?}", outcome.stop);
        assert_eq!((outcome.iterations, x), (0, vec![0.0; 9]));
    }
}
