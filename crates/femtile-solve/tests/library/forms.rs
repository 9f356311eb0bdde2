//! Nonlinear forms: Newton's method and load steps.

use std::sync::Arc;

use femtile_device::Cpu;
use femtile_expression::{Expression, Variable};
use femtile_fem::functionals;
use femtile_form::Equation;
use femtile_linalg::krylov::Stop;
use femtile_mesh::Mesh;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{BoxSplit, SquareSplit};
use femtile_solve::{
    AmgOptions, Continuation, FormProblem, FormSolution, Method, NonlinearConfig, NonlinearMethod, Poisson,
    PreconditionerConfig, Progress, Ranks, Silent, SolveError, SolverConfig, Stages, Value,
};

use crate::equations;
use crate::nonlinear::{in_plane, in_space};

fn config() -> SolverConfig {
    SolverConfig { tolerance: 1e-12, ..crate::nonlinear::config(NonlinearMethod::Newton) }
}

fn problem(mesh: &Mesh, equation: Equation, degree: usize) -> FormProblem<'_> {
    FormProblem::new(mesh, Arc::new(boundary_facets(mesh)), equation).degree(degree)
}

fn solve<'m>(problem: &FormProblem<'m>, config: &SolverConfig) -> Result<FormSolution<'m>, SolveError> {
    problem.solve(&Cpu::new(config.threads).unwrap(), config, None, &mut Stages::new(&mut Silent))
}

fn solved<'m>(problem: &FormProblem<'m>, config: &SolverConfig) -> FormSolution<'m> {
    let solution = solve(problem, config).unwrap();
    assert_eq!(
        solution.outcome().stop,
        Stop::Converged,
        "{:?} {:?}",
        solution.nonlinear(),
        solution.warnings()
    );
    solution
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The value of one of `n` components.
fn only(component: usize, n: usize, value: impl Into<Value>) -> Vec<Option<Value>> {
    let mut values = vec![None; n];
    values[component] = Some(value.into());
    values
}

/// The solution of the manufactured problem, its source, and the flux along x.
fn manufactured(d: usize) -> [Expression; 3] {
    let text = if d == 2 { "1 + 0.5*sin(2*x + y)" } else { "1 + 0.5*sin(2*x + y) + 0.2*y*z" };
    let u = Expression::parse(text).unwrap();
    let sigma = &Expression::constant(1.0) + &(&u * &u);
    let axes = [Variable::X, Variable::Y, Variable::Z];
    let flux: Vec<Expression> = axes[..d].iter().map(|&axis| &sigma * &u.derivative(axis)).collect();
    let divergence =
        flux.iter().zip(axes).map(|(q, axis)| q.derivative(axis)).reduce(|a, b| &a + &b).unwrap();
    let source = &Expression::constant(0.0) - &divergence;
    [u, source, flux[0].clone()]
}

/// $-\nabla\cdot((1 + u^2)\nabla u) = f$ with u given but on one side, where its flux is.
fn diffusion(mesh: &Mesh, degree: usize) -> FormProblem<'_> {
    let [u, source, flux] = manufactured(mesh.dimension()).map(|of| Value::from(of.to_string()));
    let mut problem = problem(mesh, equations::diffusion(), degree);
    problem.scalar("source", &source).unwrap();
    problem.scalars_on_boundary("neumann", "xmax", &[("value", &flux)]).unwrap();
    let sides = ["xmin", "ymin", "ymax", "zmin", "zmax"];
    for side in &sides[..if mesh.dimension() == 2 { 3 } else { 5 }] {
        problem.dirichlet(*side, &[Some(u.clone())]).unwrap();
    }
    problem
}

