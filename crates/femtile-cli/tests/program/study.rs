//! `femtile study`.

use std::process::Output;

use serde_json::Value;

use super::common::{Workplace, femtile, text};

const CASE: &str = r#"
[mesh]
generate = { kind = "square", cells = [4, 4] }
[equation]
source = "2*pi^2*sin(pi*x)*sin(pi*y)"
[[boundary]]
where = "all"
dirichlet = 0
[output]
plot = false
functionals = [
    { name = "error", kind = "error_l2", exact = "sin(pi*x)*sin(pi*y)" },
    { name = "slope", kind = "error_h1", exact = "sin(pi*x)*sin(pi*y)" },
    { name = "energy", kind = "energy" },
]
"#;

fn study(place: &Workplace, more: &[&str]) -> Output {
    femtile().current_dir(place.folder.path()).args(["study", "case.toml"]).args(more).output().unwrap()
}

/// The table of a study that ends with `code`, as the option `--json` has it.
fn table(place: &Workplace, code: i32, more: &[&str]) -> Vec<Value> {
    let output = study(place, &[more, &["--json", "-", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_combinations_are_run_with_orders_in_the_table() {
    let place = Workplace::new(CASE);
    let vary = ["--vary", "mesh.refine=0..3", "--vary", "solver.preconditioner=amg,jacobi"];
    let output = study(&place, &vary);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("1, jacobi: converged, energy"), "{said}");
    assert!(said.contains("of error (solver.preconditioner=amg)\n"), "{said}");
    let csv = std::fs::read_to_string(place.path("out/study/study.csv")).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        lines[0][..12].join(","),
        "mesh.refine,solver.preconditioner,cells,unknowns,iterations,newton_iterations,seconds,stop,converged,energy,\
         error,slope"
    );
    assert_eq!(lines.len(), 9);
    let column = |name: &str| lines[0].iter().position(|known| *known == name).unwrap();
    let counts = |name: &str| lines[1..].iter().map(|line| line[column(name)]).collect::<Vec<_>>().join(" ");
    assert_eq!(counts("mesh.refine"), "0 0 1 1 2 2 3 3");
    assert_eq!(counts("unknowns"), "25 25 81 81 289 289 1089 1089");
    // Orders of theory: 2 in L², 1 of the gradient, 2 of the energy by extrapolation; its limit is π²/2.
    let number = |row: usize, name: &str| lines[row][column(name)].parse::<f64>().unwrap();
    for row in [7, 8] {
        assert!((number(row, "order of error") - 2.0).abs() < 0.05);
        assert!((number(row, "order of slope") - 1.0).abs() < 0.05);
        assert!((number(row, "order of energy") - 2.0).abs() < 0.1);
        assert!((number(row, "limit of energy") - std::f64::consts::PI.powi(2) / 2.0).abs() < 1e-3);
    }
    // Errors have an order from two meshes on, other numbers from three.
    assert!(
        lines[3][column("order of error")].starts_with("1.")
            && lines[3][column("order of energy")].is_empty()
    );
    let svg = std::fs::read_to_string(place.path("out/study/study.svg")).unwrap();
    for name in ["slope (solver.preconditioner=jacobi): order 1.00", "error of energy"] {
        assert!(svg.contains(name), "{svg}");
    }
    // Each run has its results in a folder of its own.
    let own = place.path("out/study/mesh.refine=3,solver.preconditioner=jacobi");
    let report: Value = serde_json::from_slice(&std::fs::read(own.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["solve"]["preconditioner"], "jacobi");
    assert!((report["functionals"]["slope"].as_f64().unwrap() - number(8, "slope")).abs() < 1e-14);
}

#[test]
fn a_study_goes_on_where_it_was_and_runs_again_what_has_changed() {
    let place = Workplace::new(CASE);
    let kept = |more: &[&str]| {
        let output = study(&place, more);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stdout).matches("(complete before)").count()
    };
    let vary = |values: &'static str| ["--vary", values, "--out", "all"];
    assert_eq!(kept(&vary("mesh.refine=0..1")), 0);
    let first = std::fs::read_to_string(place.path("all/study.csv")).unwrap();
    assert_eq!(kept(&vary("mesh.refine=0..1")), 2);
    assert_eq!(std::fs::read_to_string(place.path("all/study.csv")).unwrap(), first);
    assert_eq!(kept(&vary("mesh.refine=0..2")), 2);
    assert_eq!(kept(&[&vary("mesh.refine=0..2")[..], &["--again"]].concat()), 0);
    // Other values, other results, another case.
    assert_eq!(kept(&[&vary("mesh.refine=0..2")[..], &["--set", "solver.tolerance=1e-8"]].concat()), 0);
    std::fs::write(place.path("all/mesh.refine=1/solution.vtu"), "").unwrap();
    assert_eq!(kept(&[&vary("mesh.refine=0..2")[..], &["--set", "solver.tolerance=1e-8"]].concat()), 2);
    let other = femtile()
        .current_dir(place.folder.path())
        .args(["solve", "case.toml", "--quiet", "--output", "all/mesh.refine=0"])
        .status();
    assert!(other.unwrap().success());
    assert_eq!(kept(&[&vary("mesh.refine=0..2")[..], &["--set", "solver.tolerance=1e-8"]].concat()), 2);
    std::fs::write(place.path("case.toml"), CASE.replace("sin(pi*y)\"", "sin(pi*y) + 1\"")).unwrap();
    assert_eq!(kept(&vary("mesh.refine=0..2")), 0);
    // So does another mesh in the same file.
    let mesh = |cells: &str| {
        let kind = format!("kind = \"square\", cells = {cells}");
        let made = femtile()
            .current_dir(place.folder.path())
            .args(["mesh", "generate", &kind, "plate.msh"])
            .status()
            .unwrap();
        assert!(made.success());
    };
    mesh("[3, 3]");
    let generated = "generate = { kind = \"square\", cells = [4, 4] }";
    std::fs::write(place.path("case.toml"), CASE.replace(generated, "file = \"plate.msh\"")).unwrap();
    assert_eq!([kept(&vary("mesh.refine=0,1")), kept(&vary("mesh.refine=0,1"))], [0, 2]);
    mesh("[3, 4]");
    assert_eq!(kept(&vary("mesh.refine=0,1")), 0);
}

#[test]
fn a_run_that_fails_leaves_a_row_and_the_others_go_on() {
    let place = Workplace::new(CASE);
    let rows = table(&place, 1, &["--vary", "boundary[0].where=all,nowhere", "--vary", "space.degree=1,2"]);
    assert_eq!(rows.len(), 4);
    assert_eq!((&rows[0]["converged"], &rows[0]["failure"]), (&Value::Bool(true), &Value::Null));
    assert!(rows[2]["failure"].as_str().unwrap().contains("no tag `nowhere`"), "{rows:?}");
    assert!(rows[2]["unknowns"].is_null() && rows[2]["error"].is_null());
    assert_eq!(rows[2]["folder"], "boundary_0_.where=nowhere,space.degree=1-".to_owned() + &digits(&rows[2]));
    // One that does not converge has its numbers.
    let rows = table(
        &place,
        1,
        &["--vary", "solver.max_iterations=1,1000", "--set", "solver.preconditioner=jacobi"],
    );
    assert_eq!((&rows[0]["stop"], &rows[0]["converged"]), (&"max_iterations".into(), &Value::Bool(false)));
    assert_eq!(rows[1]["converged"], true);
}

/// The end of the name of a folder.
fn digits(row: &Value) -> String {
    let (_, digits) = row["folder"].as_str().unwrap().rsplit_once('-').unwrap();
    assert_eq!(digits.len(), 8);
    digits.into()
}

#[test]
fn steps_in_time_have_orders_too() {
    let place = Workplace::new(
        r#"
[mesh]
generate = { kind = "square", cells = [3, 3] }
[equation]
kind = "diffusion"
initial = "1 + cos(pi*x)"
[time]
method = "crank-nicolson"
end = 0.2
[output]
functionals = [{ name = "corner", kind = "value_at", point = [0, 0] }, { name = "cells", kind = "integral" }]
"#,
    );
    let rows = table(&place, 0, &["--vary", "time.steps=10,20,40,80"]);
    // A functional with the name of a column.
    assert!(
        rows.iter()
            .all(|row| (row["functional cells"].as_f64().unwrap() - 1.0).abs() < 1e-9 && row["cells"] == 18),
        "{rows:?}"
    );
    let order = rows[3]["order of corner"].as_f64().unwrap();
    assert!((order - 2.0).abs() < 0.1, "{order}");
    let svg = std::fs::read_to_string(place.path("out/study/study.svg")).unwrap();
    assert!(svg.contains("relative length of steps"), "{svg}");
    // Of one level there is no order, and no plot of an earlier study.
    assert!(table(&place, 0, &["--vary", "time.steps=10"])[0].get("order of corner").is_none());
    assert!(!place.path("out/study/study.svg").exists());
}

#[test]
fn studies_without_a_sense_are_refused_before_anything_is_run() {
    let place = Workplace::new(CASE);
    for (more, words) in [
        (&["--vary", "mesh.refine"][..], "KEY=VALUES"),
        (&["--vary", "mesh.refine=2..1"], "--vary mesh.refine=2..1: the range"),
        (&["--vary", "solver.tolrance=1e-6,1e-8"], "--vary solver.tolrance=1e-6"),
        (&["--vary", "mesh.refine=0,1", "--vary", "mesh.refine=2"], "varied twice"),
        (&["--vary", "mesh.refine=0..200", "--vary", "solver.threads=1..200"], "more than 10000 runs"),
        (&["--vary", "output.directory=a,b"], "a folder of its own"),
        (&["--vary", "mesh.refine=0", "--set", "solver=3"], "--set solver=3"),
        (&[], "--vary"),
    ] {
        let output = study(&place, more);
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{more:?}: {said}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn matrices_are_in_the_table() {
    let text = CASE
        .replace("plot = false", "plot = false\nmatrix = [\"xmin\", \"xmax\"]")
        .replace("where = \"all\"", "where = \"xmin\"");
    let place = Workplace::new(&text);
    for row in table(&place, 0, &["--vary", "equation.sigma=1,3"]) {
        let sigma = row["equation.sigma"].as_f64().unwrap();
        for (name, expected) in [("matrix[0][0]", sigma), ("matrix[0][1]", -sigma)] {
            assert!((row[name].as_f64().unwrap() - expected).abs() < 1e-6, "{row}");
        }
    }
}

#[test]
fn runs_at_a_time_share_the_threads_and_leave_the_same_table() {
    let place = Workplace::new(CASE);
    let vary = ["--vary", "boundary[0].where=all,nowhere", "--vary", "mesh.refine=0..3"];
    let set = ["--set", "solver.threads=6"];
    let rows = |more: &[&str]| {
        let mut rows = table(&place, 1, &[&vary[..], &set, more].concat());
        rows.iter_mut().for_each(|row| row["seconds"] = Value::Null);
        rows
    };
    let one = rows(&["--out", "one"]);
    let three = rows(&["--out", "three", "--jobs", "3"]);
    assert_eq!(one.len(), 8);
    assert_eq!(one, three);
    assert!((three[3]["order of error"].as_f64().unwrap() - 2.0).abs() < 0.1);
    // Each run has its share.
    for (folder, threads) in [("one", "6 threads"), ("three", "2 threads")] {
        let path = place.path(&format!("{folder}/{}/report.json", one[3]["folder"].as_str().unwrap()));
        let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(report["device"].as_str().unwrap().contains(threads), "{report}");
    }
    // The lines are in the order of the values, and complete runs are kept whatever the number at a time.
    let output = study(&place, &[&vary[..], &set, &["--out", "three", "--jobs", "2"]].concat());
    let said = text(&output.stdout);
    let begins: Vec<usize> =
        (0..4).map(|level| said.find(&format!(" all, {level}: converged")).unwrap()).collect();
    assert!(begins.is_sorted(), "{said}");
    assert_eq!(said.matches("(complete before)").count(), 4, "{said}");
}

#[test]
fn runs_at_a_time_are_refused_on_a_gpu() {
    let place = Workplace::new(CASE);
    for (more, words) in [
        (
            ["--jobs", "2", "--set", "solver.device=cuda"],
            "--jobs: runs at a time share the threads of the CPU",
        ),
        (["--jobs", "0", "--set", "solver.device=cpu"], "--jobs"),
        (["--report", "-", "--set", "solver.device=cpu"], "--report needs the name of a file"),
        (
            ["--report", "no/study.html", "--set", "solver.device=cpu"],
            "--report no/study.html: there is no folder `no`",
        ),
        (
            ["--report", "out/study/study.csv", "--set", "solver.device=cpu"],
            "the study writes its table or plot there",
        ),
        (["--report", "out/study/../study/study.svg", "--output", "out/study/../study"], "--report"),
        (["--report", "a.html", "--json", "./a.html"], "--report and --json name the same file"),
        (["--jobs", "2", "--vary", "solver.threads=1,2"], "`solver.threads` cannot be varied"),
        (["--jobs", "2", "--vary", "solver.device=cpu,auto"], "`solver.device` cannot be varied"),
    ] {
        let output = study(&place, &[&["--vary", "mesh.refine=0,1"][..], &more].concat());
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{more:?}: {said}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn the_page_of_a_study_has_its_orders_plot_and_table() {
    let place = Workplace::new(CASE);
    let output = study(&place, &["--vary", "mesh.refine=0..2", "--report", "study.html"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = std::fs::read_to_string(place.path("study.html")).unwrap();
    for part in [
        "<p>3 runs</p>",
        "<dt>order of error</dt><dd>1.9",
        "src=\"data:image/svg+xml;base64,",
        "<th scope=\"col\">mesh.refine</th>",
        "<td>mesh.refine=2</td>",
        "where = &quot;all&quot;",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // It may lie in the folder that the study makes, and has the values that replace those of the case.
    let more = ["--set", "equation.lambda=2.5", "--output", "new", "--report", "new/study.html"];
    let output = study(&place, &[&["--vary", "mesh.refine=0"][..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = std::fs::read_to_string(place.path("new/study.html")).unwrap();
    assert!(page.contains("<dt>equation.lambda</dt><dd>2.5</dd>"), "{page}");
    // Without orders there is no plot.
    let output = study(&place, &["--vary", "equation.lambda=1,2", "--report", "study.html"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = std::fs::read_to_string(place.path("study.html")).unwrap();
    assert!(page.contains("<td>equation.lambda=2</td>") && !page.contains("data:image/svg+xml"), "{page}");
}
