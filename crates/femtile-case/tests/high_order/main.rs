//! Cases on quadrilaterals and hexahedra.

mod p_multigrid;
mod projection;
mod treatment;

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_mesh::{CellKind, Mesh, io};

const HEXAHEDRA: &str = r#"
[mesh]
generate = { kind = "box", cell = "hexahedron", cells = [3, 3, 3] }
[space]
degree = 3
[equation]
source = "4.75*sin(2*x + 1)*exp(y/2)*cos(z)"
[[boundary]]
where = "all"
dirichlet = "sin(2*x + 1)*exp(y/2)*cos(z)"
[[boundary]]
where = "xmax"
neumann = "2*cos(2*x + 1)*exp(y/2)*cos(z)"
[output]
functionals = [
    { name = "l2", kind = "error_l2", exact = "sin(2*x + 1)*exp(y/2)*cos(z)" },
    { name = "h1", kind = "error_h1", exact = "sin(2*x + 1)*exp(y/2)*cos(z)" },
    { name = "centre", kind = "value_at", point = [0.5, 0.4, 0.3] },
    { name = "max", kind = "max" },
    { name = "integral", kind = "integral" },
    { name = "norm", kind = "l2_norm" },
    { name = "energy", kind = "energy" },
]
"#;

/// Carries a case out in a folder.
fn solve_in(folder: &Path, text: &str) -> Result<Report, CaseError> {
    let mut case = Case::parse(&folder.join("case.toml"), text.into())?;
    case.file.output.directory = folder.join("out");
    run(&case, &mut Silent)
}

fn solve(text: &str) -> Result<Report, CaseError> {
    solve_in(tempfile::tempdir().unwrap().path(), text)
}

