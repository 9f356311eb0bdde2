use std::path::absolute;
use std::process::ExitCode;

use femtile_case::{Override, Study, StudyReport, StudyRun, Vary};
use femtile_report::significant;
use femtile_terminal::{check_target, escape, is_stdout, print, say, tell, to_json};

use crate::arguments::StudyOptions;
use crate::bars::Bars;
use crate::failure::{Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::remembered::remembered;
use crate::verify::case_file;

/// Significant digits of values.
const DIGITS: usize = 8;

/// `femtile study`.
pub fn run(options: &StudyOptions) -> Result<ExitCode, Failure> {
    let vary = options.vary.iter().map(|text| Vary::parse("--vary", text)).collect::<Result<Vec<_>, _>>()?;
    let set = options.set.iter().map(|text| Override::parse("--set", text));
    let keys: Vec<String> = vary.iter().map(|vary| vary.key().to_owned()).collect();
    let study = Study {
        overrides: set.collect::<Result<_, _>>()?,
        folder: options.output.clone(),
        is_again: options.again,
        jobs: options.jobs.into(),
        page: options.report.clone(),
        remembered: remembered(),
        ..Study::load(&case_file(&options.case), vary)?
    };
    let json = options.json.as_deref();
    json.map_or(Ok(()), |path| check_target("--json", path))?;
    if let Some(path) = &options.report {
        if is_stdout(path) {
            return Err(Failure::message("--report needs the name of a file, such as study.html"));
        }
        if json.is_some_and(|json| absolute(json).ok() == absolute(path).ok()) {
            return Err(Failure::message(
                "--report and --json name the same file: give each a name of its own",
            ));
        }
        if path.is_dir() {
            check_target("--report", path)?;
        }
    }
    let tell_line = |line: &str| match (options.quiet, json.is_some_and(is_stdout)) {
        (true, _) => {}
        (false, true) => say(&escape(line)),
        // The table on the disk has the row as well; a terminal that is gone is noticed at the end.
        (false, false) => drop(print(line)),
    };
    let mut bars = Bars::new(options.quiet, Interrupt::listen()?);
    let mut is_first = true;
    let report = study.run(&mut bars, &mut |run| {
        if std::mem::take(&mut is_first) {
            tell_line(&header(&keys));
        }
        tell_line(&row(run));
    })?;
    drop(bars);
    tell(json, options.quiet, &to_json(&report.table)?, &summary(&report))?;
    Ok(match (report.is_interrupted, report.n_failed()) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(1),
    })
}

/// The line above the rows.
fn header(keys: &[String]) -> String {
    let keys = keys.join(", ");
    format!("{:>10} {:>10} {:>9}  {keys}\n", "unknowns", "iterations", "seconds")
}

/// A line for a run that has ended.
fn row(run: &StudyRun) -> String {
    let varied: Vec<String> = run.varied.iter().map(|(_, value)| shown(value)).collect();
    let varied = varied.join(", ");
    match &run.outcome {
        Ok(numbers) => {
            let mut line = format!(
                "{:>10} {:>10} {:>9.2}  {varied}: {}",
                numbers.n_unknowns, numbers.iterations, numbers.seconds, numbers.stop
            );
            for (name, value) in &numbers.values {
                line += &format!(", {name} {}", value.map_or("–".into(), |value| significant(value, DIGITS)));
            }
            if run.is_kept {
                line += " (complete before)";
            }
            line + "\n"
        }
        Err(error) => format!("{:>10} {:>10} {:>9}  {varied}: {error}\n", "–", "–", "–"),
    }
}

/// The end of the output: runs, orders, files.
fn summary(report: &StudyReport) -> String {
    let (n_runs, n_failed) = (report.runs.len(), report.n_failed());
    let n_kept = report.runs.iter().filter(|run| run.is_kept).count();
    let mut text = format!("runs      {n_runs}");
    if n_kept > 0 {
        text += &format!(", {n_kept} of them complete before (--again runs all)");
    }
    if n_failed > 0 {
        text += &format!(", {n_failed} failed or did not converge");
    }
    text += if report.is_interrupted { ", interrupted: the same command goes on\n" } else { "\n" };
    for found in &report.orders {
        let others: Vec<String> =
            found.others.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect();
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        let limit = found.limit.map(|limit| format!(", limit {}", significant(limit, DIGITS)));
        text +=
            &format!("order     {:.2} of {}{others}{}\n", found.order, found.name, limit.unwrap_or_default());
    }
    text += &format!("table     {}\n", report.folder.join("study.csv").display());
    if !report.orders.is_empty() {
        text += &format!("plot      {}\n", report.folder.join("study.svg").display());
    }
    text
}

/// Returns a value as it stands behind an option.
fn shown(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
