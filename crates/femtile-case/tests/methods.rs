//! The iterative methods that a case may name.

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_linalg::krylov::Stop;

const BALL: &str = r#"
[mesh]
generate = { kind = "box", cells = [7, 6, 5] }
[equation]
sigma = "1 + x"
source = "1 + y"
[[boundary]]
where = "xmin"
dirichlet = "z"
[output]
functionals = [{ name = "energy", kind = "energy" }]
"#;

const HEXAHEDRA: &str = r#"
[mesh]
generate = { kind = "box", cell = "hexahedron", cells = [3, 3, 3] }
[space]
degree = 3
[equation]
source = 1
[[boundary]]
where = "all"
dirichlet = 0
[output]
functionals = [{ name = "energy", kind = "energy" }]
"#;

fn solve(text: &str) -> Result<Report, CaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::parse(&folder.path().join("case.toml"), text.into())?;
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent)
}

#[test]
fn every_method_solves_the_same_case() {
    for case in [BALL, HEXAHEDRA] {
        let plain = solve(case).unwrap();
        for (lines, steps, key) in [
            ("method = \"cg\"", 1, "hestenes1952"),
            ("method = \"merged-cg\"", 1, "kronbichler2022"),
            ("method = \"merged-cg\"\npreconditioner = \"none\"", 0, "kronbichler2022"),
            ("method = \"pipelined-cg\"", 1, "ghysels2014"),
            ("method = \"pipelined-cg\"\npreconditioner = \"none\"", 0, "ghysels2014"),
            ("method = \"s-step-cg\"", 3, "chronopoulos1989"),
            ("method = \"s-step-cg\"\nsteps = 2", 2, "chronopoulos1989"),
            ("method = \"s-step-cg\"\nsteps = 4\npreconditioner = \"none\"", 0, "chronopoulos1989"),
        ] {
            let report = solve(&format!("{case}[solver]\n{lines}\n")).unwrap();
            assert_eq!(report.solve.stop, Stop::Converged, "{lines}");
            let (found, expected) = (report.functionals["energy"], plain.functionals["energy"]);
            assert!((found - expected).abs() <= 1e-8 * expected, "{lines}: {found} is not {expected}");
            assert!(report.citations.iter().any(|cited| cited == key), "{lines}: {:?}", report.citations);
            assert!(report.solve.true_relative_residual <= 2e-10);
            if steps > 0 {
                let expected = plain.solve.iterations.next_multiple_of(steps);
                assert!(report.solve.iterations.abs_diff(expected) <= steps, "{lines}");
            }
        }
    }
}

#[test]
fn pipelined_conjugate_gradients_take_multigrid() {
    let lines = "preconditioner = \"amg\"\nmethod";
    let report = |method| solve(&format!("{BALL}[solver]\n{lines} = \"{method}\"\n")).unwrap();
    let (plain, pipelined) = (report("cg"), report("pipelined-cg"));
    assert_eq!(pipelined.solve.stop, Stop::Converged);
    assert!(pipelined.solve.iterations.abs_diff(plain.solve.iterations) <= 1);
}

#[test]
fn multigrid_takes_double_precision_where_single_does_not_hold_the_matrix() {
    let case = |sigma: &str| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"box\", cells = [7, 7, 7] }}\n[equation]\nsigma = {sigma}\nsource = 1\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[solver]\npreconditioner = \"amg\"\n"
        )
    };
    let usual = solve(&case("1")).unwrap();
    assert!(usual.warnings.is_empty(), "{:?}", usual.warnings);
    for (sigma, allowed) in [("1e-40", true), ("1e38", true), ("\"if(x < 0.5, 1e-17, 1)\"", false)] {
        let report = solve(&case(sigma)).unwrap();
        if allowed {
            assert_eq!(report.solve.stop, Stop::Converged, "σ = {sigma}");
            assert!(
                report.solve.iterations <= usual.solve.iterations + 12,
                "σ = {sigma}: {:?}",
                report.solve
            );
        } else {
            // A contrast beyond what f64 tells apart: no solution to the tolerance, and none is claimed.
            assert_eq!(report.solve.stop, Stop::Stagnated, "σ = {sigma}");
        }
        assert!(report.warnings.iter().any(|w| w.contains("f64")), "{:?}", report.warnings);
    }
}

/// A box of flat cells, along which the matrix has strong entries only, held on one side.
fn flat(cell: &str, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"box\", cell = \"{cell}\", cells = [12, 12, 12], upper = [1, 1, 0.1] }}\n\
         [equation]\nsource = 1\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[output]\n\
         functionals = [{{ name = \"energy\", kind = \"energy\" }}]\n[solver]\npreconditioner = \"amg\"\n{solver}\n"
    )
}

#[test]
fn aggregates_that_follow_the_mesh_make_other_levels_and_the_same_solution() {
    for smoother in ["chebyshev", "patch"] {
        let [matrix, mesh] = ["matrix", "mesh"].map(|graph| {
            let amg = format!("amg = {{ graph = \"{graph}\", smoother = \"{smoother}\" }}");
            solve(&flat("tetrahedron", &amg)).unwrap()
        });
        for report in [&matrix, &mesh] {
            assert_eq!(report.solve.stop, Stop::Converged, "{smoother}");
        }
        assert!(mesh.solve.levels.len() > 1 && mesh.solve.levels != matrix.solve.levels, "{smoother}");
        let (found, expected) = (mesh.functionals["energy"], matrix.functionals["energy"]);
        assert!((found - expected).abs() <= 1e-8 * expected, "{smoother}: {found} is not {expected}");
    }
    assert_eq!(solve(&flat("tetrahedron", "amg = { graph = \"matrix\" }")).unwrap().solve.levels, {
        solve(&flat("tetrahedron", "")).unwrap().solve.levels
    });
}

#[test]
fn aggregates_of_hexahedra_do_not_follow_the_mesh() {
    for preconditioner in ["amg", "pmg"] {
        let text = flat("hexahedron", "amg = { graph = \"mesh\" }")
            .replace("\"amg\"", &format!("\"{preconditioner}\""));
        let Err(CaseError::Input { key, span, message, .. }) = solve(&text) else {
            panic!("{preconditioner}")
        };
        assert_eq!(key.as_deref(), Some("solver.amg.graph"), "{preconditioner}");
        assert_eq!(span.map(|span| text[span].to_string()).as_deref(), Some("\"mesh\""), "{preconditioner}");
        assert!(message.contains("hexahedron") && message.contains("\"matrix\""), "{message}");
    }
}
