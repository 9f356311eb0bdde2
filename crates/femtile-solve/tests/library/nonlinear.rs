//! Equations whose coefficients depend on u, without time.

use femtile_expression::{Expression, Variable};
use femtile_linalg::krylov::Stop;
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_solve::{
    AmgOptions, DeviceChoice, Method, NonlinearConfig, NonlinearMethod, Poisson, PreconditionerConfig,
    Solution, SolverConfig, Value,
};

pub fn config(method: NonlinearMethod) -> SolverConfig {
    let nonlinear = NonlinearConfig { method, tolerance: 1e-11, ..NonlinearConfig::default() };
    SolverConfig { device: DeviceChoice::Cpu, threads: 2, nonlinear, ..SolverConfig::default() }
}

pub fn in_plane(n: usize, split: SquareSplit) -> Mesh {
    square(&SquareConfig { cells: [n, n], split, ..SquareConfig::default() }).unwrap()
}

pub fn in_space(n: usize, split: BoxSplit) -> Mesh {
    box_mesh(&BoxConfig { cells: [n; 3], split, ..BoxConfig::default() }).unwrap()
}

fn parse(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

/// The solution of the manufactured problem.
const EXACT: &str = "1 + 0.5*sin(2*x + y) + 0.2*y*z";

/// $-\nabla\cdot((1 + u^2)\nabla u) + (u - 1) u = f - u^3$ with the solution `EXACT`, given on the boundary or with every kind
/// of condition.
fn manufactured(mesh: &Mesh, degree: usize, has_all_kinds: bool) -> Poisson<'_> {
    let d = mesh.dimension();
    let u = parse(&if d == 2 { EXACT.replace("y*z", "0") } else { EXACT.into() });
    let sigma = &parse("1") + &(&u * &u);
    let axes = [Variable::X, Variable::Y, Variable::Z];
    let flux: Vec<Expression> = axes[..d].iter().map(|&axis| &sigma * &u.derivative(axis)).collect();
    let divergence = flux.iter().zip(axes).map(|(q, axis)| q.derivative(axis));
    let divergence = divergence.reduce(|a, b| &a + &b).unwrap();
    let reaction = &(&(&u - &parse("1")) * &u) + &(&(&u * &u) * &u);
    let source = &reaction - &divergence;
    let problem = Poisson::new(mesh)
        .degree(degree)
        .sigma("1 + u^2")
        .lambda("u - 1")
        .source(format!("{source} - u^3"))
        .initial(1.0);
    if !has_all_kinds {
        return problem.dirichlet("all", u.to_string()).unwrap();
    }
    let mut problem = problem
        .dirichlet("xmin", u.to_string())
        .unwrap()
        .neumann("xmax", flux[0].to_string())
        .unwrap()
        .neumann("ymin", format!("-({})", flux[1]))
        .unwrap()
        .robin("ymax", 2.0, format!("{u} + ({})/2", flux[1]))
        .unwrap();
    if d == 3 {
        problem =
            problem.dirichlet("zmin", u.to_string()).unwrap().neumann("zmax", flux[2].to_string()).unwrap();
    }
    problem
}

fn solved<'m>(problem: &Poisson<'m>, config: &SolverConfig) -> Solution<'m> {
    let solution = problem.solve(config).unwrap();
    assert!(solution.has_converged(), "{:?} {:?}", solution.nonlinear(), solution.warnings());
    solution
}

fn error(problem: &Poisson<'_>, d: usize) -> f64 {
    let solution = solved(problem, &config(NonlinearMethod::Newton));
    let exact = if d == 2 { EXACT.replace("y*z", "0") } else { EXACT.into() };
    solution.component(0).error_l2(&parse(&exact)).unwrap()
}