/// The key that a case is refused for, what stands there in the file, and what is said.
fn refused(text: &str) -> (String, String, String) {
    match solve(text) {
        Err(CaseError::Input { key, span, message, text, .. }) => {
            let place = span.map(|span| text[span].to_string());
            (key.unwrap_or_default(), place.unwrap_or_default(), message)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn hexahedra_of_degree_three_meet_a_given_solution() {
    let folder = tempfile::tempdir().unwrap();
    let report = solve_in(folder.path(), HEXAHEDRA).unwrap();
    assert_eq!((report.space.n_dofs, report.space.degree), (1000, Some(3)));
    assert!((report.mesh.volume - 1.0).abs() < 1e-12);
    assert!(report.functionals["l2"] < 1e-4 && report.functionals["h1"] < 2e-3, "{:?}", report.functionals);
    let exact = 2f64.sin() * 0.2f64.exp() * 0.3f64.cos();
    let centre = report.functionals["centre"];
    assert!((centre - exact).abs() < 2e-4, "{centre} instead of {exact}, {:?}", report.functionals);
    assert!(report.functionals["max"] > exact && report.functionals["norm"] < report.functionals["max"]);
    assert!(report.device_reason.contains("1000 unknowns"), "{}", report.device_reason);
    for name in ["report.json", "residuals.svg", "solution.vtu"] {
        assert!(folder.path().join("out").join(name).exists(), "{name}");
    }
    let written = io::read(&folder.path().join("out/solution.vtu")).unwrap();
    let nodal = &written.node_fields["u"].values;
    for (point, value) in written.points.iter().zip(nodal) {
        let exact = (2.0 * point[0] + 1.0).sin() * (point[1] / 2.0).exp() * point[2].cos();
        assert!((value - exact).abs() < 1e-3, "{point:?}: {value}");
    }
}

#[test]
fn quadrilaterals_from_a_file_take_robin_conditions_and_reaction() {
    let n = 3;
    let point = |i: usize| [(i % (n + 1)) as f64 / n as f64, (i / (n + 1)) as f64 / n as f64, 0.0];
    let cell = |c: usize| {
        let first = (c / n * (n + 1) + c % n) as u32;
        let above = first + n as u32 + 1;
        [first, first + 1, above + 1, above]
    };
    let points = (0..(n + 1) * (n + 1)).map(point).collect();
    let mesh = Mesh::new(points, CellKind::Quadrilateral, (0..n * n).flat_map(cell).collect()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    io::vtu::write(&folder.path().join("squares.vtu"), &mesh, &[], &[]).unwrap();
    // u = sin x · e^y solves −∇²u + u = u; the flux is that along the normal.
    let report = solve_in(
        folder.path(),
        r#"
        [mesh]
        file = "squares.vtu"
        [space]
        degree = 5
        [equation]
        lambda = 1
        source = "sin(x)*exp(y)"
        [[boundary]]
        where = "x < 1e-9"
        dirichlet = 0
        [[boundary]]
        where = "y < 1e-9"
        dirichlet = "sin(x)"
        [[boundary]]
        where = "x > 1 - 1e-9"
        robin = { coefficient = 2, value = "sin(1)*exp(y) + cos(1)*exp(y)/2" }
        [[boundary]]
        where = "y > 1 - 1e-9"
        neumann = "sin(x)*exp(1)"
        [solver]
        operator = "assembled"
        preconditioner = "none"
        tolerance = 1e-12
        device = "cpu"
        [output]
        functionals = [{ name = "l2", kind = "error_l2", exact = "sin(x)*exp(y)" }]
        "#,
    )
    .unwrap();
    assert_eq!(report.space.n_dofs, 256);
    assert_eq!(report.device_reason, "asked for");
    assert!(report.functionals["l2"] < 1e-7, "{:?}", report.functionals);
}

const COMPONENTS: &str = r#"
[mesh]
generate = { kind = "box", cell = "hexahedron", cells = [2, 2, 2], deform = 0.1, order = 2 }
[space]
degree = 3
components = 3
[equation]
sigma = "1 + x"
lambda = 2
source = ["-cos(x) + (1 + x)*sin(x) + 2*sin(x)", "2*x*y", 0]
[[boundary]]
where = "all"
dirichlet = ["sin(x)", 0, "y"]
[[boundary]]
where = "ymax"
neumann = [0, "x", 1]
[[boundary]]
where = "zmax"
robin = { coefficient = 3, value = ["sin(x)", 0.5, "x*y"] }
[output]
functionals = [
    { name = "energy", kind = "energy" },
    { name = "inside", kind = "value_at", point = [0.3, 0.4, 0.5] },
    { name = "l2", kind = "error_l2", exact = ["sin(x)", "0", "y"] },
    { name = "all", kind = "error_l2", exact = "0" },
]
[solver]
tolerance = 1e-12
"#;

#[test]
fn components_are_what_cases_of_one_component_give() {
    let pick = |text: &str, from: &str, component: usize| {
        let begin = text.find(from).unwrap() + from.len();
        let end = begin + text[begin..].find(']').unwrap();
        let entry = text[begin..end].split(',').nth(component).unwrap().trim();
        text.replace(&text[begin - 1..=end], entry)
    };
    let solvers = [
        "method = \"cg\"",
        "method = \"merged-cg\"",
        "method = \"pipelined-cg\"",
        "ranks = 3",
        "preconditioner = \"pmg\"",
        "preconditioner = \"pmg\"\nranks = 2",
        "preconditioner = \"gmg\"",
        "preconditioner = \"gmg\"\ngmg = { smoother = \"chebyshev\", precision = \"f64\" }",
    ];
    let found = solvers.map(|solver| solve(&format!("{COMPONENTS}{solver}\n")).unwrap());
    let iterations = found.each_ref().map(|report| report.solve.iterations);
    assert!(iterations[4..].iter().all(|few| 2 * few < iterations[0]), "{iterations:?}");
    assert_eq!((found[0].space.components, found[0].space.n_dofs), (3, 3 * 343));
    assert_eq!(found[0].functionals.len(), 12);
    for component in 0..3 {
        let text = COMPONENTS.replace("components = 3", "components = 1");
        let text = ["source = [", "dirichlet = [", "neumann = [", ", value = [", "exact = ["]
            .iter()
            .fold(text, |text, from| pick(&text, from, component));
        let alone = solve(&text).unwrap();
        for report in &found {
            for (name, value) in &alone.functionals {
                let other = report.functionals[&format!("{name}[{component}]")];
                assert!(
                    (other - value).abs() <= 1e-9 * (1.0 + value.abs()),
                    "{name}[{component}]: {other} {value}"
                );
            }
        }
        assert!(component != 0 || alone.functionals["l2"] < 1e-4);
    }
}

#[test]
fn several_components_are_written_as_one_field() {
    let folder = tempfile::tempdir().unwrap();
    let report = solve_in(folder.path(), COMPONENTS).unwrap();
    let written = io::read(&folder.path().join("out/solution.vtu")).unwrap();
    let u = &written.node_fields["u"];
    assert_eq!((u.n_components, u.values.len()), (3, 3 * written.points.len()));
    for (point, u) in written.points.iter().zip(u.values.chunks_exact(3)) {
        assert!((u[0] - point[0].sin()).abs() < 1e-3, "{point:?}: {u:?}");
        assert!(point[0] > 1e-9 || (u[2] - point[1]).abs() < 1e-12, "{point:?}: {u:?}");
    }
    assert!(report.to_json().contains("\"components\": 3"));
}

#[test]
fn several_components_of_a_pure_neumann_problem_have_mean_zero_each() {
    let report = solve(
        r#"
        [mesh]
        generate = { kind = "square", cell = "quadrilateral", cells = [3, 3] }
        [space]
        degree = 4
        components = 2
        [equation]
        source = ["pi^2*cos(pi*x)", "pi^2*cos(pi*y)"]
        [output]
        functionals = [
            { name = "mean", kind = "integral" },
            { name = "l2", kind = "error_l2", exact = ["cos(pi*x)", "cos(pi*y)"] },
        ]
        "#,
    )
    .unwrap();
    for component in 0..2 {
        assert!(report.functionals[&format!("mean[{component}]")].abs() < 1e-12);
        assert!(report.functionals[&format!("l2[{component}]")] < 1e-3);
    }
}

#[test]
fn what_components_cannot_be_is_refused_where_it_stands() {
    let solver = |line: &str| format!("{COMPONENTS}{line}\n");
    for (text, key, words) in [
        (COMPONENTS.replace("\"2*x*y\", 0]", "0]"), "equation.source", "u has 3 components"),
        (COMPONENTS.replace("[0, \"x\", 1]", "[1]"), "boundary[1].neumann", "1 entries"),
        (COMPONENTS.replace("\"2*x*y\"", "\"2*t\""), "equation.source[1]", "unknown name `t`"),
        (COMPONENTS.replace("lambda = 2", "lambda = [1, 2, 3]"), "equation.lambda", "one value is needed"),
        (
            COMPONENTS.replace("[\"sin(x)\", \"0\", \"y\"]", "[\"x\"]"),
            "output.functionals[2].exact",
            "one for each",
        ),
        (COMPONENTS.replace("components = 3", "components = 0"), "space.components", "between 1 and"),
        (solver("operator = \"assembled\""), "space.components", "operator = \"matrix-free\""),
        (
            COMPONENTS
                .replace("cell = \"hexahedron\", ", "")
                .replace(", deform = 0.1, order = 2", "")
                .replace("degree = 3", ""),
            "space.components",
            "tetrahedron",
        ),
    ] {
        let (found, _, message) = refused(&text);
        assert!(found == key && message.contains(words), "{found}: {message}");
    }
}

#[test]
fn every_rule_meets_a_given_solution_and_a_weak_one_is_warned_of() {
    let rule = |name: &str| format!("degree = 3\nquadrature = \"{name}\"");
    for (name, n_warnings) in [("gauss", 0), ("gauss-fine", 0), ("gauss-lobatto", 1)] {
        for operator in ["matrix-free", "assembled"] {
            let text = HEXAHEDRA.replace("degree = 3", &rule(name));
            let report = solve(&format!("{text}[solver]\noperator = \"{operator}\"\n")).unwrap();
            assert!(report.functionals["l2"] < 2e-4, "{name}: {:?}", report.functionals);
            let said = report.warnings.iter().filter(|warning| warning.contains("too weak for degree 3"));
            assert_eq!(said.count(), n_warnings, "{:?}", report.warnings);
        }
    }
    let tetrahedra =
        HEXAHEDRA.replace("cell = \"hexahedron\", ", "").replace("degree = 3", "quadrature = \"gauss-fine\"");
    let (key, place, message) = refused(&tetrahedra);
    assert_eq!((key.as_str(), place.as_str()), ("space.quadrature", "\"gauss-fine\""));
    assert!(message.contains("tetrahedron") && message.contains("leave it out"), "{message}");
}

#[test]
fn multigrid_takes_trilinear_elements_alone() {
    let linear = HEXAHEDRA.replace("degree = 3", "degree = 1");
    let amg = format!("{linear}[solver]\npreconditioner = \"amg\"\n");
    let report = solve(&amg).unwrap();
    assert!(!report.solve.levels.is_empty() && report.functionals["l2"] < 0.1);
    let (key, place, message) = refused(&amg.replace("degree = 1", "degree = 2"));
    assert_eq!((key.as_str(), place.as_str()), ("solver.preconditioner", "\"amg\""));
    assert!(message.contains("\"pmg\""), "{message}");
}

#[test]
fn degrees_that_no_cell_has_are_refused_with_their_place() {
    for degree in ["0", "11"] {
        let (key, place, message) = refused(&HEXAHEDRA.replace("degree = 3", &format!("degree = {degree}")));
        assert_eq!((key.as_str(), place.as_str()), ("space.degree", degree));
        assert!(message.contains("1 to 10"), "{message}");
    }
}

#[test]
fn operators_without_a_matrix_are_refused_on_tetrahedra() {
    let tetrahedra = HEXAHEDRA.replace("cell = \"hexahedron\", ", "").replace("degree = 3", "degree = 1");
    let (key, _, message) = refused(&format!("{tetrahedra}[solver]\noperator = \"matrix-free\"\n"));
    assert!(key == "solver.operator" && message.contains("hexahedra"), "{message}");
}

#[test]
fn points_outside_are_refused_before_the_solve() {
    let (key, _, message) = refused(&HEXAHEDRA.replace("[0.5, 0.4, 0.3]", "[0.5, 0.4, 1.3]"));
    assert_eq!(key, "output.functionals[2].point");
    assert!(message.contains("outside"), "{message}");
}

#[test]
fn pure_neumann_problems_have_mean_zero() {
    let report = solve(
        r#"
        [mesh]
        generate = { kind = "box", cell = "hexahedron", cells = [2, 2, 2] }
        [space]
        degree = 4
        [equation]
        source = "pi^2*cos(pi*x)"
        [output]
        functionals = [
            { name = "mean", kind = "integral" },
            { name = "l2", kind = "error_l2", exact = "cos(pi*x)" },
        ]
        "#,
    )
    .unwrap();
    assert!(report.functionals["mean"].abs() < 1e-12 && report.functionals["l2"] < 1e-3);
}
