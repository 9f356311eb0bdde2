//! Coefficients given as closures, expressions, numbers and resolved coefficients are equivalent.

use femtile_fem::Coefficient;
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_solve::{Poisson, SolverConfig, Value, expression};

fn meshes() -> [Mesh; 4] {
    let in_space = |split| box_mesh(&BoxConfig { cells: [4, 3, 3], split, ..BoxConfig::default() }).unwrap();
    let in_plane = |split| square(&SquareConfig { cells: [5, 4], split, ..SquareConfig::default() }).unwrap();
    [
        in_space(BoxSplit::Kuhn),
        in_space(BoxSplit::Hexahedron),
        in_plane(SquareSplit::Triangles),
        in_plane(SquareSplit::Quadrilateral),
    ]
}

/// The solution with all data given by `value`, which gets a formula and the same as a closure.
fn solution(mesh: &Mesh, value: impl Fn(&'static str, fn([f64; 3]) -> f64) -> Value) -> Vec<f64> {
    let config = SolverConfig { tolerance: 1e-13, ..SolverConfig::default() };
    let problem = Poisson::new(mesh)
        .sigma(value("1 + x*y", |[x, y, _]| 1.0 + x * y))
        .lambda(value("0.5 + y", |[_, y, _]| 0.5 + y))
        .source(value("x*x - y", |[x, y, _]| x * x - y))
        .neumann("ymax", value("x - 2*y", |[x, y, _]| x - 2.0 * y))
        .unwrap()
        .robin("ymin", value("2 + x", |[x, _, _]| 2.0 + x), value("1 - x", |[x, _, _]| 1.0 - x))
        .unwrap()
        .dirichlet("xmin", value("y*y", |[_, y, _]| y * y))
        .unwrap();
    let solution = problem.solve(&config).unwrap();
    assert!(solution.has_converged());
    solution.values().to_vec()
}

fn agree(found: &[f64], expected: &[f64]) {
    let size = expected.iter().fold(0.0_f64, |most, value| value.abs().max(most));
    assert!(size > 0.1, "the solution is next to zero");
    let difference = found.iter().zip(expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
    assert!(difference <= 1e-11 * size, "{difference:e} of {size}");
}

#[test]
fn a_closure_an_expression_and_a_coefficient_give_the_same_solution() {
    for mesh in &meshes() {
        let expected = solution(mesh, |text, _| text.into());
        agree(&solution(mesh, |_, closure| closure.into()), &expected);
        let resolved = |text: &str| Coefficient::from(expression(text, &[]).unwrap());
        agree(&solution(mesh, |text, _| resolved(text).into()), &expected);
        agree(&solution(mesh, |text, _| String::from(text).into()), &expected);
        let other = solution(mesh, |text, closure| match text {
            "x*x - y" => (move |point| 2.0 * closure(point)).into(),
            _ => closure.into(),
        });
        assert!(other.iter().zip(&expected).any(|(o, e)| (o - e).abs() > 1e-3));
    }
}

#[test]
fn a_number_is_the_closure_that_always_gives_it() {
    for mesh in &meshes() {
        let solve = |sigma: Value, source: Value| {
            let problem = Poisson::new(mesh).sigma(sigma).source(source).dirichlet("all", 0.0).unwrap();
            problem
                .solve(&SolverConfig { tolerance: 1e-13, ..SolverConfig::default() })
                .unwrap()
                .values()
                .to_vec()
        };
        let expected = solve(2.0.into(), 3.0.into());
        let size = expected.iter().copied().fold(0.0, f64::max);
        assert!(size > 1e-3);
        for found in
            [solve((|_: [f64; 3]| 2.0).into(), (|_: [f64; 3]| 3.0).into()), solve("2".into(), "3".into())]
        {
            assert!(found.iter().zip(&expected).all(|(f, e)| (f - e).abs() <= 1e-11 * size));
        }
    }
}

#[test]
fn values_that_the_mesh_does_not_have_are_refused_with_what_it_has() {
    let mesh = &meshes()[0];
    let refusal = |sigma: Value| {
        Poisson::new(mesh).sigma(sigma).source(1.0).lambda(1.0).discretize().unwrap_err().to_string()
    };
    let said = refusal(Value::by_tag([("muscle", 1.0), ("scar", 2.0)]));
    assert!(said.contains("equation.sigma.by_tag.muscle") && said.contains("no cell has the tag"), "{said}");
    let said = refusal(Value::field("fibre"));
    assert!(said.contains("equation.sigma.field") && said.contains("it has: none"), "{said}");
    let said = refusal("1 +* x".into());
    assert!(said.contains("equation.sigma"), "{said}");
}
