use std::ops::ControlFlow;
use std::time::Duration;

use femtile::device::{Buffer, Cpu};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::hooks::Hook;
use femtile::linalg::krylov::cg::{CgOutcome, KrylovConfig};
use femtile::linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig};
use femtile::linalg::krylov::{Monitor, Stop};
use femtile::linalg::precondition::Diagonal;
use femtile::linalg::sparse::Csr;
use femtile::linalg::{LinalgError, LinearOperator};
use femtile_conformance::suite::problems::{CsrArrays, Random, laplacian};

use super::{By, Hidden, Method, System, config, solve_by};

fn cpu() -> Cpu {
    Cpu::new(2).unwrap()
}

fn grid(n: usize) -> System<f64> {
    let mut random = Random::new(51);
    System::new(laplacian(n, &mut random), &mut random)
}

#[test]
fn a_zero_right_side_gives_zero_at_once() {
    let system = System { b: vec![0.0; 16], ..grid(4) };
    for method in Method::VARIANTS {
        let mut x = vec![7.0; 16];
        let outcome = system.solve_from(&cpu(), &mut x, method, By::Jacobi, config(1e-10), &mut ());
        assert_eq!((outcome.stop, outcome.iterations), (Stop::Converged, 0));
        assert_eq!(x, [0.0; 16]);
    }
}

#[test]
fn a_start_that_meets_the_tolerance_is_left_as_it_is() {
    let system = grid(19);
    for method in Method::VARIANTS {
        let (_, start) = system.solve(&cpu(), method, By::Jacobi, config(1e-12));
        let mut x = start.clone();
        let again = system.solve_from(&cpu(), &mut x, method, By::Jacobi, config(1e-10), &mut ());
        assert_eq!((again.stop, again.iterations), (Stop::Converged, 0));
        assert_eq!(x, start);
    }
}

#[test]
fn an_indefinite_matrix_breaks_down_before_x_moves() {
    let a = CsrArrays::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]]);
    let system = System { a, b: vec![1.0, -1.0] };
    for method in Method::VARIANTS {
        let (outcome, x) = system.solve(&cpu(), method, By::Nothing, config(1e-10));
        assert_eq!(outcome.stop, Stop::Breakdown { quantity: "p·Ap", value: -4.0 }, "{method:?}");
        assert_eq!((outcome.iterations, x), (0, vec![0.0, 0.0]));
    }
}

#[test]
fn a_matrix_whose_negative_eigenvalue_shows_late_is_not_called_solved() {
    let eigenvalue = |i: usize| if i == 40 { -0.1 } else { 1.0 + i as f64 };
    let a = CsrArrays::from_rows(64, (0..64).map(|i| vec![(i, eigenvalue(i))]).collect());
    let system = System::<f64>::new(a, &mut Random::new(52));
    for method in Method::VARIANTS {
        let (outcome, _) = system.solve(&cpu(), method, By::Nothing, config(1e-10));
        let is_seen = matches!(outcome.stop, Stop::Breakdown { .. } | Stop::Diverged);
        assert!(is_seen, "{method:?}: {:?}", outcome.stop);
    }
}

#[test]
fn a_right_side_that_is_not_finite_breaks_down_at_once() {
    for bad in [f64::NAN, f64::INFINITY] {
        let mut system = grid(3);
        system.b[4] = bad;
        for method in Method::VARIANTS {
            let (outcome, x) = system.solve(&cpu(), method, By::Jacobi, config(1e-10));
            assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{method:?}: {:?}", outcome.stop);
            assert_eq!((outcome.iterations, x), (0, vec![0.0; 9]));
        }
    }
}

/// An operator that spoils one entry of its products, but for the first few.
struct Spoiled {
    a: Csr<f64, Cpu>,
    count: std::sync::atomic::AtomicUsize,
}

impl LinearOperator<f64, Cpu> for Spoiled {
    fn n_rows(&self) -> usize {
        self.a.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.a.n_cols()
    }

    fn device(&self) -> &Cpu {
        self.a.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<f64, Cpu>,
        x: &Buffer<f64, Cpu>,
        hook: &dyn Hook<f64>,
    ) -> Result<(), LinalgError> {
        self.a.apply_with(y, x, hook)?;
        if self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 11 {
            y.as_mut_slice()[3] = f64::NAN;
        }
        Ok(())
    }
}

#[test]
fn a_product_that_turns_to_nan_breaks_down() {
    let (system, cpu) = (grid(19), cpu());
    let b = Buffer::from_host(&cpu, &system.b).unwrap();
    let m = Diagonal::identity(&cpu, b.len()).unwrap();
    for method in Method::VARIANTS {
        let spoiled = Spoiled { a: system.a.on(&cpu), count: 0.into() };
        let mut x = Buffer::zeros(&cpu, b.len()).unwrap();
        let outcome = solve_by(method, &mut x, &spoiled, &m, &b, config(1e-10), &mut ()).unwrap();
        assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{method:?}: {:?}", outcome.stop);
        assert!(x.as_slice().iter().all(|x| x.is_finite()), "{method:?}");
    }
}

/// Stops after some iterations, as a user's Ctrl-C does.
struct After(usize);

