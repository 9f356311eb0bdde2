//! A solve that says that it has converged is right, whatever hides in the scales of its rows.

use std::path::{Path, PathBuf};

use femtile_case::{Case, Report, Silent, run};
use femtile_linalg::krylov::Stop;

const METHODS: [&str; 5] = ["cg", "merged-cg", "pipelined-cg", "s-step-cg", "gmres"];

fn solve(text: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::parse(&folder.path().join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent).unwrap()
}

/// Solves on a square with `cells` cells per side; the report has the value at the centre.
fn centre(cells: usize, equation: &str, boundary: &str, solver: &str) -> Report {
    solve(&format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [{cells}, {cells}] }}\n[equation]\n{equation}\n{boundary}\n\
         [solver]\n{solver}\n\
         [output]\nfunctionals = [{{ name = \"centre\", kind = \"value_at\", point = [0.5, 0.5, 0] }}]\n"
    ))
}

fn robin(coefficient: f64) -> String {
    format!("[[boundary]]\nwhere = \"all\"\nrobin = {{ coefficient = {coefficient:e}, value = 20 }}")
}

const BETWEEN: &str =
    "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0";
const HELD_AT_XMAX: &str = "[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0";

#[test]
fn stiff_robin_rows_do_not_hide_the_inside() {
    let held = centre(32, "source = 1", "[[boundary]]\nwhere = \"all\"\ndirichlet = 20", "");
    let expected = held.functionals["centre"];
    for method in METHODS {
        for coefficient in [1e7, 1e10, 1e12] {
            let report = centre(32, "source = 1", &robin(coefficient), &format!("method = \"{method}\""));
            assert_eq!(report.solve.stop, Stop::Converged, "{method} {coefficient:e}");
            let found = report.functionals["centre"];
            let error = (found - expected).abs();
            assert!(error <= 2.0 / coefficient + 2e-6, "{method} {coefficient:e}: {found} is not {expected}");
        }
    }
    for preconditioner in ["none", "amg"] {
        let report =
            centre(32, "source = 1", &robin(1e12), &format!("preconditioner = \"{preconditioner}\""));
        assert_eq!(report.solve.stop, Stop::Converged);
        assert!((report.functionals["centre"] - expected).abs() <= 1e-6, "{preconditioner}");
    }
}

#[test]
fn jumps_of_many_orders_of_magnitude_do_not_hide_what_is_beside_them() {
    for preconditioner in ["jacobi", "none", "amg"] {
        let solver = format!("preconditioner = \"{preconditioner}\"");
        let stiff = centre(16, "sigma = \"if(x < 0.25, 1e10, 1)\"", BETWEEN, &solver);
        assert_eq!(stiff.solve.stop, Stop::Converged);
        let found = stiff.functionals["centre"];
        assert!((found - 2.0 / 3.0).abs() <= 1e-7, "{preconditioner}: {found} is not 2/3");
        let reaction = "lambda = \"if(x < 0.25, 1e14, 0)\"\nsource = \"if(x < 0.25, 1e14, 1)\"";
        let reacting = centre(16, reaction, HELD_AT_XMAX, &solver);
        // Without a preconditioner the unknowns beside come as close, but not close enough to be called converged.
        assert!(preconditioner == "none" || reacting.solve.stop == Stop::Converged, "{preconditioner}");
        let (found, expected) = (reacting.functionals["centre"], 2.0 / 3.0 + 0.0625);
        assert!((found - expected).abs() <= 1e-7, "{preconditioner}: {found} is not {expected}");
    }
}

#[test]
fn data_of_any_size_are_solved() {
    let boundary = "[[boundary]]\nwhere = \"all\"\ndirichlet = 0";
    let one = centre(16, "source = 1", boundary, "").functionals["centre"];
    for method in METHODS {
        for size in [1e-200, 1e-170, 1e160, 1e250] {
            let solver = format!("method = \"{method}\"");
            let report = centre(16, &format!("source = {size:e}"), boundary, &solver);
            assert_eq!(report.solve.stop, Stop::Converged, "{method} {size:e}");
            let ratio = report.functionals["centre"] / size / one;
            assert!((ratio - 1.0).abs() <= 1e-8, "{method} {size:e}: {ratio}");
        }
    }
    let held = centre(16, "", "[[boundary]]\nwhere = \"all\"\ndirichlet = 1e-170", "");
    assert!((held.functionals["centre"] / 1e-170 - 1.0).abs() <= 1e-9);
}

#[test]
fn what_rounding_does_not_allow_is_not_called_converged() {
    let inclusion = "sigma = \"if(max(abs(x - 0.5), abs(y - 0.5)) < 0.2, 1e12, 1)\"\nsource = 1";
    let zero = "[[boundary]]\nwhere = \"all\"\ndirichlet = 0";
    let almost_free = "[[boundary]]\nwhere = \"all\"\nrobin = { coefficient = 1e-14, value = 0 }";
    let cases = [
        ("lambda = 1e-12\nsource = \"x - 0.4\"", ""),
        ("lambda = 1e-13\nsource = \"x - 0.4\"", ""),
        ("source = 1", almost_free),
        (inclusion, zero),
    ];
    for preconditioner in ["jacobi", "amg"] {
        for method in ["cg", "merged-cg", "pipelined-cg"] {
            if preconditioner == "amg" && method == "merged-cg" {
                continue;
            }
            for (equation, boundary) in cases {
                let solver = format!("preconditioner = \"{preconditioner}\"\nmethod = \"{method}\"");
                let report = centre(16, equation, boundary, &solver);
                let solve = &report.solve;
                let is_sound = solve.stop != Stop::Converged || solve.true_relative_residual <= 2e-10;
                assert!(is_sound, "{solver}, {equation}: {:.1e}", solve.true_relative_residual);
            }
        }
    }
}

