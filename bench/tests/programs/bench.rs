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

/// Options that leave deal.II without a compiler.
fn without_dealii() -> std::process::Command {
    let mut program = bench();
    program.env("PATH", "").env("FEMTILE_PYTHON", "no-such-python").env_remove("CXX");
    program
}

#[test]
fn products_and_iterations_are_measured_where_deal_ii_is_missing() {
    for (problem, method) in [("bp5", None), ("laplace", Some("pcg,merged-pcg"))] {
        let mut program = without_dealii();
        program.args([problem, "--degree", "2", "--nodes", "9", "--geometry", "deformed"]);
        program.args(["--threads", "1", "--repeats", "1", "--peers"]);
        program.args(method.iter().flat_map(|names| ["--method", names])).args(["--json", "-"]);
        let output = program.output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success() && said.contains("SKIPPED: deal.II"), "{said}");
        assert!(said.contains("libdeal.ii-dev"), "{said}");
        let records: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(records.len(), if method.is_some() { 2 } else { 1 });
        for record in records {
            assert_eq!(record["parameters"]["n_dofs"], 729, "{record}");
            assert!(record["parameters"]["over_dealii"].is_null(), "{record}");
        }
    }
}

#[test]
fn geometric_multigrid_is_measured_as_in_case_files_for_every_degree() {
    let mut program = without_dealii();
    program.args(["gmg", "--unknowns", "1000", "--threads", "1", "--repeats", "1", "--peers", "--json", "-"]);
    let output = program.output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("SKIPPED: deal.II"), "{said}");
    let records: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(records.len(), 8 * 4);
    for record in records {
        let iterations = record["parameters"]["iterations"].as_u64().unwrap();
        assert!((1..15).contains(&iterations), "{record}");
        let unknowns = record["parameters"]["n_dofs"].as_f64().unwrap();
        assert!((100.0..5_000.0).contains(&unknowns), "{record}");
    }
}

/// A Python that prints the answer of deal.II in place of running the script.
#[cfg(unix)]
fn pretended_dealii(folder: &std::path::Path, answer: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("python");
    std::fs::write(&path, format!("#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Messages and records of a product on one cell of degree 1 beside a deal.II that says the trace of its operator and its ranks;
/// none where the processor has too few lanes.
#[cfg(unix)]
fn beside_dealii(trace: f64, threads: &str) -> Option<(String, Vec<serde_json::Value>)> {
    let folder = tempfile::tempdir().unwrap();
    let variant = |name, seconds| format!(r#"{{"name": "{name}", "seconds": [{seconds}, 9]}}"#);
    let variants = [variant("product", 2.0), variant("product, six coefficients", 1.0)].join(", ");
    // The sixth argument is that of ranks; quotes let the shell put it in.
    let answer = format!(
        r#"{{"library": "deal.II '"$6"'", "lanes": 8, "n_dofs": 8, "trace": {trace}, "energy": 0, "variants": [{variants}]}}"#
    );
    let mut program = bench();
    program.args(["laplace", "--degree", "1", "--nodes", "2", "--geometry", "cartesian", "--repeats", "1"]);
    program.args(["--threads", threads, "--peers", "--json", "-"]);
    program.env("FEMTILE_PYTHON", pretended_dealii(folder.path(), &answer));
    // Further Pythons are not to run the script.
    let output = program.env_remove("FEMTILE_SIMD").env("CXX", "no-such-compiler").output().unwrap();
    let said = text(&output.stderr);
    if said.contains("it is compiled for") {
        eprintln!("SKIPPED: no AVX2 on this processor");
        return None;
    }
    Some((said, serde_json::from_slice(&output.stdout).unwrap()))
}

/// One cell of degree 1: eight entries of a third on the diagonal, which is constant.
#[cfg(unix)]
const TRACE: f64 = 8.0 / 3.0;

#[cfg(unix)]
#[test]
fn products_of_deal_ii_are_records_beside_ours_if_its_operator_is_ours() {
    for (trace, is_ours) in [(TRACE, true), (2.5, false)] {
        let Some((said, records)) = beside_dealii(trace, "1") else { return };
        assert_eq!(said.contains("differs from ours"), !is_ours, "{said}");
        assert_eq!(records.len(), if is_ours { 3 } else { 1 });
        if is_ours {
            let over = records[0]["parameters"]["over_dealii"].as_f64().unwrap();
            assert!((over * records[0]["seconds_min"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{records:?}");
            assert_eq!(records[0]["parameters"]["best_dealii"], "product, six coefficients");
            assert_eq!(records[1]["problem"], "laplace product, cartesian, degree 1, deal.II");
            assert_eq!(records[2]["parameters"]["runs"], 6);
        }
    }
}

#[cfg(unix)]
#[test]
fn deal_ii_has_as_many_ranks_as_there_are_threads() {
    for threads in ["1", "2"] {
        let Some((said, records)) = beside_dealii(TRACE, threads) else { return };
        assert_eq!(records.len(), 3, "{said}");
        let device = records[1]["device"].as_str().unwrap();
        assert!(device.ends_with(&format!("deal.II {threads})")), "{device}");
        assert_eq!(records[1]["parameters"]["ranks"].to_string(), threads);
    }
}

#[test]
fn ranks_are_not_beside_a_number_of_threads() {
    let output = bench().args(["gmg", "--threads", "1", "--ranks", "2"]).output().unwrap();
    assert!(!output.status.success() && text(&output.stderr).contains("--ranks"), "{}", text(&output.stderr));
}

#[test]
fn geometric_multigrid_is_measured_on_ranks() {
    let mut program = bench();
    program.args([
        "gmg",
        "--unknowns",
        "1000",
        "--degree",
        "2",
        "--ranks",
        "2",
        "--repeats",
        "1",
        "--json",
        "-",
    ]);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(records.len(), 2, "set-up and solve with the start that ranks have");
    assert!(records.iter().all(|record| record["parameters"]["ranks"] == 2), "{records:?}");
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
