//! The values of one array: text, base64 or raw, compressed or not.

use std::borrow::Cow;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use femtile_device::parallel;
use flate2::read::ZlibDecoder;

use super::document::{DataArray, Document, Format, Problem};
use super::options::Compression;
use crate::io::number;
use crate::io::scanner::show;

/// The values of an array: words of text, or bytes that are decoded by all threads when they are wanted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values<'a> {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Bytes { bytes: Cow<'a, [u8]>, kind: Kind, big_endian: bool },
}

/// Whole numbers that are decoded before something is made of them.
const BLOCK: usize = 1 << 11;

impl Values<'_> {
    /// Applies `of` to each whole number; none if the values are not whole numbers.
    pub(super) fn integers<T: Clone + Default + Send>(&self, of: impl Fn(i64) -> T + Sync) -> Option<Vec<T>> {
        let n = match self {
            Self::Integers(values) => values.len(),
            Self::Reals(_) | Self::Bytes { kind: Kind::Float(_), .. } => return None,
            Self::Bytes { bytes, kind, .. } => bytes.len() / kind.size(),
        };
        let mut all = vec![T::default(); n];
        parallel::for_chunks_mut(&mut all, BLOCK, |begin, to| {
            let mut values = [0; BLOCK];
            self.decode(begin, &mut values[..to.len()]);
            to.iter_mut().zip(values).for_each(|(to, value)| *to = of(value));
        });
        Some(all)
    }

    /// Returns a whole number, zero if the values are others.
    pub(super) fn integer(&self, i: usize) -> i64 {
        let mut value = [0];
        self.decode(i, &mut value);
        value[0]
    }

    /// Writes the whole numbers from one on.
    fn decode(&self, begin: usize, to: &mut [i64]) {
        let (bytes, kind, is_big) = match self {
            Self::Integers(values) => return to.copy_from_slice(&values[begin..][..to.len()]),
            Self::Reals(_) => return,
            Self::Bytes { bytes, kind, big_endian } => (&bytes[begin * kind.size()..], *kind, *big_endian),
        };
        match kind {
            Kind::Signed(1) => decode(bytes, is_big, to, |word| i8::from_le_bytes(word).into()),
            Kind::Signed(2) => decode(bytes, is_big, to, |word| i16::from_le_bytes(word).into()),
            Kind::Signed(4) => decode(bytes, is_big, to, |word| i32::from_le_bytes(word).into()),
            Kind::Unsigned(1) => decode(bytes, is_big, to, |word| u8::from_le_bytes(word).into()),
            Kind::Unsigned(2) => decode(bytes, is_big, to, |word| u16::from_le_bytes(word).into()),
            Kind::Unsigned(4) => decode(bytes, is_big, to, |word| u32::from_le_bytes(word).into()),
            // Numbers from 2⁶³ on become negative: none is valid anywhere.
            Kind::Signed(_) | Kind::Unsigned(_) => decode(bytes, is_big, to, i64::from_le_bytes),
            Kind::Float(_) => {}
        }
    }

    /// Returns all values as real numbers.
    pub(super) fn reals(self) -> Vec<f64> {
        match self {
            Self::Reals(values) => values,
            Self::Bytes { bytes, kind: Kind::Float(4), big_endian } => {
                words(&bytes, big_endian, |word| f32::from_le_bytes(word).into())
            }
            Self::Bytes { bytes, kind: Kind::Float(_), big_endian } => {
                words(&bytes, big_endian, f64::from_le_bytes)
            }
            integers => integers.integers(|value| value as f64).unwrap_or_default(),
        }
    }

    /// Returns the values three by three.
    pub(super) fn triples(self) -> Vec<[f64; 3]> {
        match self {
            Self::Bytes { bytes, kind: Kind::Float(8), big_endian: false } => {
                words(&bytes, false, |word: [u8; 24]| {
                    let coordinates = word.as_chunks().0;
                    std::array::from_fn(|axis| f64::from_le_bytes(coordinates[axis]))
                })
            }
            other => other.reals().as_chunks().0.to_vec(),
        }
    }
}

/// Applies `of` to each word of `N` bytes, the least byte first.
fn words<const N: usize, T: Clone + Default + Send>(
    bytes: &[u8],
    is_big: bool,
    of: impl Fn([u8; N]) -> T + Sync,
) -> Vec<T> {
    let mut all = vec![T::default(); bytes.len() / N];
    parallel::for_chunks_mut(&mut all, BLOCK, |begin, to| decode(&bytes[begin * N..], is_big, to, &of));
    all
}

