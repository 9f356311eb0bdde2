//! All checks, in the order in which they fail fastest.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::step::{Checks, cargo};
use crate::{book, cite, documents, mpi, packages, python, unsafe_code};

/// The tests whose results depend on the SIMD path, as nextest selects them; of all that is built, so that nothing is
/// rebuilt with the features of some packages alone. Those of linear algebra take every path by themselves, except the
/// variants of conjugate gradients and GMRES.
const OF_KERNELS: &str = "package(femtile-device) | package(femtile-fem) | package(femtile-matrix-free) | package(femtile-sum-factorization) | (package(femtile-conformance) & binary(linalg) & test(/^variants::/) - test(any_simd))";
/// The same for `cargo test`.
const KERNEL_PACKAGES: [&str; 8] = [
    "--package",
    "femtile-device",
    "--package",
    "femtile-fem",
    "--package",
    "femtile-matrix-free",
    "--package",
    "femtile-sum-factorization",
];

/// Flags of Miri.
const FLAGS_OF_MIRI: &str =
    "-Zmiri-tree-borrows -Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks";

/// The tests of [`quick`], as nextest selects them: unit tests, and those of case files and meshes.
const QUICK_TESTS: &str = "kind(lib) | package(femtile-case) | package(femtile-mesh)";

/// Part of the names of the tests that fuzz readers for a given time.
const FUZZERS: &str = "of_any_structure";
/// The nextest filter that selects them.
const FUZZER_TESTS: &str = "test(of_any_structure)";
/// Number of such tests; they share the cores.
const N_FUZZERS: usize = 8;
/// Seconds that all of them take together.
const SECONDS_OF_FUZZING: usize = 60;

/// Time limit of the tests under Miri beside other checks, their compilation not counted.
const LIMIT_OF_MIRI: Duration = Duration::from_secs(1500);

/// Runs every check; true when none failed.
pub fn validate(root: &Path) -> bool {
    let mut checks = Checks::default();
    component(&mut checks, "format", "fmt", &["--all", "--check"]);
    checks.step("citations", |_| cite::report(root));
    checks.step("unsafe code", |_| unsafe_code::report(root));
    // One thread has most of this work, which a core does while the others compile.
    let beside = std::thread::spawn(|| {
        let mut checks = Checks::beside("[memory] ");
        memory(&mut checks);
        checks
    });
    if !mpi::is_installed() {
        checks.skip("femtile-mpi", "mpicc of an MPI and libclang are needed to build it");
    }
    let lints = [mpi::workspace(), &["--all-targets", "--", "-D", "warnings"]].concat();
    component(&mut checks, "lints", "clippy", &lints);
    tests(&mut checks);
    fuzzing(&mut checks);
    checks.built("kernels", root, "kernels");
    checks.cargo("doctests", &[&["test", "--doc", "--quiet"], mpi::workspace()].concat(), &[]);
    let deny_warnings = [("RUSTDOCFLAGS", "-D warnings")];
    let documentation = [&["doc", "--no-deps", "--quiet"], mpi::workspace()].concat();
    checks.cargo("documentation", &documentation, &deny_warnings);
    checks.step("documents", |_| documents::report_built(root));
    book::check(&mut checks, root);
    python::check(&mut checks, root);
    packages::check(&mut checks);
    dependencies(&mut checks);
    match beside.join() {
        Ok(beside) => checks.join(beside),
        Err(_) => checks.step("memory", |_| false),
    }
    checks.finish()
}

/// Runs the checks of a commit: format, citations, places of unsafe code, and [`QUICK_TESTS`]; true when none failed.
pub fn quick(root: &Path) -> bool {
    let mut checks = Checks::default();
    component(&mut checks, "format", "fmt", &["--all", "--check"]);
    checks.step("citations", |_| cite::report(root));
    checks.step("unsafe code", |_| unsafe_code::report(root));
    if has("nextest") {
        checks.cargo(
            "tests",
            &["nextest", "run", "--status-level", "slow", "--no-fail-fast", "-E", QUICK_TESTS],
            &[],
        );
    } else {
        checks.cargo("tests", &["test", "--lib", "--quiet", "--no-fail-fast"], &[]);
    }
    checks.finish()
}

/// A check by a part of Rust that may not be installed.
fn component(checks: &mut Checks, name: &str, subcommand: &str, arguments: &[&str]) {
    if has(subcommand) {
        checks.cargo(name, &[&[subcommand], arguments].concat(), &[]);
    } else {
        checks.skip(name, &format!("cargo {subcommand} is not installed"));
    }
}

