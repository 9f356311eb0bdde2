//! Eigenvalues of forms: drums, bodies, and what is refused.

use std::f64::consts::PI;
use std::sync::Arc;

use femtile_device::Cpu;
use femtile_form::Equation;
use femtile_linalg::krylov::Stop;
use femtile_mesh::Mesh;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareSplit, box_mesh};
use femtile_solve::{
    DeviceChoice, FormProblem, FormSolution, PreconditionerConfig, Silent, SolveError, SolverConfig, Stages,
    Value,
};

use crate::nonlinear::in_plane;

fn problem<'m>(mesh: &'m Mesh, equation: &str, degree: usize) -> FormProblem<'m> {
    let equation = match Equation::text_of(equation) {
        Some(_) => Equation::named(equation),
        None => Equation::from_toml("own", equation),
    };
    FormProblem::new(mesh, Arc::new(boundary_facets(mesh)), equation.unwrap()).degree(degree)
}

fn config() -> SolverConfig {
    SolverConfig { device: DeviceChoice::Cpu, threads: 1, tolerance: 1e-8, ..SolverConfig::default() }
}

fn modes<'m>(problem: &FormProblem<'m>, count: usize) -> Result<FormSolution<'m>, SolveError> {
    problem.modes(count, &Cpu::new(1).unwrap(), &config(), None, &mut Stages::new(&mut Silent))
}

fn eigenvalues(problem: &FormProblem<'_>, count: usize) -> Vec<f64> {
    let solution = modes(problem, count).unwrap();
    let outcome = solution.outcome();
    assert_eq!(outcome.stop, Stop::Converged, "{:?} {:?}", outcome.residuals, solution.warnings());
    solution.modes().iter().map(|mode| mode.value).collect()
}

fn message(problem: &FormProblem<'_>, count: usize) -> String {
    modes(problem, count).map(|_| ()).unwrap_err().to_string()
}

fn zeros(n: usize) -> Vec<Option<Value>> {
    vec![Some(Value::from(0)); n]
}

#[test]
fn the_eigenvalues_of_a_drum_converge_with_twice_the_degree() {
    let exact = [2.0, 5.0, 5.0, 8.0].map(|sum| sum * PI * PI);
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        for degree in [1, 2] {
            let errors = [16, 32].map(|n| {
                let mesh = in_plane(n / degree, split);
                let mut drum = problem(&mesh, "diffusion", degree);
                drum.dirichlet("all", &zeros(1)).unwrap();
                let found = eigenvalues(&drum, 4);
                exact.iter().zip(found).map(|(exact, found)| (found - exact).abs()).fold(0.0, f64::max)
            });
            let order = (errors[0] / errors[1]).log2();
            assert!((order - 2.0 * degree as f64).abs() < 0.35, "{split:?} {degree}: {errors:?} {order}");
        }
    }
}

#[test]
fn a_free_body_has_six_zeros_and_then_the_frequencies_of_a_bar() {
    // A slender bar of steel-like ratios: bending in two planes, with the first root 4.7300 of a free beam.
    let length = 20.0;
    let mesh = BoxConfig {
        cells: [10, 1, 1],
        upper: [length, 1.0, 1.0],
        split: BoxSplit::Hexahedron,
        ..BoxConfig::default()
    };
    let mesh = box_mesh(&mesh).unwrap();
    let mut bar = problem(&mesh, "elasticity", 2);
    bar.scalar("young", &Value::from(200e9)).unwrap();
    bar.scalar("poisson", &Value::from(0)).unwrap();
    bar.density(&Value::from(8000)).unwrap();
    let found = eigenvalues(&bar, 9);
    assert!(found[..6].iter().all(|value| *value == 0.0), "{found:?}");
    let of_beam = (4.73004_f64 / length).powi(4) * 200e9 / 8000.0 / 12.0;
    for value in &found[6..8] {
        // Shear and rotation of the sections, which a thin beam has not, lower the frequency by a percent.
        assert!((value / of_beam - 1.0).abs() < 0.04 && *value < 1.01 * of_beam, "{value} {of_beam}");
    }
    assert!((found[6] / found[7] - 1.0).abs() < 1e-6);
    // The rigid motions alone.
    assert_eq!(eigenvalues(&bar, 3), [0.0; 3]);
}

