//! Equations in time: orders of convergence, adaptive steps, frames, restarts.

use femtile_amg::AmgConfig;
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
use femtile_solve::{
    AmgOptions, CheckpointInterval, DeviceChoice, Frame, MatrixFormat, Method, Observer, OperatorKind,
    PmgOptions, Poisson, PreconditionerConfig, Ranks, Silent, SolveError, SolverConfig, Transient,
};
use femtile_time::implicit::{Checkpoint, Scheme, Steps, Stop, Tolerance};

pub fn config() -> SolverConfig {
    SolverConfig { device: DeviceChoice::Cpu, tolerance: 1e-11, threads: 2, ..SolverConfig::default() }
}

/// u = (1 + sin 2t)(1 + x + 2y), linear in space, so that all errors are those of the scheme.
const EXACT: &str = "(1 + sin(2*t))*(1 + x + 2*y)";

fn exact(t: f64, [x, y, _]: [f64; 3]) -> f64 {
    (1.0 + (2.0 * t).sin()) * (1.0 + x + 2.0 * y)
}

fn meshes() -> [(Mesh, usize); 3] {
    let boxes = |split| BoxConfig { cells: [2, 3, 2], split, ..BoxConfig::default() };
    [
        (square(&SquareConfig { cells: [5, 4], ..SquareConfig::default() }).unwrap(), 1),
        (box_mesh(&boxes(BoxSplit::Kuhn)).unwrap(), 1),
        (box_mesh(&boxes(BoxSplit::Hexahedron)).unwrap(), 2),
    ]
}

/// The problem of `EXACT` with σ = 2, given values alone or all kinds of conditions.
pub fn problem(mesh: &Mesh, degree: usize, has_all_kinds: bool) -> Poisson<'_> {
    let source = "2*cos(2*t)*(1 + x + 2*y) + 3*(1 + sin(2*t))*(1 + x + 2*y)";
    let problem = Poisson::new(mesh).degree(degree).sigma(2.0).lambda(3.0).source(source);
    if !has_all_kinds {
        return problem.dirichlet("all", EXACT).unwrap();
    }
    let flux = "2*(1 + sin(2*t))";
    let outer = "(1 + sin(2*t))*(1 + x + 2*y) + 4*(1 + sin(2*t))/5";
    problem
        .dirichlet("xmin", EXACT)
        .unwrap()
        .neumann("xmax", flux)
        .unwrap()
        .robin("ymax", 5.0, outer)
        .unwrap()
        .neumann("ymin", "-4*(1 + sin(2*t))")
        .unwrap()
}

fn error_at_end(problem: &Poisson<'_>, scheme: Scheme, steps: Steps) -> (f64, usize) {
    error_with(&config(), problem, scheme, steps)
}

/// The largest error at some points at the end, and the number of steps.
pub fn error_with(
    config: &SolverConfig,
    problem: &Poisson<'_>,
    scheme: Scheme,
    steps: Steps,
) -> (f64, usize) {
    let run = Transient::new(problem.clone(), "1 + x + 2*y").times(0.0, 1.5).scheme(scheme).steps(steps);
    let run = run.solve(config).unwrap();
    assert_eq!(run.outcome().stop, Stop::Finished);
    let end = run.at_end();
    let points = [[0.3, 0.4, 0.2], [0.9, 0.7, 0.6], [0.5, 0.1, 0.9]];
    let points =
        points.map(|p| if end.discretization().mesh().dimension() == 2 { [p[0], p[1], 0.0] } else { p });
    let values = end.values_at(&points).unwrap();
    let errors = values.iter().zip(points).map(|(value, p)| (value.unwrap() - exact(1.5, p)).abs());
    (errors.fold(0.0, f64::max), run.outcome().steps)
}

#[test]
fn schemes_have_their_order_with_every_condition_and_element() {
    for (mesh, degree) in &meshes() {
        for has_all_kinds in [false, true] {
            let problem = problem(mesh, *degree, has_all_kinds);
            for scheme in Scheme::ALL {
                let [coarse, fine] = [24, 48].map(|n| error_at_end(&problem, scheme, Steps::Fixed(n)).0);
                let order = (coarse / fine).log2();
                let expected = scheme.order() as f64;
                assert!(
                    (order - expected).abs() < 0.25,
                    "{} {:?} {has_all_kinds}: {coarse:e} {fine:e}, order {order}",
                    scheme.name(),
                    mesh.kind
                );
            }
        }
    }
}

