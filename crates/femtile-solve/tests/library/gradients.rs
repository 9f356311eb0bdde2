//! Gradients of functionals of forms against finite differences.

use std::sync::Arc;

use femtile_device::Cpu;
use femtile_form::{Argument, Coefficient, Equation};
use femtile_linalg::krylov::Stop;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{BoxSplit, SquareSplit};
use femtile_mesh::{CellSide, Field, Mesh};
use femtile_solve::{
    AmgOptions, Continuation, FormProblem, FormSolution, Functional, InterfaceFlux, Method, NonlinearConfig,
    NonlinearMethod, Periodic, PreconditionerConfig, Silent, SolveError, SolverConfig, Stages, Value,
};

use crate::equations;
use crate::nonlinear::{in_plane, in_space};

fn config() -> SolverConfig {
    let nonlinear = NonlinearConfig { tolerance: 1e-13, ..NonlinearConfig::default() };
    SolverConfig { tolerance: 1e-13, nonlinear, ..crate::nonlinear::config(NonlinearMethod::Newton) }
}

fn of_text(text: &str) -> Equation {
    Equation::from_toml("test", text).unwrap()
}

fn problem(mesh: &Mesh, equation: Equation, degree: usize) -> FormProblem<'_> {
    FormProblem::new(mesh, Arc::new(boundary_facets(mesh)), equation).degree(degree)
}

fn solved<'m>(problem: &FormProblem<'m>, config: &SolverConfig) -> FormSolution<'m> {
    let cpu = Cpu::new(config.threads).unwrap();
    let solution = problem.solve(&cpu, config, None, &mut Stages::new(&mut Silent)).unwrap();
    assert_eq!(solution.outcome().stop, Stop::Converged, "{:?}", solution.warnings());
    solution
}

fn gradient(
    solution: &FormSolution<'_>,
    functional: &Functional,
    name: &str,
) -> Result<Argument, SolveError> {
    Ok(solution.gradient(functional, &[name], &config(), &mut Silent)?.remove(0))
}

/// Compares the number that `entry` reads from a gradient with central differences of the functional of the problems with a
/// parameter that is changed by so much.
fn check<'m>(
    of: &dyn Fn(f64) -> FormProblem<'m>,
    functional: &Functional,
    name: &str,
    entry: &dyn Fn(&Argument) -> f64,
) {
    let config = match of(0.0).default_method().unwrap() {
        Method::Cg => config(),
        _ => SolverConfig { method: Method::Gmres { restart: 50 }, ..config() },
    };
    let solution = solved(&of(0.0), &config);
    let found = solution.gradient(functional, &[name], &config, &mut Silent).unwrap();
    let found = entry(&found[0]);
    let eps = 1e-3;
    let at = |change: f64| solved(&of(change), &config).integral(functional).unwrap();
    // The error is of fourth order.
    let central = |eps: f64| (at(eps) - at(-eps)) / (2.0 * eps);
    let expected = (4.0 * central(eps) - central(2.0 * eps)) / 3.0;
    let scale = expected.abs().max(1e-3 * solution.integral(functional).unwrap().abs());
    assert!(expected != 0.0 && (found - expected).abs() < 1e-6 * scale, "{name}: {found:e}, {expected:e}");
}

fn number(argument: &Argument) -> f64 {
    match argument {
        Argument::One(Coefficient::Constant(value)) => *value,
        other => panic!("{other:?}"),
    }
}

fn of_tag(tag: i32) -> impl Fn(&Argument) -> f64 {
    move |argument| match argument {
        Argument::One(Coefficient::ByTag(parts)) => number(&Argument::One(parts[&tag].clone())),
        other => panic!("{other:?}"),
    }
}

fn of_cell(at: usize) -> impl Fn(&Argument) -> f64 {
    move |argument| match argument {
        Argument::One(Coefficient::CellField(field)) => field.values[at],
        other => panic!("{other:?}"),
    }
}

/// A square whose right part has the tag 2, the rest 1.
fn in_two_parts(n: usize, split: SquareSplit) -> Mesh {
    let mut mesh = in_plane(n, split);
    let corners = mesh.cells.len() / mesh.n_cells();
    let is_right = |cell: &[u32]| cell.iter().all(|&node| mesh.points[node as usize][0] > 0.49);
    mesh.cell_tags = mesh.cells.chunks(corners).map(|cell| if is_right(cell) { 2 } else { 1 }).collect();
    mesh
}

const DIFFUSION: &str = r#"
    unknown = { u = {} }
    coefficients = { k = {}, c = { default = 1 } }
    cells = { flux = "k*grad(u)", source = "c*(1 + x)" }
    boundary = { outflow = { flux = "-k*c*u" } }
"#;

