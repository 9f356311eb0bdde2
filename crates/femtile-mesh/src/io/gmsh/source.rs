//! Numbers of a section, whether it is text or binary.

use crate::MeshError;
use crate::io::scanner::Scanner;

/// Encoding of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Ascii,
    LittleEndian,
    BigEndian,
}

/// Version of a format, as far as it matters for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// `$NOD` and `$ELM`, always text.
    V1,
    /// 2.0 to 2.2.
    V2,
    V40,
    V41,
}

/// A scanner with the encoding and the version of its file.
pub(super) struct Source<'a> {
    pub scanner: Scanner<'a>,
    pub encoding: Encoding,
    pub version: Version,
}

impl<'a> Source<'a> {
    /// Whether nodes and elements are in blocks of entities.
    pub(super) fn has_entities(&self) -> bool {
        matches!(self.version, Version::V40 | Version::V41)
    }

    pub(super) fn is_binary(&self) -> bool {
        self.encoding != Encoding::Ascii
    }

    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], MeshError> {
        let taken = self.scanner.take(N, what)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(taken);
        if self.encoding == Encoding::BigEndian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// Returns `n` binary records of `size` bytes each without reading them; none if the file is text or ends
    /// earlier.
    pub(super) fn records(&self, n: usize, size: usize) -> Option<&'a [u8]> {
        self.is_binary().then(|| self.scanner.ahead(n.checked_mul(size)?)).flatten()
    }

    /// A number of the C type `size_t`.
    pub(super) fn size_of(&self, bytes: [u8; 8]) -> u64 {
        if self.encoding == Encoding::BigEndian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    /// A number of the C type `int`.
    pub(super) fn int(&mut self, what: &str) -> Result<i32, MeshError> {
        if self.is_binary() { Ok(i32::from_le_bytes(self.take(what)?)) } else { self.scanner.integer(what) }
    }

    /// The number of a node or an element, of the C type `size_t` in version 4.1 and `int` before.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, MeshError> {
        if !self.is_binary() || self.version == Version::V41 {
            return self.size(what);
        }
        let value = self.int(what)?;
        u64::try_from(value).map_err(|_| self.scanner.error(format!("{what} is {value}")))
    }

    /// A count, of the C type `size_t` or `unsigned long`, which version 2.2 writes as `int`.
    pub(super) fn size(&mut self, what: &str) -> Result<u64, MeshError> {
        if !self.is_binary() {
            return self.scanner.integer(what);
        }
        if self.has_entities() {
            return Ok(u64::from_le_bytes(self.take(what)?));
        }
        self.number(what)
    }

    /// Reads a number of records of at least a given number of bytes each; memory may be allocated for them.
    pub(super) fn count(
        &mut self,
        what: &str,
        text_each: usize,
        binary_each: usize,
    ) -> Result<usize, MeshError> {
        let n = self.size(&format!("the number of {what}"))?;
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.scanner.announce(n, what, if self.is_binary() { binary_each } else { text_each })
    }

    /// A finite number.
    pub(super) fn coordinate(&mut self) -> Result<f64, MeshError> {
        if !self.is_binary() {
            return self.scanner.coordinate();
        }
        let value = f64::from_le_bytes(self.take("a coordinate")?);
        if value.is_finite() {
            return Ok(value);
        }
        Err(self.scanner.error(format!("a coordinate is {value}; coordinates must be finite")))
    }

    /// Passes over `n` numbers of the C type `double`.
    pub(super) fn skip_reals(&mut self, n: usize) -> Result<(), MeshError> {
        for _ in 0..n {
            if self.is_binary() {
                self.scanner.take(8, "a number")?;
            } else {
                self.scanner.real("a number")?;
            }
        }
        Ok(())
    }

    /// In text, refuses more numbers on the line of a record.
    pub(super) fn end_of_record(&mut self, what: &str) -> Result<(), MeshError> {
        if self.is_binary() { Ok(()) } else { self.scanner.end_of_line(what) }
    }
}
