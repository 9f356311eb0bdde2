//! Equations in time whose coefficients depend on u and t, and lumped mass matrices.

use femtile_linalg::krylov::Stop as KrylovStop;
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxSplit, SquareSplit};
use femtile_solve::{
    AmgOptions, CheckpointInterval, MassMatrix, NonlinearConfig, NonlinearMethod, Observer, Poisson,
    PreconditionerConfig, Silent, SolveError, SolverConfig, Transient,
};
use femtile_time::implicit::{Checkpoint, Scheme, Steps, Stop, Tolerance};

use crate::nonlinear::{config, in_plane, in_space};

/// u = g L with g = 1 + sin(2t)/2 and L = 1 + 0.3x + 0.2y, linear in space, so that all errors are those of the scheme.
const EXACT: &str = "(1 + 0.5*sin(2*t))*(1 + 0.3*x + 0.2*y)";

fn exact(t: f64, [x, y, _]: [f64; 3]) -> f64 {
    (1.0 + 0.5 * (2.0 * t).sin()) * (1.0 + 0.3 * x + 0.2 * y)
}

fn meshes() -> [(Mesh, usize); 3] {
    [
        (in_plane(3, SquareSplit::Triangles), 1),
        (in_space(2, BoxSplit::Kuhn), 1),
        (in_plane(2, SquareSplit::Quadrilateral), 2),
    ]
}

/// $c u_t = \nabla\cdot(\sigma\nabla u) - \lambda u + f$ with the solution `EXACT`, given on the boundary or with every kind of
/// condition.
fn problem<'m>(mesh: &'m Mesh, degree: usize, kind: &Kind, has_all_kinds: bool) -> Poisson<'m> {
    let (g, l) = ("(1 + 0.5*sin(2*t))", "(1 + 0.3*x + 0.2*y)");
    let Kind { capacity, sigma, lambda, source, exchange } = kind;
    // The conductivity on the boundary, where u is known.
    let [known, capacity] = [sigma, capacity].map(|text| text.replace('u', &format!("({g}*{l})")));
    let problem = Poisson::new(mesh)
        .degree(degree)
        .sigma(*sigma)
        .lambda(*lambda)
        .source(format!("({capacity})*cos(2*t)*{l} + {}", source.replace('G', g).replace('L', l)));
    if !has_all_kinds {
        return problem.dirichlet("all", EXACT).unwrap();
    }
    problem
        .dirichlet("xmin", EXACT)
        .unwrap()
        .neumann("xmax", format!("({known})*0.3*{g}"))
        .unwrap()
        .neumann("ymin", format!("-({known})*0.2*{g}"))
        .unwrap()
        .robin("ymax", *exchange, format!("{EXACT} + ({known})*0.2*{g}/({exchange})"))
        .unwrap()
}

/// Coefficients and the source besides $u_t$, in terms of g and L.
struct Kind {
    capacity: &'static str,
    sigma: &'static str,
    lambda: &'static str,
    source: &'static str,
    exchange: &'static str,
}

/// A quasilinear equation, a semilinear one, a linear one with coefficients that depend on the time, and one with a capacity that
/// depends on u.
const KINDS: [Kind; 4] = [
    Kind {
        capacity: "1",
        sigma: "1 + u^2",
        lambda: "0",
        source: "(G*L)^3 - 0.26*G^3*L - u^3",
        exchange: "2",
    },
    Kind { capacity: "1", sigma: "2", lambda: "u", source: "(G*L)^2 + exp(G*L) - exp(u)", exchange: "1 + t" },
    Kind { capacity: "1", sigma: "1 + t", lambda: "sin(t)", source: "sin(t)*G*L", exchange: "2 + cos(t)" },
    Kind { capacity: "1 + u^2", sigma: "1 + u", lambda: "0", source: "-0.13*G^2", exchange: "2" },
];

