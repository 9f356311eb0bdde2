use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use femtile_case::{Case, Convergence, ConvergenceLevel, Norms, Override, verify, verify_exact};
use femtile_terminal::{check_target, print, tell, to_json};

use crate::arguments::VerifyOptions;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::remembered::remembered;

/// `femtile verify`.
pub fn run(options: &VerifyOptions) -> Result<ExitCode, Failure> {
    match options.exact.is_empty() {
        true => files(&options.path),
        false => orders(options),
    }
}

/// Compares the files in a folder of results with their checksums.
fn files(folder: &Path) -> Result<ExitCode, Failure> {
    let misfits = verify(folder)?;
    if misfits.is_empty() {
        let folder = folder.display();
        let text = format!("{folder}: all files are those of the run that report.json tells of\n");
        return Ok(print(&text)?);
    }
    let lines = misfits.iter().map(|misfit| format!("{}/{misfit}\n", folder.display()));
    print(&lines.collect::<String>())?;
    Ok(ExitCode::from(1))
}

/// Compares the orders of the errors against a given solution with those of theory.
fn orders(options: &VerifyOptions) -> Result<ExitCode, Failure> {
    let values = options.set.iter().map(|text| Override::parse("--set", text));
    let overrides = values.collect::<Result<Vec<_>, _>>()?;
    let path = &options.path;
    let mut case = Case::load_with(&case_file(path), overrides)?;
    case.remembered = remembered();
    options.json.as_deref().map_or(Ok(()), |path| check_target("--json", path))?;
    let mut bars = Bars::new(options.quiet, Interrupt::listen()?);
    let found = verify_exact(&case, &options.exact, options.levels, &mut bars)?;
    drop(bars);
    tell(options.json.as_deref(), options.quiet, &to_json(&found)?, &table(&found))?;
    Ok(if found.verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Returns the case file of a path, which may be its folder.
pub fn case_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("case.toml") } else { path.into() }
}

fn table(found: &Convergence) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "cells",
        "unknowns",
        "Newton",
        "error in L²",
        "order",
        "error of the gradient",
        "order",
    ]);
    for ConvergenceLevel { n_cells, n_unknowns, newton_iterations, error, order } in &found.levels {
        let newton = newton_iterations.map_or("linear".into(), |n| n.to_string());
        // Of errors that are zero there is no order.
        let order = |of: fn(&Norms) -> f64| {
            let order = order.as_ref().map(of).filter(|order| order.is_finite());
            order.map_or(String::new(), |order| format!("{order:.2}"))
        };
        table.add_row([
            n_cells.to_string(),
            n_unknowns.to_string(),
            newton,
            format!("{:.3e}", error.l2),
            order(|norms| norms.l2),
            format!("{:.3e}", error.h1),
            order(|norms| norms.h1),
        ]);
    }
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let Norms { l2, h1 } = found.expected;
    format!("{table}\ndegree {}: orders {l2} and {h1} are expected\n{}\n", found.degree, found.verdict)
}
