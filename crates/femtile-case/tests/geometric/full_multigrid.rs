//! Solves that begin with full multigrid.

use super::{assert_close, mesh, refused, solve, solve_in};

/// A manufactured solution with λ, a value on most of the boundary, a flux and an exchange on the rest.
fn manufactured(mesh: &str, degree: usize, solver: &str) -> String {
    // −2Δu + 7u, with Δu = −3u for the first two factors.
    let (u, source) = match mesh.contains("hexahedron") {
        true => ("sin(2*x)*exp(y)*(1 + z*z)", "13*sin(2*x)*exp(y)*(1 + z*z) - 4*sin(2*x)*exp(y)"),
        false => ("sin(2*x)*exp(y)", "13*sin(2*x)*exp(y)"),
    };
    let slope = u.replace("sin(2*x)", "2*cos(2*x)");
    format!(
        r#"
        [mesh]
        generate = {mesh}
        [space]
        degree = {degree}
        [equation]
        sigma = 2
        lambda = 7
        source = "{source}"
        [[boundary]]
        where = "all"
        dirichlet = "{u}"
        [[boundary]]
        where = "xmax"
        robin = {{ coefficient = 3, value = "{u} + 2/3*{slope}" }}
        [[boundary]]
        where = "xmin"
        neumann = "-2*{slope}"
        [solver]
        preconditioner = "gmg"
        tolerance = 1e-12
        {solver}
        [output]
        functionals = [
            {{ name = "l2", kind = "error_l2", exact = "{u}" }},
            {{ name = "h1", kind = "error_h1", exact = "{u}" }},
        ]
        "#
    )
}

const FULL: &str = "gmg = { start = \"full\" }";

/// Rectangles of an odd number of cells on coarser levels, some joined along one axis first.
const RECTANGLES: [&str; 3] = [
    "{ kind = \"square\", cell = \"quadrilateral\", cells = [12, 20] }",
    "{ kind = \"square\", cell = \"quadrilateral\", cells = [12, 12] }",
    "{ kind = \"box\", cell = \"hexahedron\", cells = [6, 6, 10] }",
];

#[test]
fn full_multigrid_alone_is_nearly_as_accurate_as_the_space_and_saves_iterations() {
    for mesh in RECTANGLES {
        for degree in [1, 2, 3] {
            let (plain, expected) = solve(&manufactured(mesh, degree, ""));
            let (full, u) = solve(&manufactured(mesh, degree, FULL));
            assert_close(&u, &expected);
            let what = format!("{mesh}, degree {degree}");
            let [most, least] = [&plain, &full].map(|report| report.solve.iterations);
            assert!(least + 2 <= most && (degree == 1 || least + 3 <= most), "{what}: {least} after {most}");
            assert_eq!((plain.solve.start, full.solve.start), (None, Some("full multigrid")));
            // The iterate is interpolated from cells twice as wide; an iteration smooths it.
            for (iterations, slack) in [(0, 1.5 * 2.0_f64.powi(degree as i32)), (1, 1.3)] {
                let solver = format!("{FULL}\nmax_iterations = {iterations}");
                let folder = tempfile::tempdir().unwrap();
                let (early, _) = solve_in(folder.path(), &manufactured(mesh, degree, &solver)).unwrap();
                let [early, exact] = [&early, &full].map(|report| report.functionals["h1"]);
                assert!(early <= slack * exact, "{what}, {iterations} iterations: {early} beside {exact}");
            }
        }
    }
}

#[test]
fn solves_for_zero_on_the_boundary_may_begin_on_the_levels_of_the_preconditioner() {
    for (mesh, degree, components) in [(RECTANGLES[0], 2, 1), (RECTANGLES[2], 3, 1), (RECTANGLES[2], 1, 2)] {
        let case = |start: &str, boundary: &str| {
            format!(
                r#"
                [mesh]
                generate = {mesh}
                [space]
                degree = {degree}
                components = {components}
                [equation]
                sigma = 3
                source = {source}
                [[boundary]]
                where = "all"
                dirichlet = {given}
                [solver]
                preconditioner = "gmg"
                tolerance = 1e-10
                device = "cpu"
                gmg = {{ start = "{start}", smoother = "vertex-patch" }}
                "#,
                source = if components == 1 { "\"exp(x)\"" } else { "[\"exp(x)\", \"y\"]" },
                given =
                    if components == 1 { boundary.to_owned() } else { format!("[{boundary}, {boundary}]") },
            )
        };
        let (plain, expected) = solve(&case("none", "0"));
        let (begun, found) = solve(&case("levels", "0"));
        assert_close(&found, &expected);
        let [most, least] = [&plain, &begun].map(|report| report.solve.iterations);
        assert!(least < most, "{mesh}, degree {degree}: {least} after {most}");
        assert_eq!((plain.solve.start, begun.solve.start), (None, Some("full multigrid")));
        let (given, _) = solve(&case("levels", "1"));
        assert_eq!(given.solve.start, None, "values that are not zero");
    }
}

