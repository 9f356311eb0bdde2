use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use femtile::case::{self, Case, LevelReport, Report};
use femtile::linalg::krylov::Stop;

use crate::arguments::SolveOptions;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::print;

/// Exit code of a solve that the user stopped.
const INTERRUPTED: u8 = 130;

/// `femtile solve`.
pub fn run(options: &SolveOptions) -> Result<ExitCode, Failure> {
    let mut case = Case::load(&options.case)?;
    override_with(&mut case, options)?;
    let mut bars = Bars::new(options.quiet, listen()?);
    let outcome = case::run(&case, &mut bars);
    drop(bars);
    let report = outcome?;
    let to_stdout = options.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if to_stdout {
        print(&format!("{}\n", report.to_json()))?;
    } else if let Some(path) = &options.json {
        case::write_report(path, &report)?;
    }
    if !options.quiet {
        let text = summary(&case, &report);
        if to_stdout {
            eprint!("{text}");
        } else {
            print(&text)?;
        }
    }
    Ok(match report.solve.stop {
        Stop::Converged => ExitCode::SUCCESS,
        Stop::Interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::from(1),
    })
}

/// Puts the program's options into the case; an error names the option, not the file.
fn override_with(case: &mut Case, options: &SolveOptions) -> Result<(), Failure> {
    let file = &mut case.file;
    if let Some(output) = &options.output {
        file.output.directory.clone_from(output);
    }
    if let Some(device) = &options.device {
        file.solver.device.clone_from(device);
    }
    file.solver.threads = options.threads.unwrap_or(file.solver.threads);
    file.solver.max_iterations = options.max_iterations.unwrap_or(file.solver.max_iterations);
    file.mesh.merge |= options.merge;
    if let Some(tolerance) = options.tolerance {
        case::check_tolerance(tolerance).map_err(|error| Failure::message(format!("--tolerance {error}")))?;
        file.solver.tolerance = tolerance;
    }
    let folder = options.json.as_ref().and_then(|path| path.parent()).filter(|f| !f.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::message(format!("--json: there is no folder {}; make it first", folder.display())))
        }
        _ => Ok(()),
    }
}

/// A flag that the first Ctrl-C raises; the second ends the program at once.
fn listen() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    let handler = move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    };
    ctrlc::set_handler(handler).map_err(|e| Failure::message(format!("cannot listen to Ctrl-C: {e}")))?;
    Ok(flag)
}

/// Rows of each level, patches where there are any, and what the matrices of all cost together.
fn levels(levels: &[LevelReport]) -> String {
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

fn summary(case: &Case, report: &Report) -> String {
    let (mesh, solve, times) = (&report.mesh, &report.solve, &report.timings_s);
    let how = match &report.time {
        Some(time) => format!(
            "{} {} after {} steps, time {}, {:.0} million nodes a second",
            time.scheme,
            time.stop,
            time.steps,
            time.reached,
            time.nodes_per_second * 1e-6
        ),
        None => format!(
            "{} after {} iterations, ‖r‖/‖b‖ = {:.2e}",
            solve.stop.name(),
            solve.iterations,
            solve.relative_residual
        ),
    };
    let mut text = format!(
        "mesh      {} nodes, {} cells, volume {:.6}\nsolve     {how}\ndevice    {}: {}\n",
        mesh.n_nodes, mesh.n_cells, mesh.volume, report.device, report.device_reason
    );
    if !solve.levels.is_empty() {
        text += &format!("levels    {}\n", levels(&solve.levels));
    }
    for (name, value) in &report.functionals {
        text += &format!("{name:<9} {value:.10}\n");
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
    text += &format!("results   {}\n", case.file.output.directory.display());
    text
}
