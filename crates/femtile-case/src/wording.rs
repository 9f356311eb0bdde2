//! Translates errors of the TOML reader into terms of case files, with the place of the wrong value.

use std::ops::Range;

use femtile_solve::{Key, path_text};
use toml::de::{DeTable, DeValue};

use crate::place::values;
use crate::renamed::is_old_name;

/// An error in the text of a case file.
pub(crate) struct Refusal {
    /// The key of the value, such as `mesh.generate.cells`.
    pub key: Option<String>,
    pub span: Option<Range<usize>>,
    pub message: String,
}

/// Sections that are lists of tables.
const LISTS: [&str; 3] = ["boundary", "region", "stimulus"];

/// Returns the reader's error in terms of case files, at the wrong value.
pub(crate) fn refusal(text: &str, error: &toml::de::Error) -> Refusal {
    let (message, span) = (error.message(), error.span());
    if let Some(refusal) =
        span.clone().and_then(|span| of_list(text, span, message).or_else(|| of_number(text, error)))
    {
        return refusal;
    }
    let blamed = span.as_ref().and_then(|span| blamed(text, span, message));
    let (key, span) = match blamed {
        Some((path, span)) => (Some(path_text(&path)), Some(span)),
        None => (None, span),
    };
    Refusal { key, span, message: in_words(message) }
}

/// The refusal of `[boundary]` for `[[boundary]]`, where the error is about one.
fn of_list(text: &str, span: Range<usize>, message: &str) -> Option<Refusal> {
    let name = text.get(span.clone())?.trim_matches(['[', ']', ' ']);
    let name = LISTS.into_iter().find(|list| *list == name)?;
    let is_header = text[..span.end].rsplit('\n').next()?.trim_start().starts_with('[');
    (is_header && (message == "duplicate key" || message == "invalid type: map, expected a sequence")).then(
        || {
            let message =
                format!("write `[[{name}]]`, in double brackets, above each entry: there may be several");
            let span = single_header(text, name).unwrap_or(span);
            Refusal { key: Some(name.into()), span: Some(span), message }
        },
    )
}

/// The name in the first line that begins a section in single brackets.
fn single_header(text: &str, name: &str) -> Option<Range<usize>> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let inner = line.trim_start().strip_prefix('[').filter(|inner| !inner.starts_with('['));
        if inner.and_then(|inner| inner.split(']').next()).is_some_and(|inner| inner.trim() == name) {
            let at = start + line.find(name)?;
            return Some(at..at + name.len());
        }
        start += line.len();
    }
    None
}

/// The refusal of a number that TOML cannot read, with a decimal comma or a unit.
fn of_number(text: &str, error: &toml::de::Error) -> Option<Refusal> {
    if DeTable::parse(text).is_ok() {
        return None;
    }
    let at = error.span()?.start;
    let line = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    // Of the values in the line, outside of quotes, the last one that is not behind the error.
    let is_outside = |i: &usize| text[line..line + i].matches('"').count().is_multiple_of(2);
    let values = text[line..end].match_indices('=').map(|(i, _)| i).filter(is_outside).map(|i| line + i + 1);
    let starts = values.map(|i| i + text[i..end].len() - text[i..end].trim_start().len());
    starts.filter(|&start| start <= at).filter_map(|start| of_value(&text[start..end], start)).next_back()
}

/// The refusal of a number with a decimal comma or a unit, which stands at a place.
fn of_value(text: &str, start: usize) -> Option<Refusal> {
    let n = digits_of(text);
    let (number, behind) = text.split_at(n);
    if n == 0 {
        return None;
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let n_behind_comma = behind.strip_prefix(',').map_or(0, digits);
    let is_unit = |c: char| c.is_alphabetic() || "°%[".contains(c);
    let (length, message) = if n_behind_comma > 0 {
        let fraction = &behind[1..1 + n_behind_comma];
        let right = format!("{}.{fraction}", number.replace('.', ""));
        (n + 1 + n_behind_comma, format!("a decimal fraction is written with a point: `{right}`"))
    } else if behind.trim_start().starts_with(is_unit) {
        let advice = "with all values of the case in units that fit together";
        (text.trim_end().len(), format!("numbers have no unit here: write `{number}`, {advice}"))
    } else {
        return None;
    };
    Some(Refusal { key: None, span: Some(start..start + length), message })
}

/// Most letters of a number that a message repeats.
const LONGEST_NUMBER: usize = 40;

/// Returns how many bytes a number at the beginning of a text has; 0 where there is none.
fn digits_of(text: &str) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let most = text.bytes().take(LONGEST_NUMBER).take_while(is_part).count();
    (1..=most).rev().find(|&n| text[..n].parse::<f64>().is_ok()).unwrap_or(0)
}