fn error_at_end(problem: &Poisson<'_>, capacity: &str, scheme: Scheme, steps: Steps) -> f64 {
    let run = Transient::new(problem.clone(), "1 + 0.3*x + 0.2*y").capacity(capacity).times(0.0, 1.5);
    let run = run.scheme(scheme).steps(steps).solve(&config(NonlinearMethod::Newton)).unwrap();
    assert_eq!(run.outcome().stop, Stop::Finished, "{:?}", run.at_end().warnings());
    let end = run.at_end();
    let d = end.discretization().mesh().dimension();
    let points = [[0.3, 0.4, 0.2], [0.9, 0.7, 0.6], [0.5, 0.1, 0.9]];
    let points = points.map(|p| if d == 2 { [p[0], p[1], 0.0] } else { p });
    let values = end.values_at(&points).unwrap();
    let errors = values.iter().zip(points).map(|(value, p)| (value.unwrap() - exact(1.5, p)).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn schemes_have_their_order_for_coefficients_that_depend_on_u_and_on_the_time() {
    for (mesh, degree) in &meshes() {
        for (kind, has_all_kinds) in KINDS.iter().flat_map(|kind| [(kind, false), (kind, true)]) {
            let problem = problem(mesh, *degree, kind, has_all_kinds);
            for scheme in Scheme::ALL {
                let [coarse, fine] =
                    [40, 80].map(|n| error_at_end(&problem, kind.capacity, scheme, Steps::Fixed(n)));
                let (order, expected) = ((coarse / fine).log2(), scheme.order() as f64);
                assert!(
                    (order - expected).abs() < 0.3 && coarse < 0.05,
                    "{} {} {has_all_kinds} {:?}: {coarse:e} {fine:e}, order {order}",
                    scheme.name(),
                    kind.sigma,
                    mesh.kind
                );
            }
        }
    }
}

#[test]
fn adaptive_runs_of_a_nonlinear_equation_keep_their_tolerance() {
    let mesh = &meshes()[0].0;
    for (kind, scheme) in [
        (0, Scheme::Bdf2),
        (0, Scheme::Sdirk2),
        (1, Scheme::Sdirk2),
        (1, Scheme::CrankNicolson),
        (3, Scheme::Bdf2),
    ] {
        let problem = problem(mesh, 1, &KINDS[kind], true);
        let mut ratios = Vec::new();
        for digits in 2..=6 {
            let relative = 10f64.powi(-digits);
            let tolerance = Tolerance { relative, absolute: 0.0 };
            let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-9, longest: 1.0 };
            let ratio = error_at_end(&problem, KINDS[kind].capacity, scheme, steps) / (1.9 * relative);
            assert!(ratio < 3.0, "{} {relative:e}: {ratio}", scheme.name());
            ratios.push(ratio);
        }
        // The factor hardly depends on the tolerance.
        let (least, most) = ratios.iter().fold((f64::MAX, 0.0f64), |(a, b), r| (a.min(*r), b.max(*r)));
        assert!(most / least < 9.0, "{} {}: {ratios:?}", KINDS[kind].sigma, scheme.name());
    }
}

#[test]
fn picard_takes_the_steps_of_newton_and_reports_its_iterations() {
    let mesh = &meshes()[0].0;
    let run = Transient::new(problem(mesh, 1, &KINDS[0], true), "1 + 0.3*x + 0.2*y").times(0.0, 0.5);
    let run = run.steps(Steps::Fixed(10));
    let newton = run.solve(&config(NonlinearMethod::Newton)).unwrap();
    let picard = run.solve(&config(NonlinearMethod::Picard)).unwrap();
    let distance = newton.at_end().values().iter().zip(picard.at_end().values()).map(|(a, b)| (a - b).abs());
    assert!(distance.fold(0.0, f64::max) < 1e-9);
    let [newton, picard] = [&newton, &picard].map(|run| run.at_end().nonlinear().unwrap());
    assert!(newton.iterations >= 10 && picard.iterations > newton.iterations, "{newton:?} {picard:?}");
}

#[test]
fn equations_that_are_linear_take_one_solve_a_stage() {
    let mesh = &meshes()[0].0;
    let run = Transient::new(problem(mesh, 1, &KINDS[2], true), 1.0).steps(Steps::Fixed(10));
    let solution = run.solve(&config(NonlinearMethod::Newton)).unwrap();
    assert!(solution.at_end().nonlinear().is_none());
    assert!(!solution.at_end().citations().contains(&"eisenstat1996"));
}

#[test]
fn a_rise_far_below_the_tolerance_of_u_is_followed() {
    let mesh = &meshes()[1].0;
    for (sigma, method) in [
        ("0.1 + x + 1e-6*u", NonlinearMethod::Newton),
        ("0.1 + x + 1e-6*u", NonlinearMethod::Picard),
        ("0.1 + x + t", NonlinearMethod::Newton),
    ] {
        let nonlinear = NonlinearConfig { method, ..NonlinearConfig::default() };
        let config = SolverConfig { nonlinear, tolerance: 1e-8, ..config(method) };
        let run =
            Transient::new(Poisson::new(mesh).sigma(sigma).source("2e-4*x"), 293.0).steps(Steps::Fixed(100));
        let run = run.solve(&config).unwrap();
        assert_eq!(run.outcome().stop, Stop::Finished, "{:?}", run.at_end().warnings());
        let rise = run.at_end().component(0).mean().unwrap() - 293.0;
        assert!((rise / 1e-4 - 1.0).abs() < 1e-5, "{sigma}: {rise:e}");
    }
}

/// A step of a steady state asks for no less than rounding.
#[test]
fn a_nonlinear_run_goes_on_at_its_steady_state() {
    let mesh = &in_plane(12, SquareSplit::Triangles);
    let problem = Poisson::new(mesh).sigma("1 + u^2").source("1 + x").dirichlet("xmin", 2.0).unwrap();
    for method in [NonlinearMethod::Newton, NonlinearMethod::Picard] {
        let run = Transient::new(problem.clone(), 2.0).times(0.0, 100.0).steps(Steps::Fixed(100));
        let run = run.solve(&config(method)).unwrap();
        let outcome = run.outcome();
        assert_eq!((outcome.stop, outcome.rejected), (Stop::Finished, 0), "{:?}", run.at_end().warnings());
    }
}

/// Keeps checkpoints.
#[derive(Default)]
struct Keep(Vec<Checkpoint>);

impl Observer for Keep {
    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        self.0.push(state.clone());
        Ok(())
    }
}

