//! The checks of the project: `cargo xtask validate` is what continuous integration runs.

mod assets;
mod book;
mod cite;
mod dist;
mod documents;
mod kernels;
mod mpi;
mod packages;
mod python;
mod sizes;
mod step;
mod tables;
mod unsafe_code;
mod validate;

use std::path::Path;
use std::process::ExitCode;

/// A command of `cargo xtask`: its name, what it does, and the function that says whether it went well.
type Task = (&'static str, &'static str, fn(&Path) -> bool);

const TASKS: [Task; 15] = [
    (
        "validate",
        "format, lints, tests on every SIMD path, documentation, licences, citations",
        validate::validate,
    ),
    ("quick", "format and the tests that take seconds: for each commit", validate::quick),
    ("cite", "every cited key exists in references.bib", cite::report),
    ("unsafe", "`unsafe` occurs only in kernels and listed files", unsafe_code::report),
    ("sizes", "lines and public items of each crate beside the recorded ones", sizes::report),
    ("sizes --record", "builds the program from nothing and records these and its size", sizes::record),
    ("kernels", "GPU kernels compile for sm_80 and sm_90 without spills", kernels::some),
    ("kernels --all", "the same for every kernel that a solve may ask for", kernels::all),
    ("book", "the pages of docs/SUMMARY.md as HTML, in target/book", book::report),
    ("python", "the Python package: its wheel, tests and types", python::report),
    ("assets", "builds the script of the view of reports by node and npm", assets::build),
    ("packages", "the crates pack for the registry, in order", packages::report),
    ("dist", "all files of a release in target/dist", dist::dist),
    ("tables", "tables of measurements in pages, rendered from bench/results", tables::update),
    ("documents", "the commands and links in the documents are sound", documents::report),
];

/// Returns whether there is a command of this name.
fn knows(name: &str) -> bool {
    TASKS.iter().any(|(known, ..)| *known == name)
}

fn main() -> ExitCode {
    let Some(root) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() else { return ExitCode::FAILURE };
    if let Err(error) = std::env::set_current_dir(root) {
        eprintln!("{} cannot be entered: {error}", root.display());
        return ExitCode::FAILURE;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let task = TASKS.iter().find(|(name, ..)| arguments.join(" ") == *name);
    let Some((_, _, run)) = task else {
        let tasks = TASKS.map(|(name, what, _)| format!("  {name:<14} {what}\n")).concat();
        eprint!("usage: cargo xtask TASK\n{tasks}");
        return ExitCode::FAILURE;
    };
    if run(root) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
