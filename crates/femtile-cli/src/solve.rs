use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use femtile::linalg::krylov::Stop;
use femtile_case::{Case, CaseError, LevelReport, Override, Profile, Report};
use femtile_comm::Comm;
use femtile_report::significant;

use crate::arguments::SolveOptions;
use crate::bars::Bars;
use crate::failure::{Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::remembered::remembered;
use femtile_terminal::{check_target, is_stdout, tell};

/// `femtile solve` in a program that has begun at `begun`, on a rank of several or alone.
pub fn run(options: &SolveOptions, comm: Option<&Comm>, begun: Instant) -> Result<ExitCode, Failure> {
    let mut profile = options.profile.as_ref().map(|_| Profile::since(begun));
    let step = |profile: &mut Option<Profile>, name| {
        if let Some(profile) = profile {
            profile.begin(name);
        }
    };
    step(&mut profile, "reading the case file");
    let alone = Comm::alone();
    let mut case = load(options, comm.unwrap_or(&alone))?;
    case.remembered = remembered();
    override_with(&mut case, options)?;
    let is_first = comm.is_none_or(|comm| comm.rank() == 0);
    if let Some(comm) = comm {
        join(&mut case, comm);
    }
    if is_first {
        check_targets(options)?;
    }
    let bars = Bars::new(
        options.quiet || !is_first,
        Interrupt::listen_as(comm.is_some_and(|comm| comm.n_ranks() > 1))?,
    );
    step(&mut profile, "checking the case, opening the device");
    let report = solve(&case, bars, profile.as_mut())?;
    step(&mut profile, "reporting");
    if is_first {
        tell(options.json.as_deref(), options.quiet, &report.to_json(), &summary(&case, &report))?;
    }
    if let Some(profile) = profile.filter(|_| is_first) {
        tell(options.profile.as_deref(), true, &profile.trace("femtile solve").to_string(), "")?;
    }
    Ok(match report.solve.stop {
        Stop::Converged => ExitCode::SUCCESS,
        Stop::Interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::from(1),
    })
}

fn solve(case: &Case, mut bars: Bars, profile: Option<&mut Profile>) -> Result<Report, CaseError> {
    match profile {
        Some(profile) => femtile_case::run(case, &mut profile.watch(&mut bars)),
        None => femtile_case::run(case, &mut bars),
    }
}

/// Checks that the files that options name can be written.
fn check_targets(options: &SolveOptions) -> Result<(), Failure> {
    let (json, profile) = (options.json.as_deref(), options.profile.as_deref());
    if json.is_some_and(is_stdout) && profile.is_some_and(is_stdout) {
        return Err(Failure::message("--json and --profile cannot both go to standard output"));
    }
    json.map_or(Ok(()), |path| check_target("--json", path))?;
    for (option, path, example) in
        [("--picture", &options.picture, "out.png"), ("--report", &options.report, "out.html")]
    {
        let Some(path) = path else { continue };
        if is_stdout(path) {
            return Err(Failure::message(format!("{option} needs the name of a file, such as {example}")));
        }
        check_target(option, path)?;
    }
    Ok(profile.map_or(Ok(()), |path| check_target("--profile", path))?)
}

/// Reads the case, with what the program's options set in it.
fn load(options: &SolveOptions, comm: &Comm) -> Result<Case, Failure> {
    let mesh = options.mesh.iter().map(|file| Override::mesh("--mesh", file));
    let values = options.set.iter().map(|text| Override::parse("--set", text));
    let overrides = mesh.chain(values).collect::<Result<Vec<_>, _>>()?;
    if options.case.as_os_str() != "-" {
        return Ok(Case::load_with(&options.case, overrides)?);
    }
    // Of several ranks the first alone has it.
    let text = match comm.rank() {
        0 => std::io::read_to_string(std::io::stdin().lock())
            .map_err(|error| Failure::message(format!("standard input: {error}")))?,
        _ => String::new(),
    };
    let texts = comm.all_gather(text.as_bytes()).map_err(CaseError::from)?;
    let text = texts.first().map_or(String::new(), |text| String::from_utf8_lossy(text).into_owned());
    Ok(Case::parse_with(Path::new("standard input"), text, overrides)?)
}

/// Makes the case one of several ranks, of which those after the first write nothing.
fn join(case: &mut Case, comm: &Comm) {
    case.embedding.comm = Some(comm.clone());
    if comm.rank() > 0 {
        let embedding = &mut case.embedding;
        (embedding.writes_files, embedding.picture, embedding.report) = (false, None, None);
    }
}

/// Puts the program's options into the case; an error names the option, not the file.
fn override_with(case: &mut Case, options: &SolveOptions) -> Result<(), Failure> {
    case.embedding.picture.clone_from(&options.picture);
    case.embedding.report.clone_from(&options.report);
    let file = &mut case.file;
    if let Some(output) = &options.output {
        file.output.directory.clone_from(output);
    }
    if let Some(device) = &options.device {
        file.solver.device.clone_from(device);
    }
    file.solver.threads = options.threads.unwrap_or(file.solver.threads);
    file.solver.ranks = options.ranks.unwrap_or(file.solver.ranks);
    file.solver.max_iterations = options.max_iterations.unwrap_or(file.solver.max_iterations);
    file.mesh.merge |= options.merge;
    if let Some(tolerance) = options.tolerance {
        femtile_case::check_tolerance(tolerance)
            .map_err(|error| Failure::message(format!("--tolerance {error}")))?;
        file.solver.tolerance = tolerance;
    }
    Ok(())
}

/// Rows of each level, patches where there are any, and what the matrices of all cost together.
pub fn levels(levels: &[LevelReport]) -> String {
    let rows: Vec<String> = levels.iter().map(|level| level.n_rows.to_string()).collect();
    let patches: Vec<String> = levels.iter().filter_map(|level| Some(level.n_patches?.to_string())).collect();
    let patches =
        if patches.is_empty() { String::new() } else { format!(" in {} patches", patches.join(", ")) };
    let nonzeros: Vec<usize> = levels.iter().filter_map(|level| level.n_nonzeros).collect();
    let complexity = nonzeros.first().map_or(String::new(), |&first| {
        let all: usize = nonzeros.iter().sum();
        format!(", operator complexity {:.2}", all as f64 / first.max(1) as f64)
    });
    format!("{} rows{patches}{complexity}", rows.join(", "))
}

/// Three digits or so of a large number, with its unit.
fn rounded(number: f64) -> String {
    match number {
        number if number >= 1e8 => format!("{:.0} million", number * 1e-6),
        number if number >= 1e6 => format!("{:.1} million", number * 1e-6),
        number => format!("{:.0} thousand", number * 1e-3),
    }
}

/// Significant digits of functionals.
const DIGITS: usize = 10;

fn summary(case: &Case, report: &Report) -> String {
    let (mesh, solve, times) = (&report.mesh, &report.solve, &report.timings_s);
    let how = match &report.time {
        Some(time) => format!(
            "{} {} after {} steps, time {}, {} nodes a second",
            time.scheme,
            time.stop,
            time.steps,
            time.reached,
            rounded(time.nodes_per_second)
        ),
        None => format!(
            "{} after {} iterations, {} = {:.2e}",
            solve.stop.name(),
            solve.iterations,
            if report.modes.is_empty() { "‖r‖/‖b‖" } else { "‖Au − λMu‖/(max |λ| ‖Mu‖)" },
            solve.relative_residual
        ),
    };
    let mut text = format!(
        "mesh      {} nodes, {} cells, volume {}\nsolve     {how}\ndevice    {}: {}\n",
        mesh.n_nodes,
        mesh.n_cells,
        significant(mesh.volume, 6),
        report.device,
        report.device_reason
    );
    if let Some(division) = &mesh.division {
        text += &format!("file      {division}\n");
    }
    if let Some(ranks) = &report.ranks {
        let [fewest, most] = ranks.unknowns;
        text += &format!(
            "ranks     {} by {}: {fewest} to {most} unknowns, copies of at most {} of others\n",
            ranks.n_ranks, ranks.partition, ranks.most_ghosts
        );
    }
    if let (Some(name), Some(reason)) = (solve.preconditioner, &solve.preconditioner_reason) {
        text += &format!("precond.  {name}: {reason}\n");
    }
    if let Some(start) = solve.start {
        text += &format!("start     {start}\n");
    }
    if !solve.levels.is_empty() {
        text += &format!("levels    {}\n", levels(&solve.levels));
    }
    if let Some(estimate) = solve.discretization_error_estimate {
        text += &match solve.discretization_error_relative {
            Some(share) => {
                let digits = if share < 1.0 { 2 } else { 3 };
                format!(
                    "error     {} % of the energy norm of u, estimated\n",
                    significant(100.0 * share, digits)
                )
            }
            None => format!("error     {estimate:.3e} in the energy norm, estimated\n"),
        };
    }
    if !report.modes.is_empty() {
        text += &format!("{:<9} {:<18} frequency\n", "mode", "eigenvalue");
    }
    for (i, mode) in report.modes.iter().enumerate() {
        let [eigenvalue, frequency] = mode.numbers(DIGITS);
        text += &format!("{:<9} {eigenvalue:<18} {frequency}\n", i + 1);
    }
    for (side, fluxes) in report.matrix.iter().flat_map(|matrix| matrix.rows(DIGITS)) {
        text += &format!("matrix    {side}: {fluxes}\n");
    }
    for (name, value) in &report.functionals {
        text += &format!("{name:<9} {}\n", significant(*value, DIGITS));
    }
    text += &format!(
        "time      read {:.2} s, check {:.2} s, assemble {:.2} s, solve {:.2} s, write {:.2} s\n",
        times.read,
        times.check,
        times.space + times.assemble,
        times.setup + times.solve,
        times.write
    );
    for warning in &report.warnings {
        text += &format!("warning   {warning}\n");
    }
    if !report.files.is_empty() {
        text += &format!("results   {}\n", case.file.output.directory.display());
    }
    text
}