#[test]
fn a_restart_of_a_nonlinear_equation_goes_on_bit_for_bit() {
    let mesh = &meshes()[0].0;
    let problem = problem(mesh, 1, &KINDS[0], true);
    let run = || Transient::new(problem.clone(), "1 + 0.3*x + 0.2*y").times(0.0, 1.0).steps(Steps::Fixed(13));
    for preconditioner in [PreconditionerConfig::Jacobi, PreconditionerConfig::Amg(AmgOptions::default())] {
        let config = SolverConfig { preconditioner, ..config(NonlinearMethod::Newton) };
        let mut keep = Keep::default();
        let whole = run().checkpoints(CheckpointInterval::Steps(3), [3; 32]);
        let whole = whole.solve_with(&config, &mut keep, &mut Silent).unwrap();
        for checkpoint in &keep.0 {
            let mut bytes = Vec::new();
            checkpoint.write(&mut bytes).unwrap();
            let read = Checkpoint::read(&mut bytes.as_slice()).unwrap();
            let rest = run().resume(read).solve(&config).unwrap();
            assert_eq!(rest.at_end().values(), whole.at_end().values());
            assert_eq!(rest.at_end().nonlinear(), whole.at_end().nonlinear());
        }
    }
}

#[test]
fn lumped_masses_keep_the_order_in_space_and_time() {
    // u = e^(−t) cos(πx) solves u_t = Δu/π² without flux.
    let error = |n: usize, mass, split| {
        let mesh = in_plane(n, split);
        let problem = Poisson::new(&mesh).sigma(1.0 / std::f64::consts::PI.powi(2));
        let run = Transient::new(problem, "cos(pi*x)").mass(mass).steps(Steps::Fixed(4 * n));
        let run = run.solve(&config(NonlinearMethod::Newton)).unwrap();
        let exact = femtile_solve::expression("exp(-1)*cos(pi*x)", &[]).unwrap();
        run.at_end().component(0).error_l2(&exact).unwrap()
    };
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        for mass in [MassMatrix::Consistent, MassMatrix::Lumped] {
            let [coarse, fine] = [8, 16].map(|n| error(n, mass, split));
            let order = (coarse / fine).log2();
            assert!((order - 2.0).abs() < 0.2, "{} {split:?}: {coarse:e} {fine:e} {order}", mass.name());
        }
        assert!(
            (error(8, MassMatrix::Lumped, split) / error(8, MassMatrix::Consistent, split) - 1.0).abs()
                > 0.01
        );
    }
}

#[test]
fn lumped_masses_grow_and_flow_as_consistent_ones_where_u_is_uniform() {
    // A negative λ makes operators with an offset; u = e^(t/2) without flux.
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        let mesh = in_plane(4, split);
        let problem = Poisson::new(&mesh).lambda(-0.5);
        let run = Transient::new(problem, 1.0).mass(MassMatrix::Lumped).steps(Steps::Fixed(100));
        let run = run.solve(&config(NonlinearMethod::Newton)).unwrap();
        let end = run.at_end();
        assert!((end.max() - 0.5f64.exp()).abs() < 1e-4 && end.max() - end.min() < 1e-9, "{}", end.max());
        // u = x is steady with given values, whatever the mass.
        let steady = Poisson::new(&mesh).dirichlet("xmin", 0.0).unwrap().neumann("xmax", 1.0).unwrap();
        let run = Transient::new(steady, "x").mass(MassMatrix::Lumped).scheme(Scheme::CrankNicolson);
        let run = run.steps(Steps::Fixed(20)).solve(&config(NonlinearMethod::Newton)).unwrap();
        let exact = femtile_solve::expression("x", &[]).unwrap();
        assert!(run.at_end().component(0).error_l2(&exact).unwrap() < 1e-9);
    }
}

