//! The entries of a record: objects without nesting, whatever benchmark wrote it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// An entry: texts and numbers by the names of their fields.
pub type Record = BTreeMap<String, Value>;

/// Returns the entries of a record. The field `file` is the name of the record, `list` that of the list of an entry.
///
/// `parameters` become fields of their entry, `a: {b: 1}` the field `a.b`. The rows, claims and cells of tables of a figure are entries, with the `item`
/// of the figure; those of tables have `row` and one field a column.
pub fn entries(name: &str, text: &str) -> Result<Vec<Record>, String> {
    let mut out = Vec::new();
    match serde_json::from_str(text).map_err(|error| error.to_string())? {
        Value::Array(list) => list.iter().for_each(|entry| add(&mut out, entry)),
        Value::Object(lists) => add_lists(&mut out, &lists),
        _ => return Err("neither a list nor an object".into()),
    }
    for entry in &mut out {
        entry.insert("file".into(), name.into());
    }
    Ok(out)
}

fn add_lists(out: &mut Vec<Record>, lists: &Map<String, Value>) {
    for (key, list) in lists {
        for entry in list.as_array().into_iter().flatten() {
            let first = out.len();
            add(out, entry);
            for entry in &mut out[first..] {
                entry.entry("list".into()).or_insert_with(|| key.as_str().into());
            }
        }
    }
}

fn add(out: &mut Vec<Record>, entry: &Value) {
    let Value::Object(fields) = entry else { return };
    let Some(item) = fields.get("item") else {
        let mut record = Record::new();
        collect(&mut record, "", fields);
        out.push(record);
        return;
    };
    let first = out.len();
    add_lists(out, fields);
    if let Some(Value::Object(table)) = fields.get("table") {
        out.extend(of_table(table));
    }
    for entry in &mut out[first..] {
        entry.insert("item".into(), item.clone());
    }
}

/// Collects texts and numbers; a field of an object has the name `OBJECT.FIELD`, a parameter its own.
fn collect(record: &mut Record, prefix: &str, fields: &Map<String, Value>) {
    for (key, value) in fields {
        match value {
            Value::Object(parameters) if key == "parameters" => collect(record, prefix, parameters),
            Value::Object(nested) => collect(record, &format!("{prefix}{key}."), nested),
            Value::Array(_) | Value::Null => {}
            _ => drop(record.insert(format!("{prefix}{key}"), value.clone())),
        }
    }
}

/// Returns an entry for each row of the table of a figure.
fn of_table(table: &Map<String, Value>) -> Vec<Record> {
    let list = |key: &str| table.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut rows: Vec<Record> = list("rows").map(|row| Record::from([("row".into(), row.clone())])).collect();
    for column in list("columns") {
        let name = column["name"].as_str().unwrap_or_default();
        let cells = column["cells"].as_array().into_iter().flatten();
        for (row, cell) in rows.iter_mut().zip(cells).filter(|(_, cell)| !cell.is_null()) {
            row.insert(name.to_owned(), cell.clone());
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let entries = entries("f", text).unwrap();
        entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect()
    }

    #[test]
    fn entries_are_those_of_all_lists() {
        let text = r#"{"device": "d", "rows": [{"a": 1, "parameters": {"b": null, "c": 3, "d": {"e": 2}}}], "weak": [{"a": 4}]}"#;
        let expected =
            [r#"{"a":1,"c":3,"d.e":2,"file":"f","list":"rows"}"#, r#"{"a":4,"file":"f","list":"weak"}"#];
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn figures_have_their_rows_and_cells() {
        let text = r#"[{"item": "i", "rows": [{"a": 1}], "table": {"rows": ["r", "s"], "columns": [{"name": "c", "cells": [null, 2]}]}}]"#;
        let expected = [
            r#"{"a":1,"file":"f","item":"i","list":"rows"}"#,
            r#"{"file":"f","item":"i","row":"r"}"#,
            r#"{"c":2,"file":"f","item":"i","row":"s"}"#,
        ];
        assert_eq!(shown(text), expected);
    }
}