/// Unit and integration tests, the examples among them, then those of the kernels on each other SIMD path.
fn tests(checks: &mut Checks) {
    let has_nextest = has("nextest");
    let (before, after): (&[&str], &[&str]) = if has_nextest {
        (&["nextest", "run", "--success-output", "final", "--status-level", "slow"], &["--no-fail-fast"])
    } else {
        checks.skip("nextest", "cargo-nextest is not installed; `cargo test` ran in its place");
        (&["test", "--tests", "--quiet"], &["--no-fail-fast", "--", "--nocapture"])
    };
    checks.cargo("tests", &[before, mpi::workspace(), after].concat(), &[]);
    let of_kernels = match has_nextest {
        true => [mpi::workspace(), &["-E", OF_KERNELS]].concat(),
        false => KERNEL_PACKAGES.to_vec(),
    };
    let levels = ["scalar", "avx2", "avx512"];
    let best = levels.into_iter().rfind(|level| offers(level));
    for level in levels {
        if Some(level) == best {
            // The path of all tests above.
        } else if offers(level) {
            let arguments = [before, &of_kernels, after].concat();
            checks.cargo(&format!("tests, {level}"), &arguments, &[("FEMTILE_SIMD", level)]);
        } else {
            checks.skip(&format!("tests with FEMTILE_SIMD={level}"), "this processor lacks it");
        }
    }
    if cfg!(target_arch = "x86_64") {
        checks.skip("SIMD on other architectures", "this processor is an x86-64");
    }
}

/// Fuzzes the readers of files, by default from the first input on, so that two runs on one machine see the same;
/// `FEMTILE_FUZZ_FIRST` asks for others.
fn fuzzing(checks: &mut Checks) {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let seconds = (SECONDS_OF_FUZZING / N_FUZZERS.div_ceil(n_cores)).to_string();
    let first = std::env::var("FEMTILE_FUZZ_FIRST").unwrap_or_else(|_| "0".into());
    let (before, after): (&[&str], &[&str]) = if has("nextest") {
        (&["nextest", "run"], &["--no-fail-fast", "-E", FUZZER_TESTS, "--success-output", "final"])
    } else {
        (&["test"], &["--tests", "--quiet", "--no-fail-fast", FUZZERS])
    };
    let arguments = [before, mpi::workspace(), after].concat();
    let environment = [("FEMTILE_FUZZ_FIRST", &*first), ("FEMTILE_FUZZ_SECONDS", &*seconds)];
    checks.cargo("fuzzing", &arguments, &environment);
}

/// Kernels with `unsafe` on the scalar path under Miri, which sees every access outside of an array, every race of threads and
/// every alias that must not be: a small set, as it takes a thousand times as long.
fn memory(checks: &mut Checks) {
    let nightly = std::env::var("FEMTILE_NIGHTLY").unwrap_or_else(|_| "nightly".into());
    let miri = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(["run", &nightly, "cargo", "miri"]).args(arguments);
        // The queues of rayon keep the rules of tree borrows, not the older ones, and turn numbers into pointers; its threads
        // outlive a test.
        command.env("MIRIFLAGS", FLAGS_OF_MIRI);
        command
    };
    let silent = |mut command: Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    if silent(miri(&["--version"])).is_ok_and(|status| status.success()) {
        let tests = [
            "test",
            "--package",
            "femtile-cardiac",
            "--package",
            "femtile-matrix-free",
            "--package",
            "femtile-research",
            "--test",
            "scalar_paths",
        ];
        let build = miri(&[&tests[..], &["--no-run"]].concat());
        let advice = "make the sizes in the files tests/scalar_paths.rs smaller";
        checks.run_limited("memory", build, miri(&tests), (LIMIT_OF_MIRI, advice));
    } else {
        checks.skip(
            "memory",
            "Miri is not installed: rustup toolchain install nightly --component miri,rust-src",
        );
    }
}

#[cfg(target_arch = "x86_64")]
fn offers(level: &str) -> bool {
    match level {
        "avx2" => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        "avx512" => {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        }
        _ => true,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn offers(level: &str) -> bool {
    level == "scalar"
}

/// Licences, bans and sources; advisories where their database can be fetched.
fn dependencies(checks: &mut Checks) {
    if !has("deny") {
        checks.skip("licences, bans, sources, advisories", "cargo-deny is not installed");
        return;
    }
    checks.cargo("licences, bans, sources", &["deny", "check", "licenses", "bans", "sources"], &[]);
    let fetched = cargo().args(["deny", "fetch", "db"]).stdin(Stdio::null()).output();
    if fetched.is_ok_and(|output| output.status.success()) {
        checks.cargo("advisories", &["deny", "check", "--disable-fetch", "advisories"], &[]);
    } else {
        checks.skip("advisories", "their database cannot be reached");
    }
}

fn has(subcommand: &str) -> bool {
    let mut command = cargo();
    command.args([subcommand, "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
