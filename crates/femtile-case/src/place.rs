//! Finds the place of a key in the text of a case file.

use std::ops::Range;

use femtile_solve::Key;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The place of the deepest step of a path that exists in a text.
struct Place {
    n_steps: usize,
    key: Range<usize>,
    value: Range<usize>,
}

fn place_of(text: &str, path: &[Key]) -> Option<Place> {
    let document = DeValue::Table(DeTable::parse(text).ok()?.into_inner());
    let (mut value, mut place) = (&document, None);
    for (i, key) in path.iter().enumerate() {
        let Some((key, inner)) = child(value, key) else { break };
        place = Some(Place { n_steps: i + 1, key, value: inner.span() });
        value = inner.get_ref();
    }
    place
}

/// The byte range in `text` of the value at `path`, or of the nearest existing ancestor.
pub(crate) fn span_of(text: &str, path: &[Key]) -> Option<Range<usize>> {
    place_of(text, path).map(|place| place.value)
}

/// As [`span_of`], for the key instead of its value.
pub(crate) fn key_span_of(text: &str, path: &[Key]) -> Option<Range<usize>> {
    place_of(text, path).map(|place| place.key)
}

/// Returns `true` if the text has a value at `path`.
pub(crate) fn has_key(text: &str, path: &[Key]) -> bool {
    path.is_empty() || place_of(text, path).is_some_and(|place| place.n_steps == path.len())
}

/// Number of the line, counted from 1, of the value at `path` or of its nearest existing ancestor.
pub(crate) fn line_of(text: &str, path: &[Key]) -> Option<usize> {
    let begin = span_of(text, path)?.start;
    Some(1 + text.as_bytes()[..begin].iter().filter(|&&byte| byte == b'\n').count())
}

/// The bytes of a key, and its value.
fn child<'a, 'i>(value: &'a DeValue<'i>, key: &Key) -> Option<(Range<usize>, &'a Spanned<DeValue<'i>>)> {
    match (value, key) {
        (DeValue::Table(table), Key::Name(name)) => {
            table.iter().find(|(key, _)| key.get_ref() == name).map(|(key, value)| (key.span(), value))
        }
        (DeValue::Array(array), Key::Index(index)) => array.get(*index).map(|value| (value.span(), value)),
        _ => None,
    }
}

/// The offset at which the content of a string begins in its span: after the opening quotes, and of a text of several lines after the
/// first line end, which does not belong to it.
pub(crate) fn inside_quotes(text: &str, span: &Range<usize>) -> usize {
    let value = text.get(span.clone()).unwrap_or_default();
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let length = quotes.iter().find(|quote| value.starts_with(**quote)).map_or(0, |quote| quote.len());
    let line_end = match &value[length..] {
        rest if length == 3 && rest.starts_with("\r\n") => 2,
        rest if length == 3 && rest.starts_with('\n') => 1,
        _ => 0,
    };
    span.start + length + line_end
}
