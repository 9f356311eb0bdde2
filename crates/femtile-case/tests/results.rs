//! Results computed from a solution: fluxes, values along lines, recovered fields and the error estimate.

use std::path::{Path, PathBuf};

use femtile_case::{Case, CaseError, Report, Silent, run, verify};
use femtile_mesh::{Mesh, io};

/// u = 1 + 2x − 3y with σ = 4, which every element has exactly.
const PLANE: &str = r#"
[equation]
sigma = 4
[[boundary]]
where = "all"
dirichlet = "1 + 2*x - 3*y"
[solver]
tolerance = 1e-13
"#;

const MESHES: [&str; 4] = [
    "[mesh]\ngenerate = { kind = \"square\", cells = [6, 5] }",
    "[mesh]\ngenerate = { kind = \"box\", cells = [3, 4, 3] }",
    "[mesh]\ngenerate = { kind = \"square\", cell = \"quadrilateral\", cells = [3, 4] }\n[space]\ndegree = 3",
    "[mesh]\ngenerate = { kind = \"box\", cell = \"hexahedron\", cells = [2, 3, 2] }\n[space]\ndegree = 2",
];

fn solve_in(folder: &Path, text: &str) -> Result<Report, CaseError> {
    let mut case = Case::parse(&folder.join("case.toml"), text.into())?;
    case.file.output.directory = folder.join("out");
    run(&case, &mut Silent)
}

fn solve(text: &str) -> Result<Report, CaseError> {
    solve_in(tempfile::tempdir().unwrap().path(), text)
}

fn is_near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance
}

#[test]
fn the_heat_that_enters_the_plate_of_nafems_t4_leaves_it() {
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/03-nafems-t4/case.toml");
    let text = std::fs::read_to_string(example).unwrap();
    let side = |side: &str| format!("{{ name = \"flux {side}\", kind = \"flux\", where = \"{side}\" }}");
    let sides = ["xmin", "xmax", "ymin", "ymax", "all"].map(side).join(", ");
    let begin = text.find("[output]").unwrap();
    let output = format!("[output]\nfunctionals = [{sides}]\n[solver]\ntolerance = 1e-13\n");
    let quadrilaterals = "generate = { kind = \"square\", cell = \"quadrilateral\", cells = [12, 20], upper = [0.6, 1.0] }\n\
         space.degree = 3\n";
    let generate = text.lines().find(|line| line.starts_with("generate")).unwrap();
    let of_quadrilaterals = text[..begin].replace("[mesh]", "").replace(generate, "");
    let of_quadrilaterals = format!("mesh.{quadrilaterals}{of_quadrilaterals}{output}");
    for text in [format!("{}{output}", &text[..begin]), of_quadrilaterals] {
        let report = solve(&text).unwrap();
        let flux = |side: &str| report.functionals[&format!("flux {side}")];
        let enters = flux("ymin");
        assert_eq!(flux("xmin"), 0.0);
        assert!(
            enters > 5000.0 && flux("xmax") < -1000.0 && flux("ymax") < -10.0,
            "{:?}",
            report.functionals
        );
        let sum = enters + flux("xmax") + flux("ymax");
        assert!(sum.abs() <= 1e-9 * enters, "{sum} of {enters} is lost");
        assert!(flux("all").abs() <= 1e-9 * enters, "{}", flux("all"));
        assert!(report.citations.iter().any(|key| key == "carey1985"));
    }
}

#[test]
fn fluxes_means_and_values_of_a_plane_are_exact() {
    let output = r#"[output]
functionals = [
    { name = "left", kind = "flux", where = "xmin" },
    { name = "right", kind = "flux", where = "x > 1 - 1e-9" },
    { name = "top", kind = "flux", where = "ymax" },
    { name = "all", kind = "flux", where = "all" },
    { name = "mean", kind = "mean" },
    { name = "two", kind = "value_at", points = [[0.25, 0.5, 0], [0.9, 0.1, 0]] },
]"#;
    for mesh in MESHES {
        let report = solve(&format!("{mesh}{PLANE}{output}")).unwrap();
        let expected = [
            ("left", -8.0),
            ("right", 8.0),
            ("top", -12.0),
            ("all", 0.0),
            ("mean", 0.5),
            ("two[0]", 0.0),
            ("two[1]", 2.5),
        ];
        assert_eq!(report.functionals.len(), expected.len());
        for (name, value) in expected {
            let found = report.functionals[name];
            assert!(is_near(found, value, 1e-9), "{mesh}: {name} is {found}, not {value}");
        }
    }
}

