use std::ops::ControlFlow;

use femtile_device::{Buffer, Cpu};

use super::*;
use crate::krylov::Stop;

/// Independent scalar equations $g(u_i) = 0$, solved up to the tolerance that is asked for.
struct Scalars<G> {
    /// g and the slope that the linearization takes.
    g: G,
    n_residuals: usize,
    r: Vec<f64>,
    slopes: Vec<f64>,
    is_linear: bool,
}

impl<G: Fn(f64) -> (f64, f64)> Scalars<G> {
    fn new(g: G) -> Self {
        Self { g, n_residuals: 0, r: Vec::new(), slopes: Vec::new(), is_linear: false }
    }
}

impl<G: Fn(f64) -> (f64, f64)> NonlinearEquation<Cpu> for Scalars<G> {
    type Error = LinalgError;

    fn residual(&mut self, u: &Buffer<f64, Cpu>) -> Result<ResidualNorm, LinalgError> {
        self.n_residuals += 1;
        (self.r, self.slopes) = u.as_slice().iter().map(|&u| (self.g)(u)).map(|(g, s)| (-g, s)).unzip();
        let norm = self.r.iter().map(|r| r * r).sum::<f64>().sqrt();
        Ok(ResidualNorm { norm, size: 1.0 })
    }

    fn correction(
        &mut self,
        delta: &mut Buffer<f64, Cpu>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, LinalgError> {
        let parts = delta.as_mut_slice().iter_mut().zip(self.r.iter().zip(&self.slopes));
        parts.for_each(|(delta, (r, slope))| *delta = (1.0 - 0.9 * tolerance) * r / slope);
        Ok(CorrectionOutcome { iterations: 1, has_converged: true })
    }

    fn is_linear(&self) -> bool {
        self.is_linear
    }
}

fn solve<G: Fn(f64) -> (f64, f64)>(
    equation: &mut Scalars<G>,
    start: &[f64],
    tolerance: f64,
) -> (Vec<f64>, NewtonOutcome) {
    let mut u = Buffer::from_host(&Cpu::new(1).unwrap(), start).unwrap();
    let newton = Newton::new(NewtonConfig { tolerance, ..NewtonConfig::default() });
    let outcome = newton.solve(equation, &mut u, &mut ()).unwrap();
    (u.to_host().unwrap(), outcome)
}

#[test]
fn residuals_of_a_cubic_fall_quadratically_to_its_roots() {
    let mut cubic = Scalars::new(|u| (u * u * u - 2.0, 3.0 * u * u));
    let (u, outcome) = solve(&mut cubic, &[1.0, 2.0, 1.5], 1e-14);
    assert!(outcome.has_converged(), "{outcome:?}");
    assert!(u.iter().all(|u| (u - 2.0_f64.cbrt()).abs() < 1e-14), "{u:?}");
    let [.., a, b, _] = outcome.residuals[..] else { panic!("{outcome:?}") };
    assert!(b < 2.0 * a * a && outcome.iterations <= 7, "{outcome:?}");
}

#[test]
fn a_step_that_overshoots_is_shortened() {
    // The plain iteration for atan diverges from beyond 1.39.
    let mut atan = Scalars::new(|u: f64| (u.atan(), 1.0 / (1.0 + u * u)));
    let (u, outcome) = solve(&mut atan, &[20.0], 1e-12);
    assert!(outcome.has_converged() && u[0].abs() < 1e-11, "{outcome:?}");
    assert!(outcome.lengths[0] < 1.0 && *outcome.lengths.last().unwrap() == 1.0, "{outcome:?}");
    assert!(outcome.residuals.is_sorted_by(|a, b| a >= b), "{outcome:?}");
}

#[test]
fn a_step_to_where_there_is_no_value_is_shortened() {
    let mut log = Scalars::new(|u: f64| (u.ln(), 1.0 / u));
    let (u, outcome) = solve(&mut log, &[8.0], 1e-12);
    assert!(outcome.has_converged() && (u[0] - 1.0).abs() < 1e-11, "{outcome:?}");
}

#[test]
fn equations_without_a_root_end_without_descent_and_leave_the_best_iterate() {
    let mut none = Scalars::new(|u: f64| (u * u + 1.0, 2.0 * u));
    let (u, outcome) = solve(&mut none, &[3.0], 1e-12);
    assert!(matches!(outcome.stop, NewtonStop::NoDescent | NewtonStop::MaxIterations), "{outcome:?}");
    assert!((u[0] * u[0] + 1.0 - outcome.residuals.last().unwrap()).abs() < 1e-12);
    assert!(outcome.stop.to_string().contains("begin nearer"));
}

#[test]
fn a_start_without_a_value_is_said() {
    let mut log = Scalars::new(|u: f64| (u.ln(), 1.0 / u));
    let (u, outcome) = solve(&mut log, &[-1.0], 1e-12);
    assert_eq!((outcome.stop, outcome.iterations, u[0]), (NewtonStop::Undefined, 0, -1.0));
}

#[test]
fn a_linear_equation_takes_one_correction_and_no_second_residual() {
    let mut linear = Scalars::new(|u| (3.0 * u - 1.0, 3.0));
    linear.is_linear = true;
    let (u, outcome) = solve(&mut linear, &[5.0], 1e-10);
    assert!(outcome.has_converged() && (u[0] - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!((outcome.iterations, linear.n_residuals), (1, 1));
}

#[test]
fn a_residual_that_is_small_beside_its_terms_is_no_solution_where_the_correction_is_checked() {
    let cpu = Cpu::new(1).unwrap();
    // The terms have the size 1, so that the residual of every first guess meets the tolerance.
    for slope in [2.0, 4.0] {
        let mut small = Scalars::new(|u: f64| (1e-9 * (u * u - 4.0), 1e-9 * slope * u));
        let mut solve = |checks_correction: bool| {
            let mut u = Buffer::from_host(&cpu, &[1.0, 3.0]).unwrap();
            let config = NewtonConfig { checks_correction, ..NewtonConfig::default() };
            let outcome = Newton::new(config).solve(&mut small, &mut u, &mut ()).unwrap();
            assert!(outcome.has_converged(), "{outcome:?}");
            let error = u.as_slice().iter().map(|u| (u - 2.0).abs()).fold(0.0, f64::max);
            (error, outcome.residuals.len(), outcome.iterations)
        };
        assert_eq!(solve(false), (1.0, 1, 0));
        let (error, n_residuals, iterations) = solve(true);
        assert!(error < 2e-7 && n_residuals == iterations + 1, "{slope}: {error:e}");
    }
}

#[test]
fn a_fixed_slope_converges_linearly() {
    let mut fixed = Scalars::new(|u: f64| (u.cos() - u, -1.6));
    let (u, outcome) = solve(&mut fixed, &[0.0], 1e-10);
    assert!(outcome.has_converged() && (u[0].cos() - u[0]).abs() < 1e-9);
    let [.., a, b, c] = outcome.residuals[..] else { panic!("{outcome:?}") };
    assert!((c / b) / (b / a) > 0.2, "{outcome:?}");
}

#[test]
fn a_vector_without_entries_is_solved_at_once() {
    let mut cubic = Scalars::new(|u| (u * u * u - 2.0, 3.0 * u * u));
    let (_, outcome) = solve(&mut cubic, &[], 1e-10);
    assert_eq!((outcome.stop, outcome.iterations), (NewtonStop::Converged, 0));
}

#[test]
fn limits_and_monitors_end_the_iteration() {
    let cpu = Cpu::new(1).unwrap();
    let mut cubic = Scalars::new(|u| (u * u * u - 2.0, 3.0 * u * u));
    let mut u = Buffer::from_host(&cpu, &[100.0]).unwrap();
    let newton = Newton::new(NewtonConfig { max_iterations: 2, ..NewtonConfig::default() });
    let outcome = newton.solve(&mut cubic, &mut u, &mut ()).unwrap();
    assert_eq!((outcome.stop, outcome.iterations), (NewtonStop::MaxIterations, 2));
    struct Third;
    impl Monitor for Third {
        fn iteration(&mut self, iteration: usize, _: f64) -> ControlFlow<Stop> {
            if iteration == 3 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
        }
    }
    let outcome = Newton::default().solve(&mut cubic, &mut u, &mut Third).unwrap();
    assert_eq!((outcome.stop, outcome.iterations), (NewtonStop::Ended(Stop::Interrupted), 3));
    for config in [
        NewtonConfig { tolerance: 0.0, ..NewtonConfig::default() },
        NewtonConfig { max_iterations: 0, ..NewtonConfig::default() },
    ] {
        assert!(Newton::new(config).solve(&mut cubic, &mut u, &mut ()).is_err());
    }
}

/// $K (y - x^2) = 0$, $1 - x = 0$: a valley whose walls are K times as steep as its bottom.
struct Valley {
    steepness: f64,
    keeps_linearization: bool,
    r: [f64; 2],
    at: [f64; 2],
    /// Where the last correction was computed.
    from: [f64; 2],
}

impl Valley {
    fn solve(&self, delta: &mut Buffer<f64, Cpu>) -> CorrectionOutcome {
        let along = self.r[1];
        delta
            .as_mut_slice()
            .copy_from_slice(&[along, self.r[0] / self.steepness + 2.0 * self.from[0] * along]);
        CorrectionOutcome { iterations: 1, has_converged: true }
    }
}

impl NonlinearEquation<Cpu> for Valley {
    type Error = LinalgError;

    fn residual(&mut self, u: &Buffer<f64, Cpu>) -> Result<ResidualNorm, LinalgError> {
        let &[x, y] = u.as_slice() else { unreachable!() };
        (self.at, self.r) = ([x, y], [self.steepness * (x * x - y), 1.0 - x]);
        Ok(ResidualNorm { norm: self.r[0].hypot(self.r[1]), size: 1.0 })
    }

    fn correction(&mut self, delta: &mut Buffer<f64, Cpu>, _: f64) -> Result<CorrectionOutcome, LinalgError> {
        self.from = self.at;
        Ok(self.solve(delta))
    }

    fn simplified_correction(
        &mut self,
        delta: &mut Buffer<f64, Cpu>,
        _: f64,
    ) -> Result<Option<CorrectionOutcome>, LinalgError> {
        Ok(self.keeps_linearization.then(|| self.solve(delta)))
    }
}

#[test]
fn steps_along_a_valley_are_long_if_corrections_fall_where_residuals_grow() {
    let run = |keeps_linearization: bool| {
        let (steepness, at) = (1e4, [0.0; 2]);
        let mut valley = Valley { steepness, keeps_linearization, r: at, at, from: at };
        let mut u = Buffer::from_host(&Cpu::new(1).unwrap(), &[0.5, 0.25]).unwrap();
        let newton = Newton::new(NewtonConfig { tolerance: 1e-8, ..NewtonConfig::default() });
        let outcome = newton.solve(&mut valley, &mut u, &mut ()).unwrap();
        (u.to_host().unwrap(), outcome)
    };
    let (u, outcome) = run(true);
    assert!(outcome.has_converged() && outcome.iterations <= 4, "{outcome:?}");
    assert!((u[0] - 1.0).abs() < 1e-8 && (u[1] - 1.0).abs() < 1e-8, "{u:?}");
    assert!(outcome.lengths[0] == 1.0 && outcome.residuals[1] > outcome.residuals[0], "{outcome:?}");
    let (_, outcome) = run(false);
    assert!(!outcome.has_converged(), "{outcome:?}");
}