#[test]
fn errors_fall_by_one_order_more_than_the_degree_on_every_cell() {
    let plane = [SquareSplit::Triangles, SquareSplit::Quadrilateral];
    let space = [BoxSplit::Kuhn, BoxSplit::Hexahedron];
    for degree in [1, 2] {
        let of_plane = plane.map(|split| [12 / degree, 24 / degree].map(|n| in_plane(n, split)));
        let of_space = space.map(|split| [4 / degree, 8 / degree].map(|n| in_space(n, split)));
        for meshes in of_plane.into_iter().chain(of_space) {
            let d = meshes[0].dimension();
            let exact = manufactured(d)[0].clone();
            let [coarse, fine] = meshes.each_ref().map(|mesh| {
                let found = solved(&diffusion(mesh, degree), &config());
                functionals::error_l2(found.space(), found.u(), &exact).unwrap()
            });
            let (order, kind) = ((coarse / fine).log2(), meshes[0].kind);
            let expected = degree as f64 + 1.0;
            assert!(
                (order - expected).abs() < 0.3,
                "{kind} of degree {degree}: {coarse:e} {fine:e}, {order}"
            );
        }
    }
}

#[test]
fn an_equation_as_text_has_the_solution_of_the_tuned_one() {
    let squares = in_plane(9, SquareSplit::Quadrilateral);
    let cubes = in_space(4, BoxSplit::Hexahedron);
    for (mesh, degree) in [(&squares, 1), (&squares, 2), (&cubes, 1), (&cubes, 2)] {
        // Polynomials that every rule integrates exactly.
        let tuned = Poisson::new(mesh).degree(degree).sigma("1 + u^2").source("7*x").initial(1.0);
        let tuned = tuned.dirichlet("xmin", "1 + y").unwrap().neumann("xmax", 2.0).unwrap();
        let tuned = tuned.solve(&config()).unwrap();
        let mut form = problem(mesh, equations::diffusion(), degree);
        form.scalar("source", &Value::from("7*x")).unwrap();
        form.dirichlet("xmin", &[Some(Value::from("1 + y"))]).unwrap();
        form.scalars_on_boundary("neumann", "xmax", &[("value", &Value::from(2.0))]).unwrap();
        let found = solved(&form, &config());
        assert!(tuned.has_converged());
        let difference = largest_difference(found.u(), tuned.values());
        assert!(difference < 1e-9, "degree {degree}: {difference:e}");
    }
}

#[test]
fn residuals_of_newton_fall_quadratically() {
    let mesh = in_plane(16, SquareSplit::Triangles);
    let nonlinear = NonlinearConfig { tolerance: 1e-11, ..NonlinearConfig::default() };
    let found = solved(&diffusion(&mesh, 1), &SolverConfig { nonlinear, ..config() });
    let report = found.nonlinear().unwrap();
    assert_eq!(report.residuals.len(), report.iterations + 1);
    assert!(report.iterations <= 6 && found.load_steps().is_empty(), "{report:?}");
    // The last step is no more accurate than the tolerance asks for.
    let falls = report.residuals.windows(2).filter(|pair| pair[0] < 0.1 && pair[1] > 1e-10);
    assert!(falls.clone().count() >= 2, "{report:?}");
    falls.for_each(|pair| assert!(pair[1] < 20.0 * pair[0] * pair[0], "{report:?}"));
    assert!(found.citations().contains(&"eisenstat1996"));
}

#[test]
fn preconditioners_methods_threads_and_ranks_give_the_same_solution() {
    let cubes = in_space(4, BoxSplit::Hexahedron);
    let triangles = in_plane(8, SquareSplit::Triangles);
    for problem in [diffusion(&cubes, 2), diffusion(&triangles, 2)] {
        let expected = solved(&problem, &config());
        assert_eq!(expected.preconditioner(), "amg");
        for preconditioner in [PreconditionerConfig::Jacobi, PreconditionerConfig::None] {
            let found =
                solved(&problem, &SolverConfig { preconditioner: preconditioner.clone(), ..config() });
            assert!(largest_difference(found.u(), expected.u()) < 1e-9);
            assert_eq!(found.preconditioner(), preconditioner.name());
        }
        let alone = solved(&problem, &SolverConfig { threads: 1, ..config() });
        assert_eq!(alone.u(), expected.u());
        for n in [2, 3] {
            let found = solved(&problem, &SolverConfig { ranks: Ranks::Threads(n), ..config() });
            assert!(largest_difference(found.u(), expected.u()) < 1e-9);
            assert_eq!(found.ranks().unwrap().n_ranks, n);
            assert_eq!(found.nonlinear().unwrap().iterations, expected.nonlinear().unwrap().iterations);
        }
    }
    // More ranks than cells.
    let few = in_plane(1, SquareSplit::Quadrilateral);
    let of = |ranks| solved(&diffusion(&few, 3), &SolverConfig { ranks, ..config() });
    assert!(largest_difference(of(Ranks::One).u(), of(Ranks::Threads(4)).u()) < 1e-9);
}

