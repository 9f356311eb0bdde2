//! All checks, in the order in which they fail fastest.

use std::process::{Command, Stdio};

use crate::step::Checks;

/// The crates whose results depend on the SIMD path.
const KERNEL_CRATES: [&str; 3] = ["femtile-device", "femtile-linalg", "femtile-fem"];

/// Runs every check; true when none failed.
pub fn validate() -> bool {
    let mut checks = Checks::default();
    checks.cargo("format", &["fmt", "--all", "--check"], &[]);
    checks.cargo("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[]);
    checks.cargo("program", &["build", "--package", "femtile-cli", "--profile", "test"], &[]);
    tests(&mut checks);
    checks.cargo("doctests", &["test", "--workspace", "--doc"], &[]);
    let deny_warnings = [("RUSTDOCFLAGS", "-D warnings")];
    checks.cargo("documentation", &["doc", "--workspace", "--no-deps", "--quiet"], &deny_warnings);
    licences(&mut checks);
    println!("\n== citations");
    checks.note("citations", crate::cite::report(std::path::Path::new(".")));
    checks.finish()
}

fn tests(checks: &mut Checks) {
    let nextest = has("nextest");
    let run: &[&str] = if nextest {
        &["nextest", "run", "--success-output", "final", "--no-fail-fast", "--status-level", "slow"]
    } else {
        checks.skip("nextest", "cargo-nextest is not installed, `cargo test` ran in its place");
        &["test", "--tests", "--no-fail-fast"]
    };
    checks.cargo("tests", &[run, &["--workspace"]].concat(), &[]);
    for level in ["scalar", "avx2", "avx512"] {
        if !offered(level) {
            checks.skip(&format!("tests with FEMTILE_SIMD={level}"), "this processor lacks it");
            continue;
        }
        let packages = KERNEL_CRATES.iter().flat_map(|&package| ["--package", package]);
        let arguments: Vec<&str> = run.iter().copied().chain(packages).collect();
        checks.cargo(&format!("tests, {level}"), &arguments, &[("FEMTILE_SIMD", level)]);
    }
    checks.skip("SIMD other than x86-64", "no such machine; those paths are compiled only there");
}

#[cfg(target_arch = "x86_64")]
fn offered(level: &str) -> bool {
    match level {
        "avx2" => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        "avx512" => ["f", "bw", "cd", "dq", "vl"].iter().all(|part| match *part {
            "f" => is_x86_feature_detected!("avx512f"),
            "bw" => is_x86_feature_detected!("avx512bw"),
            "cd" => is_x86_feature_detected!("avx512cd"),
            "dq" => is_x86_feature_detected!("avx512dq"),
            _ => is_x86_feature_detected!("avx512vl"),
        }),
        _ => true,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn offered(level: &str) -> bool {
    level == "scalar"
}

fn licences(checks: &mut Checks) {
    if !has("deny") {
        checks.skip("licences, bans, sources", "cargo-deny is not installed");
        return;
    }
    checks.cargo("licences, bans, sources", &["deny", "check", "licenses", "bans", "sources"], &[]);
    checks
        .skip("advisories", "their database is fetched from the network; run `cargo deny check advisories`");
}

fn has(subcommand: &str) -> bool {
    let mut command = Command::new("cargo");
    command.args([subcommand, "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
