//! The values of one array: text, base64 or raw, compressed or not.

use std::borrow::Cow;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;

use super::document::{DataArray, Document, Format, Problem};
use crate::io::number;
use crate::io::scanner::show;

/// The values of an array, whole numbers kept apart from others.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

impl Values {
    pub(super) fn reals(self) -> Vec<f64> {
        match self {
            Self::Integers(values) => values.into_iter().map(|value| value as f64).collect(),
            Self::Reals(values) => values,
        }
    }
}

/// Number formats of VTK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
}

impl Kind {
    /// Returns the type of this name; none for strings and other data that are not numbers.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "Int8" => Self::Signed(1),
            "Int16" => Self::Signed(2),
            "Int32" => Self::Signed(4),
            "Int64" => Self::Signed(8),
            "UInt8" => Self::Unsigned(1),
            "UInt16" => Self::Unsigned(2),
            "UInt32" => Self::Unsigned(4),
            "UInt64" => Self::Unsigned(8),
            "Float32" => Self::Float(4),
            "Float64" => Self::Float(8),
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Signed(size) | Self::Unsigned(size) | Self::Float(size) => size,
        }
    }
}

/// Reads the values of arrays, one after another.
pub(super) struct Arrays<'a> {
    document: &'a Document<'a>,
    /// Bytes of the appended data that no array has taken yet.
    n_left: usize,
}

impl<'a> Arrays<'a> {
    /// A reader of all arrays of `document`.
    pub(super) fn new(document: &'a Document<'a>) -> Self {
        Self { document, n_left: document.appended.map_or(0, |(data, _)| data.len()) }
    }

    /// The values of `array`, which are `n_entries` times its components.
    ///
    /// # Errors
    /// When the file has another number of values; this is detected before uncompressing.
    pub(super) fn values(&mut self, array: &DataArray<'_>, n_entries: usize) -> Result<Values, Problem> {
        let n = n_entries.checked_mul(array.n_components);
        let n = n.filter(|n| n.checked_mul(array.kind.size()).is_some() && array.n_components > 0);
        let n = n.ok_or_else(|| wrong_count(array, n_entries, "values that cannot be counted"))?;
        let (data, is_base64) = match array.format {
            Format::Ascii(text) => return ascii(array, n_entries, text, n),
            Format::Binary(text) => (Cow::Owned(without_blanks(text)), true),
            Format::Appended(offset) => {
                let Some((data, is_base64)) = self.document.appended else {
                    return Err((
                        array.place,
                        format!("array `{}`: the file has no appended data", array.name),
                    ));
                };
                (Cow::Borrowed(data.get(offset..).unwrap_or_default()), is_base64)
            }
        };
        let packed = if is_base64 { encoded(self.document, &data) } else { raw(self.document, &data) };
        let packed = packed.ok_or_else(|| truncated(array))?;
        if let Format::Appended(_) = array.format {
            self.n_left = self.n_left.checked_sub(packed.n_bytes).ok_or_else(|| shared_bytes(array))?;
        }
        let n_held = packed.n_unpacked(self.document).ok_or_else(|| truncated(array))?;
        if n_held != n * array.kind.size() {
            return Err(wrong_count(array, n_entries, &format!("{} values", n_held / array.kind.size())));
        }
        let bytes = packed.unpack(self.document, array)?;
        Ok(decode(self.document, array.kind, &bytes))
    }
}

