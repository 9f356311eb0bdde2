//! Results have the same bits on every SIMD path where `docs/command-line.md` promises it.

use serde_json::Value;

use crate::common::{Workplace, femtile, text};

/// Meshes with the degree of their elements.
const MESHES: [(&str, usize); 5] = [
    ("kind = \"square\", cells = [8, 9]", 1),
    ("kind = \"box\", cells = [4, 5, 3]", 1),
    ("kind = \"square\", cells = [8, 9], cell = \"quadrilateral\", deform = 0.05", 1),
    ("kind = \"box\", cells = [4, 5, 3], cell = \"hexahedron\", deform = 0.05", 1),
    ("kind = \"box\", cells = [3, 2, 3], cell = \"hexahedron\"", 2),
];
/// Every method with each preconditioner that it takes beside a matrix, `amg` for degree 1.
const SOLVERS: [(&str, &[&str]); 5] = [
    ("cg", &["jacobi", "none", "amg"]),
    ("merged-cg", &["jacobi", "none"]),
    ("pipelined-cg", &["jacobi", "none", "amg"]),
    ("s-step-cg", &["jacobi", "none"]),
    ("gmres", &["jacobi", "none", "amg"]),
];

/// Residuals and functionals of a solve on one path; none where the processor lacks the path.
fn results(place: &Workplace, level: &str) -> Option<[Value; 2]> {
    let mut command = femtile();
    command.current_dir(place.folder.path()).env("FEMTILE_SIMD", level);
    let output =
        command.args(["solve", "case.toml", "--threads", "2", "--json", "-", "--quiet"]).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("is not available here") {
        return None;
    }
    assert!(output.status.success(), "{level}: {said}");
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    Some([report["solve"]["residuals"].take(), report["functionals"].take()])
}

fn case(
    (mesh, degree): (&str, usize),
    coefficients: &str,
    (method, preconditioner): (&str, &str),
    format: &str,
) -> Workplace {
    Workplace::new(&format!(
        r#"[mesh]
generate = {{ {mesh} }}
[space]
degree = {degree}
[equation]
{coefficients}
source = "1 + x"
[[boundary]]
where = "all"
robin = {{ coefficient = 2, value = "y" }}
[[boundary]]
where = "xmin"
dirichlet = "y*y"
[solver]
operator = "assembled"
format = "{format}"
method = "{method}"
preconditioner = "{preconditioner}"
tolerance = 1e-8
[output]
plot = false
functionals = [{{ name = "max", kind = "max" }}, {{ name = "energy", kind = "energy" }}, {{ name = "norm", kind = "l2_norm" }}]
"#
    ))
}

#[test]
fn every_simd_path_gives_the_same_bits_with_an_assembled_matrix() {
    for mesh in MESHES {
        for coefficients in ["", "sigma = \"1 + x*y\"\nlambda = \"x\""] {
            for (method, preconditioners) in SOLVERS {
                for preconditioner in preconditioners {
                    if mesh.1 != 1 && *preconditioner == "amg" {
                        continue;
                    }
                    let place = case(mesh, coefficients, (method, preconditioner), "csr");
                    let what = format!("{mesh:?}, {coefficients}, {method}, {preconditioner}");
                    assert_same(&place, &what);
                }
            }
        }
    }
}

#[test]
fn every_simd_path_gives_the_same_bits_with_slices_of_rows() {
    for mesh in MESHES {
        for solver in [("cg", "jacobi"), ("merged-cg", "none")] {
            let place = case(mesh, "sigma = \"1 + x*y\"", solver, "ell-warp");
            assert_same(&place, &format!("{mesh:?}, {solver:?}"));
        }
    }
}

fn assert_same(place: &Workplace, what: &str) {
    let scalar = results(place, "scalar").expect("every processor has it");
    for level in ["avx2", "avx512"] {
        let found = results(place, level);
        assert!(found.is_none_or(|found| found == scalar), "{what}, {level}");
    }
}
