//! Explains texts that are not TOML.

use std::ops::Range;

use crate::file::CaseFile;
use crate::read::double_brackets;

/// Bytes of a text, and what is wrong with them.
type Explained = (Range<usize>, String);

/// Returns what is wrong with a text that cannot be parsed, and where.
pub(crate) fn explained(text: &str, error: &toml::de::Error) -> (Option<Range<usize>>, String) {
    let found = single_brackets(text).or_else(|| wrong_number(text, error.span()?.start));
    found.map_or_else(|| (error.span(), error.message().into()), |(span, message)| (Some(span), message))
}

/// Explains `[boundary]` for `[[boundary]]`.
fn single_brackets(text: &str) -> Option<Explained> {
    let schema = schemars::schema_for!(CaseFile);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let name = line.trim_start().strip_prefix('[').and_then(|inner| inner.split(']').next());
        let name = name.unwrap_or_default().trim();
        if schema.as_value()["properties"][name]["type"] == "array" {
            let at = start + line.find(name)?;
            return Some((at..at + name.len(), double_brackets(name)));
        }
        start += line.len();
    }
    None
}

/// Explains a number with a decimal comma or a unit, in the line of the place where parsing ended.
fn wrong_number(text: &str, at: usize) -> Option<Explained> {
    let line = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    // Of the values in the line, outside of quotes, the last one that is not behind the error.
    let is_outside = |i: &usize| text[line..line + i].matches('"').count().is_multiple_of(2);
    let values = text[line..end].match_indices('=').map(|(i, _)| i).filter(is_outside).map(|i| line + i + 1);
    let starts = values.map(|i| i + text[i..end].len() - text[i..end].trim_start().len());
    starts
        .filter(|&start| start <= at)
        .filter_map(|start| comma_or_unit(&text[start..end], start))
        .next_back()
}

/// Explains a number with a decimal comma or a unit at the beginning of `text`, which stands at `start`.
fn comma_or_unit(text: &str, start: usize) -> Option<Explained> {
    let number = number_at_start(text)?;
    let (n, behind) = (number.len(), &text[number.len()..]);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let n_behind_comma = behind.strip_prefix(',').map_or(0, digits);
    let is_unit = |c: char| c.is_alphabetic() || "°%[".contains(c);
    if n_behind_comma > 0 {
        let fraction = &behind[1..1 + n_behind_comma];
        let right = format!("{}.{fraction}", number.replace('.', ""));
        let message = format!("a decimal fraction is written with a point: `{right}`");
        Some((start..start + n + 1 + n_behind_comma, message))
    } else if behind.trim_start().starts_with(is_unit) {
        let advice = "with all values of the case in units that fit together";
        let message = format!("numbers have no unit here: write `{number}`, {advice}");
        Some((start..start + text.trim_end().len(), message))
    } else {
        None
    }
}

/// Most letters of a number that a message repeats.
const LONGEST_NUMBER: usize = 40;

/// Returns the number at the beginning of a text.
pub(crate) fn number_at_start(text: &str) -> Option<&str> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let most = text.bytes().take(LONGEST_NUMBER).take_while(is_part).count();
    (1..=most).rev().map(|n| &text[..n]).find(|number| number.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_single_brackets_commas_and_units_are_answered_with_what_to_write() {
        for (section, place, message) in [
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
            ("[solver]\nthreads = 1\nthreads = 2", "threads", "duplicate key"),
        ] {
            let text = format!("mesh = {{ file = \"a.vtu\" }}\n{section}\n");
            let error = toml::from_str::<toml::Table>(&text).unwrap_err();
            let (span, said) = explained(&text, &error);
            assert_eq!(&text[span.unwrap()], place, "{section}: {said}");
            assert!(said.contains(message), "{section}: {said}");
        }
    }

    #[test]
    fn of_single_and_double_brackets_the_single_ones_are_shown() {
        let text = "[mesh]\nfile = \"a.msh\"\n[boundary]\nwhere = \"all\"\n[[boundary]]\nwhere = \"x\"\n";
        let error = toml::from_str::<toml::Table>(text).unwrap_err();
        assert_eq!(explained(text, &error).0.unwrap().start, text.find("boundary").unwrap());
    }
}