#[test]
fn conductivities_and_sources_of_linear_diffusion() {
    let meshes = [in_two_parts(5, SquareSplit::Triangles), in_two_parts(4, SquareSplit::Quadrilateral)];
    let misfit = Functional::new("(u - m)^2 + u*x").with("m", "0.1*x*y");
    for mesh in &meshes {
        let of = |k: Value, c: f64, degree: usize| {
            let mut problem = problem(mesh, of_text(DIFFUSION), degree);
            problem.scalar("k", &k).unwrap();
            problem.scalar("c", &Value::from(c)).unwrap();
            problem.dirichlet("xmin", &[Some(Value::from("0.3*y"))]).unwrap();
            problem.flux_on_boundary("xmax", "-k^2*u").unwrap();
            problem
        };
        let parts = |by: [f64; 2]| Value::by_tag([(1, by[0]), (2, by[1])]);
        for degree in [1, 2] {
            check(&|change| of(parts([2.0, 0.5 + change]), 1.0, degree), &misfit, "k", &of_tag(2));
            check(&|change| of(parts([2.0 + change, 0.5]), 1.0, degree), &misfit, "k", &of_tag(1));
        }
        check(&|change| of(parts([2.0, 0.5]), 1.0 + change, 2), &misfit, "c", &number);
        // The functional depends on the parameter itself, and a parameter may be zero.
        let explicit = Functional::new("k*grad(u).grad(u) + c*u");
        check(&|change| of(Value::from(2.0 + change), 1.0, 1), &explicit, "k", &number);
        check(&|change| of(Value::from(2.0), change, 1), &explicit, "c", &number);
        // A value for each cell, also where it is in the flux through the boundary.
        for cell in [0, 7, mesh.n_cells() - 1] {
            let field = |change: f64| {
                let values = |at: usize| 1.0 + 0.1 * at as f64 + if at == cell { change } else { 0.0 };
                let values = (0..mesh.n_cells()).map(values).collect();
                Value::from(Coefficient::CellField(Field { n_components: 1, values }))
            };
            check(&|change| of(field(change), 1.0, 2), &explicit, "k", &of_cell(cell));
        }
    }
}

#[test]
fn entries_of_vectors_and_tensors() {
    let mesh = in_two_parts(4, SquareSplit::Triangles);
    let text = r#"
        unknown = { u = {} }
        coefficients = { D = { shape = "tensor" }, b = { shape = "vector" } }
        cells = { flux = "D*grad(u) - b*u", source = "1 - b[0]*u" }
    "#;
    let of = |d: f64, b: f64| {
        let mut problem = problem(&mesh, of_text(text), 2);
        let tensor = |d: f64| Coefficient::Tensor([[1.0, d, 0.0], [0.2, 1.5, 0.0], [0.0, 0.0, 1.0]]);
        let by_tag = Coefficient::ByTag([(1, tensor(0.1)), (2, tensor(0.2 + d))].into());
        problem.tensor("D", &Value::from(by_tag)).unwrap();
        problem.vector("b", &[Value::from(1.0), Value::from(3.0 + b)]).unwrap();
        problem.dirichlet("all", &[Some(Value::from("x"))]).unwrap();
        problem
    };
    let functional = Functional::new("u^2*(1 + y)");
    check(&|change| of(change, 0.0), &functional, "D", &|found| match found {
        Argument::One(Coefficient::ByTag(parts)) => match parts[&2] {
            Coefficient::Tensor(tensor) => tensor[0][1],
            _ => f64::NAN,
        },
        _ => f64::NAN,
    });
    check(&|change| of(0.0, change), &functional, "b", &|found| match found {
        Argument::Vector(parts) => parts[1].as_constant().unwrap_or(f64::NAN),
        _ => f64::NAN,
    });
}

#[test]
fn nonlinear_diffusion_without_symmetry_by_diagonal_and_multigrid() {
    let mesh = in_two_parts(6, SquareSplit::Quadrilateral);
    let text = r#"
        unknown = { u = {} }
        coefficients = { k = {}, b = {} }
        define = "sigma = k*(1 + u^2)"
        cells = { flux = "sigma*grad(u) - b*[u^2, u]", source = "1 + x" }
    "#;
    let of = |change: f64| {
        let mut problem = problem(&mesh, of_text(text), 1);
        problem.scalar("k", &Value::by_tag([(1, 1.0), (2, 0.3 + change)])).unwrap();
        problem.scalar("b", &Value::from(0.7)).unwrap();
        problem.dirichlet("xmin", &[Some(Value::from("y"))]).unwrap();
        problem
    };
    let functional = Functional::new("sigma*u");
    assert!(of(0.0).default_method().unwrap() != Method::Cg);
    check(&of, &functional, "k", &of_tag(2));
    // Both preconditioners have the same answer.
    let solution = solved(&of(0.0), &config());
    let with = |preconditioner: PreconditionerConfig| {
        let config = SolverConfig { preconditioner, ..config() };
        solution.gradient(&functional, &["k", "b"], &config, &mut Silent).unwrap()
    };
    let [a, b] = [PreconditionerConfig::Jacobi, PreconditionerConfig::Amg(AmgOptions::default())].map(with);
    for tag in [1, 2] {
        let [a, b] = [&a, &b].map(|found| of_tag(tag)(&found[0]));
        assert!((a - b).abs() < 1e-10 * a.abs(), "{a} {b}");
    }
    assert!((number(&a[1]) - number(&b[1])).abs() < 1e-10);
}

