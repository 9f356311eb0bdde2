//! Random cases of every scale, solved as a user would and by a direct solve in higher precision.

mod cases;
mod direct;

use std::fmt::Write as _;
use std::path::Path;

use femtile::linalg::krylov::Stop;
use femtile_case::{Case, CaseError, Progress, Report, SolveError, SolvedSystem};

pub use cases::{Drawn, Scope, draw};

/// The relative energy error that a converged solve may have, in units of its tolerance: what docs/krylov-methods.md
/// promises.
pub const BOUND: f64 = 100.0;

/// Rounding of the products that the direct solve takes as the matrix, relative to the solution.
const ROUNDING: f64 = 1e-13;

/// Results of a study.
#[derive(Debug, Default, Clone)]
pub struct Findings {
    /// Cases that said that they had converged.
    pub n_converged: usize,
    /// Cases that said that they had not.
    pub n_others: usize,
    /// Cases that were refused before the solve.
    pub n_refused: usize,
    /// The largest error of those that converged, in units of the tolerance.
    pub worst: f64,
    /// The estimate of the error over the error, of those that converged with an error above rounding.
    pub estimates: Vec<f64>,
    /// Cases that converged with a larger error than [`BOUND`] allows, as case files with what was found.
    pub wrong: Vec<String>,
}

impl Findings {
    /// Adds what another study has seen.
    pub fn add(&mut self, other: Self) {
        self.n_converged += other.n_converged;
        self.n_others += other.n_others;
        self.n_refused += other.n_refused;
        self.worst = self.worst.max(other.worst);
        self.estimates.extend(other.estimates);
        self.wrong.extend(other.wrong);
    }

    /// Returns the number of cases.
    pub fn n(&self) -> usize {
        self.n_converged + self.n_others + self.n_refused
    }
}

/// Runs cases with these seeds; `run` carries one out, on whatever device.
pub fn study(
    seeds: std::ops::Range<u64>,
    scope: Scope,
    run: &mut dyn FnMut(&Case, &mut dyn Progress) -> Result<Report, CaseError>,
) -> Findings {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut findings = Findings::default();
    seeds.for_each(|seed| one(seed, scope, folder.path(), run, &mut findings));
    findings
}

fn one(
    seed: u64,
    scope: Scope,
    folder: &Path,
    run: &mut dyn FnMut(&Case, &mut dyn Progress) -> Result<Report, CaseError>,
    findings: &mut Findings,
) {
    let Drawn { text, mesh, tolerance } = draw(seed, scope);
    let path = folder.join("case.toml");
    if let Some(mesh) = mesh {
        std::fs::write(folder.join("m.mesh"), mesh).expect("a file can be written");
    }
    std::fs::write(&path, &text).expect("a file can be written");
    let mut check = Check::default();
    let report = Case::load(&path).and_then(|mut case| {
        case.file.output.directory = folder.join("out");
        run(&case, &mut check)
    });
    let Ok(report) = report else {
        findings.n_refused += 1;
        return;
    };
    if report.solve.stop != Stop::Converged {
        findings.n_others += 1;
        return;
    }
    findings.n_converged += 1;
    let error = check.error.expect("a system that was solved");
    let relative = (error - ROUNDING) / tolerance;
    findings.worst = findings.worst.max(relative);
    if let Some(estimate) = report.solve.algebraic_error_estimate.filter(|_| error > 10.0 * ROUNDING) {
        findings.estimates.push(estimate / (error * report.solve.energy_norm));
    }
    if relative > BOUND || !relative.is_finite() {
        let mut entry = format!("# seed {seed}\n{text}");
        let _ = writeln!(entry, "# error {error:e}, said {:?}", report.solve.algebraic_error_estimate);
        let _ = writeln!(
            entry,
            "# energy norm {:e}, {} iterations",
            report.solve.energy_norm, report.solve.iterations
        );
        findings.wrong.push(entry);
    }
}

/// Compares the solution with that of a direct solve.
#[derive(Debug, Default)]
struct Check {
    /// The relative energy error.
    error: Option<f64>,
}

impl Progress for Check {
    fn solved(&mut self, system: &dyn SolvedSystem) {
        self.error = relative_error(system).ok();
    }
}

/// $\|x - x_*\|_A / \|x_*\|_A$.
fn relative_error(system: &dyn SolvedSystem) -> Result<f64, SolveError> {
    let (b, x) = (system.right_side()?, system.solution()?);
    let n = b.len();
    let mut matrix = vec![0.0; n * n];
    for column in 0..n {
        let mut unit = vec![0.0; n];
        unit[column] = 1.0;
        matrix[column * n..][..n].copy_from_slice(&system.apply(&unit)?);
    }
    Ok(direct::relative_energy_error(&matrix, &b, &x))
}