#[test]
fn solutions_do_not_depend_on_the_start_whatever_the_data_and_options() {
    let base = |mesh: &str| manufactured(mesh, 2, FULL);
    let gmg = |options: &str| FULL.replace("start", &format!("{options}, start"));
    let [square, _, cube] = RECTANGLES;
    let bent = cube.replace("cells", "deform = 0.1, cells");
    for (text, from, to) in [
        (base(&bent), "", String::new()),
        (base(cube), FULL, gmg("precision = \"f64\"")),
        (base(cube), FULL, gmg("smoother = \"vertex-patch\"")),
        (base(square), FULL, gmg("smoother = \"chebyshev\"")),
        (base(square), FULL, format!("{FULL}\nmethod = \"gmres\"")),
        (base(square), FULL, format!("{FULL}\nmethod = \"pipelined-cg\"")),
        (base(square), "sigma = 2", "sigma = \"2 + sin(3*x)*y\"".into()),
        (base(square), "sigma = 2", "sigma = [[2, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]".into()),
        // A jump of given values at corners.
        (base(square), "where = \"xmin\"\n        neumann", "where = \"xmin\"\n        dirichlet".into()),
        (base(cube), "where = \"all\"", "where = \"zmax\"".into()),
    ] {
        let text = if from.is_empty() { text } else { text.replace(from, &to) };
        let (full, u) = solve(&text);
        let (plain, expected) = solve(&text.replace("start = \"full\"", "start = \"none\""));
        assert_close(&u, &expected);
        let [least, most] = [&full, &plain].map(|report| report.solve.iterations);
        assert!(least < most, "{to}: {least} after {most}");
    }
}

#[test]
fn jumps_of_given_values_are_extended_without_thin_layers() {
    for mesh in [mesh(2, 32), mesh(3, 8)] {
        let text = |start: &str| {
            format!(
                r#"
                [mesh]
                generate = {mesh}
                [space]
                degree = 2
                [[boundary]]
                where = "all"
                dirichlet = 0
                [[boundary]]
                where = "xmin"
                dirichlet = 1
                [solver]
                preconditioner = "gmg"
                gmg = {{ start = "{start}" }}
                [output]
                functionals = [{{ name = "energy", kind = "energy" }}]
                "#
            )
        };
        let energy = |start: &str, limit: &str| {
            let folder = tempfile::tempdir().unwrap();
            let text = text(start).replace("[solver]", &format!("[solver]\n{limit}"));
            solve_in(folder.path(), &text).unwrap().0.functionals["energy"]
        };
        let limit = energy("none", "");
        let [full, zero] = ["full", "none"].map(|start| energy(start, "max_iterations = 0") - limit);
        assert!(full >= -1e-9 * limit && full < 0.02 * zero, "{mesh}: {full} beside {zero} above {limit}");
    }
}

#[test]
fn components_begin_each_by_itself() {
    let text = |start: &str| {
        manufactured(RECTANGLES[0], 2, &format!("gmg = {{ start = \"{start}\" }}"))
            .replace("degree = 2", "degree = 2\ncomponents = 2")
            .replace("dirichlet = \"sin(2*x)*exp(y)\"", "dirichlet = [\"sin(2*x)*exp(y)\", \"1 + x\"]")
            .replace("[output]", "[ignored]")
    };
    let clean = |start: &str| text(start).split("[ignored]").next().unwrap_or_default().to_string();
    let (full, u) = solve(&clean("full"));
    let (plain, expected) = solve(&clean("none"));
    assert_close(&u, &expected);
    assert!(full.solve.iterations + 3 <= plain.solve.iterations, "{}", full.solve.iterations);
}

#[test]
fn a_start_that_is_none_is_refused() {
    let text = manufactured(RECTANGLES[0], 2, "gmg = { start = \"half\" }");
    let (key, message) = refused(&text);
    assert!(key.contains("start") || message.contains("half"), "{key}: {message}");
}
