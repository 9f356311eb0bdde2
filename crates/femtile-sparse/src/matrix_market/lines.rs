//! The lines of a file one by one, with the number of the current one.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::MatrixMarketError;

const BUFFER_BYTES: usize = 1 << 17;
/// Longer lines are refused: the format allows 1,024 characters, and a compressed line may have no end.
const LONGEST_LINE: usize = 1 << 20;
/// The first two bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file of text with a current line.
pub(super) struct Lines<'a> {
    path: PathBuf,
    source: Box<dyn BufRead + 'a>,
    text: Vec<u8>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `bytes`, which are unpacked first where they begin as gzip does.
    pub(super) fn new(path: &Path, mut bytes: impl Read + 'a) -> Result<Self, MatrixMarketError> {
        let mut first = Vec::new();
        let read = (&mut bytes).take(2).read_to_end(&mut first);
        read.map_err(|source| MatrixMarketError::Io { path: path.into(), action: "read", source })?;
        let packed = first == GZIP;
        let source = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first).chain(bytes));
        let source: Box<dyn BufRead> = if packed {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(source)))
        } else {
            Box::new(source)
        };
        Ok(Self { path: path.into(), source, text: Vec::new(), number: 0 })
    }

    /// Moves to the next line; false at the end of the file, where the last line stays the current one.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool, MatrixMarketError> {
        self.text.clear();
        let mut source = (&mut self.source).take(LONGEST_LINE as u64 + 1);
        match source.read_until(b'\n', &mut self.text) {
            Ok(0) => Ok(false),
            Ok(n) => {
                self.number += 1;
                if n > LONGEST_LINE { Err(self.too_long()) } else { Ok(true) }
            }
            Err(source) => Err(MatrixMarketError::Io { path: self.path.clone(), action: "read", source }),
        }
    }

    #[cold]
    fn too_long(&self) -> MatrixMarketError {
        self.error(format!("the line is longer than {LONGEST_LINE} bytes; is this a Matrix Market file?"))
    }

    /// Moves to the next line that holds a word and is no comment.
    #[inline]
    pub(super) fn advance_to_words(&mut self) -> Result<bool, MatrixMarketError> {
        while self.advance()? {
            if word(&mut self.text()).is_some_and(|word| word[0] != b'%') {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The current line.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The number of the current line, counted from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// That the current line breaks the rules.
    #[cold]
    pub(super) fn error(&self, message: String) -> MatrixMarketError {
        MatrixMarketError::Parse { path: self.path.clone(), line: self.number.max(1), message }
    }

    /// Returns the error that the current line has an unsupported feature.
    #[cold]
    pub(super) fn unsupported(&self, what: &'static str, advice: &'static str) -> MatrixMarketError {
        MatrixMarketError::Unsupported { path: self.path.clone(), line: self.number.max(1), what, advice }
    }
}

/// Takes the first word off `text`.
#[inline]
pub(super) fn word<'a>(text: &mut &'a [u8]) -> Option<&'a [u8]> {
    let begin = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let rest = &text[begin..];
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    *text = &rest[end..];
    Some(&rest[..end])
}

/// The words of `text`.
pub(super) fn words(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || word(&mut text))
}

/// A word as a message quotes it: its beginning, whatever its bytes.
#[cold]
pub(super) fn quoted(word: &[u8]) -> String {
    const MOST: usize = 40;
    let more = if word.len() > MOST { "…" } else { "" };
    format!("`{}{more}`", String::from_utf8_lossy(&word[..word.len().min(MOST)]).escape_debug())
}
