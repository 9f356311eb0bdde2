//! Lines of an input file: keywords with parameters, and data between commas.

use super::line_origins::LineOrigins;
use crate::MeshError;
use crate::io::name::printable;
use crate::io::number;
use crate::io::scanner::show;

/// The lines of a file without comments and empty ones.
pub(super) struct Lines<'a> {
    places: &'a LineOrigins,
    rest: &'a [u8],
    /// Number of the last line that was taken.
    line: usize,
}

/// Lines of data as the file has them, which take no memory of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<'a> {
    bytes: &'a [u8],
    /// Number of the line before.
    line: usize,
}

/// A keyword such as `*ELEMENT, TYPE=C3D4, ELSET=part`.
pub(super) struct Keyword<'a> {
    /// In upper case, single blanks between words.
    pub name: String,
    parameters: Vec<(String, &'a [u8])>,
    /// The line on which it ends.
    pub line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(places: &'a LineOrigins, bytes: &'a [u8]) -> Self {
        Self { places, rest: bytes, line: 0 }
    }

    /// Reads fields of `data`; earlier data lines are skipped.
    pub(super) fn of(places: &'a LineOrigins, data: Data<'a>) -> Self {
        Self { places, rest: data.bytes, line: data.line }
    }

    /// Peeks at the next line that is neither empty nor a comment, with its number.
    fn peek(&self) -> Option<(&'a [u8], usize, &'a [u8])> {
        let (mut rest, mut line) = (self.rest, self.line);
        while !rest.is_empty() {
            let length = rest.iter().position(|&byte| byte == b'\n');
            let (found, after) = match length {
                Some(length) => (&rest[..length], &rest[length + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            line += 1;
            rest = after;
            let found = found.trim_ascii();
            if !found.is_empty() && !found.starts_with(b"**") {
                return Some((found, line, rest));
            }
        }
        None
    }

    fn take(&mut self) -> Option<&'a [u8]> {
        let (found, line, rest) = self.peek()?;
        (self.line, self.rest) = (line, rest);
        Some(found)
    }

    /// The next line of data; none if a keyword or the end of the file follows.
    pub(super) fn data(&mut self) -> Option<&'a [u8]> {
        let (found, ..) = self.peek()?;
        if found.starts_with(b"*") { None } else { self.take() }
    }

    /// All lines of data up to the next keyword, to be read later.
    pub(super) fn pass_over(&mut self) -> Data<'a> {
        let (before, line) = (self.rest, self.line);
        while self.data().is_some() {}
        Data { bytes: &before[..before.len() - self.rest.len()], line }
    }

    /// Returns the next keyword; data lines before it are skipped.
    pub(super) fn keyword(&mut self) -> Result<Option<Keyword<'a>>, MeshError> {
        let mut line = loop {
            match self.take() {
                None => return Ok(None),
                Some(line) if line.starts_with(b"*") => break &line[1..],
                Some(_) => {}
            }
        };
        let mut keyword = Keyword { name: String::new(), parameters: Vec::new(), line: self.line };
        let mut is_first = true;
        loop {
            let is_continued = line.ends_with(b",");
            for part in fields(line) {
                if is_first {
                    keyword.name = normal(part);
                    is_first = false;
                } else if !part.is_empty() {
                    let (key, value) = match part.iter().position(|&byte| byte == b'=') {
                        Some(at) => (&part[..at], part[at + 1..].trim_ascii()),
                        None => (part, &part[part.len()..]),
                    };
                    keyword.parameters.push((normal(key), value));
                }
            }
            let next = if is_continued { self.data() } else { None };
            match next {
                Some(next) => line = next,
                None if is_continued => {
                    return Err(self.error("the keyword is not continued after its comma"));
                }
                None => {
                    keyword.line = self.line;
                    return Ok(Some(keyword));
                }
            }
        }
    }

    /// Number of bytes after the line that was taken last.
    pub(super) fn n_left(&self) -> usize {
        self.rest.len()
    }

    /// The files that the lines are from.
    pub(super) fn origins(&self) -> &'a LineOrigins {
        self.places
    }

    /// Number of the line that was taken last.
    pub(super) fn number(&self) -> usize {
        self.line
    }

    /// The format is broken on the line that was taken last.
    pub(super) fn error(&self, message: impl Into<String>) -> MeshError {
        self.places.error(self.line, message)
    }

    /// The line that was taken last is sound but not handled.
    pub(super) fn unsupported(&self, what: impl Into<String>, advice: &str) -> MeshError {
        self.places.unsupported(self.line, what, advice)
    }

    /// A whole number that fits `T`.
    pub(super) fn integer<T: TryFrom<i64>>(&self, word: &[u8], what: &str) -> Result<T, MeshError> {
        let value = number::whole(word).and_then(|value| T::try_from(value).ok());
        let said = || self.error(format!("{what} should be a whole number in range, not `{}`", show(word)));
        value.ok_or_else(said)
    }

    /// Returns a finite number; an empty field is zero.
    pub(super) fn coordinate(&self, word: &[u8]) -> Result<f64, MeshError> {
        if word.is_empty() {
            return Ok(0.0);
        }
        match number::real(word) {
            Some(value) if value.is_finite() => Ok(value),
            Some(value) => Err(self.error(format!("a coordinate is {value}; coordinates must be finite"))),
            None => Err(self.error(format!("a coordinate should be a number, not `{}`", show(word)))),
        }
    }
}

/// Returns the fields between the commas of a line, trimmed; a trailing comma adds no field.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.strip_suffix(b",").unwrap_or(line).split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// A word of a keyword in upper case, single blanks between its parts.
fn normal(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(&word[..word.len().min(80)]).to_ascii_uppercase();
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'a> Keyword<'a> {
    /// Returns whether a parameter is there, with a value or without.
    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The value of a parameter.
    pub(super) fn value(&self, key: &str) -> Option<&'a [u8]> {
        self.parameters.iter().find(|(found, _)| found == key).map(|(_, value)| *value)
    }

    /// The value of a parameter that names something; none if it is missing or empty.
    pub(super) fn named(&self, key: &str) -> Option<Name> {
        self.value(key).filter(|value| !value.is_empty()).map(Name::new)
    }
}

/// A name for display and for comparison: case matters only in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub shown: String,
    pub key: String,
}

impl Name {
    pub(super) fn new(word: &[u8]) -> Self {
        let unquoted = word.strip_prefix(b"\"").and_then(|word| word.strip_suffix(b"\""));
        let shown = printable(&String::from_utf8_lossy(unquoted.unwrap_or(word))).into_owned();
        let key = if unquoted.is_some() { shown.clone() } else { shown.to_ascii_uppercase() };
        Self { shown, key }
    }
}
