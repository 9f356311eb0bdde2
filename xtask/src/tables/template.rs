//! The template of a table: head, rows, and the values of its cells.

use std::cmp::Ordering;

use serde_json::Value;

use super::record::Record;

/// Renders a template, without the comment's begin and end.
pub fn table(template: &str, record: &dyn Fn(&str) -> Result<Vec<Record>, String>) -> Result<String, String> {
    let (first, body) = template.split_once('\n').ok_or("the template has no rows")?;
    let (names, conditions) = first.split_once(';').unwrap_or((first, ""));
    let mut entries = Vec::new();
    for name in names.split_whitespace() {
        entries.extend(record(name)?);
    }
    let of_table = conditions_of(conditions)?;
    let lines: Vec<Vec<&str>> = body.lines().filter(|line| !line.trim().is_empty()).map(cells_of).collect();
    let [head, rule, rows @ ..] = &lines[..] else { return Err("the template has no head".into()) };
    let mut out = vec![line_of(head), format!("|{}|", rule.join("|"))];
    let mut is_empty = vec![true; head.len()];
    let mut cells: &[&str] = &[];
    for row in rows {
        let (label, rest) = row.split_first().ok_or("a line has no cells")?;
        if label.is_empty() {
            cells = rest;
            continue;
        }
        if rest.len() != 1 || cells.len() + 1 != head.len() {
            return Err(format!(
                "`{label}`: {} columns, {} cells, then label and conditions of a row",
                head.len(),
                cells.len() + 1
            ));
        }
        let (field, own) = match rest[0].strip_prefix("each ") {
            Some(each) => each.split_once(';').map_or((Some(each), ""), |(field, own)| (Some(field), own)),
            None => (None, rest[0]),
        };
        let conditions = joined(&of_table, &conditions_of(own)?);
        let selections = match field {
            Some(field) => each(&entries, field.trim(), conditions),
            None => vec![conditions],
        };
        if selections.is_empty() {
            return Err(format!("no entry for `{label}`"));
        }
        for selection in selections {
            let row = rendered_row(label, cells, &entries, &selection)?;
            is_empty.iter_mut().zip(&row).for_each(|(is_empty, cell)| *is_empty &= cell.is_empty());
            out.push(line_of(&row));
        }
    }
    match is_empty.iter().position(|is_empty| *is_empty) {
        Some(column) => Err(format!("no entry for the column `{}`", head[column])),
        None => Ok(out.join("\n") + "\n"),
    }
}

fn cells_of(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

fn line_of(cells: &[impl AsRef<str>]) -> String {
    let cells = cells.iter().map(|cell| match cell.as_ref() {
        "" => " ".to_owned(),
        text => format!(" {text} "),
    });
    format!("|{}|", cells.collect::<Vec<_>>().join("|"))
}

fn rendered_row(
    label: &str,
    cells: &[&str],
    entries: &[Record],
    selection: &[Condition<'_>],
) -> Result<Vec<String>, String> {
    let in_row = |error| format!("`{label}`: {error}");
    let label_text = text(label, entries, selection).map_err(in_row)?;
    let mut row = vec![label_text.ok_or_else(|| format!("no entry for `{label}`"))?];
    for cell in cells {
        row.push(text(cell, entries, selection).map_err(in_row)?.unwrap_or_default());
    }
    match row[1..].iter().all(String::is_empty) {
        true => Err(format!("no entry for `{label}`")),
        false => Ok(row),
    }
}

/// A condition on a field: whether it matches a pattern, or whether it does not.
#[derive(Clone, Copy)]
struct Condition<'a> {
    field: &'a str,
    pattern: Pattern<'a>,
    is_wanted: bool,
}

#[derive(Clone, Copy)]
enum Pattern<'a> {
    Text(&'a str),
    Value(&'a Value),
}

fn conditions_of(text: &str) -> Result<Vec<Condition<'_>>, String> {
    let conditions = text.split(';').map(str::trim).filter(|condition| !condition.is_empty());
    conditions.map(condition).collect()
}

fn condition(text: &str) -> Result<Condition<'_>, String> {
    let parts = text.split_once(" != ").map(|parts| (parts, false));
    let parts = parts.or_else(|| text.split_once(" = ").map(|parts| (parts, true)));
    let ((field, pattern), is_wanted) = parts.ok_or_else(|| format!("`{text}` is no condition"))?;
    Ok(Condition { field: field.trim(), pattern: Pattern::Text(pattern.trim()), is_wanted })
}

impl Condition<'_> {
    fn holds(&self, entry: &Record) -> bool {
        let Some(value) = entry.get(self.field) else { return !self.is_wanted };
        let is_match = match self.pattern {
            Pattern::Text(pattern) => matches(&plain(value), pattern),
            Pattern::Value(own) => value == own,
        };
        is_match == self.is_wanted
    }
}

