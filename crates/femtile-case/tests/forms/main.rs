//! Case files of elasticity and of convection and diffusion: results, and what is refused.

mod axisymmetric;
mod convection;
mod divided;
mod elasticity;
mod exact;
mod in_time;
mod inside;
mod integrals;
mod interface;
mod materials;
mod modes;
mod own;
mod page;
mod published;
mod radiation;
mod ranks;
mod recovered;
mod refusals;
mod route;
mod scikit_fem;
mod several;
mod sides;
mod simplices;
mod stabilised;
mod stefan;
#[path = "../shared/stop_at.rs"]
mod stop_at;
mod surfaces;
mod totals;

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};

/// Runs a case in a folder.
fn run_in(folder: &Path, text: &str) -> Result<Report, CaseError> {
    let mut case = Case::parse(&folder.join("case.toml"), text.into())?;
    case.file.output.directory = folder.join("out");
    run(&case, &mut Silent)
}

/// Runs a case in a folder of its own.
fn try_solve(text: &str) -> Result<Report, CaseError> {
    run_in(tempfile::tempdir().unwrap().path(), text)
}

/// Solves a case, which converges.
fn solve(text: &str) -> Report {
    let report = try_solve(text).unwrap();
    assert_eq!(report.solve.stop.name(), "converged", "{text}");
    report
}

/// The key and the message of a refusal.
fn refusal(text: &str) -> (String, String) {
    match try_solve(text) {
        Err(CaseError::Input { key, message, .. }) => (key.unwrap_or_default(), message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken: {text}"),
    }
}
