//! Benchmarks at a size that is done in seconds.

use crate::{bench, text};

#[test]
fn benchmarks_are_listed_with_a_word_on_each() {
    let output = bench().output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success() && said.lines().count() > 10 && said.contains("spmv"), "{said}");
}

#[test]
fn multigrid_is_measured_beside_the_peers_that_are_there() {
    let size = ["--nodes", "9", "--threads", "1", "--repeats", "1"];
    let mut program = bench();
    program.args(["amg", "--problem", "regular", "--peers", "--json", "-"]).args(size);
    program.env_remove("FEMTILE_AMGCL").env("PATH", "").env("FEMTILE_PYTHON", "no-such-python");
    let output = program.output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("SKIPPED: AMGCL") && said.contains("FEMTILE_AMGCL"), "{said}");
    let records: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    for part in ["amg set-up, regular", "amg-cg solve, regular"] {
        assert!(records.iter().any(|record| record["problem"] == part), "{records:?}");
    }
    for record in records {
        let iterations = record["parameters"]["iterations"].as_u64().unwrap();
        assert!((1..40).contains(&iterations) && record["seconds_min"].as_f64().unwrap() > 0.0, "{record}");
    }
}

#[test]
fn a_mesh_that_refinement_does_not_lead_to_is_refused_with_those_it_does() {
    let arguments = ["amg", "--problem", "regular", "--nodes", "64"];
    let output = bench().args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("65"), "{}", text(&output.stderr));
}