/// The value at `span`; where it is a table, the one value in it that the message can be about.
fn blamed(text: &str, span: &Range<usize>, message: &str) -> Option<(Vec<Key>, Range<usize>)> {
    let mut whole = None;
    let mut fitting = Vec::new();
    values(text, &mut |path, value| {
        let own = value.span();
        if own == *span {
            whole = Some((path.to_vec(), own, matches!(value.get_ref(), DeValue::Table(_))));
        } else if span.start <= own.start && own.end <= span.end && fits(message, text, &own, value.get_ref())
        {
            fitting.push((path.to_vec(), own));
        }
    });
    let (path, own, is_table) = whole?;
    match (is_table, fitting.len()) {
        (true, 1) => fitting.pop(),
        _ => Some((path, own)),
    }
}

/// Returns `true` where a message such as "invalid type: integer `3`, expected …" can be about a value.
fn fits(message: &str, text: &str, span: &Range<usize>, value: &DeValue<'_>) -> bool {
    if let Some(rest) = message.strip_prefix("invalid length ") {
        let n: Option<usize> = rest.split(',').next().and_then(|n| n.parse().ok());
        return matches!((value, n), (DeValue::Array(array), Some(n)) if array.len() == n);
    }
    let Some((found, _)) = found_and_expected(message) else { return false };
    let number = || text[span.clone()].replace('_', "").parse::<f64>().ok();
    let quoted = || found.split('`').nth(1);
    match value {
        DeValue::Integer(_) => found.starts_with("integer") && quoted().and_then(parsed) == number(),
        DeValue::Float(_) => found.starts_with("floating") && quoted().and_then(parsed) == number(),
        DeValue::Boolean(value) => quoted() == Some(if *value { "true" } else { "false" }),
        DeValue::String(value) => found.strip_prefix("string ") == Some(&*format!("{value:?}")),
        DeValue::Array(_) => found == "sequence",
        DeValue::Table(_) => found == "map",
        DeValue::Datetime(_) => false,
    }
}

fn parsed(number: &str) -> Option<f64> {
    number.parse().ok()
}

/// The two halves of "invalid type: …, expected …".
fn found_and_expected(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    rest.split_once(", expected ")
}

/// Translates a message of the TOML reader into terms of case files.
pub fn in_words(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field ") {
        let name = quoted.next().unwrap_or_default();
        return format!("unknown key `{name}`; {}", choices("the keys here are", name, quoted.collect()));
    }
    if message.starts_with("unknown variant ") {
        let name = quoted.next().unwrap_or_default();
        return format!("`{name}` is not offered here; {}", choices("choose one of", name, quoted.collect()));
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("the key {name} is missing");
    }
    if let Some((found, needed)) = found_and_expected(message) {
        let (needed, found) = (expected(needed), given(found));
        let number = found.trim_matches('"');
        let advice = match digits_of(number) {
            _ if found == number || !needed.contains("number") => String::new(),
            0 => String::new(),
            n => format!("; numbers have neither quotes nor units here: write {}", &number[..n]),
        };
        return format!("{needed} is needed here, not {found}{advice}");
    }
    if let Some((found, needed)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("{} is needed here, not of {found}", expected(needed));
    }
    match message {
        "duplicate key" => "this key stands here a second time: keep one of the two".into(),
        "wanted string or table" => "a name in quotes is needed here".into(),
        other => other.into(),
    }
}

/// `choose one of a, b`, and the name that was probably meant.
fn choices(begin: &str, given: &str, mut names: Vec<&str>) -> String {
    let all = names.clone();
    names.retain(|name| !is_old_name(name, &all));
    let near = names.iter().map(|name| (strsim::damerau_levenshtein(given, name), name)).min();
    let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let list = format!("{begin} {}", list.join(", "));
    match near {
        Some((distance, name)) if distance <= 1 + given.chars().count() / 3 => {
            format!("{list}; did you mean `{name}`?")
        }
        _ => list,
    }
}

