//! Cases with p-multigrid.

use std::path::{Path, PathBuf};

use femtile_case::{Case, Report};
use femtile_linalg::krylov::Stop;
use femtile_mesh::io;

use super::{refused, solve, solve_in};

const PMG: &str = "preconditioner = \"pmg\"";
/// Curved cells around a block in the middle of a ball, which follow no grid.
const BALL: &str = "generate = { kind = \"ball\", cell = \"hexahedron\", h = 0.6, order = 2 }";
/// Curved quadrilaterals.
const WAVES: &str =
    "generate = { kind = \"square\", cell = \"quadrilateral\", cells = [6, 5], order = 3, deform = 0.1 }";
const CUBES: &str = "generate = { kind = \"box\", cell = \"hexahedron\", cells = [4, 4, 4] }";

/// Boundary conditions: Dirichlet only, all kinds, Neumann only.
const GIVEN: &str = "[[boundary]]\nwhere = \"all\"\ndirichlet = \"1 + x*y\"";
const MIXED: &str = r#"
[[boundary]]
where = "all"
robin = { coefficient = "2 + x", value = "sin(3*y)" }
[[boundary]]
where = "x > 0.1"
neumann = "y - 0.3"
[[boundary]]
where = "y < -0.1 or y == 0"
dirichlet = "1 + x"
"#;

fn case(mesh: &str, degree: usize, equation: &str, boundary: &str, solver: &str) -> String {
    format!(
        "[mesh]\n{mesh}\n[space]\ndegree = {degree}\n[equation]\nsource = \"exp(x)*(1 + y)\"\n{equation}\n{boundary}\n[solver]\n\
         tolerance = 1e-10\n{solver}"
    )
}

/// The report of a case that converges, and u at the nodes.
fn converged(text: &str) -> (Report, Vec<f64>) {
    let folder = tempfile::tempdir().unwrap();
    let report = solve_in(folder.path(), text).unwrap();
    assert_eq!(report.solve.stop, Stop::Converged, "{:?}", report.solve.residuals);
    let written = io::read(&folder.path().join("out/solution.vtu")).unwrap();
    (report, written.node_fields["u"].values.clone())
}

fn iterations(text: &str) -> usize {
    let report = solve(&format!("{text}\n[output]\nvtu = false\nplot = false")).unwrap();
    assert_eq!(report.solve.stop, Stop::Converged, "{:?}", report.solve.residuals);
    report.solve.iterations
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    let size = expected.iter().fold(0.0_f64, |size, u| size.max(u.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-8 * size, "{what}: {found} instead of {expected}");
    }
}

#[test]
fn solutions_are_those_of_jacobis_preconditioner_and_of_the_matrix() {
    for (mesh, degree) in [(BALL, 2), (BALL, 3), (WAVES, 2), (WAVES, 5), (CUBES, 4)] {
        for (equation, boundary) in [
            ("sigma = \"2 + sin(3*x)*y\"", GIVEN),
            ("sigma = [[3, 1, 0], [1, 2, 0], [0, 0, 1]]\nlambda = \"1 + x^2\"", MIXED),
        ] {
            let text =
                |solver: &str| case(mesh, degree, equation, boundary, solver).replace("1e-10", "1e-12");
            let other = if degree < 4 { "operator = \"assembled\"" } else { "preconditioner = \"jacobi\"" };
            let (plain, expected) = converged(&text(other));
            for precision in ["f32", "f64"] {
                let (report, u) =
                    converged(&text(&format!("{PMG}\npmg = {{ precision = \"{precision}\" }}")));
                assert_close(&u, &expected, &format!("{mesh}, degree {degree}, {precision}"));
                let n = report.solve.iterations;
                assert!(n < plain.solve.iterations.min(40), "degree {degree}: {n} iterations");
            }
        }
    }
}