#[test]
fn integrals_over_interior_facets_are_divided_among_ranks() {
    // The jump of the normal derivative is penalised: rows have the unknowns of two layers of cells.
    let text = "unknown = { u = {} }\ncells = { flux = \"grad(u)\", source = \"sin(5*x) - u\" }\n\
        [interior]\nflux = \"0.1*(grad(u).normal - grad(u_other).normal)*normal\"\n\
        flux_other = \"-0.1*(grad(u).normal - grad(u_other).normal)*normal\"\n";
    let solver = SolverConfig {
        method: Method::Gmres { restart: 200 },
        preconditioner: PreconditionerConfig::Jacobi,
        ..config()
    };
    let (triangles, cubes) = (in_plane(5, SquareSplit::Triangles), in_space(3, BoxSplit::Hexahedron));
    for (mesh, degree) in [(&triangles, 1), (&triangles, 2), (&cubes, 1)] {
        let mut penalised = problem(mesh, Equation::from_toml("own", text).unwrap(), degree);
        penalised.dirichlet("x < 1e-9", &[Some(Value::from("y"))]).unwrap();
        let expected = solved(&penalised, &solver);
        for n in [2, 3, 4] {
            let found = solved(&penalised, &SolverConfig { ranks: Ranks::Threads(n), ..solver.clone() });
            assert!(largest_difference(found.u(), expected.u()) < 1e-9, "{degree}, {n} ranks");
        }
        let plain = text.split("[interior]").next().unwrap();
        let mut plain = problem(mesh, Equation::from_toml("own", plain).unwrap(), degree);
        plain.dirichlet("x < 1e-9", &[Some(Value::from("y"))]).unwrap();
        assert!(largest_difference(solved(&plain, &config()).u(), expected.u()) > 1e-4);
    }
}

/// The p-Laplacian of a function of x with a source of one: u = (1 − 1/p) (2^{−q} − |x − 1/2|^q) with q = p/(p − 1).
#[test]
fn the_energy_of_the_p_laplacian_is_minimised() {
    for p in [1.5, 3.0, 4.0] {
        let exact =
            |x: f64| (1.0 - 1.0 / p) * (0.5_f64.powf(p / (p - 1.0)) - (x - 0.5).abs().powf(p / (p - 1.0)));
        let error = |n: usize| {
            let mesh = in_plane(n, SquareSplit::Quadrilateral);
            let mut problem = problem(&mesh, equations::p_laplacian(), 1);
            for (name, value) in [("p", p), ("epsilon", 1e-4), ("source", 1.0)] {
                problem.scalar(name, &Value::from(value)).unwrap();
            }
            // At zero the tangent is nearly zero.
            problem.initial(&[Value::from("x*(1 - x)")]).unwrap();
            for side in ["xmin", "xmax"] {
                problem.dirichlet(side, &[Some(Value::from(0))]).unwrap();
            }
            let found = solved(&problem, &config());
            let values = [0.25, 0.5].map(|x| (found.value_at([x, 0.5, 0.0]).unwrap()[0] - exact(x)).abs());
            values[0].max(values[1])
        };
        let [coarse, fine] = [8, 32].map(error);
        assert!(fine < 0.2 * coarse && fine < 2e-3, "p = {p}: {coarse:e} {fine:e}");
    }
}

/// Lateral stretch a of a Neo-Hookean body with a stretch b along x and free sides: μ(a² − 1) + λ log(b a²) = 0.
fn lateral(mu: f64, lambda: f64, b: f64) -> f64 {
    let stress = |a: f64| mu * (a * a - 1.0) + lambda * (b * a * a).ln();
    let (mut low, mut high) = (1e-3, 2.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if stress(middle) > 0.0 { high = middle } else { low = middle }
    }
    low
}

