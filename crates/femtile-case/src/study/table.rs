//! The table of a study, and its series over sizes of cells or steps.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use super::orders::{Observed, is_of_time, observed, sizes};
use super::{StudyNumbers, StudyOrder, StudyRun, Vary};
use crate::plot::{Convergent, convergence_plot};
use crate::series::csv_field;

/// A table with a name for each column; it is written as JSON as a list of objects.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows with a value in each column, null where there is none.
    pub rows: Vec<Vec<Value>>,
}

/// Columns of all studies between the varied keys and the values of runs; `failure` and `folder` are the last ones.
const FIXED: [&str; 7] =
    ["cells", "unknowns", "iterations", "newton_iterations", "seconds", "stop", "converged"];

/// A value of runs that differ in the size of cells or steps alone, the coarsest first.
pub(super) struct Series {
    /// The name of the value.
    pub name: String,
    /// The values of the other keys.
    pub others: Vec<(String, Value)>,
    /// The numbers of the runs.
    runs: Vec<usize>,
    /// The sizes, those of the first direction.
    sizes: Vec<f64>,
    values: Vec<Option<f64>>,
    is_error: bool,
    observed: Vec<Option<Observed>>,
}

impl Series {
    /// Returns the order at the finest level that has one.
    pub fn finest(&self) -> Option<Observed> {
        self.observed.iter().rev().copied().flatten().next()
    }

    /// Returns it with its names.
    pub fn finest_order(&self) -> Option<StudyOrder> {
        let Observed { order, limit } = self.finest()?;
        let limit = (!self.is_error).then_some(limit);
        Some(StudyOrder { name: self.name.clone(), others: self.others.clone(), order, limit })
    }
}

/// The values of the other keys, and the sizes and numbers of the runs that have them.
type Group = (Vec<(String, Value)>, Vec<(Vec<f64>, usize)>);

/// Returns the series of a study in which exactly one key is one of resolution.
pub(super) fn series(vary: &[Vary], runs: &[StudyRun], errors: &[String]) -> Vec<Series> {
    let is_resolution =
        |vary: &Vary| vary.choices().iter().all(|choice| sizes(vary.key(), choice.value()).is_some());
    let found: Vec<&Vary> = vary.iter().filter(|vary| is_resolution(vary)).collect();
    let [resolution] = found[..] else { return Vec::new() };
    let mut groups: Vec<Group> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let (own, others): (Vec<_>, Vec<_>) =
            run.varied.iter().cloned().partition(|(key, _)| key == resolution.key());
        let value = own.first().and_then(|(_, value)| serde_json::from_value(value.clone()).ok());
        let Some(sizes) = value.and_then(|value| sizes(resolution.key(), &value)) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == others) {
            Some((_, levels)) => levels.push((sizes, number)),
            None => groups.push((others, vec![(sizes, number)])),
        }
    }
    let mut all = Vec::new();
    for (others, mut levels) in groups {
        levels.sort_by(|(a, _), (b, _)| b[0].total_cmp(&a[0]));
        for name in names(runs) {
            let value = |number: usize| value_of(&runs[number], &name);
            let given: Vec<(Vec<f64>, Option<f64>)> =
                levels.iter().map(|(sizes, number)| (sizes.clone(), value(*number))).collect();
            let is_error = errors.contains(&name);
            all.push(Series {
                observed: observed(&given, is_error),
                runs: levels.iter().map(|(_, number)| *number).collect(),
                sizes: given.iter().map(|(sizes, _)| sizes[0]).collect(),
                values: given.into_iter().map(|(_, value)| value).collect(),
                others: others.clone(),
                name,
                is_error,
            });
        }
    }
    all
}

/// Returns the names of the values of all runs, in their order there.
fn names(runs: &[StudyRun]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.outcome).flat_map(|numbers| &numbers.values) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns a value of a run that converged.
fn value_of(run: &StudyRun, name: &str) -> Option<f64> {
    let numbers = run.outcome.as_ref().ok().filter(|numbers| numbers.has_converged)?;
    numbers.values.iter().find(|(known, _)| known == name)?.1
}

