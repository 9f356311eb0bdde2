//! Words and numbers of a text file, with their lines.

use std::path::Path;

use super::number;
use crate::{MeshError, Place};

/// Reads a file from front to back: text word by word, binary stretches by length.
///
/// Places in errors are lines until the first binary stretch and bytes from there on.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
    line: usize,
    comment: Option<u8>,
    /// True if a record ends with its line.
    by_lines: bool,
    binary: bool,
}

impl<'a> Scanner<'a> {
    /// Starts at the first byte; `path` is used in messages only.
    pub(super) fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, at: 0, line: 1, comment: None, by_lines: false, binary: false }
    }

    /// Passes over everything from `mark` to the end of its line.
    pub(super) fn with_comments(self, mark: u8) -> Self {
        Self { comment: Some(mark), ..self }
    }

    /// Restricts words to this line from here on; [`Scanner::next_line`] continues with the next line.
    pub(super) fn by_lines(self) -> Self {
        Self { by_lines: true, ..self }
    }

    /// Moves to the next line that has a word.
    pub(super) fn next_line(&mut self) {
        self.skip_blanks();
    }

    /// The file's name, for messages.
    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    /// Number of bytes of the whole file.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Moves past the next occurrence of `mark`; false, without moving, if there is none.
    pub(super) fn skip_past(&mut self, mark: &[u8]) -> bool {
        let rest = &self.bytes[self.at..];
        let Some(found) = rest.windows(mark.len()).position(|window| window == mark) else { return false };
        let passed = &rest[..found + mark.len()];
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.at += passed.len();
        true
    }

    /// Returns the place of the scanner.
    pub(super) fn place(&self) -> Place {
        if self.binary { Place::Byte(self.at) } else { Place::Line(self.line) }
    }

    /// Number of bytes not yet read.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns an error for invalid data at this place.
    pub(super) fn error(&self, message: impl Into<String>) -> MeshError {
        MeshError::Parse { path: self.path.into(), place: self.place(), message: message.into() }
    }

    /// Returns an error for valid but unsupported data at this place.
    pub(super) fn unsupported(&self, what: impl Into<String>, advice: &str) -> MeshError {
        MeshError::Unsupported {
            path: self.path.into(),
            place: self.place(),
            what: what.into(),
            advice: advice.into(),
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte == b'\n' {
                self.line += 1;
            } else if Some(byte) == self.comment {
                self.skip_comment();
                continue;
            } else if !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
        }
    }

    /// Moves to the end of the line, before its `\n`.
    fn skip_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    /// The next word, or none at the end of the file.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        self.word_here()
    }

    /// Returns the next word of this line, or none at its end; the line break is not consumed.
    pub(super) fn word_of_line(&mut self) -> Option<&'a [u8]> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if Some(byte) == self.comment {
                self.skip_comment();
            } else if byte == b'\n' || !byte.is_ascii_whitespace() {
                break;
            } else {
                self.at += 1;
            }
        }
        self.word_here()
    }

    fn word_here(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let ends = |&byte: &u8| byte.is_ascii_whitespace() || Some(byte) == self.comment;
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    /// The next word without reading it.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        self.clone().word()
    }

    /// Number of words on the next line that has any.
    pub(super) fn n_words_of_next_line(&self) -> usize {
        let mut ahead = self.clone();
        ahead.skip_blanks();
        std::iter::from_fn(|| ahead.word_of_line()).count()
    }

    /// Returns the next word, or an error naming `what` at the end of the file.
    pub(super) fn expect(&mut self, what: &str) -> Result<&'a [u8], MeshError> {
        let word = if self.by_lines { self.word_of_line() } else { self.word() };
        word.ok_or_else(|| {
            let ends = if self.remaining() > 0 { "line" } else { "file" };
            self.error(format!("the {ends} ends where {what} should stand"))
        })
    }

    /// The rest of this line without blanks around it; moves past the line break.
    pub(super) fn rest_of_line(&mut self) -> &'a [u8] {
        let begin = self.at;
        let rest = &self.bytes[begin..];
        let length = rest.iter().position(|&byte| byte == b'\n');
        self.at += length.map_or(rest.len(), |length| length + 1);
        self.line += usize::from(length.is_some());
        rest[..length.unwrap_or(rest.len())].trim_ascii()
    }

    /// Refuses anything but blanks and a comment up to the end of the line.
    pub(super) fn end_of_line(&mut self, what: &str) -> Result<(), MeshError> {
        match self.word_of_line() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("`{}` follows {what} on its line", show(word)))),
        }
    }

    /// The next word as a whole number that fits `T`; `11.0` is one.
    pub(super) fn integer<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, MeshError> {
        let word = self.expect(what)?;
        let value = number::whole(word).and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| {
            self.error(format!("{what} should be a whole number in range, not `{}`", show(word)))
        })
    }

    /// The next word as a number; `nan` and `inf` pass.
    pub(super) fn real(&mut self, what: &str) -> Result<f64, MeshError> {
        let word = self.expect(what)?;
        number::real(word)
            .ok_or_else(|| self.error(format!("{what} should be a number, not `{}`", show(word))))
    }

    /// The next word as a finite number.
    pub(super) fn coordinate(&mut self) -> Result<f64, MeshError> {
        let value = self.real("a coordinate")?;
        if value.is_finite() {
            return Ok(value);
        }
        Err(self.error(format!("a coordinate is {value}; coordinates must be finite")))
    }

    /// The next word as the number of records that follow, each of `bytes_each` bytes or more.
    pub(super) fn count(&mut self, what: &str, bytes_each: usize) -> Result<usize, MeshError> {
        let n = self.integer(&format!("the number of {what}"))?;
        self.announce(n, what, bytes_each)
    }

    /// Refuses `n` records that the rest of the file cannot hold, so that `n` may be allocated for.
    pub(super) fn announce(&self, n: usize, what: &str, bytes_each: usize) -> Result<usize, MeshError> {
        // The last record of a text needs no blank after it.
        let fit = (self.remaining() + 1) / bytes_each;
        if n <= fit {
            return Ok(n);
        }
        Err(self.error(format!(
            "{n} {what} are announced, but the file ends after at most {fit} (is it truncated?)"
        )))
    }

    /// The next `n` bytes without reading them, or none if there are fewer.
    pub(super) fn ahead(&self, n: usize) -> Option<&'a [u8]> {
        self.bytes[self.at..].get(..n)
    }

    /// The next `n` bytes as they are; from here on places are bytes.
    pub(super) fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], MeshError> {
        self.binary = true;
        if n > self.remaining() {
            let message = format!("the file ends within {what}: {n} bytes needed, {} left", self.remaining());
            return Err(self.error(message));
        }
        let bytes = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(bytes)
    }
}

/// A word for messages: printable and short.
pub(super) fn show(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