/// A cube that is stretched along x by `1 + stretch` with free sides.
fn stretched<'m>(
    mesh: &'m Mesh,
    degree: usize,
    continuation: Option<Continuation>,
    stretch: &str,
) -> FormProblem<'m> {
    let mut body = problem(mesh, equations::neo_hooke(), degree);
    if let Some(continuation) = continuation {
        body = body.continuation(continuation);
    }
    body.scalar("mu", &Value::from(2.0)).unwrap();
    body.scalar("lambda", &Value::from(3.0)).unwrap();
    for (component, side) in ["xmin", "ymin", "zmin"].into_iter().enumerate() {
        body.dirichlet(side, &only(component, 3, 0)).unwrap();
    }
    body.dirichlet("xmax", &only(0, 3, stretch)).unwrap();
    body
}

#[test]
fn a_cube_is_stretched_to_three_times_its_length_in_load_steps() {
    let a = lateral(2.0, 3.0, 3.0) - 1.0;
    let tetrahedra = in_space(2, BoxSplit::Kuhn);
    let cubes = in_space(3, BoxSplit::Hexahedron);
    let steps = Continuation { steps: 4, ..Continuation::default() };
    for (mesh, degree) in [(&tetrahedra, 1), (&tetrahedra, 2), (&cubes, 1), (&cubes, 2)] {
        let body = stretched(mesh, degree, Some(steps), "2*t");
        for ranks in [Ranks::One, Ranks::Threads(2)] {
            let found = solved(&body, &SolverConfig { ranks, ..config() });
            for point in [[1.0, 1.0, 1.0], [0.5, 0.25, 0.75]] {
                let u = found.value_at(point).unwrap();
                let expected = [2.0 * point[0], a * point[1], a * point[2]];
                assert!(largest_difference(&u, &expected) < 1e-7, "{u:?} {expected:?}");
            }
            let times: Vec<f64> = found.load_steps().iter().map(|step| step.time).collect();
            assert_eq!(times, [0.25, 0.5, 0.75, 1.0]);
            assert_eq!(found.preconditioner(), "amg");
            assert!(!found.citations().contains(&"saad1986"), "gmres for an energy");
            // The density is the same everywhere, and the force along x is its derivative by the stretch.
            let (b, c) = (3.0_f64, 1.0 + a);
            let log_j = (b * c * c).ln();
            let energy = (b * b + 2.0 * c * c - 3.0) - 2.0 * log_j + 1.5 * log_j * log_j;
            assert!((found.energy().unwrap() - energy).abs() < 1e-7);
        }
    }
}

#[test]
fn a_step_that_is_too_long_is_halved() {
    let mesh = in_space(2, BoxSplit::Hexahedron);
    // To a fifth of the length in one step: the linear prediction turns cells inside out.
    let steps = |max_halvings| Some(Continuation { steps: 1, max_halvings });
    let nonlinear = NonlinearConfig { max_iterations: 4, ..config().nonlinear };
    let few = SolverConfig { nonlinear, ..config() };
    let found = solved(&stretched(&mesh, 1, steps(8), "-0.8*t"), &few);
    let times: Vec<f64> = found.load_steps().iter().map(|step| step.time).collect();
    assert!(times.len() > 1 && times.is_sorted() && times.last() == Some(&1.0), "{times:?}");
    let a = lateral(2.0, 3.0, 0.2) - 1.0;
    assert!((found.value_at([1.0, 1.0, 1.0]).unwrap()[1] - a).abs() < 1e-7);
    let error = solve(&stretched(&mesh, 1, steps(0), "-0.8*t"), &few).unwrap_err().to_string();
    assert!(error.starts_with("continuation.steps: the load step from t = 0 to t = 1 does not"), "{error}");
}

/// Asks for a stop once a number of iterations was reported.
struct StopAfter(std::sync::atomic::AtomicUsize);

impl Progress for StopAfter {
    fn iteration(&mut self, _: usize, _: f64, _: f64) {
        let left = self.0.get_mut();
        *left = left.saturating_sub(1);
    }