#[test]
fn errors_fall_by_one_order_more_than_the_degree_with_every_condition_and_element() {
    for has_all_kinds in [false, true] {
        for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
            for degree in 1..=if split == SquareSplit::Triangles { 1 } else { 3 } {
                let n = [0, 12, 5, 3][degree];
                let meshes = [n, 2 * n].map(|n| in_plane(n, split));
                let [coarse, fine] =
                    meshes.each_ref().map(|mesh| error(&manufactured(mesh, degree, has_all_kinds), 2));
                let order = (coarse / fine).log2();
                let expected = degree as f64 + 1.0;
                assert!(
                    (order - expected).abs() < 0.25,
                    "{split:?} of degree {degree}: {coarse:e} {fine:e}, order {order}"
                );
            }
        }
        for (split, degree, n) in [(BoxSplit::Kuhn, 1, 4), (BoxSplit::Hexahedron, 2, 2)] {
            let meshes = [n, 2 * n].map(|n| in_space(n, split));
            let [coarse, fine] =
                meshes.each_ref().map(|mesh| error(&manufactured(mesh, degree, has_all_kinds), 3));
            let (order, expected) = ((coarse / fine).log2(), degree as f64 + 1.0);
            assert!((order - expected).abs() < 0.35, "{split:?}: {coarse:e} {fine:e}, order {order}");
        }
    }
}

#[test]
fn residuals_of_newton_fall_quadratically_and_those_of_picard_linearly() {
    let mesh = in_plane(16, SquareSplit::Triangles);
    let problem = manufactured(&mesh, 1, true);
    let newton = solved(&problem, &config(NonlinearMethod::Newton));
    let report = newton.nonlinear().unwrap();
    assert_eq!(report.method.name(), "newton");
    assert_eq!(report.residuals.len(), report.iterations + 1);
    // The last step is no more accurate than the tolerance asks for.
    let [.., a, b, c, _] = report.residuals[..] else { panic!("{report:?}") };
    assert!(b < 20.0 * a * a && c < 20.0 * b * b && c < 1e-6, "{report:?}");
    assert!(report.iterations <= 7, "{report:?}");
    let problem = Poisson::new(&mesh).sigma("1 + 0.5*sin(3*u)").lambda("1 + u^2").source("20 - u");
    let problem = problem.dirichlet("xmin", 0.0).unwrap();
    let newton = solved(&problem, &config(NonlinearMethod::Newton));
    let picard = solved(&problem, &config(NonlinearMethod::Picard));
    let report = picard.nonlinear().unwrap();
    assert!(report.iterations > 8, "{report:?}");
    let [.., a, b, c] = report.residuals[..] else { panic!("{report:?}") };
    assert!((c / b) / (b / a) < 5.0 && (c / b) / (b / a) > 0.2, "{report:?}");
    let distance = newton.values().iter().zip(picard.values()).map(|(a, b)| (a - b).abs());
    assert!(distance.fold(0.0, f64::max) < 1e-9);
}

/// A strip with a sliver beside its left side, whose large entries make the right side of the linearization large.
fn strip_with_a_sliver() -> Mesh {
    let config = SquareConfig { cells: [20, 2], upper: [1.0, 1e-3], ..SquareConfig::default() };
    let mut mesh = square(&config).unwrap();
    mesh.points[22][0] = 5e-5;
    mesh
}

#[test]
fn a_first_guess_far_away_is_not_the_solution_however_small_its_residual_is_beside_a_sliver() {
    let mesh = strip_with_a_sliver();
    // u = 0.75 + x / 2.
    let problem = Poisson::new(&mesh).sigma("1 + u").source(-0.25).initial(0.75);
    let problem = problem.dirichlet("xmin", 0.75).unwrap().neumann("xmax", 1.125).unwrap();
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    for method in [NonlinearMethod::Newton, NonlinearMethod::Picard] {
        let jacobi = [1e-4, 1e-6, 1e-8].map(|tolerance| (tolerance, PreconditionerConfig::Jacobi));
        for (tolerance, preconditioner) in jacobi.into_iter().chain([(1e-8, amg.clone())]) {
            let nonlinear = NonlinearConfig { method, tolerance, ..NonlinearConfig::default() };
            let found = solved(&problem, &SolverConfig { nonlinear, preconditioner, ..config(method) });
            let error = (found.max() - 1.25).abs();
            assert!(error < 20.0 * tolerance, "{} {tolerance:e}: {error:e}", method.name());
        }
    }
}