#[test]
fn moduli_of_a_neo_hookean_body_in_load_steps() {
    let mesh = in_space(2, BoxSplit::Hexahedron);
    let steps = Continuation { steps: 2, ..Continuation::default() };
    let of = |mu: f64, lambda: f64| {
        let mut body = problem(&mesh, equations::neo_hooke(), 1).continuation(steps);
        body.scalar("mu", &Value::from(2.0 + mu)).unwrap();
        body.scalar("lambda", &Value::from(3.0 + lambda)).unwrap();
        body.dirichlet("xmin", &[0, 0, 0].map(|zero| Some(Value::from(zero)))).unwrap();
        let pull = [Value::from("0.4*t"), Value::from(0), Value::from("-0.2*t")];
        body.vector_on_boundary("traction", "xmax", &pull).unwrap();
        body
    };
    let functional = Functional::new("u.u + mu*(J - 1)^2");
    check(&|change| of(change, 0.0), &functional, "mu", &number);
    check(&|change| of(0.0, change), &functional, "lambda", &number);
    // Several parameters share the adjoint solve.
    let solution = solved(&of(0.0, 0.0), &config());
    let both = solution.gradient(&functional, &["lambda", "mu"], &config(), &mut Silent).unwrap();
    for (name, found) in ["lambda", "mu"].into_iter().zip(&both) {
        assert_eq!(found, &gradient(&solution, &functional, name).unwrap());
    }
}

/// Its tangent is not symmetric, and multigrid of the symmetric part takes the rigid motions.
#[test]
fn a_pressure_that_follows_the_surface_of_a_body() {
    let mesh = in_space(2, BoxSplit::Kuhn);
    let text = r#"
        unknown = { u = { components = "dimension" } }
        coefficients = { mu = {}, p = {} }
        define = "F = identity + grad(u); J = det(F)"
        cells = { energy = "mu/2*(tr(F'*F) - 3) - mu*log(J) + 2*log(J)^2" }
    "#;
    let of = |mu: f64, p: f64| {
        let mut body = problem(&mesh, of_text(text), 1);
        body.scalar("mu", &Value::from(2.0 + mu)).unwrap();
        body.scalar("p", &Value::from(0.3 + p)).unwrap();
        body.dirichlet("xmin", &[0, 0, 0].map(|zero| Some(Value::from(zero)))).unwrap();
        body.flux_on_boundary("zmax", "-p*J*inv(F)'*normal").unwrap();
        body
    };
    assert!(of(0.0, 0.0).default_method().unwrap() != Method::Cg);
    let functional = Functional::new("u[2] + u.u");
    check(&|change| of(0.0, change), &functional, "p", &number);
    check(&|change| of(change, 0.0), &functional, "mu", &number);
}

#[test]
fn equations_of_the_library_have_gradients() {
    let mesh = in_two_parts(4, SquareSplit::Triangles);
    let of = |change: f64| {
        let mut plate = problem(&mesh, Equation::named("elasticity").unwrap(), 2);
        plate.scalar("young", &Value::by_tag([(1, 100.0), (2, 50.0 + 10.0 * change)])).unwrap();
        plate.scalar("poisson", &Value::from(0.3)).unwrap();
        plate.dirichlet("xmin", &[Some(Value::from(0)), Some(Value::from(0))]).unwrap();
        plate.vector_on_boundary("traction", "xmax", &[Value::from(0), Value::from(1)]).unwrap();
        plate
    };
    check(&of, &Functional::new("u[1]*x"), "young", &|found| 10.0 * of_tag(2)(found));
}