#[test]
fn the_flux_of_a_smooth_solution_is_met_with_order_two_by_linear_elements() {
    let flux = |cells: usize| {
        let report = solve(&format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [{cells}, {cells}] }}\n\
             [equation]\nsource = \"3.75*sin(2*x + 1)*exp(y/2)\"\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = \"sin(2*x + 1)*exp(y/2)\"\n\
             [output]\nvtu = false\nplot = false\n\
             functionals = [{{ name = \"flux\", kind = \"flux\", where = \"xmax\" }}]\n"
        ));
        report.unwrap().functionals["flux"]
    };
    // ∫ 2 cos(3) exp(y/2) over y from 0 to 1.
    let exact = 4.0 * 3f64.cos() * (0.5f64.exp() - 1.0);
    let errors = [8, 16, 32].map(|cells| (flux(cells) - exact).abs());
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!(order > 1.8, "{errors:?}: order {order}");
    }
    assert!(errors[2] < 2e-3 * exact.abs(), "{errors:?}");
}

#[test]
fn the_table_along_a_line_has_the_values_of_the_solution_and_gaps_outside_the_mesh() {
    let output = "[output]\nfunctionals = [{ name = \"mid-line\", kind = \"along\", from = [-0.5, 0.25], to = [1.5, 0.25], points = 9 }]\n";
    for mesh in [MESHES[0], MESHES[2]] {
        let folder = tempfile::tempdir().unwrap();
        let report = solve_in(folder.path(), &format!("{mesh}{PLANE}{output}")).unwrap();
        assert!(report.functionals.is_empty());
        let out = folder.path().join("out");
        for file in ["mid-line.csv", "mid-line.svg"] {
            assert!(report.files.contains_key(file), "{file}");
        }
        assert_eq!(verify(&out).unwrap(), []);
        let table = std::fs::read_to_string(out.join("mid-line.csv")).unwrap();
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!((rows.len(), &rows[0][..]), (10, &["s", "x", "y", "u"][..]));
        for (i, row) in rows[1..].iter().enumerate() {
            let (s, x): (f64, f64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
            assert_eq!((s, x, row[2]), (0.25 * i as f64, 0.25 * i as f64 - 0.5, "0.25"));
            let is_inside = (0.0..=1.0).contains(&x);
            assert_eq!(row[3].is_empty(), !is_inside, "{row:?}");
            assert!(!is_inside || is_near(row[3].parse().unwrap(), 0.25 + 2.0 * x, 1e-10), "{row:?}");
        }
        let picture = std::fs::read_to_string(out.join("mid-line.svg")).unwrap();
        assert!(picture.contains("mid-line") && picture.contains("<polyline"), "{picture}");
    }
}

#[test]
fn a_line_has_a_column_for_each_component() {
    let case = r#"
[mesh]
generate = { kind = "square", cell = "quadrilateral", cells = [4, 4] }
[space]
degree = 2
components = 2
[[boundary]]
where = "all"
dirichlet = ["x", "2*y"]
[output]
fields = ["gradient", "error"]
functionals = [
    { name = "line", kind = "along", from = [0, 0.5], to = [1, 1], points = 3 },
    { name = "in", kind = "flux", where = "ymax" },
    { name = "at", kind = "value_at", points = [[0.5, 0.5]] },
]
"#;
    let folder = tempfile::tempdir().unwrap();
    let report = solve_in(folder.path(), case).unwrap();
    let table = std::fs::read_to_string(folder.path().join("out/line.csv")).unwrap();
    assert!(table.starts_with("s,x,y,u[0],u[1]\n"), "{table}");
    let middle: Vec<f64> =
        table.lines().nth(2).unwrap().split(',').map(|entry| entry.parse().unwrap()).collect();
    let expected = [1.25f64.sqrt() / 2.0, 0.5, 0.75, 0.5, 1.5];
    assert!(middle.iter().zip(expected).all(|(found, value)| is_near(*found, value, 1e-8)), "{table}");
    for (name, value) in [("in[0]", 0.0), ("in[1]", 2.0), ("at[0][0]", 0.5), ("at[1][0]", 1.0)] {
        assert!(is_near(report.functionals[name], value, 1e-8), "{:?}", report.functionals);
    }
    let mesh = io::read(&folder.path().join("out/solution.vtu")).unwrap();
    assert!(every_node_has(&mesh, "gradient[0]", [1.0, 0.0, 0.0]));
    assert!(every_node_has(&mesh, "gradient[1]", [0.0, 2.0, 0.0]));
    assert!(report.solve.discretization_error_estimate.unwrap() < 1e-7);
}

fn every_node_has(mesh: &Mesh, name: &str, expected: [f64; 3]) -> bool {
    let field = &mesh.node_fields[name];
    assert_eq!((field.n_components, field.values.len()), (3, 3 * mesh.n_nodes()), "{name}");
    field.values.as_chunks().0.iter().all(|g: &[f64; 3]| (0..3).all(|a| is_near(g[a], expected[a], 1e-7)))
}

#[test]
fn fields_of_a_plane_are_exact_in_the_file_of_the_solution_compressed_or_not() {
    for mesh in MESHES {
        let sizes = [false, true].map(|compress| {
            let folder = tempfile::tempdir().unwrap();
            let output =
                format!("[output]\ncompress = {compress}\nfields = [\"gradient\", \"flux\", \"error\"]\n");
            let report = solve_in(folder.path(), &format!("{mesh}{PLANE}{output}")).unwrap();
            let found = io::read(&folder.path().join("out/solution.vtu")).unwrap();
            assert!(every_node_has(&found, "gradient", [2.0, -3.0, 0.0]), "{mesh}");
            assert!(every_node_has(&found, "flux", [-8.0, 12.0, 0.0]), "{mesh}");
            let error = &found.cell_fields["error"].values;
            assert!(error.len() == report.mesh.n_cells && error.iter().all(|e| e.abs() < 1e-7), "{error:?}");
            let bytes = std::fs::read(folder.path().join("out/solution.vtu")).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes).contains("compressor="), compress);
            bytes.len()
        });
        assert_ne!(sizes[0], sizes[1]);
    }
}