#[test]
fn iterations_grow_neither_with_the_degree_nor_with_the_cells() {
    for (mesh, coarse, fine, most) in [
        (BALL, "h = 0.6", "h = 0.3", 11),
        (WAVES, "[6, 5]", "[24, 20]", 14),
        (CUBES, "[4, 4, 4]", "[8, 8, 8]", 10),
    ] {
        for boundary in [GIVEN, MIXED] {
            for degree in [2, 3, 4, 6] {
                let meshes = if degree < 4 {
                    vec![mesh.into(), mesh.replace(coarse, fine)]
                } else {
                    vec![mesh.into()]
                };
                for mesh in meshes {
                    let n = iterations(&case(&mesh, degree, "", boundary, PMG));
                    assert!(n <= most, "{mesh}, degree {degree}: {n} iterations");
                }
            }
        }
    }
}

#[test]
fn coefficients_of_any_size_take_as_many_iterations() {
    let text = |sigma: &str| case(CUBES, 3, &format!("sigma = {sigma}"), GIVEN, PMG);
    let expected = iterations(&text("1"));
    for (sigma, is_beyond) in [("1e12", false), ("1e-12", false), ("1e38", true), ("1e-40", true)] {
        let report = converged(&text(sigma)).0;
        assert!(report.solve.iterations <= expected + 1, "{sigma}: {}", report.solve.iterations);
        let is_told = report.warnings.iter().any(|warning| warning.contains("kept in f64"));
        assert_eq!(is_told, is_beyond, "{sigma}: {:?}", report.warnings);
    }
}

#[test]
fn flat_cells_take_few_iterations() {
    const HELD: &str = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0";
    let cubes = CUBES.replace("[4, 4, 4]", "[6, 6, 6], upper = [1, 1, 0.02]");
    let bent = cubes.replace("0.02]", "0.02], deform = 0.03, order = 2");
    let squares =
        "generate = { kind = \"square\", cell = \"quadrilateral\", cells = [12, 12], upper = [1, 0.02] }";
    for (mesh, equation, degrees, most) in [
        (&cubes[..], "", [1, 2, 3], 16),
        (squares, "", [1, 2, 3], 16),
        (&cubes, "sigma = [[1, 0, 0], [0, 1, 0], [0, 0, 100]]", [1, 2, 3], 16),
        (&bent, "sigma = \"2 + sin(7*x + 5*y)\"", [1, 2, 3], 35),
    ] {
        for degree in degrees {
            let n = iterations(&case(mesh, degree, equation, HELD, PMG).replace("1e-10", "1e-8"));
            assert!(n <= most, "{mesh}, {equation}, degree {degree}: {n} iterations");
        }
    }
}

#[test]
fn jumps_of_the_coefficient_are_borne() {
    for jump in ["1e-3", "1e3", "1e6"] {
        for degree in [2, 4] {
            let sigma = format!("sigma = \"if(x > 0.5 and y > 0.5 or z < 0.25, {jump}, 1)\"");
            let n = iterations(&case(CUBES, degree, &sigma, MIXED, PMG));
            assert!(n <= 11, "{jump}, degree {degree}: {n} iterations");
        }
    }
}

#[test]
fn pure_neumann_problems_are_solved() {
    let boundary = "[[boundary]]\nwhere = \"all\"\nneumann = 0";
    for mesh in [WAVES, CUBES] {
        let text = |solver: &str| {
            case(mesh, 3, "", boundary, solver)
                .replace("exp(x)*(1 + y)", "cos(pi*x)")
                .replace(", deform = 0.1", "")
        };
        let (_, expected) = converged(&text(""));
        let (report, u) = converged(&text(PMG));
        assert_close(&u, &expected, mesh);
        assert!(report.solve.iterations <= 20, "{}", report.solve.iterations);
    }
}

