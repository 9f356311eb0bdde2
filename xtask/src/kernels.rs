//! GPU kernels compiled for real architectures, on any machine that has NVRTC.

use std::path::Path;

use crate::step::cargo;

/// Compiles a representative set of kernels; the profile is that of the tests, so nothing is rebuilt.
const COMMAND: [&str; 8] =
    ["run", "--quiet", "--profile", "test", "--package", "femtile-conformance", "--bin", "kernels"];

/// Compiles a representative set; true when all compile and none spills.
pub fn some(_root: &Path) -> bool {
    run(&[])
}

/// Compiles every kernel that a solve may ask for.
pub fn all(_root: &Path) -> bool {
    run(&["--", "--all"])
}

fn run(arguments: &[&str]) -> bool {
    cargo().args(COMMAND).args(arguments).status().is_ok_and(|status| status.success())
}
