//! Finds the place of a key in the text of a case file.

use std::ops::Range;

use femtile_solve::Key;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes of `text` where the value at `path` stands, or the nearest value above it that stands there.
pub(crate) fn span_of(text: &str, path: &[Key]) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let (first, rest) = path.split_first()?;
    let Key::Name(name) = first else { return None };
    let mut value =
        document.get_ref().iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)?;
    for key in rest {
        match child(value.get_ref(), key) {
            Some(inner) => value = inner,
            None => break,
        }
    }
    Some(value.span())
}

/// Returns `true` where the text has a value at `path`.
pub(crate) fn has_key(text: &str, path: &[Key]) -> bool {
    let mut is_found = false;
    values(text, &mut |found, _| is_found |= found == path);
    is_found
}

/// Visits every value of a text with the steps to it, tables and arrays before what is in them.
pub(crate) fn values(text: &str, visit: &mut dyn FnMut(&[Key], &Spanned<DeValue<'_>>)) {
    let Ok(document) = DeTable::parse(text) else { return };
    for (key, value) in document.get_ref() {
        values_below(&mut vec![Key::Name(key.get_ref().to_string())], value, visit);
    }
}

fn values_below(
    path: &mut Vec<Key>,
    value: &Spanned<DeValue<'_>>,
    visit: &mut dyn FnMut(&[Key], &Spanned<DeValue<'_>>),
) {
    visit(path, value);
    let mut inner = |key: Key, value: &Spanned<DeValue<'_>>| {
        path.push(key);
        values_below(path, value, visit);
        path.pop();
    };
    match value.get_ref() {
        DeValue::Table(table) => {
            table.iter().for_each(|(key, value)| inner(Key::Name(key.get_ref().to_string()), value));
        }
        DeValue::Array(array) => array.iter().enumerate().for_each(|(i, value)| inner(i.into(), value)),
        _ => {}
    }
}

/// Number of the line, counted from 1, in which the value at `path` or the nearest one above it stands.
pub(crate) fn line_of(text: &str, path: &[Key]) -> Option<usize> {
    let begin = span_of(text, path)?.start;
    Some(1 + text.as_bytes()[..begin].iter().filter(|&&byte| byte == b'\n').count())
}

fn child<'a, 'i>(value: &'a DeValue<'i>, key: &Key) -> Option<&'a Spanned<DeValue<'i>>> {
    match (value, key) {
        (DeValue::Table(table), Key::Name(name)) => {
            table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
        }
        (DeValue::Array(array), Key::Index(index)) => array.get(*index),
        _ => None,
    }
}

/// Where the content of a string value begins within its span: behind the opening quotes.
pub(crate) fn inside_quotes(text: &str, span: &Range<usize>) -> usize {
    let value = text.get(span.clone()).unwrap_or_default();
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    span.start + quotes.iter().find(|quote| value.starts_with(**quote)).map_or(0, |quote| quote.len())
}