#[test]
fn adaptive_runs_keep_their_tolerance() {
    let mesh = &meshes()[0].0;
    let problem = problem(mesh, 1, true);
    for scheme in Scheme::ALL {
        let mut ratios = Vec::new();
        for digits in 2..=if scheme == Scheme::ImplicitEuler { 4 } else { 6 } {
            let relative = 10f64.powi(-digits);
            let tolerance = Tolerance { relative, absolute: 0.0 };
            let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 1.0 };
            let (error, n_steps) = error_at_end(&problem, scheme, steps);
            // The largest value is about 8, that of the norm about 5.
            let ratio = error / (5.0 * relative);
            eprintln!("{} {relative:e}: {error:e} in {n_steps} steps, {ratio}", scheme.name());
            assert!(ratio < 3.0, "{}: {ratio} of {relative}", scheme.name());
            ratios.push(ratio);
        }
        let (least, most) = ratios.iter().fold((f64::MAX, 0.0f64), |(a, b), r| (a.min(*r), b.max(*r)));
        assert!(most / least < 9.0, "{}: {ratios:?}", scheme.name());
    }
}

#[test]
fn kinks_and_jumps_of_data_are_passed_with_short_steps() {
    let mesh = &meshes()[0].0;
    let tolerance = Tolerance { relative: 1e-3, absolute: 0.0 };
    let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 0.2 };
    for (value, most_restarts) in [("if(t < 0.7, 1 - t, 0.3)", 3), ("if(t < 0.7, 1, 3)", 8), ("1", 0)] {
        let problem = Poisson::new(mesh).dirichlet("xmin", value).unwrap();
        for scheme in [Scheme::Bdf2, Scheme::Sdirk2] {
            let run = Transient::new(problem.clone(), 1.0).times(0.0, 3.0).scheme(scheme);
            let fine = run.clone().steps(Steps::Fixed(6000)).solve(&config()).unwrap();
            let run = run.steps(steps).solve(&config()).unwrap();
            let outcome = run.outcome();
            assert_eq!(outcome.stop, Stop::Finished, "{value}");
            assert!(outcome.restarts <= most_restarts, "{value}: {outcome:?}");
            assert!(outcome.steps < 2000, "{value}: {outcome:?}");
            let difference = (run.at_end().max() - fine.at_end().max()).abs();
            assert!(difference < 3e-3, "{} {value}: {difference}", scheme.name());
        }
    }
}

#[test]
fn a_tolerance_out_of_reach_is_no_success() {
    let mesh = &meshes()[0].0;
    let tolerance = Tolerance { relative: 1e-7, absolute: 0.0 };
    for shortest in [0.1, 1e-2, 1e-3] {
        let steps = Steps::Adaptive { tolerance, first: None, shortest, longest: 1.0 };
        for scheme in Scheme::ALL {
            let run = Transient::new(problem(mesh, 1, true), "1 + x + 2*y").times(0.0, 1.5);
            let run = run.scheme(scheme).steps(steps).solve(&config()).unwrap();
            assert_eq!(run.outcome().stop, Stop::StepTooShort, "{} {shortest}", scheme.name());
            assert!(!run.at_end().has_converged());
        }
    }
}

#[test]
fn a_solution_that_is_zero_for_a_while_is_followed() {
    let mesh = &meshes()[0].0;
    let tolerance = Tolerance { relative: 1e-3, absolute: 0.0 };
    let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 0.1 };
    let problem = Poisson::new(mesh).source("max(t - 0.5, 0)");
    let run = Transient::new(problem, 0.0).times(0.0, 1.5).steps(steps).solve(&config()).unwrap();
    assert_eq!(run.outcome().stop, Stop::Finished);
    assert!((run.at_end().max() - 0.5).abs() < 1e-3, "{}", run.at_end().max());
}