#[test]
fn the_estimate_of_the_report_is_that_of_all_cells_and_near_the_error() {
    let case = |mesh: &str, fields: &str| {
        format!(
            "{mesh}\n[equation]\nsource = \"4.25*sin(2*x + 1)*cos(y/2)\"\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = \"sin(2*x + 1)*cos(y/2)\"\n\
             [output]\nfields = [{fields}]\n\
             functionals = [{{ name = \"energy\", kind = \"energy\" }},\
             {{ name = \"h1\", kind = \"error_h1\", exact = \"sin(2*x + 1)*cos(y/2)\" }}]\n"
        )
    };
    let fine = "[mesh]\ngenerate = { kind = \"square\", cells = [24, 24] }";
    for mesh in [fine, MESHES[2], MESHES[3]] {
        let folder = tempfile::tempdir().unwrap();
        let report = solve_in(folder.path(), &case(mesh, "\"error\"")).unwrap();
        let estimate = report.solve.discretization_error_estimate.unwrap();
        let found = io::read(&folder.path().join("out/solution.vtu")).unwrap();
        assert!(!found.node_fields.contains_key("gradient"));
        let sum = found.cell_fields["error"].values.iter().map(|e| e * e).sum::<f64>().sqrt();
        assert!(is_near(sum, estimate, 1e-12 * estimate), "{sum} {estimate}");
        let ratio = estimate / report.functionals["h1"];
        assert!((0.7..3.0).contains(&ratio), "{mesh}: {ratio}");
        assert!(
            !report.warnings.iter().any(|warning| warning.contains("cannot be trusted")),
            "{:?}",
            report.warnings
        );
        let relative = report.solve.discretization_error_relative.unwrap();
        let norm = report.functionals["energy"].sqrt();
        assert!(is_near(relative, estimate / norm, 1e-3 * relative), "{relative} of {norm}");
        assert!(report.to_json().contains("discretization_error_estimate"));
        assert!(report.citations.iter().any(|key| key == "zienkiewicz1987"));
        let without = solve(&case(mesh, "")).unwrap();
        assert!(!without.to_json().contains("discretization_error_estimate"));
    }
}