#[test]
fn lumped_masses_keep_the_maximum_principle_that_consistent_ones_break_with_short_steps() {
    let mesh = in_plane(10, SquareSplit::Triangles);
    let least = |mass| {
        let problem = Poisson::new(&mesh).dirichlet("ymin", "if(x < 0.45, 1, 0)").unwrap();
        let run = Transient::new(problem, "if(x < 0.45, 1, 0)").mass(mass).times(0.0, 1e-4);
        let run = run.scheme(Scheme::ImplicitEuler).steps(Steps::Fixed(3));
        run.solve(&config(NonlinearMethod::Newton)).unwrap().at_end().min()
    };
    assert!(least(MassMatrix::Lumped) > -1e-12, "{}", least(MassMatrix::Lumped));
    assert!(least(MassMatrix::Consistent) < -1e-3, "{}", least(MassMatrix::Consistent));
}

#[test]
fn a_step_without_a_solution_is_halved_and_a_run_into_a_singularity_ends_with_its_state() {
    // u = 1 / (1 − t) for u_t = u²: a step of length h from u has a solution where 4 h u ≤ 1.
    let mesh = in_plane(2, SquareSplit::Triangles);
    let problem = Poisson::new(&mesh).source("u^2");
    let run = |end, n| {
        let run = Transient::new(problem.clone(), 1.0).times(0.0, end).steps(Steps::Fixed(n));
        run.scheme(Scheme::ImplicitEuler)
    };
    let short = run(0.45, 1).solve(&config(NonlinearMethod::Newton)).unwrap();
    let outcome = short.outcome();
    assert_eq!((outcome.stop, outcome.steps), (Stop::Finished, 1));
    let reached = short.at_end().max();
    assert!(outcome.rejected > 0 && reached > 1.0 / 0.55 && reached < 3.0, "{outcome:?} {reached}");
    let mut keep = Keep::default();
    let beyond = run(1.5, 60).checkpoints(CheckpointInterval::Steps(1000), [0; 32]);
    let beyond = beyond.solve_with(&config(NonlinearMethod::Newton), &mut keep, &mut Silent).unwrap();
    assert_eq!(beyond.outcome().stop, Stop::SolverFailed);
    assert_eq!(beyond.at_end().outcome().stop, KrylovStop::Diverged);
    let said = beyond.at_end().warnings().join("; ");
    assert!(
        said.contains("at t = 0.9") && said.contains("at unknown") && said.contains("where u is"),
        "{said}"
    );
    let [state] = &keep.0[..] else { panic!("{} checkpoints", keep.0.len()) };
    assert!((state.history[0].0 - beyond.outcome().time).abs() < 1e-15);
}

#[test]
fn data_that_are_infinite_at_some_time_are_named_with_the_time_and_the_place() {
    let mesh = in_plane(3, SquareSplit::Triangles);
    let of = |problem: Poisson<'_>| {
        let run = Transient::new(problem, 1.0).scheme(Scheme::ImplicitEuler).steps(Steps::Fixed(10));
        run.solve(&config(NonlinearMethod::Newton)).unwrap_err().to_string()
    };
    let said = of(Poisson::new(&mesh).lambda("u").source("1/(t - 0.5)"));
    assert!(said.contains("at t = 0.5") && said.contains("source is inf in cell"), "{said}");
    let said = of(Poisson::new(&mesh).sigma("t - 0.5"));
    assert!(said.contains("at t = 0.1") && said.contains("sigma") && said.contains("cell"), "{said}");
    let said = of(Poisson::new(&mesh).sigma("1 + u^2").dirichlet("xmin", "1/(t - 0.5)").unwrap());
    assert!(said.contains("at t = 0.5") && said.contains("dirichlet"), "{said}");
    let said = of(Poisson::new(&mesh).sigma("1 + u^2").dirichlet("xmin", "u").unwrap());
    assert!(said.contains("boundary[0].dirichlet") && said.contains("u, the solution"), "{said}");
    let said = of(Poisson::new(&mesh).robin("xmin", "-t", 1.0).unwrap());
    assert!(said.contains("robin.coefficient") && said.contains("negative"), "{said}");
    // A lumped mass of another degree.
    let mesh = in_plane(2, SquareSplit::Quadrilateral);
    let run = Transient::new(Poisson::new(&mesh).degree(2), 1.0).mass(MassMatrix::Lumped);
    let said = run.solve(&config(NonlinearMethod::Newton)).unwrap_err().to_string();
    assert!(
        said.contains("time.mass") && said.contains("degree 2") && said.contains("gauss-lobatto"),
        "{said}"
    );
}