/// Keeps frames and checkpoints.
#[derive(Default)]
struct Keep {
    frames: Vec<(usize, f64, f64)>,
    checkpoints: Vec<Checkpoint>,
}

impl Observer for Keep {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), SolveError> {
        self.frames.push((frame.number(), frame.time(), frame.component().max()));
        Ok(())
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        self.checkpoints.push(state.clone());
        Ok(())
    }
}

#[test]
fn frames_are_values_at_their_times() {
    let mesh = &meshes()[0].0;
    let run = Transient::new(problem(mesh, 1, false), EXACT.replace('t', "0").as_str());
    let run = run.times(0.0, 1.5).steps(Steps::Fixed(300)).frames([0.0, 0.3333, 1.5, 0.75]);
    let mut keep = Keep::default();
    let _ = run.solve_with(&config(), &mut keep, &mut Silent).unwrap();
    assert_eq!(keep.frames.len(), 4);
    for (number, time, max) in keep.frames {
        assert_eq!(time, [0.0, 0.3333, 0.75, 1.5][number]);
        let expected = exact(time, [1.0, 1.0, 0.0]);
        assert!((max - expected).abs() < 2e-4 * expected, "{time}: {max} {expected}");
    }
}

/// Runs with checkpoints, goes on from the first, one in the middle and the last but one, and compares all bits.
fn restart(problem: &Poisson<'_>, scheme: Scheme, steps: Steps, config: &SolverConfig) {
    let run = || {
        let run = Transient::new(problem.clone(), "1 + x + 2*y").times(0.0, 1.5);
        run.scheme(scheme).steps(steps)
    };
    let mut keep = Keep::default();
    let whole = run()
        .checkpoints(CheckpointInterval::Steps(3), [7; 32])
        .solve_with(config, &mut keep, &mut Silent)
        .unwrap();
    assert_eq!(whole.outcome().stop, Stop::Finished);
    assert!(keep.checkpoints.len() > 2);
    let n_kept = keep.checkpoints.len();
    for checkpoint in [0, n_kept / 2, n_kept - 2].map(|at| &keep.checkpoints[at]) {
        let mut bytes = Vec::new();
        checkpoint.write(&mut bytes).unwrap();
        let read = Checkpoint::read(&mut bytes.as_slice()).unwrap();
        assert_eq!(&read, checkpoint);
        let rest = run().resume(read).solve(config).unwrap();
        let place = (scheme.name(), checkpoint.step);
        assert!(rest.at_end().values() == whole.at_end().values(), "{place:?}");
        assert_eq!(rest.outcome(), whole.outcome(), "{place:?}");
    }
}

fn adaptive(relative: f64) -> Steps {
    let tolerance = Tolerance { relative, absolute: 0.0 };
    Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 1.0 }
}

#[test]
fn a_restart_goes_on_bit_for_bit() {
    let (mesh, degree) = &meshes()[1];
    let problem = problem(mesh, *degree, true);
    for scheme in Scheme::ALL {
        for steps in [Steps::Fixed(17), adaptive(1e-2)] {
            restart(&problem, scheme, steps, &config());
        }
    }
}

/// A preconditioner that serves many shifts and was made long before is made again for the same one.
#[test]
fn a_restart_with_a_kept_preconditioner_goes_on_bit_for_bit() {
    let small = BoxConfig { cells: [7, 6, 5], ..BoxConfig::default() };
    let tetrahedra = box_mesh(&BoxConfig { split: BoxSplit::Kuhn, ..small.clone() }).unwrap();
    let hexahedra = box_mesh(&BoxConfig { split: BoxSplit::Hexahedron, ..small }).unwrap();
    let options = AmgConfig { coarse_rows: 20, ..AmgConfig::default() };
    let amg = AmgOptions { config: options, ..AmgOptions::default() };
    let pmg = PmgOptions { amg: amg.clone(), ..PmgOptions::default() };
    let of_matrix = PreconditionerConfig::Amg(amg);
    for (mesh, degree, preconditioner) in [
        (&tetrahedra, 1, of_matrix.clone()),
        (&hexahedra, 1, of_matrix),
        (&hexahedra, 2, PreconditionerConfig::Pmg(pmg)),
    ] {
        let config = SolverConfig { preconditioner, ..config() };
        let problem = problem(mesh, degree, true);
        restart(&problem, Scheme::Bdf2, adaptive(1e-2), &config);
        restart(&problem.lambda(-2.0), Scheme::Sdirk2, adaptive(3e-2), &config);
    }
}

