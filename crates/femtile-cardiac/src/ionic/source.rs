//! The text of a description and places in it.

use std::ops::Range;

use toml::Spanned;

use crate::CardiacError;

/// The text of a description, with the name that messages call it by.
#[derive(Debug)]
pub(super) struct Source {
    /// The file, or the name of a built-in model.
    pub name: String,
    pub text: String,
}

impl Source {
    /// Creates an error at a byte of the text.
    pub fn error(&self, at: usize, message: impl Into<String>) -> CardiacError {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = 1 + before[begin..].chars().count();
        CardiacError::Model { model: self.name.clone(), line, column, message: message.into() }
    }

    /// The byte at which the content of a string value begins: behind its quotes and a line break that follows them.
    pub fn content(&self, span: &Range<usize>) -> usize {
        let value = self.text.get(span.clone()).unwrap_or_default();
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let quotes = quotes.iter().find(|quote| value.starts_with(**quote)).map_or(0, |quote| quote.len());
        let long = quotes == 3;
        let behind = &value[quotes..];
        let newline = if long && behind.starts_with("\r\n") {
            2
        } else {
            usize::from(long && behind.starts_with('\n'))
        };
        span.start + quotes + newline
    }

    /// Returns a formula with the place of its text.
    pub fn formula(&self, text: &Spanned<String>) -> Formula {
        Formula { text: text.get_ref().clone(), begin: self.content(&text.span()) }
    }
}

/// A formula and the byte of the description at which it begins.
#[derive(Debug, Clone)]
pub(super) struct Formula {
    pub text: String,
    pub begin: usize,
}