#[test]
fn preconditioners_methods_and_threads_give_the_same_solution() {
    for (mesh, degree) in [(in_space(5, BoxSplit::Kuhn), 1), (in_plane(8, SquareSplit::Quadrilateral), 1)] {
        let problem = manufactured(&mesh, degree, true);
        let expected = solved(&problem, &config(NonlinearMethod::Newton));
        let amg = PreconditionerConfig::Amg(AmgOptions::default());
        for preconditioner in [PreconditionerConfig::Jacobi, PreconditionerConfig::None, amg] {
            let config = SolverConfig { preconditioner, ..config(NonlinearMethod::Newton) };
            let found = solved(&problem, &config);
            let distance = found.values().iter().zip(expected.values()).map(|(a, b)| (a - b).abs());
            assert!(distance.fold(0.0, f64::max) < 1e-8);
            // One number of threads gives the bits of another.
            let alone = solved(&problem, &SolverConfig { threads: 1, ..config });
            assert_eq!(alone.values(), found.values());
        }
    }
}

#[test]
fn a_semilinear_equation_keeps_conjugate_gradients() {
    let mesh = in_plane(12, SquareSplit::Triangles);
    let problem = Poisson::new(&mesh).source("1 - u^3").dirichlet("all", 0.0).unwrap();
    let solution = solved(&problem, &config(NonlinearMethod::Newton));
    assert!(!solution.citations().contains(&"saad1986") && solution.citations().contains(&"eisenstat1996"));
    let quasilinear = Poisson::new(&mesh).sigma("1 + u^2").source(1.0).dirichlet("all", 0.0).unwrap();
    let solution = solved(&quasilinear, &config(NonlinearMethod::Newton));
    assert!(solution.citations().contains(&"saad1986"), "{:?}", solution.citations());
}

#[test]
fn the_equation_of_bratu_has_a_solution_up_to_its_turning_point() {
    // −Δu = c eᵘ on the unit square: c = 6.808 at the turning point, where u reaches 1.39.
    let mesh = in_plane(24, SquareSplit::Triangles);
    let problem = |c: f64| Poisson::new(&mesh).source(format!("{c}*exp(u)")).dirichlet("all", 0.0).unwrap();
    let solution = solved(&problem(1.0), &config(NonlinearMethod::Newton));
    assert!((solution.max() - 0.0781).abs() < 2e-4, "{}", solution.max());
    let solution = solved(&problem(6.7), &config(NonlinearMethod::Newton));
    assert!(solution.max() > 1.1 && solution.max() < 1.39, "{}", solution.max());
    let beyond = problem(7.5).solve(&config(NonlinearMethod::Newton)).unwrap();
    assert!(!beyond.has_converged());
    assert_ne!(beyond.outcome().stop, Stop::Converged);
    let said = beyond.warnings().join("; ");
    assert!(said.contains("nonlinear iteration") && said.contains("where u is"), "{said}");
}

#[test]
fn a_linearization_that_is_not_positive_definite_is_left_to_gmres() {
    // −Δu − 40 u = 1 − u³: its linearization at zero has negative eigenvalues, 2π² − 40 and 5π² − 40 of the square.
    let mesh = in_plane(12, SquareSplit::Triangles);
    let problem = Poisson::new(&mesh).lambda("-40 + 0*u").source("1 - u^3").dirichlet("all", 0.0).unwrap();
    for preconditioner in [PreconditionerConfig::Jacobi, PreconditionerConfig::Amg(AmgOptions::default())] {
        let config = SolverConfig { preconditioner, ..config(NonlinearMethod::Newton) };
        let solution = solved(&problem, &config);
        let gmres = SolverConfig { method: Method::Gmres { restart: 40 }, ..config };
        let expected = solved(&problem, &gmres);
        let residual = solution.nonlinear().unwrap().residuals.last().copied().unwrap();
        assert!(residual < 1e-11);
        let difference = (solution.max().abs() - expected.max().abs()).abs();
        assert!(difference < 1e-6, "{} {}", solution.max(), expected.max());
    }
}