#[test]
fn runs_do_not_depend_on_the_preconditioner_and_the_format_of_operators() {
    let mesh = box_mesh(&BoxConfig { cells: [5, 4, 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() });
    let mesh = mesh.unwrap();
    let matrix = SolverConfig { operator: OperatorKind::Assembled, ..config() };
    let settings = [
        SolverConfig { preconditioner: PreconditionerConfig::Jacobi, ..config() },
        SolverConfig { preconditioner: PreconditionerConfig::Jacobi, ..matrix.clone() },
        SolverConfig { preconditioner: PreconditionerConfig::Amg(AmgOptions::default()), ..config() },
        SolverConfig { preconditioner: PreconditionerConfig::None, ..matrix.clone() },
        SolverConfig {
            preconditioner: PreconditionerConfig::Jacobi,
            format: MatrixFormat::EllWarp,
            ..matrix
        },
        SolverConfig { method: Method::MergedCg, ..config() },
        SolverConfig { method: Method::Gmres { restart: 30 }, ..config() },
    ];
    for lambda in ["0", "-1.5", "x - 1"] {
        for scheme in [Scheme::Bdf2, Scheme::CrankNicolson] {
            let problem = problem(&mesh, 1, true).lambda(lambda);
            let solve = |config: &SolverConfig| {
                let run = Transient::new(problem.clone(), "1 + x + 2*y").times(0.0, 0.5);
                let run = run.scheme(scheme).steps(Steps::Fixed(7)).solve(config).unwrap();
                assert_eq!(run.outcome().stop, Stop::Finished, "{lambda}");
                run.at_end().values().to_vec()
            };
            let expected = solve(&settings[0]);
            for config in &settings[1..] {
                for (found, expected) in solve(config).iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-8, "{lambda} {config:?}: {found} {expected}");
                }
            }
        }
    }
}

/// A box whose mean rises by `rise` in a unit of time, from 293.
fn warmed(mesh: &Mesh, rise: f64) -> Transient<'_> {
    let problem = Poisson::new(mesh).sigma("0.1 + x").source(format!("{rise:e}*2*x"));
    Transient::new(problem, 293.0).times(0.0, 1.0)
}

#[test]
fn a_rise_far_below_the_tolerance_of_u_is_followed_by_every_scheme_and_method() {
    let mesh = &box_mesh(&BoxConfig { cells: [3; 3], ..BoxConfig::default() }).unwrap();
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    let rise_with = |rise: f64, scheme: Scheme, steps: usize, config: &SolverConfig| {
        let run = warmed(mesh, rise).scheme(scheme).steps(Steps::Fixed(steps)).solve(config).unwrap();
        assert_eq!(run.outcome().stop, Stop::Finished);
        (run.at_end().component(0).mean().unwrap() - 293.0) / rise
    };
    let of = |method, preconditioner| SolverConfig { tolerance: 1e-10, method, preconditioner, ..config() };
    for scheme in Scheme::ALL {
        for config in [of(Method::Cg, PreconditionerConfig::Jacobi), of(Method::Cg, amg.clone())] {
            let share = rise_with(2.4e-6, scheme, 100, &config);
            assert!((share - 1.0).abs() < 1e-4, "{}: {share}", scheme.name());
        }
    }
    for method in [Method::PipelinedCg, Method::Gmres { restart: 30 }] {
        let share = rise_with(2.4e-6, Scheme::Bdf2, 20, &of(method, PreconditionerConfig::Jacobi));
        assert!((share - 1.0).abs() < 1e-4, "{share}");
    }
    let ranks = SolverConfig { ranks: Ranks::Threads(2), ..of(Method::Cg, PreconditionerConfig::Jacobi) };
    let share = rise_with(2.4e-6, Scheme::Bdf2, 50, &ranks);
    assert!((share - 1.0).abs() < 1e-4, "ranks: {share}");
    let loose = SolverConfig { tolerance: 1e-5, ..of(Method::Cg, PreconditionerConfig::Jacobi) };
    let share = rise_with(1.0, Scheme::Bdf2, 1000, &loose);
    assert!((share - 1.0).abs() < 1e-4, "loose: {share}");
}