/// Returns the conditions of both; those of `own` replace others on the same field.
fn joined<'a>(outer: &[Condition<'a>], own: &[Condition<'a>]) -> Vec<Condition<'a>> {
    let is_kept = |outer: &&Condition<'a>| own.iter().all(|own| own.field != outer.field);
    outer.iter().filter(is_kept).chain(own).copied().collect()
}

/// Returns the conditions with each value of a field among the entries that fulfil them, in the order of the record.
fn each<'a>(
    entries: &'a [Record],
    field: &'a str,
    conditions: Vec<Condition<'a>>,
) -> Vec<Vec<Condition<'a>>> {
    let mut values: Vec<&Value> = Vec::new();
    for entry in entries.iter().filter(|entry| conditions.iter().all(|condition| condition.holds(entry))) {
        values.extend(entry.get(field).filter(|value| !values.contains(value)));
    }
    let with = |value| {
        let own = Condition { field, pattern: Pattern::Value(value), is_wanted: true };
        [&conditions[..], &[own]].concat()
    };
    values.into_iter().map(with).collect()
}

/// Returns whether a text is that of a pattern, in which `*` stands for any text.
fn matches(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|text| {
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(&text[at..], rest))
        }),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Replaces the braces of a cell by their values; none if the record lacks one of them.
