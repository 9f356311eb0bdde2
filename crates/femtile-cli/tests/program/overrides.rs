//! `femtile solve` with `--set`, `--mesh` and a case from standard input.

use crate::common;

use std::io::Write;
use std::process::Stdio;

use common::{Workplace, femtile, text};

const CASE: &str = r#"
[mesh]
generate = { kind = "square", cells = [8, 8] }

[equation]
source = 1

[[boundary]]
where = "all"
dirichlet = 0

[[boundary]]
where = "x < 1e-9"
dirichlet = 1

[output]
functionals = [{ name = "peak", kind = "max" }, { name = "smallest", kind = "min" }]
"#;

#[test]
fn any_value_of_a_case_can_be_set() {
    let place = Workplace::new(CASE);
    let peak = |more: &[&str]| place.report(more, 0)["functionals"]["peak"].as_f64().unwrap();
    assert!((peak(&[]) - 1.0).abs() < 0.1);
    assert!((peak(&["--set", "boundary[1].dirichlet=5"]) - 5.0).abs() < 1e-12);
    assert!(
        (peak(&["--set", "boundary[1].dirichlet=5*y", "--set", "boundary[0].dirichlet=7"]) - 7.0).abs()
            < 1e-9
    );
    let found =
        place.report(&["--set", "mesh.generate.cells=[4, 4]", "--set", "solver.preconditioner=amg"], 0);
    assert_eq!(found["mesh"]["n_nodes"], 25);
    assert!(found["solve"]["levels"].is_array());
    // The later one wins, and options that are named beside win over both.
    let limits = |more: &[&str]| {
        let jacobi = ["--set", "solver.preconditioner=jacobi", "--set", "solver.max_iterations=1"];
        place.report(&[&jacobi, more].concat(), 1)["solve"]["iterations"].as_u64()
    };
    assert_eq!(limits(&[]), Some(1));
    assert_eq!(limits(&["--set", "solver.max_iterations=2"]), Some(2));
    assert_eq!(limits(&["--max-iterations", "3"]), Some(3));
}

#[test]
fn an_invalid_value_is_reported_with_its_option_and_not_with_a_place_in_the_file() {
    let place = Workplace::new(CASE);
    for (option, words) in [
        ("solver.tolrance=1e-8", "`tolerance`"),
        ("solver.tolerance=2", "below 1"),
        ("solver.tolerance=soon", "number"),
        ("solver=3", "a table"),
        ("nothing.at.all=3", "unknown key `nothing`"),
        ("boundary[2].dirichlet=1", "there is no `boundary[2]`: the case has 2 of them"),
        ("boundary[0].dirichlet.by_tag.a=1", "`boundary[0].dirichlet` of the case is not a table"),
        ("boundary[0].where=nowhere", "no tag `nowhere`"),
        ("boundary[0].dirichlet=1 +* x", "`*` stands where"),
        ("equation.source=1/0", "source is inf"),
        ("solver.device=gpu", "`gpu`"),
        ("mesh.generate.cells=[0, 4]", "at least one in each direction"),
        ("solver.tolerance", "KEY=VALUE"),
        ("=1", "KEY=VALUE"),
    ] {
        let said = place.refusal(&["--set", option], 2);
        assert!(said.contains(&format!("--set {option}")) && said.contains(words), "{option}: {said}");
        assert!(!said.contains("case.toml"), "{option}: {said}");
    }
    std::fs::write(place.path("taken"), "").unwrap();
    let taken = format!("output.directory={}", place.path("taken").display());
    for (option, code, words) in [
        ("solver.device=cuda:99", 3, "cuda:99"),
        ("solver.threads=100000", 3, "100000"),
        (taken.as_str(), 2, "cannot write results to"),
    ] {
        let said = place.refusal(&["--set", option], code);
        assert!(said.contains(&format!("--set {option}")) && said.contains(words), "{option}: {said}");
    }
    // An option that is named beside is the one to blame.
    let said = place.refusal(&["--set", "solver.threads=2", "--threads", "100000"], 3);
    assert!(said.contains("100000") && !said.contains("--set"), "{said}");
    // Where file and option do not go together, the place is shown with the option.
    let said = place.refusal(&["--set", "mesh.file=a.msh"], 2);
    assert!(said.contains("exactly one of `file` and `generate` (with --set mesh.file=a.msh)"), "{said}");
    // Without the option to blame, the place in the file is shown as ever.
    let place = Workplace::new(&CASE.replace("source = 1", "sorce = 1"));
    let said = place.refusal(&["--set", "solver.tolerance=1e-8"], 2);
    assert!(said.contains("case.toml") && said.contains("sorce = 1"), "{said}");
    let place = Workplace::new(&CASE.replace("source = 1", "source = \"1 +\""));
    let said = place.refusal(&["--set", "solver.tolerance=1e-8"], 2);
    assert!(said.contains("case.toml") && !said.contains("--set"), "{said}");
}

#[test]
fn a_mesh_file_takes_the_place_of_the_mesh_of_the_case() {
    let place = Workplace::new(CASE);
    let generated = femtile()
        .current_dir(place.folder.path())
        .args(["mesh", "generate", "kind = \"square\", cells = [3, 5]", "fine.msh"])
        .output()
        .unwrap();
    assert!(generated.status.success(), "{}", text(&generated.stderr));
    assert_eq!(place.report(&["--mesh", "fine.msh"], 0)["mesh"]["n_nodes"], 24);
    // Relative to the current folder, wherever the case lies, and also where the case names no mesh.
    std::fs::create_dir(place.path("cases")).unwrap();
    let without = CASE.replace("generate = { kind = \"square\", cells = [8, 8] }", "");
    std::fs::write(place.path("cases/case.toml"), without.replace("[mesh]", "")).unwrap();
    let ran = femtile()
        .current_dir(place.folder.path())
        .args(["solve", "cases/case.toml", "--mesh", "fine.msh", "--quiet"])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let place = Workplace::new(CASE);
    let said = place.refusal(&["--mesh", "none.msh"], 2);
    assert!(said.contains("--mesh none.msh") && said.contains("none.msh: cannot read"), "{said}");
}

#[test]
fn a_case_is_read_from_standard_input_with_paths_from_the_current_folder() {
    let place = Workplace::new("");
    let solve = |case: &str, more: &[&str]| {
        let mut child = femtile()
            .current_dir(place.folder.path())
            .args(["solve", "-", "--quiet"])
            .args(more)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(case.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let made = femtile()
        .current_dir(place.folder.path())
        .args(["mesh", "generate", "kind = \"square\", cells = [3, 5]", "fine.msh"])
        .status()
        .unwrap();
    assert!(made.success());
    let case = CASE.replace("generate = { kind = \"square\", cells = [8, 8] }", "file = \"fine.msh\"");
    assert_eq!(solve(&case, &["--set", "solver.tolerance=1e-6"]), (Some(0), String::new()));
    assert!(place.path("out/solution.vtu").is_file());
    let (code, said) = solve(&case.replace("source", "sauce"), &[]);
    assert!(code == Some(2) && said.contains("standard input") && said.contains("sauce"), "{said}");
}