#[test]
fn steps_of_a_steady_state_take_few_iterations_and_those_without_are_told() {
    let mesh = &square(&SquareConfig { cells: [12; 2], ..SquareConfig::default() }).unwrap();
    let jacobi = SolverConfig { preconditioner: PreconditionerConfig::Jacobi, ..config() };
    let problem = Poisson::new(mesh).source("1 + x").dirichlet("xmin", 293.0).unwrap();
    let [few, many] = [100, 300].map(|n| {
        let run = Transient::new(problem.clone(), 293.0).times(0.0, 0.2 * n as f64).steps(Steps::Fixed(n));
        run.solve(&jacobi).unwrap().outcome().iterations
    });
    // Steps from 20 to 60 change nothing but rounding.
    assert!(many - few < 200 * 12, "{few} {many}");
    let run = Transient::new(Poisson::new(mesh), 0.0).steps(Steps::Fixed(30)).solve(&jacobi).unwrap();
    assert!(run.outcome().idle == 30, "{:?}", run.outcome());
    assert!(
        run.at_end().warnings().iter().any(|warning| warning.contains("30 steps in a row took no iteration"))
    );
}

#[test]
fn data_without_the_time_have_no_kinks_however_fast_u_begins() {
    let size = SquareConfig { cells: [40, 2], upper: [1.0, 0.05], ..SquareConfig::default() };
    let mesh = &square(&size).unwrap();
    let problem = Poisson::new(mesh).source(1.0).dirichlet("xmin", 0.0).unwrap();
    for (scheme, relative, most) in [(Scheme::Bdf2, 1e-4, 2500), (Scheme::ImplicitEuler, 1e-2, 6000)] {
        let tolerance = Tolerance { relative, absolute: 0.0 };
        let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-8, longest: 10.0 };
        let run = Transient::new(problem.clone(), 0.0).times(0.0, 10.0).scheme(scheme).steps(steps);
        let run = run.solve(&config()).unwrap();
        let outcome = run.outcome();
        assert_eq!((outcome.stop, outcome.restarts), (Stop::Finished, 0), "{}", scheme.name());
        assert!(outcome.steps < most, "{outcome:?}");
        let end = run.at_end().value_at([1.0, 0.01, 0.0]).unwrap();
        assert!((end - 0.5).abs() < 0.5 * relative, "{}: {end}", scheme.name());
    }
}

#[test]
fn adaptive_implicit_euler_passes_a_jump_of_the_source() {
    let size = SquareConfig { cells: [4, 4], upper: [10.0, 1.0], ..SquareConfig::default() };
    let mesh = &square(&size).unwrap();
    let problem = Poisson::new(mesh).sigma(46.0).lambda(-0.5).source("4*(1 + x)*if(t < 0.31, 1, -1)");
    let problem = problem.robin("xmax", 92.0, 0.0).unwrap();
    let run = Transient::new(problem, "1 + x").times(0.0, 1.0).scheme(Scheme::ImplicitEuler);
    let fine = run.clone().scheme(Scheme::Sdirk2).steps(Steps::Fixed(1000)).solve(&config()).unwrap();
    for relative in [1e-2, 3e-3] {
        let tolerance = Tolerance { relative, absolute: 0.0 };
        let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 1.0 };
        let found = run.clone().steps(steps).solve(&config()).unwrap();
        let outcome = found.outcome();
        assert_eq!(outcome.stop, Stop::Finished, "{outcome:?}");
        assert!((1..=3).contains(&outcome.restarts), "{outcome:?}");
        let difference = (found.at_end().max() - fine.at_end().max()).abs();
        assert!(difference < 30.0 * relative, "{difference}");
    }
}