#[test]
fn a_field_that_cannot_be_computed_is_left_out_and_the_solution_is_written() {
    // σ is not finite at the corner, where no quadrature point lies.
    let case = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 4] }\n\
                [equation]\nsigma = \"1 + 1/sqrt(x + y)\"\nsource = 1\n\
                [[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n\
                [output]\nfields = [\"gradient\", \"flux\"]\n";
    let folder = tempfile::tempdir().unwrap();
    let report = solve_in(folder.path(), case).unwrap();
    let said = report.warnings.join("\n");
    assert!(said.contains("the field `flux` is left out") && said.contains("sigma"), "{said}");
    let found = io::read(&folder.path().join("out/solution.vtu")).unwrap();
    assert!(found.node_fields.contains_key("gradient") && !found.node_fields.contains_key("flux"));
}

/// The key that a case is refused for, what stands there in the file, and what is said.
fn refused(text: &str) -> (String, String, String) {
    match solve(text) {
        Err(CaseError::Input { key, span, message, text, .. }) => {
            let place = span.map(|span| text[span].to_string());
            (key.unwrap_or_default(), place.unwrap_or_default(), message)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn functionals_that_cannot_be_computed_are_refused_at_their_place() {
    let line = "kind = \"along\", from = [0, 0], to = [1, 1]";
    let first = "output.functionals[0]";
    for (functional, key, place, said) in [
        ("kind = \"flux\", where = \"lid\"", ".where", "\"lid\"", "there is no tag `lid`"),
        ("kind = \"flux\", where = \"x > 2\"", ".where", "\"x > 2\"", "holds on no facet"),
        ("kind = \"flux\", where = \"x >\"", ".where", "", "neither a tag nor a comparison"),
        ("kind = \"flux\"", "", "", "`where` is missing"),
        ("kind = \"value_at\"", "", "", "exactly one of `point` and `points`"),
        ("kind = \"value_at\", point = [0, 0], points = [[0, 0]]", "", "", "exactly one of"),
        ("kind = \"value_at\", points = []", ".points", "[]", "no point"),
        ("kind = \"value_at\", points = [[0, 0], [1]]", ".points[1]", "[1]", "two or three coordinates"),
        ("kind = \"value_at\", points = [[0, 0], [0, 7]]", ".points[1]", "[0, 7]", "outside"),
        (&format!("{line}, points = 1"), ".points", "1", "2 to 1000000"),
        ("kind = \"along\", from = [2, 0], to = [3]", ".to", "[3]", "two or three coordinates"),
        ("kind = \"along\", from = [2, 0], to = [3, 0]", "", "", "none of the 101 points"),
    ] {
        let text =
            format!("{}{PLANE}[output]\nfunctionals = [{{ name = \"a\", {functional} }}]\n", MESHES[0]);
        let (found, at, message) = refused(&text);
        assert!(message.contains(said), "{functional}: {message}");
        let is_missing = said.contains("missing");
        assert!(is_missing || found == format!("{first}{key}"), "{functional}: {found}");
        assert!(place.is_empty() || at == place, "{functional}: {at}");
    }
    for name in ["a/b", "", "..", "residuals", "Residuals", "ü"] {
        let text = format!("{}{PLANE}[output]\nfunctionals = [{{ name = \"{name}\", {line} }}]\n", MESHES[0]);
        assert_eq!(refused(&text).0, "output.functionals[0].name", "{name}");
    }
    let twice = format!("{{ name = \"a\", {line} }}, {{ name = \"A\", {line} }}");
    let text = format!("{}{PLANE}[output]\nfunctionals = [{twice}]\n", MESHES[0]);
    assert_eq!(refused(&text).0, "output.functionals[1].name");
}

#[test]
fn a_grid_has_means_and_values_but_neither_fluxes_nor_fields() {
    let case = |output: &str| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"grid\", nodes = [9, 9], upper = [2, 1] }}\n\
             [equation]\nkind = \"diffusion\"\ninitial = \"1 + x\"\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 3\n\
             [time]\nend = 0.1\nsteps = 4\n[output]\n{output}\n"
        )
    };
    let numbers = "{ name = \"mean\", kind = \"mean\" }, \
                   { name = \"at\", kind = \"value_at\", points = [[0.5, 0.5], [1.5, 0.25]] }";
    let report = solve(&case(&format!("functionals = [{numbers}]"))).unwrap();
    for (name, value) in [("mean", 2.0), ("at[0]", 1.5), ("at[1]", 2.5)] {
        assert!(is_near(report.functionals[name], value, 1e-9), "{:?}", report.functionals);
    }
    for (output, key) in [
        ("fields = [\"flux\"]", "output.fields"),
        ("compress = true", "output.compress"),
        ("vtu = \"surface\"", "output.vtu"),
        ("functionals = [{ name = \"a\", kind = \"flux\", where = \"all\" }]", "output.functionals[0].kind"),
        (
            "functionals = [{ name = \"a\", kind = \"along\", from = [0, 0], to = [1, 1] }]",
            "output.functionals[0].kind",
        ),
        (
            "functionals = [{ name = \"a\", kind = \"value_at\", points = [[0.5, 0.5], [3, 0]] }]",
            "output.functionals[0].points[1]",
        ),
    ] {
        assert_eq!(refused(&case(output)).0, key, "{output}");
    }
}

#[test]
fn the_surface_of_a_solution_has_the_facets_on_the_boundary_alone() {
    // Points and cells of the surface: of the square, the box, the bicubic square and the triquadratic box.
    let counts = [(22, 22), (68, 132), (42, 14), (130, 32)];
    for (mesh, (n_points, n_cells)) in MESHES.into_iter().zip(counts) {
        let folder = tempfile::tempdir().unwrap();
        for compress in ["false", "true", "\"lz4\""] {
            let text = format!(
                "{mesh}{PLANE}[output]\nvtu = \"surface\"\ncompress = {compress}\nfields = [\"error\"]\n"
            );
            solve_in(folder.path(), &text).unwrap();
            let bytes = std::fs::read(folder.path().join("out/solution.vtu")).unwrap();
            let expected = format!("NumberOfPoints=\"{n_points}\" NumberOfCells=\"{n_cells}\"");
            let head = String::from_utf8_lossy(&bytes).into_owned();
            assert!(head.contains(&expected) && head.contains("Name=\"error\""), "{mesh}: {expected}");
            assert_eq!(verify(&folder.path().join("out")).unwrap(), []);
        }
    }
}

#[test]
fn an_estimate_that_cannot_be_trusted_is_named() {
    let case = |cells: usize, source: &str, value: &str| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [{cells}, {cells}] }}\n[equation]\nsource = {source}\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = {value}\n[output]\nfields = [\"error\"]\n"
        )
    };
    let wave = |k: usize| format!("\"2*({k}*pi)^2*sin({k}*pi*x)*sin({k}*pi*y)\"");
    for (cells, source, value, reason) in [
        (1, "-2".into(), "\"x^2\"", "too few nodes"),
        (8, wave(14), "0", "does not resolve"),
        (8, wave(10), "0", "does not resolve"),
    ] {
        let report = solve(&case(cells, &source, value)).unwrap();
        let doubts = report.warnings.iter().filter(|warning| warning.contains("cannot be trusted"));
        let doubts: Vec<_> = doubts.collect();
        assert!(doubts.len() == 1 && doubts[0].contains(reason), "{source}: {doubts:?}");
    }
    let resolved = solve(&case(16, &wave(2), "0")).unwrap();
    assert_eq!(resolved.warnings, Vec::<String>::new());
}

#[test]
fn energies_beyond_the_range_of_numbers_are_named() {
    let report = solve(
        "[mesh]\ngenerate = { kind = \"square\", cells = [4, 4] }\n[equation]\nsigma = 1e150\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = 1e100\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n\
         [output]\nfunctionals = [{ name = \"en\", kind = \"energy\" }]\n",
    )
    .unwrap();
    assert!(report.functionals["en"].is_infinite());
    assert!(
        report.warnings.iter().any(|warning| warning.contains("functional `en` is beyond")),
        "{:?}",
        report.warnings
    );
}
