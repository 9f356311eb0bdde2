//! Numbers of a section, as text or binary.

use std::fmt::Display;
use std::io::{Result, Write};

/// A file with the encoding of its numbers.
pub(super) struct Sink<'a> {
    pub out: &'a mut (dyn Write + Send),
    /// Whether numbers are binary, the least byte first.
    is_binary: bool,
    /// True after a number of text.
    is_in_line: bool,
}

impl<'a> Sink<'a> {
    /// A file at the begin of a line.
    pub(super) fn new(out: &'a mut (dyn Write + Send), is_binary: bool) -> Self {
        Self { out, is_binary, is_in_line: false }
    }

    /// Writes numbers of the C type `int`.
    pub(super) fn ints(&mut self, numbers: impl IntoIterator<Item = i32>) -> Result<()> {
        numbers.into_iter().try_for_each(|number| self.number(&number.to_le_bytes(), number))
    }

    /// Writes numbers of the C type `size_t`.
    pub(super) fn sizes(&mut self, numbers: impl IntoIterator<Item = usize>) -> Result<()> {
        numbers.into_iter().try_for_each(|number| self.number(&(number as u64).to_le_bytes(), number))
    }

    /// Writes numbers of the C type `double`; text has the digits needed to read them back exactly.
    pub(super) fn reals(&mut self, numbers: impl IntoIterator<Item = f64>) -> Result<()> {
        numbers.into_iter().try_for_each(|number| match number.is_nan() {
            true => self.number(&number.to_le_bytes(), "nan"),
            false => self.number(&number.to_le_bytes(), format_args!("{number:?}")),
        })
    }

    fn number(&mut self, bytes: &[u8], text: impl Display) -> Result<()> {
        if self.is_binary {
            return self.out.write_all(bytes);
        }
        if std::mem::replace(&mut self.is_in_line, true) {
            self.out.write_all(b" ")?;
        }
        write!(self.out, "{text}")
    }

    /// Ends the line of a record, which binary data do not have.
    pub(super) fn end_of_record(&mut self) -> Result<()> {
        if self.is_binary { Ok(()) } else { self.end_of_line() }
    }

    /// Ends a line.
    pub(super) fn end_of_line(&mut self) -> Result<()> {
        self.is_in_line = false;
        self.out.write_all(b"\n")
    }

    /// Writes `$End…`, on a line of its own.
    pub(super) fn end_of_section(&mut self, name: &str) -> Result<()> {
        if self.is_binary {
            self.end_of_line()?;
        }
        writeln!(self.out, "$End{name}")
    }
}
