use std::ops::ControlFlow;
use std::time::Duration;

use femtile_device::{Buffer, Cpu, Reference, Scalar};
use femtile_linalg::comm::Alone;
use femtile_linalg::krylov::cg::{CgConfig, CgKernels, CgOutcome, ConjugateGradient};
use femtile_linalg::krylov::{Monitor, Stop};
use femtile_linalg::precondition::{Diagonal, Jacobi};
use femtile_linalg::sparse::csr::CsrKernels;
use femtile_linalg::{LinalgError, Preconditioner};

use crate::cpus;
use crate::problems::{Parts, Random, laplacian};

/// A preconditioner that hides its diagonal, so that CG takes its general path.
struct Hidden<T: Scalar, D: CgKernels<T>>(Jacobi<T, D>);

impl<T: Scalar, D: CgKernels<T>> Preconditioner<T, D> for Hidden<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.0.apply(z, r)
    }
}

fn solve<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(
    device: &D,
    parts: &Parts<T>,
    b: &[T],
    x: &mut Vec<T>,
    config: CgConfig,
    hidden: bool,
    monitor: &mut dyn Monitor,
) -> CgOutcome {
    let a = parts.on(device);
    let jacobi = Jacobi::new(&a).unwrap();
    let m: Box<dyn Preconditioner<T, D>> = if hidden { Box::new(Hidden(jacobi)) } else { Box::new(jacobi) };
    let b = Buffer::from_host(device, b).unwrap();
    let mut solution = Buffer::from_host(device, x).unwrap();
    let cg = ConjugateGradient::new(config);
    let outcome = cg.solve(&mut solution, &a, m.as_ref(), &b, &Alone, monitor).unwrap();
    *x = solution.to_host().unwrap();
    outcome
}

fn config(tolerance: f64) -> CgConfig {
    CgConfig { tolerance, ..CgConfig::default() }
}

#[test]
fn two_unknowns_take_two_steps_to_the_exact_solution() {
    let parts = Parts::<f64>::from_rows(2, vec![vec![(0, 4.0), (1, 1.0)], vec![(0, 1.0), (1, 3.0)]]);
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

fn agrees_with_reference<T: Scalar>(tolerance: f64, difference: f64) {
    let n = 37;
    let mut random = Random::new(3);
    let (parts, b) = (laplacian::<T>(n, &mut random), random.vector::<T>(n * n));
    let mut expected = vec![T::ZERO; n * n];
    let oracle = solve(&Reference, &parts, &b, &mut expected, config(tolerance), false, &mut ());
    for hidden in [false, true] {
        for cpu in cpus() {
            let mut x = vec![T::ZERO; n * n];
            let outcome = solve(&cpu, &parts, &b, &mut x, config(tolerance), hidden, &mut ());
            assert!(outcome.iterations.abs_diff(oracle.iterations) <= 1);
            for (x, expected) in x.iter().zip(&expected) {
                assert!((*x - *expected).to_f64().abs() < difference, "{x} {expected}");
            }
            for (found, expected) in outcome.residuals.iter().zip(&oracle.residuals).take(20) {
                assert!((found - expected).abs() <= difference * expected);
            }
        }
    }
}

#[test]
fn cg_agrees_with_the_reference_in_f64() {
    agrees_with_reference::<f64>(1e-12, 1e-9);
}

#[test]
fn cg_agrees_with_the_reference_in_f32() {
    agrees_with_reference::<f32>(1e-5, 1e-2);
}

#[test]
fn a_zero_right_side_gives_zero_at_once() {
    let parts = laplacian::<f64>(4, &mut Random::new(1));
    let mut x = vec![7.0; 16];
    let outcome = solve(&cpus()[0], &parts, &[0.0; 16], &mut x, config(1e-10), false, &mut ());
    assert_eq!((outcome.stop, outcome.iterations), (Stop::Converged, 0));
    assert_eq!(x, [0.0; 16]);
}

#[test]
fn a_good_start_ends_at_once() {
    let mut random = Random::new(9);
    let (parts, b) = (laplacian::<f64>(20, &mut random), random.vector(400));
    let mut x = vec![0.0; 400];
    let _ = solve(&cpus()[1], &parts, &b, &mut x, config(1e-12), false, &mut ());
    let again = solve(&cpus()[1], &parts, &b, &mut x, config(1e-10), false, &mut ());
    assert_eq!((again.stop, again.iterations), (Stop::Converged, 0));
}

/// Stops after some iterations, as a user's Ctrl-C does.
struct After(usize);

impl Monitor for After {
    fn iteration(&mut self, iteration: usize, _: f64) -> ControlFlow<Stop> {
        if iteration >= self.0 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn every_stop_is_reached_and_keeps_the_last_iterate() {
    let mut random = Random::new(2);
    let (parts, b) = (laplacian::<f64>(40, &mut random), random.vector::<f64>(1600));
    let run = |config: CgConfig, monitor: &mut dyn Monitor| {
        let mut x = vec![0.0; 1600];
        (solve(&cpus()[0], &parts, &b, &mut x, config, false, monitor), x)
    };
    let (limited, x_limited) = run(CgConfig { max_iterations: 5, ..config(1e-12) }, &mut ());
    assert_eq!((limited.stop, limited.iterations), (Stop::MaxIterations, 5));
    assert!((limited.true_relative_residual - limited.relative_residual).abs() < 1e-12);
    let (interrupted, x_interrupted) = run(config(1e-12), &mut After(5));
    assert_eq!((interrupted.stop, interrupted.iterations), (Stop::Interrupted, 5));
    assert_eq!(x_limited, x_interrupted);
    let (timed, _) = run(CgConfig { time_limit: Some(Duration::ZERO), ..config(1e-12) }, &mut ());
    assert_eq!((timed.stop, timed.iterations), (Stop::TimeLimit, 0));
    let (ones, mut x) = (vec![1.0; 1600], vec![0.0; 1600]);
    let impatient = CgConfig { stagnation_window: 3, ..config(1e-12) };
    let stagnated = solve(&cpus()[0], &parts, &ones, &mut x, impatient, false, &mut ());
    assert_eq!((stagnated.stop, stagnated.iterations), (Stop::Stagnated, 3), "{:?}", stagnated.residuals);
    assert!(stagnated.residuals[1..].iter().all(|&r| r >= 1.0));
    let (diverged, _) = run(CgConfig { divergence_factor: 0.5, ..config(1e-12) }, &mut ());
    assert_eq!(diverged.stop, Stop::Diverged);
}

#[test]
fn an_indefinite_matrix_breaks_down_with_numbers() {
    let parts = Parts::<f64>::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]]);
    let mut x = vec![0.0; 2];
    let outcome = solve(&cpus()[0], &parts, &[1.0, -1.0], &mut x, config(1e-10), false, &mut ());
    assert_eq!(outcome.stop, Stop::Breakdown { quantity: "p·Ap", value: -4.0 });
    assert_eq!(x, [0.0, 0.0]);
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
        let error = cg.solve(&mut x, &a, &m, &b, &Alone, &mut ()).unwrap_err();
        assert!(error.to_string().starts_with("tolerance"), "{error}");
    }
}

