//! The checks of the project: `cargo xtask validate` is what continuous integration runs.

mod cite;
mod step;
mod validate;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask validate | cite\n\
    validate  format, lints, tests on every SIMD path, documentation, licences, citations\n\
    cite      every cited key exists in references.bib";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(std::path::Path::to_path_buf);
    let Some(root) = root.filter(|root| std::env::set_current_dir(root).is_ok()) else {
        eprintln!("the project's folder cannot be entered");
        return ExitCode::FAILURE;
    };
    let ok = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["validate"] => validate::validate(),
        ["cite"] => cite::report(&root),
        _ => {
            eprintln!("{USAGE}");
            false
        }
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
