//! The page of a study.

use femtile_report::{StudyPage, significant};
use femtile_solve::path_text;
use serde_json::Value;

use super::table::text;
use super::vary::shown;
use super::{Study, StudyReport};

/// Significant digits of numbers.
const DIGITS: usize = 8;

/// Makes the page of a study; `name` is that of the case.
pub(super) fn page(name: String, study: &Study, report: &StudyReport, plot: Option<String>) -> String {
    let (n_runs, n_failed) = (report.runs.len(), report.n_failed());
    let mut outcome = if n_runs == 1 { "1 run".to_owned() } else { format!("{n_runs} runs") };
    if n_failed > 0 {
        outcome += &format!(", {n_failed} failed or did not converge");
    }
    if report.is_interrupted {
        outcome += ", interrupted";
    }
    // Values that replace those of the case below.
    let set = study.overrides.iter().map(|of| (path_text(of.path()), shown(of.value())));
    let orders = report.orders.iter().map(|found| {
        let others: Vec<String> =
            found.others.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        let limit = found.limit.map(|limit| format!(", limit {}", significant(limit, DIGITS)));
        (
            format!("order of {}{others}", found.name),
            format!("{:.2}{}", found.order, limit.unwrap_or_default()),
        )
    });
    let cell = |value: &Value| match value {
        Value::Number(number) if number.is_f64() => significant(number.as_f64().unwrap_or(f64::NAN), DIGITS),
        other => text(other),
    };
    let page = StudyPage {
        title: name,
        outcome,
        facts: set.chain(orders).collect(),
        plot,
        columns: report.table.columns.clone(),
        rows: report.table.rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
        case: study.text.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    page.html()
}