/// Returns the expected type in terms of case files.
fn expected(needed: &str) -> String {
    if let Some(n) =
        needed.strip_prefix("an array of length ").or_else(|| needed.strip_suffix(" elements in sequence"))
    {
        return format!("an array of {n} entries");
    }
    match needed {
        "f64" | "f32" | "a float" => "a number",
        "u32" => "a whole number from 0 to 4294967295",
        "usize" | "u64" => "a whole number, 0 or more,",
        "i32" | "i64" => "a whole number",
        "a string" => "a text in quotes",
        "path string" => "a path in quotes",
        "a boolean" => "`true` or `false`",
        "a sequence" => "an array in brackets",
        "variant identifier" | "string or table" => "a name in quotes",
        other if other.starts_with("enum ") => "a name in quotes",
        other if ["struct ", "internally tagged enum "].iter().any(|begin| other.starts_with(begin)) => {
            "a table, `{ key = value, … }`,"
        }
        other => other,
    }
    .into()
}

/// Returns the found value in terms of case files.
fn given(found: &str) -> &str {
    let quoted = || found.split('`').nth(1).unwrap_or(found);
    match found.split(' ').next() {
        Some("integer" | "floating" | "boolean") => quoted(),
        Some("string") => &found["string ".len()..],
        Some("sequence") => "an array",
        Some("map") => "a table",
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use crate::file::CaseFile;

    use super::*;

    /// Returns the key, the marked text and the message of the error in a case with this section.
    fn said(section: &str) -> (String, String, String) {
        let text = format!("mesh = {{ file = \"a.vtu\" }}\n{section}\n");
        let error = toml::from_str::<CaseFile>(&text).unwrap_err();
        let Refusal { key, span, message } = refusal(&text, &error);
        (key.unwrap_or_default(), text[span.unwrap_or(0..0)].into(), message)
    }

    #[test]
    fn types_are_told_in_the_words_of_a_case_file() {
        for (section, key, place, message) in [
            ("solver.tolerance = \"a\"", "solver.tolerance", "\"a\"", "a number is needed here, not \"a\""),
            (
                "solver.threads = -1",
                "solver.threads",
                "-1",
                "a whole number, 0 or more, is needed here, not -1",
            ),
            ("solver.device = 3", "solver.device", "3", "a text in quotes is needed here, not 3"),
            (
                "space.degree = 1.5",
                "space.degree",
                "1.5",
                "a whole number from 0 to 4294967295 is needed here, not 1.5",
            ),
            (
                "output.vtu = 1",
                "output.vtu",
                "1",
                "`true`, `false`, `\"surface\"` or `\"pieces\"` is needed here",
            ),
            (
                "output.compress = \"zip\"",
                "output.compress",
                "\"zip\"",
                "`true`, `false`, `\"zlib\"` or `\"lz4\"` is needed here",
            ),
            (
                "output.directory = []",
                "output.directory",
                "[]",
                "a path in quotes is needed here, not an array",
            ),
            (
                "output.functionals = {}",
                "output.functionals",
                "{}",
                "an array in brackets is needed here, not a table",
            ),
            ("solver.amg = 3", "solver.amg", "3", "a table, `{ key = value, … }`, is needed here, not 3"),
            ("solver.method = [1]", "solver.method", "[1]", "a name in quotes is needed here"),
            (
                "solver.method = \"cq\"",
                "solver.method",
                "\"cq\"",
                "`cq` is not offered here; choose one of `cg`, `merged-cg`, `pipelined-cg`, `s-step-cg`, `gmres`; did you mean `cg`?",
            ),
            (
                "solver.a = 1",
                "",
                "a",
                "unknown key `a`; the keys here are `operator`, `format`, `metric`, `method`, `steps`, `restart`",
            ),
            ("[[region]]\nname = \"a\"", "region[0]", "[[region]]", "the key `where` is missing"),
            (
                "[solver]\nthreads = 1\nthreads = 2",
                "",
                "threads",
                "this key stands here a second time: keep one of the two",
            ),
        ] {
            let found = said(section);
            assert_eq!((found.0.as_str(), found.1.as_str()), (key, place), "{section}: {found:?}");
            assert!(found.2.starts_with(message), "{section}: {found:?}");
        }
    }

    #[test]
    fn lists_in_single_brackets_commas_and_units_are_answered_with_what_to_write() {
        for (section, place, message) in [
            ("[boundary]\nwhere = \"all\"", "boundary", "write `[[boundary]]`"),
            ("[boundary]\na = 1\n[boundary]\na = 2", "boundary", "write `[[boundary]]`"),
            ("[[region]]\na = 1\n[region]\na = 2", "region", "write `[[region]]`"),
            ("equation.sigma = 200,5", "200,5", "with a point: `200.5`"),
            ("[equation]\nsigma = -1.200,5 # c", "-1.200,5", "with a point: `-1200.5`"),
            ("solver.tolerance = 1e-8 m", "1e-8 m", "write `1e-8`"),
            ("equation.sigma = { by_tag = { a = 200,5 } }", "200,5", "with a point: `200.5`"),
            (
                "boundary = [{ where = \"all\", robin = { coefficient = 25,5, value = 20 } }]",
                "25,5",
                "with a point: `25.5`",
            ),
            ("equation.sigma = 200 W/mK", "200 W/mK", "numbers have no unit here: write `200`"),
            ("equation.sigma = 200W", "200W", "numbers have no unit here: write `200`"),
            (
                "solver.tolerance = \"1e-8\"",
                "\"1e-8\"",
                "not \"1e-8\"; numbers have neither quotes nor units here: write 1e-8",
            ),
            ("solver.time_limit_s = \"20 s\"", "\"20 s\"", "write 20"),
        ] {
            let found = said(section);
            assert_eq!(found.1, place, "{section}: {found:?}");
            assert!(found.2.contains(message), "{section}: {found:?}");
        }
    }

    #[test]
    fn of_single_and_double_brackets_the_single_ones_are_shown() {
        let text = "[mesh]\nfile = \"a.msh\"\n[boundary]\nwhere = \"all\"\n[[boundary]]\nwhere = \"x\"\n";
        let error = toml::from_str::<CaseFile>(text).unwrap_err();
        let span = refusal(text, &error).span.unwrap();
        assert_eq!(span.start, text.find("boundary").unwrap());
    }

    #[test]
    fn a_value_inside_a_table_with_a_kind_is_found_by_what_it_is() {
        let generated = |keys: &str| {
            let text = format!("[mesh]\ngenerate = {{ kind = \"box\", {keys} }}\n");
            let error = toml::from_str::<CaseFile>(&text).unwrap_err();
            let Refusal { key, span, message } = refusal(&text, &error);
            (key.unwrap_or_default(), text[span.unwrap_or(0..0)].to_owned(), message)
        };
        for (keys, key, place, message) in [
            ("cells = [3, 3]", "cells", "[3, 3]", "an array of 3 entries is needed here, not of 2"),
            (
                "cells = [3, 3, 3, 3]",
                "cells",
                "[3, 3, 3, 3]",
                "an array of 3 entries is needed here, not of 4",
            ),
            ("cells = 3", "cells", "3", "an array of 3 entries is needed here, not 3"),
            ("cells = [3, 3, -1]", "cells[2]", "-1", "a whole number, 0 or more, is needed here, not -1"),
            ("cells = [3, 3, 1.5]", "cells[2]", "1.5", "a whole number, 0 or more, is needed here, not 1.5"),
            (
                "cells = [3, 3, 3], upper = \"a\"",
                "upper",
                "\"a\"",
                "an array of 3 entries is needed here, not \"a\"",
            ),
        ] {
            let found = generated(keys);
            assert_eq!(
                (found.0, found.1.as_str(), found.2.as_str()),
                (format!("mesh.generate.{key}"), place, message)
            );
        }
        // Two values would fit: the table is pointed at.
        let (key, _, message) = generated("cells = 3, order = 3");
        assert_eq!(
            (key.as_str(), message.as_str()),
            ("mesh.generate", "an array of 3 entries is needed here, not 3")
        );
    }
}