#[test]
fn wrong_functionals_and_parameters_are_named() {
    let mesh = in_plane(3, SquareSplit::Triangles);
    let mut of = problem(&mesh, of_text(DIFFUSION), 1);
    of.scalar("k", &Value::from("1 + x")).unwrap();
    of.scalar("c", &Value::from(1.0)).unwrap();
    of.dirichlet("xmin", &[Some(Value::from(0))]).unwrap();
    let solution = solved(&of, &config());
    let told = |functional: &str, name: &str| {
        gradient(&solution, &Functional::new(functional), name).unwrap_err().to_string()
    };
    for (functional, name, expected) in [
        ("u*w", "c", "functional: unknown name `w`"),
        ("grad(u)", "c", "functional: "),
        ("u", "k", "parameter: `k` is a formula of the point"),
        ("u", "q", "parameter: no coefficient `q` was given a value; those with a value: k, c"),
    ] {
        let message = told(functional, name);
        if expected == "functional: " {
            assert!(message.contains("the functional needs a number"), "{message}");
        }
        assert!(message.starts_with(expected), "{message}");
    }
    let shared = Functional::new("u*k").with("k", 2.0);
    assert!(solution.integral(&shared).unwrap_err().to_string().contains("choose another name"));
    let unused = Functional::new("u").with("m", 2.0);
    assert!(solution.integral(&unused).unwrap_err().to_string().contains("no formula uses it"));
    let area = solution.integral(&Functional::new("m + 0*u").with("m", 2.0)).unwrap();
    assert!((area - 2.0).abs() < 1e-12);
    let few = SolverConfig { max_iterations: 1, ..config() };
    let mut flat = problem(&mesh, of_text(DIFFUSION), 1);
    flat.scalar("k", &Value::from(1)).unwrap();
    flat.dirichlet("xmin", &[Some(Value::from(0))]).unwrap();
    let ended = flat.at(solution.u(), 0.0).gradient(&Functional::new("u"), &["k"], &few, &mut Silent);
    assert!(ended.unwrap_err().to_string().starts_with("solver: the adjoint solve"));
}

#[test]
fn bodies_with_an_interface() {
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        let mut mesh = in_two_parts(4, split);
        let pairs: Vec<[CellSide; 2]> = mesh.facets_between([&[1], &[2]]).unwrap();
        mesh.split(&pairs).unwrap();
        let text = r#"
            unknown = { u = {} }
            coefficients = { k = {}, h = {} }
            cells = { flux = "k*grad(u)", source = "1 + x" }
        "#;
        for conductance in ["h*k", "h*(1 + u^2 + u_other)"] {
            let of = |k: f64, h: f64| {
                let boundary = Arc::new(boundary_facets(&mesh));
                let outer: Vec<usize> = (0..boundary.len())
                    .filter(|&i| {
                        let side = CellSide { cell: boundary.cells[i], local: boundary.local[i] };
                        !pairs.concat().contains(&side)
                    })
                    .collect();
                let mut facets = femtile_mesh::check::BoundaryFacets::default();
                for i in outer {
                    facets.push(&mesh, CellSide { cell: boundary.cells[i], local: boundary.local[i] });
                }
                let mut problem = FormProblem::new(&mesh, Arc::new(facets), of_text(text)).degree(2);
                problem.scalar("k", &Value::by_tag([(1, 2.0), (2, 0.5 + k)])).unwrap();
                problem.scalar("h", &Value::from(0.7 + h)).unwrap();
                let flux = InterfaceFlux::Conductance(conductance.to_owned());
                problem.interface(&pairs, &[("u", flux)], true);
                problem.dirichlet("x < 1e-9", &[Some(Value::from("0.3*y"))]).unwrap();
                problem.flux_on_boundary("x > 1 - 1e-9", "-u").unwrap();
                problem
            };
            let functional = Functional::new("(u - 0.1*x)^2 + k*u");
            check(&|change| of(0.0, change), &functional, "h", &number);
            check(&|change| of(change, 0.0), &functional, "k", &of_tag(2));
        }
    }
}

#[test]
fn bodies_with_sides_that_belong_together_and_floating_parts() {
    let meshes = [in_two_parts(4, SquareSplit::Triangles), in_two_parts(5, SquareSplit::Quadrilateral)];
    for mesh in &meshes {
        for flux in ["k*grad(u)", "k*(1 + u^2)*grad(u)", "k*grad(u) - [u, 0.3*u^2]"] {
            let text = format!(
                "unknown = {{ u = {{}} }}\ncoefficients = {{ k = {{}} }}\ncells = {{ flux = \"{flux}\", source = \"1 + x^2*y\" }}"
            );
            let of = |k: f64| {
                let mut problem = problem(mesh, of_text(&text), 2);
                problem.scalar("k", &Value::by_tag([(1, 2.0), (2, 0.5 + k)])).unwrap();
                let jump = Periodic { jump: vec![Value::from(0.4)], ..Periodic::default() };
                problem.periodic("ymin", "ymax", &jump).unwrap();
                problem.dirichlet("x < 1e-9", &[Some(Value::from("0.4*y"))]).unwrap();
                problem.floating("x > 0.99 && y > 0.35 && y < 0.85", &[Some(0.3)]).unwrap();
                problem
            };
            check(&of, &Functional::new("u^2*(1 + y) + k*u"), "k", &of_tag(2));
        }
    }
}
