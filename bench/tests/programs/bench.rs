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

#[test]
fn whole_runs_are_measured_stage_by_stage() {
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_femtile-bench")).with_file_name("femtile");
    if !beside.with_extension(std::env::consts::EXE_EXTENSION).is_file() {
        return eprintln!("SKIPPED: femtile is not built beside femtile-bench");
    }
    let size = ["--unknowns", "1500", "--threads", "2", "--repeats", "1", "--device", "cpu", "--json", "-"];
    let output = bench().arg("whole").args(size).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(records.len(), 7);
    for record in records {
        let of = |name: &str| record["parameters"][name].as_f64().unwrap();
        assert!(of("nodes") >= 8.0 && of("nodes") < 3000.0 && of("iterations") > 0.0, "{record}");
        let stages = ["read", "check", "space", "assemble", "setup", "solve", "write", "outside"];
        let sum: f64 = stages.iter().map(|stage| of(&format!("seconds_{stage}"))).sum();
        let seconds = record["seconds_median"].as_f64().unwrap();
        assert!(
            (sum - seconds).abs() < 1e-6 * seconds && record["bytes"].as_f64().unwrap() > 1e3,
            "{record}"
        );
    }
}