fn without_blanks(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn wrong_count(array: &DataArray<'_>, n_entries: usize, found: &str) -> Problem {
    let DataArray { name, n_components, place, .. } = array;
    (*place, format!("array `{name}` has {found} for {n_entries} entries of {n_components}"))
}

/// Reports that arrays take more bytes than there are, which would multiply the file in memory.
fn shared_bytes(array: &DataArray<'_>) -> Problem {
    let message = format!(
        "array `{}` and those before it take more bytes than the appended data have: some share bytes, which \
         is not supported",
        array.name
    );
    (array.place, message)
}

fn ascii(array: &DataArray<'_>, n_entries: usize, text: &[u8], n: usize) -> Result<Values, Problem> {
    let words = || text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let n_held = words().count();
    if n_held != n {
        return Err(wrong_count(array, n_entries, &format!("{n_held} values")));
    }
    let bad = |word| (array.place, format!("array `{}`: `{}` is not a number", array.name, show(word)));
    Ok(if let Kind::Float(_) = array.kind {
        Values::Reals(
            words().map(|word| number::real(word).ok_or_else(|| bad(word))).collect::<Result<_, _>>()?,
        )
    } else {
        let integers = words().map(|word| number::integer(word).ok_or_else(|| bad(word)));
        Values::Integers(integers.collect::<Result<_, _>>()?)
    })
}

fn truncated(array: &DataArray<'_>) -> Problem {
    (array.place, format!("the data of array `{}` ends too early: is the file complete?", array.name))
}

fn header_size(document: &Document<'_>) -> usize {
    if document.wide_header { 8 } else { 4 }
}

fn header(document: &Document<'_>, bytes: &[u8], index: usize) -> Option<usize> {
    let size = header_size(document);
    let bytes = bytes.get(index.checked_mul(size)?..index.checked_add(1)?.checked_mul(size)?)?;
    usize::try_from(unsigned(bytes, document.big_endian)).ok()
}

fn unsigned(bytes: &[u8], big_endian: bool) -> u64 {
    let join = |value: u64, &byte: &u8| (value << 8) | u64::from(byte);
    if big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
}

/// The bytes of an array as the file has them.
struct Packed<'a> {
    /// Head of compressed blocks: their number, size, size of the last one and the compressed sizes.
    heads: Cow<'a, [u8]>,
    data: Cow<'a, [u8]>,
    /// Bytes of the file that head and data take.
    n_bytes: usize,
}

/// Returns an array of raw bytes at the beginning of `data`; none if it is truncated.
fn raw<'a>(document: &Document<'_>, data: &'a [u8]) -> Option<Packed<'a>> {
    let size = header_size(document);
    let first = header(document, data, 0)?;
    if document.compressor.is_none() {
        let bytes = data.get(size..)?.get(..first)?;
        return Some(Packed { heads: data[..size].into(), data: bytes.into(), n_bytes: size + first });
    }
    let n_head = n_header_words(first)?.checked_mul(size)?;
    let heads = data.get(..n_head)?;
    let n = n_compressed(document, heads, first)?;
    let bytes = data[n_head..].get(..n)?;
    Some(Packed { heads: heads.into(), data: bytes.into(), n_bytes: n_head + n })
}

/// An array in base64 at the begin of `text`; head and data of compressed ones are encoded apart from each other.
fn encoded<'a>(document: &Document<'_>, text: &[u8]) -> Option<Packed<'a>> {
    let size = header_size(document);
    let first = base64_prefix(text, size)?;
    let n = header(document, &first, 0)?;
    if document.compressor.is_none() {
        let n_text = text_len(size)?;
        // Some writers encode header and data together, others separately: then the header ends with padding.
        let apart = text.get(..n_text)?.ends_with(b"=");
        let (data, n_bytes) = if apart {
            (base64_prefix(&text[n_text..], n)?, n_text + text_len(n)?)
        } else {
            let mut all = base64_prefix(text, n.checked_add(size)?)?;
            (all.split_off(size), text_len(n + size)?)
        };
        return Some(Packed { heads: first.into(), data: data.into(), n_bytes });
    }
    let n_head = n_header_words(n)?.checked_mul(size)?;
    let heads = base64_prefix(text, n_head)?;
    let rest = text.get(text_len(n_head)?..)?;
    let n_data = n_compressed(document, &heads, n)?;
    let n_bytes = text_len(n_head)?.checked_add(text_len(n_data)?)?;
    Some(Packed { heads: heads.into(), data: base64_prefix(rest, n_data)?.into(), n_bytes })
}

/// Returns the numbers in the header of `n_blocks` compressed blocks; an array without blocks has only the first.
fn n_header_words(n_blocks: usize) -> Option<usize> {
    if n_blocks == 0 { Some(1) } else { n_blocks.checked_add(3) }
}