#[test]
fn a_rod_held_at_one_end_has_the_frequencies_of_longitudinal_waves() {
    // Without lateral contraction and held against motion aside the rod has c = 1 and λ = ((2k − 1) π/2)².
    let mesh = box_mesh(&BoxConfig { cells: [8, 1, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() })
        .unwrap();
    let mut rod = problem(&mesh, "elasticity", 2);
    rod.scalar("young", &Value::from(1)).unwrap();
    rod.scalar("poisson", &Value::from(0)).unwrap();
    rod.dirichlet("all", &[None, Some(Value::from(0)), Some(Value::from(0))]).unwrap();
    rod.dirichlet("x < 1e-9", &zeros(3)).unwrap();
    let found = eigenvalues(&rod, 1);
    let exact = (PI / 2.0).powi(2);
    assert!((found[0] / exact - 1.0).abs() < 1e-4, "{found:?} {exact}");
}

#[test]
fn the_modes_are_orthonormal_and_take_each_preconditioner() {
    let mesh = in_plane(10, SquareSplit::Triangles);
    let own = "unknown = { u = {} }\ncells = { capacity = \"1 + x\", energy = \"grad(u).grad(u)/2\" }";
    let drum = problem(&mesh, own, 1);
    let of = |preconditioner: PreconditionerConfig| {
        let config = SolverConfig { preconditioner, ..config() };
        let (cpu, mut silent) = (Cpu::new(1).unwrap(), Silent);
        drum.modes(5, &cpu, &config, None, &mut Stages::new(&mut silent)).unwrap()
    };
    let (amg, jacobi) = (of(PreconditionerConfig::default()), of(PreconditionerConfig::Jacobi));
    assert!(amg.outcome().iterations < jacobi.outcome().iterations);
    assert_eq!(amg.modes()[0].value, 0.0);
    for (a, b) in amg.modes().iter().zip(jacobi.modes()) {
        assert!((a.value - b.value).abs() < 1e-9 * amg.modes()[4].value, "{} {}", a.value, b.value);
    }
    // The constant with ∫(1 + x) u² = 1.
    let constant = (1.0_f64 / 1.5).sqrt();
    assert!(amg.modes()[0].u.iter().all(|u| (u - constant).abs() < 1e-10));
}

#[test]
fn forms_without_modes_are_refused_with_the_reason() {
    let mesh = in_plane(3, SquareSplit::Triangles);
    let text = |cells: &str| format!("unknown = {{ u = {{}} }}\ncells = {{ {cells} }}");
    for (cells, told) in [
        ("energy = \"u^4 + grad(u).grad(u)\"", "linear form"),
        ("flux = \"grad(u)\", source = \"-[1, 0].grad(u)\"", "convection"),
        ("flux = \"grad(u)\", source = \"1 - u\"", "have no source"),
        ("flux = \"grad(u)\", source = \"-t*u\"", "depend on t"),
        ("flux = \"grad(u)\", capacity = \"x - 0.5\"", "not positive at (0, 0, 0)"),
    ] {
        let error = message(&problem(&mesh, &text(cells), 1), 2);
        assert!(error.contains(told), "{cells}: {error}");
    }
    let mut drum = problem(&mesh, "diffusion", 1);
    drum.dirichlet("all", &zeros(1)).unwrap();
    assert!(message(&drum, 5).contains("5 modes, where 4 unknowns are free: take 1 to 4"));
    assert_eq!(eigenvalues(&drum, 4).len(), 4);
    drum.dirichlet("x < 1e-9", &[Some(Value::from("y"))]).unwrap();
    assert!(message(&drum, 1).contains("value zero"));
    let mut well = problem(&mesh, "diffusion", 1);
    well.point_source([0.5, 0.5, 0.0], &[1.0]).unwrap();
    let error = message(&well, 1);
    assert!(error.contains("source[0]") && error.contains("sources at points"), "{error}");
    let mut body = problem(&mesh, "elasticity", 1);
    body.scalar("young", &Value::from(1)).unwrap();
    body.scalar("poisson", &Value::from(0)).unwrap();
    body.density(&Value::from(-1)).unwrap();
    let error = message(&body, 1);
    assert!(error.contains("equation.density") && error.contains("not positive"), "{error}");
    let pair = "unknown = { u = { components = 2 } }\ncells = { flux = \"grad(u)\", capacity = \"[1, 0]\" }";
    assert!(message(&problem(&mesh, pair, 1), 1).contains("component 1 has no capacity"));
    let skew = pair.replace("[1, 0]", "[[1, 0.5], [0, 1]]");
    assert!(message(&problem(&mesh, &skew, 1), 1).contains("symmetric"));
}

#[test]
fn a_reaction_that_is_negative_shifts_the_eigenvalues() {
    let mesh = in_plane(8, SquareSplit::Quadrilateral);
    for name in ["diffusion", "reaction-diffusion"] {
        let of = |lambda: f64, is_held: bool| {
            let mut drum = problem(&mesh, name, 1);
            drum.scalar("lambda", &Value::from(lambda)).unwrap();
            if is_held {
                drum.dirichlet("all", &zeros(1)).unwrap();
            }
            eigenvalues(&drum, 3)
        };
        for (without, shifted) in of(0.0, true).into_iter().zip(of(-5.0, true)) {
            assert!((without - 5.0 - shifted).abs() < 1e-6, "{name}: {without} {shifted}");
        }
        // Those of a free one are below zero.
        for (without, shifted) in of(1.0, false).into_iter().zip(of(-5.0, false)) {
            assert!((without - 6.0 - shifted).abs() < 1e-6, "{name}: {without} {shifted}");
        }
    }
}