#[test]
fn a_solve_at_the_floor_of_rounding_has_converged_or_stagnated() {
    let cases = [
        ("source = \"x - 0.5\"", "preconditioner = \"jacobi\"\ntolerance = 1e-12", true),
        ("lambda = 1e-14\nsource = 1", "preconditioner = \"jacobi\"", false),
        ("lambda = 1e-14\nsource = \"x\"", "preconditioner = \"amg\"", false),
    ];
    for (equation, solver, may_converge) in cases {
        let report = centre(16, equation, "", solver);
        let told = report.warnings.iter().find(|warning| warning.contains("is left after"));
        let is_told =
            told.is_some_and(|told| told.contains(", above ") && told.contains("rounding allows no"));
        let has_converged =
            report.solve.stop == Stop::Converged && report.solve.true_relative_residual <= 2e-12;
        assert!(
            may_converge && has_converged || report.solve.stop == Stop::Stagnated && is_told,
            "{equation}, {solver}: {:?}",
            report.warnings
        );
    }
}

#[test]
fn a_solve_that_breaks_down_leaves_its_best_iterate() {
    let report = centre(16, "lambda = 1e-13\nsource = \"x - 0.4\"", "", "");
    assert_ne!(report.solve.stop, Stop::Converged);
    assert!(report.solve.true_relative_residual <= 1.0, "{}", report.solve.true_relative_residual);
}

#[test]
fn the_estimate_of_the_algebraic_error_is_reported() {
    let report = centre(16, "source = 1", HELD_AT_XMAX, "tolerance = 1e-6");
    let (estimate, norm) = (report.solve.algebraic_error_estimate.unwrap(), report.solve.energy_norm);
    let exact = centre(16, "source = 1", HELD_AT_XMAX, "tolerance = 1e-13");
    assert!((norm / exact.solve.energy_norm - 1.0).abs() <= 1e-6);
    assert!(estimate > 0.0 && estimate <= 2e-5 * norm, "{estimate:e} of {norm:e}");
}

#[test]
fn a_direction_of_small_sigma_hides_no_error_behind_a_stiff_exchange() {
    // On triangles in no order, functions that vary along x alone are a + b x: all others cost the energy of the large entry.
    let n = 6;
    let mut mesh = format!("MeshVersionFormatted 2\nDimension\n2\nVertices\n{}\n", (n + 1) * (n + 1));
    let inner = |i: usize| i > 0 && i < n;
    for (j, i) in (0..=n).flat_map(|j| (0..=n).map(move |i| (j, i))) {
        let moved = if inner(i) && inner(j) { 0.05 * f64::sin((7 * i + 13 * j) as f64) } else { 0.0 };
        let along = |i: usize| i as f64 / n as f64;
        mesh += &format!("{} {} 0\n", along(i) + moved, along(j) + 0.7 * moved);
    }
    mesh += &format!("Triangles\n{}\n", 2 * n * n);
    for (j, i) in (0..n).flat_map(|j| (0..n).map(move |i| (j, i))) {
        let (a, b) = (j * (n + 1) + i + 1, (j + 1) * (n + 1) + i + 1);
        mesh += &match (i + j) % 2 {
            0 => format!("{a} {} {b} 1\n{} {} {b} 1\n", a + 1, a + 1, b + 1),
            _ => format!("{a} {} {} 1\n{a} {} {b} 1\n", a + 1, b + 1, b + 1),
        };
    }
    mesh += "End\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.mesh"), mesh).unwrap();
    let solved = |solver: &str| {
        let text = format!(
            "[mesh]\nfile = \"m.mesh\"\n[equation]\nsigma = [[1e-6, 0], [0, 1e4]]\nsource = 0.1\n[[boundary]]\n\
             where = \"x == 0\"\nrobin = {{ coefficient = 1.5e5, value = 8000 }}\n[solver]\n{solver}\n[output]\n\
             functionals = [{{ name = \"max\", kind = \"max\" }}]\n"
        );
        let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
        case.file.output.directory = folder.path().join("out");
        run(&case, &mut Silent).unwrap()
    };
    // The energy 1e-6 b^2 / 2 - 0.1 b / 2 is least for b = 5e4.
    let expected = 8000.0 + 5e4;
    for method in METHODS {
        let report = solved(&format!("method = \"{method}\"\npreconditioner = \"jacobi\""));
        let converged = report.solve.stop == Stop::Converged;
        assert!(converged || method != "cg", "{:?}", report.warnings);
        let found = report.functionals["max"];
        assert!(!converged || (found / expected - 1.0).abs() < 0.02, "{method}: {found} for {expected}");
    }
}

fn sample(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FEMTILE_SAMPLES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = root.join("meshes/tet").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: {name}: no such sample");
        return None;
    }
    Some(path)
}

#[test]
fn pure_neumann_problems_converge_with_multigrid() {
    let Some(mesh) = sample("cube_cylinder.mesh") else { return };
    let report = solve(&format!(
        "[mesh]\nfile = \"{}\"\n[equation]\nsource = \"x - 0.5\"\n[solver]\npreconditioner = \"amg\"\ntolerance = 1e-12\n",
        mesh.display()
    ));
    assert_eq!(report.solve.stop, Stop::Converged, "{:?}", report.warnings);
    assert!(report.solve.true_relative_residual <= 2e-12);
}