#[test]
fn meshes_of_others_are_solved_in_few_iterations() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from).join("meshes/hex");
    if !folder.is_dir() {
        eprintln!("skipped: no sample meshes");
        return;
    }
    for (name, degree) in [
        ("arcane_sphere_in_sphere.hexa.msh", 2),
        ("fichera-q3.mesh", 5),
        ("star-q3.mesh", 6),
        ("toroid-hex.mesh", 4),
    ] {
        let mesh = format!("file = {:?}\nmerge = true", folder.join(name));
        let n = iterations(&case(&mesh, degree, "lambda = 0.1", "", PMG));
        assert!(n <= 17, "{name}: {n} iterations");
    }
}

#[test]
fn levels_and_papers_are_told_of() {
    let (report, _) = converged(&case(CUBES, 5, "", GIVEN, PMG));
    let levels: Vec<(usize, bool)> =
        report.solve.levels.iter().map(|level| (level.n_rows, level.n_nonzeros.is_some())).collect();
    let of_degree = |degree: usize| (4 * degree + 1).pow(3);
    assert_eq!(
        levels[..4],
        [(of_degree(5), false), (of_degree(3), false), (of_degree(2), false), (125, true)]
    );
    assert_eq!(report.citations, ["hestenes1952", "kronbichler2022", "fehn2020", "vanek1996", "fu2014"]);
    let text = case(CUBES, 5, "", GIVEN, &format!("{PMG}\namg = {{ coarse_rows = 20 }}"));
    let report = solve(&text).unwrap();
    assert!(report.solve.levels.last().unwrap().n_rows <= 20);
}

#[test]
fn degree_one_is_algebraic_multigrid() {
    let text = |solver: &str| case(CUBES, 1, "sigma = 3", GIVEN, solver);
    let (pmg, u) = converged(&text(PMG));
    let (amg, expected) = converged(&text("preconditioner = \"amg\""));
    assert_close(&u, &expected, "degree 1");
    assert_eq!(pmg.solve.levels, amg.solve.levels);
    assert_eq!(pmg.solve.iterations, amg.solve.iterations);
}

#[test]
fn what_there_is_no_cycle_for_is_refused_with_advice() {
    let text = |solver: &str| case(CUBES, 2, "", GIVEN, &format!("{PMG}\n{solver}"));
    let tetrahedra = text("").replace(", cell = \"hexahedron\"", "").replace("degree = 2", "degree = 1");
    for (text, key, words) in [
        (tetrahedra, "solver.preconditioner", ["tetrahedron", "\"amg\""]),
        (text("operator = \"assembled\""), "solver.operator", ["not from a matrix", "\"auto\""]),
        (text("method = \"merged-cg\""), "solver.method", ["jacobi", "\"cg\""]),
        (text("method = \"pipelined-cg\"\namg = { cycle = \"k\" }"), "solver.method", ["K cycles", "\"cg\""]),
        (text("pmg = { sweeps = 0 }"), "solver.pmg", ["sweeps", "between 1 and 16"]),
        (text("").replace(PMG, "pmg = { sweeps = 2 }"), "solver.pmg", ["preconditioner", "\"pmg\""]),
        (text("gmg = { precision = \"f64\" }"), "solver.gmg", ["preconditioner", "\"gmg\""]),
    ] {
        let (found, _, message) = refused(&text);
        assert_eq!(found, key, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    let misspelt = Case::parse(Path::new("case.toml"), text("pmg = { sweep = 3 }")).unwrap_err().to_string();
    assert!(misspelt.contains("did you mean `sweeps`"), "{misspelt}");
}

#[test]
fn k_cycles_below_and_other_methods_go_with_it() {
    let text = |solver: &str| case(BALL, 3, "", MIXED, &format!("{PMG}\n{solver}"));
    let (_, expected) = converged(&text(""));
    for solver in
        ["amg = { cycle = \"k\", precision = \"f64\" }", "method = \"pipelined-cg\"", "pmg = { sweeps = 5 }"]
    {
        let (report, u) = converged(&text(solver));
        assert_close(&u, &expected, solver);
        assert!(report.solve.iterations <= 25, "{solver}: {}", report.solve.iterations);
    }
}