fn text(cell: &str, entries: &[Record], selection: &[Condition<'_>]) -> Result<Option<String>, String> {
    let mut out = String::new();
    let mut rest = cell;
    while let Some((before, after)) = rest.split_once('{') {
        let (slot, after) = after.split_once('}').ok_or("a brace is not closed")?;
        out.push_str(before);
        match value(slot, entries, selection)? {
            Some(text) => out.push_str(&text),
            None => return Ok(None),
        }
        rest = after;
    }
    Ok(Some(out + rest))
}

/// How a number is written.
#[derive(Clone, Copy)]
enum Digits {
    Decimals(usize),
    Significant(usize),
}

/// Evaluates what stands in braces.
fn value(slot: &str, entries: &[Record], selection: &[Condition<'_>]) -> Result<Option<String>, String> {
    let (mut digits, mut factor, mut rest) = (None, 1.0, slot.trim());
    while let Some((word, after)) = rest.split_once(' ') {
        if let Some(Ok(number)) = word.strip_prefix('*').map(str::parse) {
            factor = number;
        } else if let Some(Ok(count)) = word.strip_prefix('.').map(str::parse) {
            digits = Some(Digits::Decimals(count));
        } else if let Ok(count) = word.parse() {
            digits = Some(Digits::Significant(count));
        } else {
            break;
        }
        rest = after.trim();
    }
    let mut terms = Vec::new();
    for part in rest.split(" / ") {
        match term(part, entries, selection)? {
            Some(found) => terms.push(found),
            None => return Ok(None),
        }
    }
    let number = |value: &Value| value.as_f64().ok_or_else(|| format!("{value} in `{slot}` is not a number"));
    match (digits, &terms[..]) {
        (None, [value]) => match value.as_u64() {
            Some(count) => Ok(Some(written(count as f64, Digits::Decimals(0)))),
            None => Ok(Some(plain(value))),
        },
        (Some(digits), [numerator, denominators @ ..]) => {
            let mut quotient = factor * number(numerator)?;
            for denominator in denominators {
                quotient /= number(denominator)?;
            }
            Ok(Some(written(quotient, digits)))
        }
        _ => Err(format!("`{slot}` needs a number of digits")),
    }
}

/// Returns the value of `[least|most|median|sum|count] FIELD [where CONDITIONS]` or of `FIELD at least|most OTHER [where CONDITIONS]`.
fn term(text: &str, entries: &[Record], selection: &[Condition<'_>]) -> Result<Option<Value>, String> {
    let (field, own) = text.split_once(" where ").unwrap_or((text, ""));
    let (reduction, field) = match field.trim().split_once(' ') {
        Some((first, rest)) if ["least", "most", "median", "sum", "count"].contains(&first) => {
            (Some(first), rest)
        }
        _ => (None, field.trim()),
    };
    let conditions = joined(selection, &conditions_of(own)?);
    let is_selected = |entry: &&Record| conditions.iter().all(|condition| condition.holds(entry));
    for (separator, sign) in [(" at least ", 1.0), (" at most ", -1.0)] {
        let Some((shown, other)) =
            text.split_once(" where ").map_or(text, |(field, _)| field).split_once(separator)
        else {
            continue;
        };
        let key =
            |entry: &&Record| entry.get(other.trim()).and_then(Value::as_f64).map(|number| number * sign);
        let selected = entries.iter().filter(is_selected).filter(|entry| key(entry).is_some());
        let best = selected.min_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
        return Ok(best.and_then(|entry| entry.get(shown.trim()).cloned()));
    }
    let found: Vec<&Value> =
        entries.iter().filter(is_selected).filter_map(|entry| entry.get(field)).collect();
    let Some(&first) = found.first() else { return Ok(None) };
    let Some(reduction) = reduction else {
        let is_one = found.iter().all(|value| *value == first);
        return if is_one {
            Ok(Some(first.clone()))
        } else {
            Err(format!("{} entries for `{text}`", found.len()))
        };
    };
    let numbers: Option<Vec<f64>> = found.iter().map(|value| value.as_f64()).collect();
    let mut numbers = numbers.ok_or_else(|| format!("`{text}`: not all are numbers"))?;
    numbers.sort_by(f64::total_cmp);
    let (middle, last) = (numbers.len() / 2, numbers.len() - 1);
    Ok(Some(match reduction {
        "least" => numbers[0].into(),
        "most" => numbers[last].into(),
        "sum" => numbers.iter().sum::<f64>().into(),
        "count" => numbers.len().into(),
        _ => ((numbers[middle] + numbers[last - middle]) / 2.0).into(),
    }))
}

/// Writes a number, with commas between thousands.
fn written(number: f64, digits: Digits) -> String {
    let (number, decimals) = match digits {
        Digits::Decimals(decimals) => (number, decimals),
        Digits::Significant(count) => {
            let rounded = format!("{number:.*e}", count.max(1) - 1);
            let exponent: i32 = rounded.split('e').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
            (rounded.parse().unwrap_or(number), usize::try_from(count as i32 - 1 - exponent).unwrap_or(0))
        }
    };
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{}{grouped}{fraction}", if number < 0.0 { "−" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::record::entries;

    const RECORD: &str = r#"[
        {"p": "a, 1", "n": 1, "s": 0.5}, {"p": "a, 2", "n": 1, "s": 0.25}, {"p": "a, 1", "n": 2, "s": 1234.5},
        {"p": "b", "n": 2, "w": "text", "s": 4}]"#;

    fn of(cell: &str, conditions: &str) -> Result<Option<String>, String> {
        text(cell, &entries("f", RECORD).unwrap(), &conditions_of(conditions).unwrap())
    }

    #[test]
    fn cells_have_the_value_of_the_one_entry() {
        assert_eq!(of("x {3 s} ms", "p = a, 1; n = 2"), Ok(Some("x 1,230 ms".into())));
        assert_eq!(of("{w}", "p = b"), Ok(Some("text".into())));
        assert_eq!(of("{w}", "p != b"), Ok(None));
        assert!(of("{s}", "n = 1").unwrap_err().contains("2 entries"));
    }

    #[test]
    fn conditions_of_values_replace_those_of_rows() {
        assert_eq!(of("{.2 s where n = 2 / s}", "p = a, 1; n = 1"), Ok(Some("2,469.00".into())));
        assert_eq!(
            of("{1 least s where p = a*} to {1 most s where p = *}", ""),
            Ok(Some("0.2 to 1,000".into()))
        );
        assert_eq!(of("{p at least s} {p at most s}", "n = 1"), Ok(Some("a, 2 a, 1".into())));
        assert_eq!(of("{.3 median s} {.3 sum s}", "n = 1"), Ok(Some("0.375 0.750".into())));
    }

    #[test]
    fn rows_are_repeated_for_each_value() {
        let template =
            " f; p = a*\n| n | s |\n|---|---|\n| | {.1 least s} |\n| {n} | each n |\n| all | p != c |\n";
        let out = table(template, &|name| entries(name, RECORD));
        assert_eq!(out, Ok("| n | s |\n|---|---|\n| 1 | 0.2 |\n| 2 | 1,234.5 |\n| all | 0.2 |\n".into()));
    }

    #[test]
    fn columns_without_values_are_errors() {
        let template = " f\n| n | s |\n|---|---|\n| | {.1 least t} |\n| {n} | n = 1; p = a, 1 |\n";
        assert!(table(template, &|name| entries(name, RECORD)).is_err());
    }

    #[test]
    fn numbers_have_their_digits() {
        let of = |number, digits| written(number, Digits::Significant(digits));
        assert_eq!([of(0.09994, 2), of(9.96, 2), of(-0.0123, 1)], ["0.10", "10", "−0.01"]);
        assert_eq!(written(1234567.0, Digits::Decimals(1)), "1,234,567.0");
    }
}
