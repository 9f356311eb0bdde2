//! `femtile cache warm`: kernels of a case are compiled once, without a GPU.

use crate::common;

use std::collections::BTreeMap;

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
    warm_with(place, arguments, "2")
}

/// Compiles on some threads; where they are many, most of them leave it to processes of their own.
fn warm_with(place: &Workplace, arguments: &[&str], n_threads: &str) -> (Option<i32>, String, String) {
    std::fs::write(place.path("case.toml"), CASE).unwrap();
    let output = femtile()
        .current_dir(place.folder.path())
        .env("FEMTILE_CACHE", place.path("kernels"))
        .env("RAYON_NUM_THREADS", n_threads)
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
fn kernels_are_the_same_however_many_processes_compile_them() {
    if let Err(reason) = femtile::device::cuda::compiler() {
        eprintln!("SKIPPED: kernels_are_the_same_however_many_processes_compile_them: {reason}");
        return;
    }
    let kernels = |n_threads: &str| {
        let place = Workplace::new("");
        let (code, _, error) = warm_with(&place, &["--sm", "80"], n_threads);
        assert_eq!(code, Some(0), "{error}");
        let entries = std::fs::read_dir(place.path("kernels")).unwrap().flatten();
        // The log before the code has times.
        let code = |bytes: &[u8]| {
            let begin = bytes.windows(4).position(|four| four == b"\x7fELF").unwrap();
            bytes[begin..].to_vec()
        };
        entries
            .map(|entry| (entry.file_name(), code(&std::fs::read(entry.path()).unwrap())))
            .collect::<BTreeMap<_, _>>()
    };
    let (alone, together) = (kernels("1"), kernels("9"));
    assert!(alone.len() > 5 && alone == together, "{:?} {:?}", alone.keys(), together.keys());
}

#[test]
fn without_a_gpu_the_architecture_has_to_be_given() {
    if femtile::device::cuda::gpus().is_ok() {
        return;
    }
    let (code, _, error) = warm(&Workplace::new(""), &[]);
    assert!(code != Some(0) && error.contains("--sm 90"), "{error}");
}
