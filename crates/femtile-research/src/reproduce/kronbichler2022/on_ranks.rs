//! The time of an iteration on several ranks: threads of this program, or processes of MPI.

use std::path::Path;
use std::process::Command;

use super::{Session, throughput::Shared};
use femtile::device::Cpu;
use femtile::linalg::krylov::Monitor;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::solve::{OperatorKind, Progress, Ranks};
use femtile::{DeviceChoice, Method, Poisson, PreconditionerConfig, SolverConfig};
use femtile_bench::BenchError;
use femtile_bench::iterations::Stopwatch;

/// Iterations that are timed, whole blocks of s-step methods, and those before them.
const ITERATIONS: usize = 60;
const FIRST: usize = 6;

/// The right side.
const SOURCE: &str = "sin(3*x) + y*z";

/// A method with its preconditioner.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variant {
    pub name: &'static str,
    pub method: Method,
    pub preconditioner: PreconditionerConfig,
}

/// Returns the least time of an iteration of several solves of −Δu + u = f on a cube; each is measured once.
pub(super) fn seconds(
    session: &Session,
    n_ranks: usize,
    (degree, cells): (usize, usize),
    variant: &Variant,
) -> Result<f64, BenchError> {
    let shared: &Shared = &session.kronbichler2022;
    let key = (n_ranks, cells, variant.name);
    if let Some(known) = shared.on_ranks.borrow().get(&key) {
        return Ok(*known);
    }
    let repeats = session.settings.repeats.max(1);
    let least = match &session.settings.launcher {
        Some(launcher) => of_processes((launcher, repeats), n_ranks, (degree, cells), variant)?,
        None => {
            let times = (0..repeats).map(|_| of_threads(n_ranks, (degree, cells), variant));
            times.collect::<Result<Vec<f64>, _>>()?.into_iter().fold(f64::INFINITY, f64::min)
        }
    };
    shared.on_ranks.borrow_mut().insert(key, least);
    Ok(least)
}

/// Times of iterations, as the first rank sees them.
#[derive(Default)]
struct Clock(Stopwatch);

impl Progress for Clock {
    fn iteration(&mut self, iteration: usize, relative_residual: f64, _tolerance: f64) {
        if iteration >= FIRST {
            // Never ends the solve.
            let _ = self.0.iteration(iteration, relative_residual);
        }
    }
}

fn of_threads(
    n_ranks: usize,
    (degree, cells): (usize, usize),
    Variant { method, preconditioner, .. }: &Variant,
) -> Result<f64, BenchError> {
    let config = BoxConfig { cells: [cells; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let mesh = Cpu::new(n_ranks)?.install(|| box_mesh(&config))?;
    let config = SolverConfig {
        device: DeviceChoice::Cpu,
        threads: n_ranks,
        ranks: if n_ranks == 1 { Ranks::One } else { Ranks::Threads(n_ranks) },
        operator: OperatorKind::MatrixFree,
        method: *method,
        preconditioner: preconditioner.clone(),
        tolerance: 1e-14,
        max_iterations: FIRST + ITERATIONS,
        ..SolverConfig::default()
    };
    let mut clock = Clock::default();
    let problem = Poisson::new(&mesh).degree(degree).lambda(1.0).source(SOURCE);
    let iterations = problem.solve_with(&config, &mut clock)?.outcome().iterations;
    if iterations <= FIRST + 1 {
        let message = format!("{} ended after {iterations} iterations of {cells}³ cells", method.name());
        return Err(BenchError::Setting { field: "method", message });
    }
    Ok(clock.0.samples.mean())
}

/// The difference of two solves, each the fastest of several; the shorter one has the first iterations alone.
fn of_processes(
    (launcher, repeats): (&str, usize),
    n_ranks: usize,
    size: (usize, usize),
    variant: &Variant,
) -> Result<f64, BenchError> {
    let made = tempfile::tempdir().and_then(|folder| {
        let case = folder.path().join("case.toml");
        std::fs::write(&case, case_text(size, variant)).map(|()| (folder, case))
    });
    let (_folder, case) = made.map_err(|error| wrong(format!("cannot write a case file: {error}")))?;
    let fastest = |n_iterations: usize| -> Result<(f64, usize), BenchError> {
        let solves = (0..repeats).map(|_| solve_seconds(launcher, n_ranks, &case, n_iterations));
        let solves = solves.collect::<Result<Vec<_>, _>>()?;
        let least = solves.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        Ok((least, solves[0].1))
    };
    let ((few, of_few), (all, of_all)) = (fastest(FIRST)?, fastest(FIRST + ITERATIONS)?);
    if of_all <= of_few || all <= few {
        return Err(wrong(format!(
            "{} took {few:.1e} s for {of_few} iterations and {all:.1e} s for {of_all}: more repeats, or larger problems",
            variant.name
        )));
    }
    Ok((all - few) / (of_all - of_few) as f64)
}

fn case_text((degree, cells): (usize, usize), variant: &Variant) -> String {
    let steps = match variant.method {
        Method::SStepCg { steps } => format!("steps = {steps}\n"),
        _ => String::new(),
    };
    format!(
        "[mesh]\ngenerate = {{ kind = \"box\", cells = [{cells}, {cells}, {cells}], cell = \"hexahedron\" }}\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"reaction-diffusion\"\nlambda = 1\nsource = \"{SOURCE}\"\n\
         [solver]\ndevice = \"cpu\"\noperator = \"matrix-free\"\nmethod = \"{}\"\npreconditioner = \"{}\"\n{steps}tolerance = 1e-14\n\
         [output]\nvtu = false\nplot = false\n",
        variant.method.name(),
        variant.preconditioner.name(),
    )
}

fn wrong(message: String) -> BenchError {
    BenchError::Setting { field: "launcher", message }
}

/// Runs `femtile-mpi solve`, or a program with the same options, each rank with one thread; returns the seconds and iterations
/// of the solve.
fn solve_seconds(
    launcher: &str,
    n_ranks: usize,
    case: &Path,
    n_iterations: usize,
) -> Result<(f64, usize), BenchError> {
    let words = launcher.replace("{ranks}", &n_ranks.to_string());
    let mut words = words.split_whitespace();
    let program = words.next().ok_or_else(|| wrong("is empty: \"mpirun -n {ranks} femtile-mpi\"".into()))?;
    let output = case.with_file_name("out");
    // A run that fails leaves no report of an earlier one; there is none before the first.
    let _ = std::fs::remove_file(output.join("report.json"));
    // Where a run does not converge, its report tells so and the code is not zero.
    let run = Command::new(program)
        .args(words)
        .args(["solve".as_ref(), case.as_os_str(), "--output".as_ref(), output.as_os_str()])
        .args(["--threads", "1", "--max-iterations", &n_iterations.to_string()])
        .output()
        .map_err(|error| wrong(format!("cannot run `{program}`: {error}")))?;
    let report = std::fs::read(output.join("report.json")).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
    let number = |path: &str| report.pointer(path).and_then(serde_json::Value::as_f64);
    match (number("/timings_s/solve"), number("/solve/iterations")) {
        (Some(seconds), Some(iterations)) => Ok((seconds, iterations as usize)),
        _ => Err(wrong(format!(
            "`{program}` wrote no report: {}",
            String::from_utf8_lossy(&run.stderr).trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_run_is_named() {
        let error = solve_seconds("no-such-launcher -n {ranks}", 2, Path::new("case.toml"), 1).unwrap_err();
        assert!(error.to_string().contains("cannot run `no-such-launcher`"), "{error}");
    }
}
