//! `femtile solve-matrix`: the linear system of a sparse matrix and right sides in files.

mod input;
mod report;
mod symmetry;
mod vectors;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use femtile::amg::AmgError;
use femtile::device::Cpu;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::CgOutcome;
use femtile::linalg::sparse::Csr;
use femtile::{DeviceChoice, LinearSolver, Method, PreconditionerConfig, SolveError, SolverConfig};
use femtile_case::file::{MatrixAmg, named};
use femtile_case::{CaseError, LevelReport, Progress, Stage};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::arguments::SolveMatrixOptions;
use crate::bars::Bars;
use crate::failure::{Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::remembered::remembered;
use femtile_terminal::{check_target, tell, to_json};
use input::Input;
use report::{MatrixReport, Report, Timings};
use symmetry::first_asymmetry;
use vectors::Vectors;

/// `femtile solve-matrix`.
pub fn run(options: &SolveMatrixOptions) -> Result<ExitCode, Failure> {
    vectors::check_name(&options.output)?;
    check_target("--output", &options.output)?;
    options.json.as_deref().map_or(Ok(()), |path| check_target("--json", path))?;
    let mut config = config(options)?;
    let cpu = Cpu::new(config.threads)?;
    let mut bars = Bars::new(options.quiet, Interrupt::listen()?);
    bars.begin(Stage::Setup);

    let mut timings = Timings::default();
    bars.label("reading the matrix");
    let given = timed(&mut timings.read, || Given::read(options, &cpu))?;
    bars.label("checking the matrix");
    let matrix = &given.input.matrix;
    let is_symmetric = timed(&mut timings.check, || check_symmetry(matrix, &config, options))?;
    config.preconditioner = preconditioner(options, &config, is_symmetric)?;
    bars.label(Stage::Setup.label());
    let solver = timed(&mut timings.setup, || given.solver(&config))?;
    let Solved { x, outcomes, was_interrupted } =
        timed(&mut timings.solve, || solve(&solver, &given.rhs, &mut bars))?;
    bars.begin(Stage::Write);
    // An interrupted solve does not replace an earlier solution.
    let is_written = !was_interrupted || !options.output.exists();
    if is_written {
        timed(&mut timings.write, || x.write(&options.output))?;
    }
    drop(bars);

    let report = report(options, &config, &given, (&solver, &outcomes), (is_symmetric, is_written), timings);
    tell(options.json.as_deref(), options.quiet, &to_json(&report)?, &report.summary())?;
    Ok(exit_code(&outcomes, was_interrupted))
}

/// Adds the seconds of some work.
fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let result = work();
    *seconds += begun.elapsed().as_secs_f64();
    result
}

/// The content of the input files.
struct Given {
    input: Input,
    rhs: Vectors,
    near_nullspace: Option<Vectors>,
}

impl Given {
    fn read(options: &SolveMatrixOptions, cpu: &Cpu) -> Result<Self, Failure> {
        let input = Input::read(&options.matrix, cpu)?;
        let n_rows = input.matrix.n_rows();
        let rhs = Vectors::right_sides(options.rhs.as_deref(), n_rows)?;
        let near = options.near_nullspace.as_deref();
        let near_nullspace = near.map(|path| Vectors::near_nullspace(path, n_rows)).transpose()?;
        Ok(Self { input, rhs, near_nullspace })
    }

    fn solver(&self, config: &SolverConfig) -> Result<LinearSolver, Failure> {
        let matrix = &self.input.matrix;
        let solver = match &self.near_nullspace {
            Some(near) => LinearSolver::with_near_nullspace(matrix, near.values(), config),
            None => LinearSolver::new(matrix, config),
        };
        solver.map_err(failed)
    }
}