#[test]
fn how_often_the_host_looks_changes_nothing() {
    let mut random = Random::new(6);
    let (parts, b) = (laplacian::<f64>(30, &mut random), random.vector::<f64>(900));
    let indefinite = Parts::<f64>::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]]);
    let run = |parts: &Parts<f64>, b: &[f64], max_iterations, look_every| {
        let mut x = vec![0.0; b.len()];
        let config = CgConfig { max_iterations, look_every, ..config(1e-9) };
        (solve(&cpus()[0], parts, b, &mut x, config, false, &mut ()), x)
    };
    for (parts, b, limit) in [(&parts, b.as_slice(), 1000), (&parts, &b, 10), (&indefinite, &[2.0, -1.0], 9)]
    {
        let expected = run(parts, b, limit, Some(1));
        for look_every in [0, 2, 3, 7, 64, 1000] {
            assert_eq!(run(parts, b, limit, Some(look_every)), expected, "every {look_every}");
        }
    }
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
    let outcome = cg.solve(&mut x, &a, &Negative, &b, &Alone, &mut ()).unwrap();
    assert_eq!(outcome.stop, Stop::Breakdown { quantity: "r·z", value: -25.0 });
    assert_eq!((outcome.iterations, x.to_host().unwrap()), (0, vec![0.0; 25]));
}

#[test]
fn a_right_side_that_is_not_finite_breaks_down_at_once() {
    let parts = laplacian::<f64>(3, &mut Random::new(1));
    for bad in [f64::NAN, f64::INFINITY, 1e200] {
        let (mut x, mut b) = (vec![0.0; 9], [1.0; 9]);
        b[4] = bad;
        let outcome = solve(&cpus()[0], &parts, &b, &mut x, config(1e-10), false, &mut ());
        assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{:?}", outcome.stop);
        assert_eq!((outcome.iterations, x), (0, vec![0.0; 9]));
    }
}
