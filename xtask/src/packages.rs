//! The crates that are published: in order, complete, and packed as the registry would get them.

use std::path::Path;

use crate::step::Checks;

/// Packs all public crates; dependencies among them are taken from the packages beside them.
pub fn check(checks: &mut Checks) {
    let arguments = ["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--locked"];
    checks.cargo("packages of crates", &arguments, &[]);
}

/// The check alone; returns true where it passed.
pub fn report(_: &Path) -> bool {
    let mut checks = Checks::default();
    check(&mut checks);
    checks.finish()
}
