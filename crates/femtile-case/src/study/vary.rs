//! The keys that a study varies, and their values.

use femtile_solve::{Key, path_text};
use toml::Value;

use crate::overrides::value_of;
use crate::{CaseError, Override};

/// The most runs of a study.
pub(super) const MOST_RUNS: usize = 10_000;

/// A key of a case with the values that a study gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Vary {
    key: String,
    /// An override for each value; never empty.
    choices: Vec<Override>,
}

impl Vary {
    /// Parses `solver.tolerance=1e-6,1e-8` behind an option such as `--vary`: a key as for [`Override::parse`] and values with
    /// commas between them. A value is one of a case file, `0..3` for whole numbers with both ends, or `1e-3:1e3:7` for seven
    /// numbers with a constant ratio.
    ///
    /// # Errors
    /// [`CaseError::Option`] without a key or values, for a range without an end, and for a value that is given twice.
    pub fn parse(option: &str, text: &str) -> Result<Self, CaseError> {
        let named = format!("{option} {text}");
        let refuse = |message: String| CaseError::option(&named, message);
        let Some((key, values)) = text.split_once('=').filter(|(_, values)| !values.trim().is_empty()) else {
            return Err(refuse(
                "write KEY=VALUES, such as solver.tolerance=1e-6,1e-8 or mesh.refine=0..3".into(),
            ));
        };
        let mut all = Vec::new();
        for item in items(values) {
            all.extend(values_of(item.trim()).map_err(refuse)?);
        }
        Self::new(option, key.trim(), all)
    }

    /// Varies a key over some values; messages name it as `option KEY=VALUE`.
    ///
    /// # Errors
    /// As [`Vary::parse`].
    pub fn new(option: &str, key: &str, values: Vec<Value>) -> Result<Self, CaseError> {
        let name = |value: &Value| format!("{option} {key}={}", shown(value));
        let choice = |value: Value| Override::of_value(name(&value), key, value);
        let choices = values.into_iter().map(choice).collect::<Result<Vec<_>, _>>()?;
        let refuse = |message: &str| Err(CaseError::option(&format!("{option} {key}"), message));
        let Some(first) = choices.first() else {
            return refuse("give at least one value");
        };
        if first.path() == ["output".into(), "directory".into()] {
            return refuse("each run of a study has a folder of its own; --output names the folder of all");
        }
        if let Some(twice) = (1..choices.len()).find(|&i| choices[..i].contains(&choices[i])) {
            return Err(CaseError::option(choices[twice].option(), "the value is given twice"));
        }
        Ok(Self { key: path_text(first.path()), choices })
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the path of the key.
    pub(super) fn path(&self) -> &[Key] {
        self.choices[0].path()
    }

    /// Returns an override for each value.
    pub(super) fn choices(&self) -> &[Override] {
        &self.choices
    }
}

/// Returns a value as a person writes it behind an option.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// Splits a text at its commas outside of brackets and quotes.
fn items(text: &str) -> Vec<&str> {
    let (mut found, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[begin..]);
    found
}

/// Returns the values of an item, or the reason why it has none.
fn values_of(item: &str) -> Result<Vec<Value>, String> {
    if item.is_empty() {
        return Err("there is no value between two commas".into());
    }
    if let Some((first, last)) = item.split_once("..")
        && let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>())
    {
        return match last.checked_sub(first) {
            Some(steps) if (0..MOST_RUNS as i64).contains(&steps) => {
                Ok((first..=last).map(Value::Integer).collect())
            }
            Some(..0) => Err(format!("the range {item} ends before it begins")),
            _ => Err(format!("the range {item} has more than {MOST_RUNS} numbers")),
        };
    }
    if let [first, last, n] = item.split(':').collect::<Vec<_>>()[..]
        && let (Ok(first), Ok(last), Ok(n)) = (first.parse::<f64>(), last.parse::<f64>(), n.parse::<usize>())
    {
        let is_range = first > 0.0 && last > 0.0 && first.is_finite() && last.is_finite();
        if !is_range || !(2..=MOST_RUNS).contains(&n) {
            return Err(format!(
                "{item} needs two positive numbers and how many there are, 2 to {MOST_RUNS}: 1e-3:1e3:7"
            ));
        }
        return Ok((0..n).map(|i| Value::Float(between(first, last, i as f64 / (n - 1) as f64))).collect());
    }
    Ok(vec![value_of(item)])
}

/// Returns the number at a share of the way between two numbers on a logarithmic scale, to 15 digits.
fn between(first: f64, last: f64, share: f64) -> f64 {
    match share {
        0.0 => first,
        1.0 => last,
        _ => {
            let number = (first.ln() + share * (last.ln() - first.ln())).exp();
            format!("{number:.12e}").parse().unwrap_or(number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<Value> {
        let vary = Vary::parse("--vary", text).unwrap();
        vary.choices().iter().map(|choice| choice.value().clone()).collect()
    }

    #[test]
    fn lists_have_values_ranges_and_texts() {
        assert_eq!(values("solver.tolerance=1e-6, 1e-8"), [1e-6, 1e-8].map(Value::Float));
        assert_eq!(values("mesh.refine=0..2,5"), [0, 1, 2, 5].map(Value::Integer));
        assert_eq!(values("a=-1..1"), [-1, 0, 1].map(Value::Integer));
        assert_eq!(values("a=1e-3:1e3:7"), [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0].map(Value::Float));
        assert_eq!(values("a=4:1:3"), [4.0, 2.0, 1.0].map(Value::Float));
        let texts = ["amg", "jacobi", "atan2(x, y)", "1, 2"].map(|text| Value::String(text.into()));
        assert_eq!(values("a=amg,jacobi,atan2(x, y),\"1, 2\""), texts);
        assert_eq!(values("a=[2, 3],[4, 6]").len(), 2);
        assert_eq!(values("a=true,false"), [true, false].map(Value::Boolean));
    }

    #[test]
    fn lists_without_a_sense_are_refused_with_the_option() {
        for (text, words) in [
            ("mesh.refine", "KEY=VALUES"),
            ("mesh.refine=", "KEY=VALUES"),
            ("=1,2", "KEY=VALUE"),
            ("a=1,,2", "between two commas"),
            ("a=3..1", "ends before it begins"),
            ("a=0..10000", "more than 10000"),
            ("a=-9223372036854775808..9223372036854775807", "more than 10000"),
            ("a=-1:1:3", "two positive numbers"),
            ("a=1:2:1", "two positive numbers"),
            ("a=1,2,1", "given twice"),
            ("output.directory=a,b", "a folder of its own"),
        ] {
            let error = Vary::parse("--vary", text).unwrap_err().to_string();
            assert!(error.contains("--vary") && error.contains(words), "{text}: {error}");
        }
    }
}