/// Returns the plot of errors by size; none if no series has an order.
pub(super) fn plot(vary: &[Vary], series: &[Series]) -> Option<String> {
    let curve = |series: &Series| {
        let Observed { order, limit } = series.finest()?;
        let points = series.sizes.iter().zip(&series.values);
        let points = points.filter_map(|(size, value)| Some((*size, ((*value)? - limit).abs())));
        let others: Vec<String> =
            series.others.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
        let of = if series.is_error { String::new() } else { "error of ".to_owned() };
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        Some(Convergent {
            name: format!("{of}{}{others}: order {order:.2}", series.name),
            points: points.collect(),
        })
    };
    let curves: Vec<Convergent> = series.iter().filter_map(curve).collect();
    let is_in_time = vary.iter().any(|vary| is_of_time(vary.key()));
    let label = if is_in_time { "relative length of steps" } else { "relative size of cells" };
    (!curves.is_empty()).then(|| convergence_plot(label, &curves))
}

impl StudyTable {
    /// Creates the table of the runs; of a study over sizes with orders and limits.
    pub(super) fn of(vary: &[Vary], runs: &[StudyRun], series: &[Series]) -> Self {
        let names = names(runs);
        let mut by_run: BTreeMap<(usize, &str), Observed> = BTreeMap::new();
        for series in series {
            for (number, observed) in series.runs.iter().zip(&series.observed) {
                by_run.extend(observed.map(|observed| ((*number, series.name.as_str()), observed)));
            }
        }
        let has_order = |name: &&String| by_run.keys().any(|(_, known)| known == name);
        let ordered: Vec<&String> = names.iter().filter(has_order).collect();
        let is_error =
            |name: &&&String| series.iter().any(|series| series.name == ***name && series.is_error);
        let limited: Vec<&String> = ordered.iter().filter(|name| !is_error(name)).copied().collect();
        let keys = vary.iter().map(|vary| vary.key().to_owned());
        let mut columns: Vec<String> = keys.chain(FIXED.map(String::from)).collect();
        for name in &names {
            let is_taken = columns.contains(name) || ["failure", "folder"].contains(&name.as_str());
            columns.push(if is_taken { format!("functional {name}") } else { name.clone() });
        }
        columns.extend(ordered.iter().map(|name| format!("order of {name}")));
        columns.extend(limited.iter().map(|name| format!("limit of {name}")));
        columns.extend(["failure", "folder"].map(String::from));
        let row = |(number, run): (usize, &StudyRun)| {
            let observed = |name: &str| by_run.get(&(number, name)).copied();
            let mut row: Vec<Value> = run.varied.iter().map(|(_, value)| value.clone()).collect();
            match &run.outcome {
                Ok(numbers) => {
                    row.extend(fixed(numbers));
                    let value = |name: &String| numbers.values.iter().find(|(known, _)| known == name);
                    row.extend(names.iter().map(|name| Value::from(value(name).and_then(|(_, x)| *x))));
                }
                Err(_) => row.extend(vec![Value::Null; FIXED.len() + names.len()]),
            }
            row.extend(ordered.iter().map(|name| Value::from(observed(name).map(|found| found.order))));
            row.extend(limited.iter().map(|name| Value::from(observed(name).map(|found| found.limit))));
            row.push(Value::from(run.outcome.as_ref().err().cloned()));
            row.push(Value::from(run.folder.clone()));
            row
        };
        let rows = runs.iter().enumerate().map(row).collect();
        Self { columns, rows }
    }

    /// Returns the table as comma-separated values (RFC 4180); what is null is empty.
    pub fn to_csv(&self) -> String {
        let line = |fields: Vec<String>| fields.join(",") + "\n";
        let head = line(self.columns.iter().map(|name| csv_field(name)).collect());
        let rows =
            self.rows.iter().map(|row| line(row.iter().map(|value| csv_field(&text(value))).collect()));
        head + &rows.collect::<String>()
    }
}

/// Returns the values of the columns of all studies.
fn fixed(numbers: &StudyNumbers) -> [Value; FIXED.len()] {
    [
        numbers.n_cells.into(),
        numbers.n_unknowns.into(),
        numbers.iterations.into(),
        numbers.newton_iterations.into(),
        numbers.seconds.into(),
        numbers.stop.clone().into(),
        numbers.has_converged.into(),
    ]
}

/// Returns a value as a field of a table.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Serialize for StudyTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            list.serialize_element(&Row { columns: &self.columns, row })?;
        }
        list.end()
    }
}

/// A row as an object with its columns in their order.
struct Row<'a> {
    columns: &'a [String],
    row: &'a [Value],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.row.len()))?;
        for (column, value) in self.columns.iter().zip(self.row) {
            map.serialize_entry(column, value)?;
        }
        map.end()
    }
}