/// Writes `of` each of the first words of `N` bytes, the least byte first.
fn decode<const N: usize, T>(bytes: &[u8], is_big: bool, to: &mut [T], of: impl Fn([u8; N]) -> T) {
    let swapped = |mut word: [u8; N]| {
        word.reverse();
        word
    };
    let words = bytes.as_chunks().0;
    to.iter_mut().zip(words).for_each(|(to, &word)| *to = of(if is_big { swapped(word) } else { word }));
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
    pub(super) fn values(&mut self, array: &DataArray<'a>, n_entries: usize) -> Result<Values<'a>, Problem> {
        let n = n_entries.checked_mul(array.n_components);
        let n = n.filter(|n| n.checked_mul(array.kind.size()).is_some() && array.n_components > 0);
        let n = n.ok_or_else(|| wrong_count(array, n_entries, "values that cannot be counted"))?;
        let packed = match array.format {
            Format::Ascii(text) => return ascii(array, n_entries, text, n),
            Format::Binary(text) => encoded(self.document, &without_blanks(text)),
            Format::Appended(offset) => {
                let Some((data, is_base64)) = self.document.appended else {
                    return Err((
                        array.place,
                        format!("array `{}`: the file has no appended data", array.name),
                    ));
                };
                let data = data.get(offset..).unwrap_or_default();
                if is_base64 { encoded(self.document, data) } else { raw(self.document, data) }
            }
        };
        let packed = packed.ok_or_else(|| truncated(array))?;
        if let Format::Appended(_) = array.format {
            self.n_left = self.n_left.checked_sub(packed.n_bytes).ok_or_else(|| shared_bytes(array))?;
        }
        let n_held = packed.n_unpacked(self.document).ok_or_else(|| truncated(array))?;
        if n_held != n * array.kind.size() {
            return Err(wrong_count(array, n_entries, &format!("{} values", n_held / array.kind.size())));
        }
        let bytes = packed.unpack(self.document, array)?;
        Ok(Values::Bytes { bytes, kind: array.kind, big_endian: self.document.big_endian })
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

fn ascii(array: &DataArray<'_>, n_entries: usize, text: &[u8], n: usize) -> Result<Values<'static>, Problem> {
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
        let Some(name) = document.compressor.as_deref() else { return Ok(self.data) };
        match Compression::of_compressor(name) {
            Some(compression) => self.unpack_blocks(document, array, compression).map(Cow::Owned),
            None => Err((
                array.place,
                format!("compressor {name} is not supported; write the file with zlib, LZ4 or without"),
            )),
        }
    }

    /// Uncompresses all blocks, by all threads.
    fn unpack_blocks(
        &self,
        document: &Document<'_>,
        array: &DataArray<'_>,
        compression: Compression,
    ) -> Result<Vec<u8>, Problem> {
        let cut = || truncated(array);
        let (mut blocks, mut data) = (Vec::new(), &*self.data);
        for block in 0..header(document, &self.heads, 0).ok_or_else(cut)? {
            let n_packed = header(document, &self.heads, 3 + block).ok_or_else(cut)?;
            let expected = self.block_size(document, block).ok_or_else(cut)?;
            let (packed, rest) = data.split_at_checked(n_packed).ok_or_else(cut)?;
            data = rest;
            blocks.push((packed, expected));
        }
        let unpack = |block: usize| {
            let (packed, expected) = blocks[block];
            let bytes = unpack_block(packed, expected, compression);
            let bytes =
                bytes.map_err(|e| (array.place, format!("array `{}`: block {block}: {e}", array.name)))?;
            if bytes.len() == expected { Ok(bytes) } else { Err(cut()) }
        };
        let unpacked: Result<Vec<_>, _> = parallel::map(blocks.len(), 1, unpack).into_iter().collect();
        Ok(unpacked?.concat())
    }
}

/// Uncompresses a block of at most `expected` bytes. A size claimed by the header is not allocated before the
/// input can produce it.
fn unpack_block(packed: &[u8], expected: usize, compression: Compression) -> std::io::Result<Vec<u8>> {
    if compression == Compression::Lz4 {
        // Each byte stands for 255 at most.
        let n_most = packed.len().saturating_mul(255).min(expected);
        return lz4_flex::block::decompress(packed, n_most).map_err(std::io::Error::other);
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(expected).unwrap_or(u64::MAX);
    ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_size_and_byte_order_are_numbers() {
        let bytes: Vec<u8> = (0..5 * 24u32).map(|i| (i * i * 37 % 251) as u8).collect();
        let kinds = [1, 2, 4, 8].map(|size| [Kind::Signed(size), Kind::Unsigned(size)]);
        for (kind, big_endian) in kinds.into_iter().flatten().flat_map(|kind| [(kind, false), (kind, true)]) {
            let values = Values::Bytes { bytes: (&bytes).into(), kind, big_endian };
            let number = |word: &[u8]| {
                let word = word.iter().copied();
                let word: Vec<u8> = if big_endian { word.rev().collect() } else { word.collect() };
                let is_negative = matches!(kind, Kind::Signed(_)) && word[word.len() - 1] > 127;
                let mut wide = [if is_negative { 255 } else { 0 }; 8];
                wide[..word.len()].copy_from_slice(&word);
                i64::from_le_bytes(wide)
            };
            let expected: Vec<i64> = bytes.chunks(kind.size()).map(number).collect();
            assert_eq!(values.integers(|value| value), Some(expected.clone()), "{kind:?} {big_endian}");
            let reals: Vec<f64> = expected.iter().map(|&value| value as f64).collect();
            assert_eq!(values.clone().reals(), reals);
            assert_eq!(values.triples().as_flattened(), reals);
        }
        for (size, big_endian) in [(4, false), (4, true), (8, false), (8, true)] {
            let reals = [1.0, -2.5, 1e30f32, 0.0, -0.25, 7.0];
            let word = |x: &f32| {
                let mut word =
                    if size == 4 { x.to_le_bytes().to_vec() } else { f64::from(*x).to_le_bytes().to_vec() };
                if big_endian {
                    word.reverse();
                }
                word
            };
            let bytes: Vec<u8> = reals.iter().flat_map(word).collect();
            let values = Values::Bytes { bytes: bytes.into(), kind: Kind::Float(size), big_endian };
            assert_eq!(values.integers(|value| value), None);
            assert_eq!(values.clone().reals(), reals.map(f64::from));
            assert_eq!(values.triples().as_flattened(), reals.map(f64::from));
        }
    }
}