/// Bytes of all compressed blocks.
fn n_compressed(document: &Document<'_>, heads: &[u8], n_blocks: usize) -> Option<usize> {
    (0..n_blocks).try_fold(0usize, |sum, block| sum.checked_add(header(document, heads, 3 + block)?))
}

/// Characters of base64 that encode `n` bytes.
fn text_len(n: usize) -> Option<usize> {
    n.div_ceil(3).checked_mul(4)
}

/// The first `n` bytes that `text` encodes, or none when it encodes fewer.
fn base64_prefix(text: &[u8], n: usize) -> Option<Vec<u8>> {
    let mut bytes = STANDARD.decode(text.get(..text_len(n)?)?).ok()?;
    if bytes.len() < n {
        return None;
    }
    bytes.truncate(n);
    Some(bytes)
}

impl<'a> Packed<'a> {
    /// Number of bytes that the head announces.
    fn n_unpacked(&self, document: &Document<'_>) -> Option<usize> {
        if document.compressor.is_none() {
            return Some(self.data.len());
        }
        match header(document, &self.heads, 0)? {
            0 => Some(0),
            n_blocks => {
                let last = self.block_size(document, n_blocks - 1)?;
                header(document, &self.heads, 1)?.checked_mul(n_blocks - 1)?.checked_add(last)
            }
        }
    }

    /// Number of bytes that the head announces for a block; 0 as the size of the last one means a whole block.
    fn block_size(&self, document: &Document<'_>, block: usize) -> Option<usize> {
        let whole = header(document, &self.heads, 1)?;
        let last = header(document, &self.heads, 2)?;
        let is_last = block + 1 == header(document, &self.heads, 0)?;
        Some(if is_last && last != 0 { last } else { whole })
    }

    /// The bytes of the array.
    fn unpack(self, document: &Document<'_>, array: &DataArray<'_>) -> Result<Cow<'a, [u8]>, Problem> {
        match document.compressor.as_deref() {
            None => Ok(self.data),
            Some("vtkZLibDataCompressor") => self.inflate(document, array).map(Cow::Owned),
            Some(name) => Err((
                array.place,
                format!("compressor {name} is not supported; write the file with zlib or without"),
            )),
        }
    }

    fn inflate(&self, document: &Document<'_>, array: &DataArray<'_>) -> Result<Vec<u8>, Problem> {
        let cut = || truncated(array);
        let (mut bytes, mut data) = (Vec::new(), &*self.data);
        for block in 0..header(document, &self.heads, 0).ok_or_else(cut)? {
            let n_packed = header(document, &self.heads, 3 + block).ok_or_else(cut)?;
            let expected = self.block_size(document, block).ok_or_else(cut)?;
            let (packed, rest) = data.split_at_checked(n_packed).ok_or_else(cut)?;
            data = rest;
            let before = bytes.len();
            // What the head claims bounds the output but is never allocated before it is produced.
            let limit = u64::try_from(expected).unwrap_or(u64::MAX);
            let result = ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes);
            result.map_err(|e| (array.place, format!("array `{}`: block {block}: {e}", array.name)))?;
            if bytes.len() - before != expected {
                return Err(cut());
            }
        }
        Ok(bytes)
    }
}

fn decode(document: &Document<'_>, kind: Kind, bytes: &[u8]) -> Values {
    let size = kind.size();
    let words = bytes.chunks_exact(size).map(|word| unsigned(word, document.big_endian));
    let signed = |word: u64| {
        let unused = 64 - 8 * size as u32;
        ((word << unused) as i64) >> unused
    };
    match kind {
        Kind::Float(4) => Values::Reals(words.map(|word| f64::from(f32::from_bits(word as u32))).collect()),
        Kind::Float(_) => Values::Reals(words.map(f64::from_bits).collect()),
        Kind::Signed(_) => Values::Integers(words.map(signed).collect()),
        Kind::Unsigned(_) => Values::Integers(words.map(|word| word as i64).collect()),
    }
}
