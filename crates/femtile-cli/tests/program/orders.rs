//! `femtile verify --exact`.

use serde_json::Value;

use super::common::{Workplace, femtile, text};

const CASE: &str = r#"
[mesh]
generate = { kind = "square", cells = [4, 4] }
[unknown]
u = { degree = 2 }
[equation]
kind = "form"
flux = "(1 + u^2)*grad(u)"
[[boundary]]
where = "xmin"
dirichlet = 0
"#;

#[test]
fn orders_of_a_case_are_verified() {
    let place = Workplace::new(CASE);
    let verify =
        |more: &[&str]| femtile().current_dir(place.folder.path()).arg("verify").args(more).output().unwrap();
    let smooth = ["--exact", "u = sin(x)*exp(y)"];
    // A folder stands for its case file.
    let output = verify(&[&["."], &smooth[..], &["--json", "orders.json"]].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(said.contains("error in L²") && said.contains("degree 2: orders 3 and 2 are expected"), "{said}");
    assert!(said.ends_with("verified: the errors fall at the orders of theory\n"), "{said}");
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("orders.json")).unwrap()).unwrap();
    assert_eq!(report["verdict"]["kind"], "verified");
    let levels = report["levels"].as_array().unwrap();
    let n_cells: Vec<_> = levels.iter().map(|level| level["n_cells"].as_u64().unwrap()).collect();
    assert_eq!(n_cells, [32, 128, 512]);
    assert!(levels.iter().all(|level| level["newton_iterations"].as_u64().unwrap() > 1), "{report}");
    // Nothing else is written.
    assert!(!place.path("out").exists());

    let kinked = ["case.toml", "--exact", "u = abs(x - 0.4)", "--set", "unknown.u.degree=1", "--levels", "2"];
    let output = verify(&kinked);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("the function is not smooth enough"), "{output:?}");
    let output = verify(&["case.toml", "--exact", "v = x"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("there is no unknown `v`"), "{output:?}");
    // Results have no levels.
    assert_eq!(verify(&["out", "--levels", "3"]).status.code(), Some(2));
}