    fn is_interrupted(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) == 0
    }
}

#[test]
fn an_interruption_leaves_the_iterate_of_its_load_step() {
    let mesh = in_space(2, BoxSplit::Hexahedron);
    let body = stretched(&mesh, 1, Some(Continuation { steps: 4, ..Continuation::default() }), "2*t");
    let whole = solved(&body, &config());
    let first = whole.load_steps()[0].iterations;
    let mut progress = StopAfter((first + 3).into());
    let stages = &mut Stages::new(&mut progress);
    let found = body.solve(&Cpu::new(1).unwrap(), &config(), None, stages).unwrap();
    assert_eq!(found.outcome().stop, Stop::Interrupted);
    assert_eq!((found.load_steps().len(), found.time(), whole.time()), (1, 0.5, 1.0));
    assert!((found.value_at([1.0, 1.0, 1.0]).unwrap()[0] - 1.0).abs() < 1e-12);
}

/// The equation of Bratu with λ = 10 t has no solution beyond t = 0.6808.
#[test]
fn load_steps_end_at_a_turning_point_and_name_it() {
    let mesh = in_plane(16, SquareSplit::Triangles);
    let bratu = |lambda: &str, continuation: Option<Continuation>| {
        let mut problem = problem(&mesh, equations::bratu(), 1);
        if let Some(continuation) = continuation {
            problem = problem.continuation(continuation);
        }
        problem.scalar("lambda", &Value::from(lambda)).unwrap();
        problem.dirichlet("all", &[Some(Value::from(0))]).unwrap();
        problem
    };
    let steps = Some(Continuation { steps: 5, max_halvings: 3 });
    for ranks in [Ranks::One, Ranks::Threads(2)] {
        let config = SolverConfig { ranks, ..config() };
        let error = solve(&bratu("10*t", steps), &config).unwrap_err().to_string();
        let begin = "continuation.steps: the load step from t = ";
        let time: f64 = error.strip_prefix(begin).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((0.6..0.681).contains(&time) && error.contains("nonlinear iteration"), "{error}");
        // Without steps it is the outcome, with the last iterate and a reason.
        let found = solve(&bratu("10", None), &config).unwrap();
        assert_ne!(found.outcome().stop, Stop::Converged);
        assert!(found.u().iter().all(|u| u.is_finite()) && found.u().len() == 17 * 17);
        let said = found.warnings().join("; ");
        assert!(said.contains("nonlinear iteration") && said.contains("where u is"), "{said}");
    }
    let found = solved(&bratu("6.7*t", steps), &config());
    assert!((found.value_at([0.5, 0.5, 0.0]).unwrap()[0] - 1.2).abs() < 0.15);
}

#[test]
fn a_first_function_without_a_residual_on_one_rank_ends_the_solve_on_all() {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mesh = in_plane(8, SquareSplit::Triangles);
        let text = "unknown = { u = {} }\ncells = { flux = \"grad(u)\", source = \"log(u)\" }";
        let mut problem = problem(&mesh, Equation::from_toml("own", text).unwrap(), 1);
        problem.initial(&[Value::from("x - 0.5")]).unwrap();
        problem.dirichlet("all", &[Some(Value::from(1))]).unwrap();
        let told = |ranks| {
            let found = solve(&problem, &SolverConfig { ranks, ..config() });
            found.map(|_| ()).map_err(|error| error.to_string())
        };
        sender.send([Ranks::One, Ranks::Threads(2)].map(told)).unwrap();
    });
    let [one, two] = receiver.recv_timeout(std::time::Duration::from_secs(120)).expect("the ranks end");
    assert_eq!(one.is_ok(), two.is_ok(), "{one:?} {two:?}");
}