impl Monitor for After {
    fn iteration(&mut self, iteration: usize, residual: f64) -> ControlFlow<Stop> {
        assert!(residual.is_finite());
        if iteration >= self.0 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn every_stop_keeps_the_iterate_that_it_reports() {
    let system = grid(37);
    for method in Method::VARIANTS {
        let run = |config: KrylovConfig, monitor: &mut dyn Monitor| -> CgOutcome {
            let mut x = vec![0.0; system.b.len()];
            let outcome = system.solve_from(&cpu(), &mut x, method, By::Jacobi, config, monitor);
            let residual = system.relative_residual(&x);
            assert!((residual - outcome.true_relative_residual).abs() < 1e-12, "{method:?}");
            assert!((residual - outcome.relative_residual).abs() < 1e-12, "{method:?}");
            assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
            outcome
        };
        let limited = run(KrylovConfig { max_iterations: 11, ..config(1e-12) }, &mut ());
        assert_eq!((limited.stop, limited.iterations), (Stop::MaxIterations, 11), "{method:?}");
        let none = run(KrylovConfig { max_iterations: 0, ..config(1e-12) }, &mut ());
        assert_eq!((none.stop, none.iterations), (Stop::MaxIterations, 0), "{method:?}");
        let interrupted = run(config(1e-12), &mut After(8));
        let steps = if let Method::SStep(steps) = method { steps } else { 1 };
        assert_eq!(
            (interrupted.stop, interrupted.iterations),
            (Stop::Interrupted, 8usize.next_multiple_of(steps))
        );
        let timed = run(KrylovConfig { time_limit: Some(Duration::ZERO), ..config(1e-12) }, &mut ());
        assert_eq!((timed.stop, timed.iterations), (Stop::TimeLimit, 0));
        let diverged = run(KrylovConfig { divergence_factor: 0.5, ..config(1e-12) }, &mut ());
        assert_eq!(diverged.stop, Stop::Diverged);
    }
}

#[test]
fn what_a_method_cannot_do_is_refused_with_advice() {
    let (system, cpu) = (grid(5), cpu());
    let (a, b) = (system.a.on(&cpu), Buffer::from_host(&cpu, &system.b).unwrap());
    let mut x = Buffer::zeros(&cpu, 25).unwrap();
    let refusal = |method, m: &_, x: &mut _, config| {
        solve_by::<f64, Cpu>(method, x, &a, m, &b, config, &mut ()).unwrap_err().to_string()
    };
    let identity = || Diagonal::identity(&cpu, 25).unwrap();
    let changing = Hidden { diagonal: identity(), is_fixed: false };
    let error = refusal(Method::Pipelined, &changing, &mut x, config(1e-10));
    assert!(error.contains("preconditioner") && error.contains("plain"), "{error}");
    let general = Hidden { diagonal: identity(), is_fixed: true };
    let error = refusal(Method::SStep(3), &general, &mut x, config(1e-10));
    assert!(error.contains("preconditioner") && error.contains("diagonal"), "{error}");
    for method in Method::VARIANTS {
        let m = Hidden { diagonal: identity(), is_fixed: true };
        assert!(refusal(method, &m, &mut x, config(0.0)).starts_with("tolerance"));
        let mut short = Buffer::zeros(&cpu, 24).unwrap();
        assert!(refusal(method, &m, &mut short, config(1e-10)).starts_with("x: 24"));
    }
    for steps in [0, 7] {
        let settings = SStepCgConfig { steps, ..SStepCgConfig::default() };
        let error =
            SStepCg::new(settings).solve(&mut x, &a, &identity(), &b, &SingleRank, &mut ()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("steps: {steps} is not between 1 and 6")), "{error}");
    }
}

/// Two unknowns beside a grid, whose sum has the eigenvalue 1e-10 and is 1e-11 of the right side.
fn hidden_pair(side: usize) -> System<f64> {
    let mut random = Random::new(53);
    let (mut a, n) = (laplacian::<f64>(side, &mut random), (side * side) as u32);
    for row in [[1.0, -1.0 + 1e-10], [-1.0 + 1e-10, 1.0]] {
        a.columns.extend([n, n + 1]);
        a.values.extend(row);
        a.offsets.push(a.columns.len() as u32);
    }
    a.n_cols += 2;
    let mut b: Vec<f64> = random.vector(side * side);
    b.iter_mut().for_each(|b| *b *= 1e9 / side as f64);
    b.extend([0.01; 2]);
    System { a, b }
}

#[test]
fn an_eigenvector_that_the_right_side_hardly_contains_hides_no_error() {
    for (side, is_verified) in [(10, false), (70, true)] {
        let system = hidden_pair(side);
        for method in [Method::Plain].iter().chain(&Method::VARIANTS) {
            let config = KrylovConfig { is_verified, ..config(1e-10) };
            let (outcome, x) = system.solve(&cpu(), *method, By::Jacobi, config);
            let has_converged = outcome.stop == Stop::Converged;
            assert!(has_converged || *method != Method::Plain, "{side}: {:?}", outcome.stop);
            let found = x[side * side] / 1e8;
            assert!(
                !has_converged || (found - 1.0).abs() < 0.01,
                "{method:?}, {side}: {found} of the solution"
            );
        }
    }
}