fn report(
    options: &SolveMatrixOptions,
    config: &SolverConfig,
    given: &Given,
    (solver, outcomes): (&LinearSolver, &[CgOutcome]),
    (is_symmetric, is_written): (bool, bool),
    timings_s: Timings,
) -> Report {
    let Input { matrix, n_duplicates, notes } = &given.input;
    let mut warnings = notes.clone();
    warnings.extend_from_slice(solver.warnings());
    warnings.extend(report::warnings(outcomes, config.tolerance));
    if !is_written {
        warnings.push(format!("{} was left as it is: interrupted by the user", options.output.display()));
    }
    let (format, format_reason) = solver.format();
    Report {
        matrix: MatrixReport {
            file: options.matrix.clone(),
            n_rows: matrix.n_rows(),
            n_nonzeros: matrix.n_nonzeros(),
            n_duplicates: *n_duplicates,
            is_symmetric,
        },
        n_right_sides: given.rhs.n_columns(),
        method: config.method.name(),
        preconditioner: solver.preconditioner(),
        solve: outcomes.iter().map(report::of_outcome).collect(),
        operator: format.name(),
        format_reason: format_reason.into(),
        levels: solver.levels().iter().map(LevelReport::from).collect(),
        timings_s,
        device: solver.device(),
        device_reason: solver.device_reason().into(),
        warnings,
        output: is_written.then(|| options.output.clone()),
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn exit_code(outcomes: &[CgOutcome], was_interrupted: bool) -> ExitCode {
    if was_interrupted {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(u8::from(outcomes.iter().any(|outcome| outcome.stop != Stop::Converged)))
}

/// Returns the settings without the preconditioner, whose default depends on the matrix.
fn config(options: &SolveMatrixOptions) -> Result<SolverConfig, Failure> {
    femtile_case::check_tolerance(options.tolerance)
        .map_err(|error| Failure::message(format!("--tolerance {error}")))?;
    let method = match options.method.as_str() {
        "merged-cg" => Method::MergedCg,
        "pipelined-cg" => Method::PipelinedCg,
        "s-step-cg" => Method::SStepCg { steps: Method::default_steps() },
        "gmres" => {
            Method::Gmres { restart: options.restart.map_or_else(Method::default_restart, |n| n as usize) }
        }
        _ => Method::Cg,
    };
    if options.restart.is_some() && !matches!(method, Method::Gmres { .. }) {
        return Err(Failure::message("--restart is for --method gmres"));
    }
    Ok(SolverConfig {
        device: options.device.parse::<DeviceChoice>().map_err(failed)?,
        threads: options.threads,
        method,
        tolerance: options.tolerance,
        max_iterations: options.max_iterations,
        remembered: remembered(),
        ..SolverConfig::default()
    })
}

/// Returns the requested preconditioner; `auto` is multigrid where matrix and method allow it.
fn preconditioner(
    options: &SolveMatrixOptions,
    config: &SolverConfig,
    is_symmetric: bool,
) -> Result<PreconditionerConfig, Failure> {
    let takes_multigrid = is_symmetric && matches!(config.method, Method::Cg | Method::PipelinedCg);
    let name = match (options.preconditioner.as_str(), takes_multigrid) {
        ("auto", true) => "amg",
        ("auto", false) => "jacobi",
        (given, _) => given,
    };
    let options_of_amg = [
        ("--near-nullspace", options.near_nullspace.is_some()),
        ("--block-size", options.block_size.is_some()),
        ("--strength", options.strength.is_some()),
        ("--smoother", options.smoother.is_some()),
        ("--cycle", options.cycle.is_some()),
        ("--precision", options.precision.is_some()),
    ];
    let given = options_of_amg.into_iter().find(|(_, is_given)| *is_given);
    let is_amg = name == "amg";
    if is_amg && !is_symmetric {
        let message = "--preconditioner amg needs a symmetric matrix: take jacobi or none";
        return Err(Failure::message(message));
    }
    if let Some((option, _)) = given.filter(|_| !is_amg) {
        return Err(Failure::message(format!("{option} is for --preconditioner amg, and this is {name}")));
    }
    if options.preconditioner == "auto" && given.is_none() {
        return Ok(PreconditionerConfig::Auto);
    }
    Ok(match name {
        "none" => PreconditionerConfig::None,
        "jacobi" => PreconditionerConfig::Jacobi,
        _ => PreconditionerConfig::Amg(
            MatrixAmg {
                block_size: options.block_size.unwrap_or(1) as usize,
                strength: options.strength,
                smoother: word("--smoother", options.smoother.as_deref())?,
                cycle: word("--cycle", options.cycle.as_deref())?,
                precision: word("--precision", options.precision.as_deref())?,
            }
            .options(),
        ),
    })
}

/// Returns what a word of case files names, the default without one.
fn word<T: Default + DeserializeOwned + JsonSchema>(option: &str, given: Option<&str>) -> Result<T, Failure> {
    let Some(name) = given else { return Ok(T::default()) };
    named(name).map_err(|message| Failure::message(format!("{option}: {message}")))
}

/// Returns whether the matrix is symmetric; refuses one that is not where the method needs it.
fn check_symmetry(
    matrix: &Csr<f64, Cpu>,
    config: &SolverConfig,
    options: &SolveMatrixOptions,
) -> Result<bool, Failure> {
    let Some(pair) = first_asymmetry(matrix)? else { return Ok(true) };
    if matches!(config.method, Method::Gmres { .. }) {
        return Ok(false);
    }
    let file = options.matrix.display();
    let message = format!("{file} is not symmetric: {pair}; --method gmres solves such systems");
    Err(Failure::message(message))
}

/// Solutions, the outcome for each column that was begun, and whether the user has asked for a stop.
struct Solved {
    x: Vectors,
    outcomes: Vec<CgOutcome>,
    was_interrupted: bool,
}

/// Solves for each column in turn; after an interruption the remaining columns are NaN.
fn solve(solver: &LinearSolver, rhs: &Vectors, bars: &mut Bars) -> Result<Solved, Failure> {
    let (mut x, mut outcomes) = (Vec::with_capacity(rhs.values().len()), Vec::new());
    let mut was_interrupted = false;
    for b in rhs.columns() {
        match solver.solve_from(vec![0.0; b.len()], b, bars) {
            Ok(solution) => {
                x.extend(solution.x);
                was_interrupted = solution.outcome.stop == Stop::Interrupted;
                outcomes.push(solution.outcome);
            }
            // Between two columns.
            Err(SolveError::Interrupted { .. }) => was_interrupted = true,
            Err(error) => return Err(failed(error)),
        }
        if was_interrupted {
            break;
        }
    }
    x.resize(rhs.values().len(), f64::NAN);
    Ok(Solved { x: rhs.with_values(x), outcomes, was_interrupted })
}

/// Returns the error of the library in terms of the options.
fn failed(error: SolveError) -> Failure {
    match error {
        SolveError::Setting { path, message, .. } => {
            let key = path.last().map(ToString::to_string).unwrap_or_default();
            let option = key.trim_start_matches('.').replace('_', "-");
            Failure::message(format!("--{option}: {message}"))
        }
        error @ SolveError::Amg(AmgError::Indefinite { .. }) => Failure::message(format!(
            "{error}; --method gmres solves indefinite systems, and --preconditioner jacobi or none may do for others"
        )),
        error @ SolveError::Amg(_) if !error.is_device_trouble() => {
            Failure::message(format!("{error}; --preconditioner jacobi or none may do"))
        }
        other => CaseError::from(other).into(),
    }
}

/// Returns `true` where a file name has this extension.
fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
