//! `femtile cache warm`: kernels of a case are compiled once, without a GPU.

use crate::common;

use common::{Workplace, femtile, text};

const CASE: &str = r#"
[mesh]
generate = { kind = "box", cells = [3, 3, 3] }
[equation]
source = "sin(3*x)"
[[boundary]]
where = "xmin"
dirichlet = 0
[solver]
preconditioner = "jacobi"
"#;

fn warm(place: &Workplace, arguments: &[&str]) -> (Option<i32>, String, String) {
    std::fs::write(place.path("case.toml"), CASE).unwrap();
    let output = femtile()
        .current_dir(place.folder.path())
        .env("FEMTILE_CACHE", place.path("kernels"))
        .args(["cache", "warm", "case.toml"])
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_warm_cache_compiles_nothing_for_the_same_case_and_the_form_of_another() {
    if let Err(reason) = femtile::device::cuda::compiler() {
        eprintln!("SKIPPED: a_warm_cache_compiles_nothing_for_the_same_case: {reason}");
        return;
    }
    let place = Workplace::new("");
    let n_compiled = |arguments: &[&str]| -> [usize; 2] {
        let (code, said, error) = warm(&place, arguments);
        assert_eq!(code, Some(0), "{error}");
        assert!(said.contains("for sm_90") && said.contains("kernels"), "{said}");
        let before =
            |word: &str| said.split(word).next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        [before(" programs"), before(" of them compiled")]
    };
    let [n, n_first] = n_compiled(&["--sm", "90"]);
    assert!(n > 5 && n_first == n, "{n_first} of {n}");
    assert_eq!(n_compiled(&["--sm", "90"]), [n, 0]);
    // Another source makes another program of assembly, and that one alone.
    assert_eq!(n_compiled(&["--sm", "90", "--set", "equation.source=cos(x)"]), [n, 1]);
    let files = std::fs::read_dir(place.path("kernels")).unwrap().count();
    assert_eq!(files, n + 1);
}

#[test]
fn without_a_gpu_the_architecture_has_to_be_given() {
    if femtile::device::cuda::gpus().is_ok() {
        return;
    }
    let (code, _, error) = warm(&Workplace::new(""), &[]);
    assert!(code != Some(0) && error.contains("--sm 90"), "{error}");
}
