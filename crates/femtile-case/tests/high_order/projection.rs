//! Cases with σ = 0: projections onto the space.

use super::{refused, solve};

fn case(mesh: &str, degree: usize, u: &str, solver: &str) -> String {
    format!(
        r#"
        [mesh]
        generate = {mesh}
        [space]
        degree = {degree}
        [equation]
        sigma = 0
        lambda = 4
        source = "4*({u})"
        [solver]
        tolerance = 1e-13
        {solver}
        [output]
        functionals = [{{ name = "l2", kind = "error_l2", exact = "{u}" }}]
        "#
    )
}

const SQUARES: &str = "{ kind = \"square\", cell = \"quadrilateral\", cells = [5, 3] }";
const CUBES: &str = "{ kind = \"box\", cell = \"hexahedron\", cells = [3, 2, 4] }";

#[test]
fn projections_reproduce_functions_of_the_space() {
    let triangles = "{ kind = \"square\", cell = \"triangle\", cells = [5, 3] }";
    let tetrahedra = "{ kind = \"box\", cell = \"tetrahedron\", cells = [3, 2, 4] }";
    let bent = CUBES.replace("cells", "deform = 0.1, cells");
    for (mesh, degree, u) in [
        (triangles, 1, "1 + 2*x - y"),
        (tetrahedra, 1, "1 + 2*x - y + 3*z"),
        (SQUARES, 1, "1 + x*y"),
        (SQUARES, 3, "1 + x^3*y^2 - y^3"),
        (CUBES, 2, "x^2*y*z^2 - 1"),
        (bent.as_str(), 2, "1 + 2*x - y + 3*z"),
    ] {
        let other = if mesh.contains("quadri") || mesh.contains("hexa") { "matrix-free" } else { "auto" };
        let operators = ["assembled", other].map(|operator| format!("operator = \"{operator}\""));
        for operator in operators {
            let report = solve(&case(mesh, degree, u, &operator)).unwrap();
            let error = report.functionals["l2"];
            assert!(error < 1e-11, "{mesh}, degree {degree}, {operator}: {error}");
            assert_eq!(report.solve.preconditioner, Some("jacobi"));
            let reason = report.solve.preconditioner_reason.unwrap();
            assert!(reason.contains("mass matrix"), "{reason}");
            assert_eq!(report.solve.discretization_error_estimate, None);
        }
    }
}

#[test]
fn errors_of_projections_have_the_order_of_the_space() {
    for degree in [1, 2, 3] {
        let [coarse, fine] = [8, 16].map(|n| {
            let mesh = format!("{{ kind = \"square\", cell = \"quadrilateral\", cells = [{n}, {n}] }}");
            solve(&case(&mesh, degree, "sin(3*x + 1)*cos(2*y)", "")).unwrap()
        });
        let order = (coarse.functionals["l2"] / fine.functionals["l2"]).log2();
        assert!((order - (degree + 1) as f64).abs() < 0.1, "degree {degree}: {order}");
        let [few, more] = [&coarse, &fine].map(|report| report.solve.iterations);
        assert!(more <= few + 3 && more < 80, "degree {degree}: {few}, then {more}");
    }
}

#[test]
fn components_and_held_values_are_projected_too() {
    let three = case(CUBES, 2, "1 + x", "").replace("degree = 2", "degree = 2\ncomponents = 3");
    assert!(solve(&three).unwrap().functionals.values().all(|error| *error < 1e-11));
    let held = case(SQUARES, 2, "1 + x*y", "")
        .replace("[solver]", "[[boundary]]\nwhere = \"all\"\ndirichlet = \"1 + x*y\"\n[solver]");
    assert!(solve(&held).unwrap().functionals["l2"] < 1e-11);
}

#[test]
fn what_no_sigma_leaves_without_a_meaning_is_refused() {
    let text = case(SQUARES, 2, "1 + x", "");
    let (key, _, said) = refused(&text.replace("lambda = 4", "lambda = 0"));
    assert!(key == "equation.sigma" && said.contains("positive `lambda`"), "{key}: {said}");
    let (key, _, said) = refused(&text.replace("sigma = 0", "sigma = -1"));
    assert!(key == "equation.sigma" && said.contains("definite"), "{key}: {said}");
    let (key, _, said) = refused(&text.replace("sigma = 0", "sigma = \"if(x < 0.5, 0, 1)\""));
    assert!(key == "equation.sigma", "{key}: {said}");
    let (key, _, said) = refused(&case(SQUARES, 2, "1 + x", "preconditioner = \"gmg\""));
    assert!(key == "solver.preconditioner" && said.contains("jacobi"), "{key}: {said}");
}

#[test]
fn other_preconditioners_project_as_well() {
    let triangles = "{ kind = \"square\", cell = \"triangle\", cells = [5, 3] }";
    for (mesh, degree, name) in
        [(triangles, 1, "amg"), (SQUARES, 3, "pmg"), (SQUARES, 3, "none"), (CUBES, 1, "amg")]
    {
        let report =
            solve(&case(mesh, degree, "1 + 2*x - y", &format!("preconditioner = \"{name}\""))).unwrap();
        assert!(report.functionals["l2"] < 1e-11, "{name}: {:?}", report.functionals);
    }
}
