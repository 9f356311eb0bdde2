//! The values of one array: text, base64 or raw, compressed or not.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;

use super::document::{DataArray, Document, Problem};

/// The values of an array, whole numbers kept apart from others.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Reals(values) => values.len(),
        }
    }

    pub(super) fn reals(self) -> Vec<f64> {
        match self {
            Self::Integers(values) => values.into_iter().map(|value| value as f64).collect(),
            Self::Reals(values) => values,
        }
    }
}

/// Number formats of VTK.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
}

impl Kind {
    fn parse(array: &DataArray<'_>) -> Result<Self, Problem> {
        Ok(match array.kind.as_str() {
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
            other => return Err((array.place, format!("array `{}` has unknown type `{other}`", array.name))),
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Signed(size) | Self::Unsigned(size) | Self::Float(size) => size,
        }
    }
}

/// Whether the file's numbers of this array can be read at all: strings, for one, cannot.
pub(super) fn is_numeric(array: &DataArray<'_>) -> bool {
    Kind::parse(array).is_ok()
}

/// The values of `array`.
pub(super) fn values(document: &Document<'_>, array: &DataArray<'_>) -> Result<Values, Problem> {
    let kind = Kind::parse(array)?;
    match array.format.as_str() {
        "ascii" => ascii(array, kind),
        "binary" => {
            let text: Vec<u8> = array.text.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
            decode(document, array, kind, &encoded(document, array, &text)?)
        }
        "appended" => {
            let Some((data, base64)) = document.appended else {
                return Err((array.place, format!("array `{}`: the file has no appended data", array.name)));
            };
            let data = data.get(array.offset..).unwrap_or_default();
            if base64 {
                let end = data.iter().position(|b| !b.is_ascii_alphanumeric() && !b"+/=".contains(b));
                let text = &data[..end.unwrap_or(data.len())];
                decode(document, array, kind, &encoded(document, array, text)?)
            } else {
                decode(document, array, kind, &raw(document, array, data)?)
            }
        }
        other => Err((array.place, format!("array `{}` has unknown format `{other}`", array.name))),
    }
}

fn ascii(array: &DataArray<'_>, kind: Kind) -> Result<Values, Problem> {
    let text = std::str::from_utf8(array.text)
        .map_err(|e| (array.place, format!("array `{}` is not text: {e}", array.name)))?;
    let bad = |word: &str| (array.place, format!("array `{}`: `{word}` is not a number", array.name));
    let words = text.split_ascii_whitespace();
    Ok(if let Kind::Float(_) = kind {
        let parse = |word: &str| word.parse::<f64>().map_err(|_| bad(word));
        Values::Reals(words.map(parse).collect::<Result<_, _>>()?)
    } else {
        let parse = |word: &str| word.parse::<i64>().map_err(|_| bad(word));
        Values::Integers(words.map(parse).collect::<Result<_, _>>()?)
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

/// Uncompressed bytes of an array that stands as raw bytes at the begin of `data`.
fn raw(document: &Document<'_>, array: &DataArray<'_>, data: &[u8]) -> Result<Vec<u8>, Problem> {
    let size = header_size(document);
    let cut = || truncated(array);
    if document.compressor.is_none() {
        let n = header(document, data, 0).ok_or_else(cut)?;
        let bytes = data[size.min(data.len())..].get(..n).ok_or_else(cut)?;
        return Ok(bytes.to_vec());
    }
    let n_blocks = header(document, data, 0).ok_or_else(cut)?;
    if n_blocks == 0 {
        return Ok(Vec::new());
    }
    let begin = n_blocks.checked_add(3).and_then(|n| n.checked_mul(size)).ok_or_else(cut)?;
    inflate(document, array, data, data.get(begin..).ok_or_else(cut)?)
}

/// Uncompressed bytes of an array in base64; header and blocks are encoded apart from each other.
fn encoded(document: &Document<'_>, array: &DataArray<'_>, text: &[u8]) -> Result<Vec<u8>, Problem> {
    let cut = || truncated(array);
    let size = header_size(document);
    let n_words = if document.compressor.is_none() {
        1
    } else {
        let first = base64_prefix(text, size).ok_or_else(cut)?;
        header(document, &first, 0).ok_or_else(cut)?.checked_add(3).ok_or_else(cut)?
    };
    let n_bytes = n_words.checked_mul(size).ok_or_else(cut)?;
    let n_text = n_bytes.div_ceil(3).checked_mul(4).ok_or_else(cut)?;
    if document.compressor.is_none() {
        let n = header(document, &base64_prefix(text, size).ok_or_else(cut)?, 0).ok_or_else(cut)?;
        // Some writers encode header and data as one, others apart: padding after the header tells.
        let apart = text.get(..n_text).ok_or_else(cut)?.ends_with(b"=");
        let bytes = if apart {
            base64_prefix(&text[n_text..], n)
        } else {
            base64_prefix(text, n.checked_add(size).ok_or_else(cut)?).map(|mut all| all.split_off(size))
        };
        return bytes.ok_or_else(cut);
    }
    let heads = base64_prefix(text, n_bytes).ok_or_else(cut)?;
    let rest = text.get(n_text..).ok_or_else(cut)?;
    let total = rest.len() / 4 * 3;
    let blocks =
        (0..n_words - 3).try_fold(0usize, |sum, i| sum.checked_add(header(document, &heads, 3 + i)?));
    let data = base64_prefix(rest, blocks.ok_or_else(cut)?.min(total)).ok_or_else(cut)?;
    inflate(document, array, &heads, &data)
}

/// The first `n` bytes that `text` encodes, or none when it encodes fewer.
fn base64_prefix(text: &[u8], n: usize) -> Option<Vec<u8>> {
    let n_text = n.div_ceil(3).checked_mul(4)?;
    let mut bytes = STANDARD.decode(text.get(..n_text)?).ok()?;
    if bytes.len() < n {
        return None;
    }
    bytes.truncate(n);
    Some(bytes)
}

fn inflate(
    document: &Document<'_>,
    array: &DataArray<'_>,
    heads: &[u8],
    mut data: &[u8],
) -> Result<Vec<u8>, Problem> {
    let cut = || truncated(array);
    match document.compressor.as_deref() {
        Some("vtkZLibDataCompressor") => {}
        other => {
            let name = other.unwrap_or("?");
            return Err((
                array.place,
                format!("compressor {name} is not supported; write the file with zlib or without"),
            ));
        }
    }
    let n_blocks = header(document, heads, 0).ok_or_else(cut)?;
    let (whole, last) =
        (header(document, heads, 1).ok_or_else(cut)?, header(document, heads, 2).ok_or_else(cut)?);
    let mut bytes = Vec::new();
    for block in 0..n_blocks {
        let n_packed = header(document, heads, 3 + block).ok_or_else(cut)?;
        let (packed, rest) = data.split_at_checked(n_packed).ok_or_else(cut)?;
        data = rest;
        let expected = if block + 1 == n_blocks && last != 0 { last } else { whole };
        let before = bytes.len();
        // What the header claims bounds the output but is never allocated before it is produced.
        let limit = u64::try_from(expected).unwrap_or(u64::MAX);
        let result = ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes);
        result.map_err(|e| (array.place, format!("array `{}`: block {block}: {e}", array.name)))?;
        if bytes.len() - before != expected {
            return Err(cut());
        }
    }
    Ok(bytes)
}

fn decode(
    document: &Document<'_>,
    array: &DataArray<'_>,
    kind: Kind,
    bytes: &[u8],
) -> Result<Values, Problem> {
    let size = kind.size();
    if !bytes.len().is_multiple_of(size) {
        return Err(truncated(array));
    }
    let words = bytes.chunks_exact(size).map(|word| unsigned(word, document.big_endian));
    let signed = |word: u64| {
        let unused = 64 - 8 * size as u32;
        ((word << unused) as i64) >> unused
    };
    Ok(match kind {
        Kind::Float(4) => Values::Reals(words.map(|word| f64::from(f32::from_bits(word as u32))).collect()),
        Kind::Float(_) => Values::Reals(words.map(f64::from_bits).collect()),
        Kind::Signed(_) => Values::Integers(words.map(signed).collect()),
        Kind::Unsigned(_) => Values::Integers(words.map(|word| word as i64).collect()),
    })
}