#[test]
fn values_by_tag_and_tensors_may_depend_on_u() {
    let mut mesh = in_plane(8, SquareSplit::Triangles);
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(mesh.middle(cell)[0] > 0.5)).collect();
    let uniform = Poisson::new(&mesh).sigma("1 + u^2").source(1.0).dirichlet("all", "x").unwrap();
    let expected = solved(&uniform, &config(NonlinearMethod::Newton));
    let by_tag = Value::by_tag([("0", "1 + u^2"), ("1", "u^2 + 1")]);
    let entry = |text: &str| femtile_solve::Entry::Text(text.into());
    let tensor = Value::Tensor(vec![vec![entry("1 + u^2"), entry("0")], vec![entry("0"), entry("1 + u^2")]]);
    for sigma in [by_tag, tensor] {
        let problem = Poisson::new(&mesh).sigma(sigma).source(1.0).dirichlet("all", "x").unwrap();
        let found = solved(&problem, &config(NonlinearMethod::Newton));
        let distance = found.values().iter().zip(expected.values()).map(|(a, b)| (a - b).abs());
        assert!(distance.fold(0.0, f64::max) < 1e-10);
    }
}

#[test]
fn fluxes_balance_source_and_reaction() {
    for (mesh, degree) in
        [(in_plane(8, SquareSplit::Triangles), 1), (in_plane(4, SquareSplit::Quadrilateral), 2)]
    {
        let solution = solved(&manufactured(&mesh, degree, true), &config(NonlinearMethod::Newton));
        let u = solution.component(0);
        let inner = u.reaction_integral().unwrap() - u.source_integral().unwrap();
        let through = solution.flux(0, "all").unwrap();
        assert!((inner - through).abs() < 1e-9 * inner.abs(), "{inner} {through}");
        assert!(solution.recovered_gradient(0).unwrap().flux_density().is_ok());
        assert!(solution.error_estimate().unwrap().total > 0.0);
    }
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let mesh = in_plane(4, SquareSplit::Triangles);
    let quadrilaterals = in_plane(4, SquareSplit::Quadrilateral);
    let base = || Poisson::new(&mesh).source(1.0).dirichlet("all", 0.0).unwrap();
    let of = |problem: Poisson<'_>, config: &SolverConfig| problem.solve(config).unwrap_err().to_string();
    let plain = config(NonlinearMethod::Newton);
    // The conductivity at the first iterate, with cell, point and u.
    let said = of(base().sigma("u - 1"), &plain);
    assert!(said.contains("sigma") && said.contains("cell") && said.contains("where u is 0"), "{said}");
    let said = of(base().source("log(u)"), &plain);
    assert!(said.contains("source is -inf in cell") && said.contains("where u is 0"), "{said}");
    // Names where they have no meaning.
    let said = of(Poisson::new(&mesh).source(1.0).dirichlet("all", "u").unwrap(), &plain);
    assert!(said.contains("boundary[0].dirichlet") && said.contains("u, the solution"), "{said}");
    let said = of(base().sigma("1 + t*u"), &plain);
    assert!(said.contains("equation.sigma") && said.contains("t, the time"), "{said}");
    // Nothing fixes the level of u.
    let said = of(Poisson::new(&mesh).sigma("1 + u^2").neumann("all", "x - 0.5").unwrap(), &plain);
    assert!(said.contains("boundary") && said.contains("fixes the level"), "{said}");
    // Settings that linearizations do not take.
    let problem = Poisson::new(&quadrilaterals).sigma("1 + u^2").source(1.0).dirichlet("all", 0.0).unwrap();
    let gmg = SolverConfig { preconditioner: PreconditionerConfig::Gmg(Default::default()), ..plain.clone() };
    assert!(of(problem.clone(), &gmg).contains("\"amg\" or \"jacobi\""));
    let free = SolverConfig { operator: femtile_solve::OperatorKind::MatrixFree, ..plain.clone() };
    assert!(of(problem.clone(), &free).contains("solver.operator"));
    let said = of(problem.components(2), &plain);
    assert!(said.contains("equation.sigma") && said.contains("u, the solution"), "{said}");
    for nonlinear in [
        NonlinearConfig { tolerance: 1.5, ..NonlinearConfig::default() },
        NonlinearConfig { max_iterations: 0, ..NonlinearConfig::default() },
    ] {
        let said = of(base().sigma("1 + u^2"), &SolverConfig { nonlinear, ..plain.clone() });
        assert!(said.contains("solver.nonlinear_"), "{said}");
    }
}