#[test]
fn a_residual_without_a_value_names_cell_point_and_inputs() {
    let mesh = in_plane(3, SquareSplit::Quadrilateral);
    let of = |offset: f64, initial: f64| {
        let mut problem = problem(&mesh, equations::root(), 1);
        problem.scalar("offset", &Value::from(offset)).unwrap();
        problem.initial(&[Value::from(initial)]).unwrap();
        problem.dirichlet("xmin", &[Some(Value::from(initial))]).unwrap();
        problem
    };
    for ranks in [Ranks::One, Ranks::Threads(3)] {
        let config = SolverConfig { ranks, ..config() };
        let error = solve(&of(-1.0, 0.5), &config).unwrap_err().to_string();
        for part in ["the integral over the cells is NaN in cell", "u = 0.5", "it must be finite everywhere"]
        {
            assert!(error.contains(part), "{error}");
        }
        // The tangent alone has none.
        let error = solve(&of(0.0, 0.0), &config).unwrap_err().to_string();
        assert!(error.contains("is inf in cell"), "{error}");
        let found = solved(&of(0.0, 0.5), &config);
        let right = found.value_at([1.0, 0.5, 0.0]).unwrap()[0];
        assert!(right > 0.55 && right < 1.0, "{right}");
    }
}

#[test]
fn a_linear_form_is_solved_once_also_with_load_steps() {
    let mesh = in_space(3, BoxSplit::Hexahedron);
    let beam = |continuation: Option<Continuation>, load: &str| {
        let mut beam = problem(&mesh, Equation::named("elasticity").unwrap(), 2);
        if let Some(continuation) = continuation {
            beam = beam.continuation(continuation);
        }
        beam.scalar("young", &Value::from(1.0)).unwrap();
        beam.scalar("poisson", &Value::from(0.3)).unwrap();
        beam.dirichlet("xmin", &[0, 0, 0].map(|zero| Some(Value::from(zero)))).unwrap();
        let traction = ["0", "0", load].map(Value::from);
        beam.vector_on_boundary("traction", "xmax", &traction).unwrap();
        beam
    };
    let once = solved(&beam(None, "0.25*y"), &config());
    let in_steps = solved(&beam(Some(Continuation::default()), "0.25*t*y"), &config());
    assert_eq!(once.u(), in_steps.u());
    assert_eq!(once.outcome().iterations, in_steps.outcome().iterations);
    assert!(in_steps.nonlinear().is_none() && in_steps.load_steps().is_empty());
    let (a, b) = (once.facet_fluxes().unwrap(), in_steps.facet_fluxes().unwrap());
    assert_eq!(a, b);
    // Without load steps t is no name.
    let mut still = problem(&mesh, Equation::named("elasticity").unwrap(), 1);
    assert!(still.scalar("young", &Value::from("1 + t")).unwrap_err().to_string().contains("t, the time"));
}

#[test]
fn settings_that_nonlinear_forms_do_not_take_are_named() {
    let mesh = in_plane(3, SquareSplit::Triangles);
    let told = |config: &SolverConfig| solve(&diffusion(&mesh, 1), config).unwrap_err().to_string();
    let nonlinear = NonlinearConfig { method: NonlinearMethod::Picard, ..NonlinearConfig::default() };
    let picard = told(&SolverConfig { nonlinear, ..config() });
    assert!(picard.starts_with("solver.nonlinear: ") && picard.contains("newton"), "{picard}");
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    let on_ranks = told(&SolverConfig { ranks: Ranks::Threads(2), preconditioner: amg, ..config() });
    assert!(on_ranks.starts_with("solver.preconditioner: the matrix is not symmetric"), "{on_ranks}");
    let mut free = problem(&mesh, equations::diffusion(), 1);
    let message = solve(&free, &config()).unwrap_err().to_string();
    assert!(message.starts_with("boundary: nothing determines u"), "{message}");
    let none = Continuation { steps: 0, ..Continuation::default() };
    free = diffusion(&mesh, 1).continuation(none);
    assert!(solve(&free, &config()).unwrap_err().to_string().starts_with("continuation.steps: 0 steps"));
    let wrong = free.initial(&[Value::from(0), Value::from(1)]).unwrap_err().to_string();
    assert!(wrong.starts_with("equation.initial: 2 entries"), "{wrong}");
    let gmres = Method::Gmres { restart: 30 };
    let found = solved(&diffusion(&mesh, 1), &SolverConfig { method: gmres, ..config() });
    assert!(found.citations().contains(&"saad1986"));
}
