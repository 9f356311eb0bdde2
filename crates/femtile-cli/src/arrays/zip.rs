//! ZIP archives as NumPy writes and reads them: members stored or deflated, with 64-bit sizes.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::{Announced, Array, ArrayError, Output, npy};

const END: u32 = 0x0605_4b50;
const END_64_LOCATOR: u32 = 0x0706_4b50;
const END_64: u32 = 0x0606_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
/// Length of the record at the end, and of the longest comment behind it.
const END_LEN: u64 = 22;
const LONGEST_COMMENT: u64 = 0xffff;
/// The tag of the extra field that holds 64-bit sizes.
const EXTRA_64: u16 = 1;

/// A `.npz` file.
pub struct Archive {
    file: File,
    place: String,
    members: Vec<Member>,
}

struct Member {
    name: String,
    is_encrypted: bool,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    offset: u64,
}

impl Archive {
    /// Opens an archive and reads its directory.
    pub fn open(path: &Path) -> Result<Self, ArrayError> {
        let place = path.display().to_string();
        let mut file = File::open(path).map_err(|source| ArrayError::io(&place, source))?;
        let directory = read_directory(&mut file).map_err(|source| ArrayError::io(&place, source))?;
        let members = directory.and_then(|bytes| parse_directory(&bytes)).ok_or_else(|| {
            ArrayError::format(
                &place,
                "this is no .npz file: it holds no directory of a ZIP archive that can be read",
            )
        })?;
        Ok(Self { file, place, members })
    }

    /// The name of the file, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.trim_end_matches(".npy"))
    }

    /// Reads the header of the array of this name.
    pub fn announced(&mut self, name: &str) -> Result<Announced, ArrayError> {
        let mut member = self.open_member(name)?;
        Announced::read(&mut member.bytes, member.available, &member.place)
    }

    /// Reads the array of this name.
    pub fn read(&mut self, name: &str) -> Result<Array, ArrayError> {
        self.read_with(name, |from, available, place| npy::read(from, available, place))
    }

    /// Reads the integers of this name.
    pub fn read_integers(&mut self, name: &str) -> Result<Vec<i64>, ArrayError> {
        self.read_with(name, |from, available, place| npy::read_integers(from, available, place))
    }

    /// Reads the word of this name.
    pub fn read_word(&mut self, name: &str) -> Result<String, ArrayError> {
        self.read_with(name, |from, available, place| npy::read_word(from, available, place))
    }

    fn read_with<R>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&mut dyn Read, Option<u64>, &str) -> Result<R, ArrayError>,
    ) -> Result<R, ArrayError> {
        let mut member = self.open_member(name)?;
        let array = parse(&mut member.bytes, member.available, &member.place)?;
        if member.bytes.crc.sum() != member.crc {
            return Err(ArrayError::format(
                &member.place,
                "the archive is damaged: the checksum does not agree",
            ));
        }
        Ok(array)
    }

    /// The bytes of the array of this name.
    fn open_member(&mut self, name: &str) -> Result<OpenMember<'_>, ArrayError> {
        let place = format!("{}: {name}", self.place);
        let found = self.members.iter().find(|member| member.name.trim_end_matches(".npy") == name);
        let member = found.ok_or_else(|| ArrayError::format(&place, "there is no such member"))?;
        if member.is_encrypted {
            return Err(ArrayError::format(&place, "it is encrypted"));
        }
        let io = |source| ArrayError::io(&place, source);
        let mut header = [0; 30];
        self.file.seek(SeekFrom::Start(member.offset)).map_err(io)?;
        self.file.read_exact(&mut header).map_err(io)?;
        if u32_at(&header, 0) != Some(LOCAL) {
            return Err(ArrayError::format(
                &place,
                "the archive is damaged: the member is not where it should be",
            ));
        }
        let skipped = [26, 28].map(|at| i64::from(u16_at(&header, at).unwrap_or_default()));
        self.file.seek_relative(skipped.iter().sum()).map_err(io)?;
        let held = self.file.metadata().map_err(io)?.len();
        if member.packed > held || (member.method == 0 && member.packed != member.size) {
            return Err(ArrayError::format(
                &place,
                "the archive is damaged: it announces more bytes than there are",
            ));
        }
        let packed = BufReader::new((&self.file).take(member.packed));
        let bytes: Summed<Box<dyn Read + '_>> = match member.method {
            0 => Summed::new(Box::new(packed)),
            8 => Summed::new(Box::new(DeflateDecoder::new(packed))),
            method => {
                let message = format!(
                    "it is compressed by method {method}; write it with numpy.savez or savez_compressed"
                );
                return Err(ArrayError::format(&place, message));
            }
        };
        // The file bounds the size of a stored member, but not that of a deflated one.
        let available = (member.method == 0).then_some(member.packed);
        Ok(OpenMember { bytes, available, crc: member.crc, place })
    }
}

/// A reader of a member of the archive.
struct OpenMember<'a> {
    bytes: Summed<Box<dyn Read + 'a>>,
    /// Number of bytes, where known.
    available: Option<u64>,
    crc: u32,
    place: String,
}

/// A reader that computes the checksum of its bytes.
struct Summed<R> {
    from: R,
    crc: Crc,
}

impl<R> Summed<R> {
    fn new(from: R) -> Self {
        Self { from, crc: Crc::new() }
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.from.read(into)?;
        self.crc.update(&into[..n]);
        Ok(n)
    }
}

/// The bytes of the central directory; none where there is no archive.
fn read_directory(file: &mut File) -> std::io::Result<Option<Vec<u8>>> {
    let len = file.metadata()?.len();
    let tail_len = len.min(END_LEN + LONGEST_COMMENT);
    let mut tail = vec![0; tail_len as usize];
    file.seek(SeekFrom::Start(len - tail_len))?;
    file.read_exact(&mut tail)?;
    let last = tail.len().saturating_sub(END_LEN as usize);
    let found = (0..=last).rev().find(|&at| u32_at(&tail, at) == Some(END));
    let Some(end) = found.filter(|end| end + END_LEN as usize <= tail.len()) else { return Ok(None) };
    let (mut size, mut offset) = match (u32_at(&tail, end + 12), u32_at(&tail, end + 16)) {
        (Some(size), Some(offset)) => (u64::from(size), u64::from(offset)),
        _ => return Ok(None),
    };
    let locator = end.checked_sub(20).filter(|&at| u32_at(&tail, at) == Some(END_64_LOCATOR));
    if let Some(at) = locator.and_then(|at| u64_at(&tail, at + 8)) {
        let mut record = [0; 56];
        if at > len.saturating_sub(record.len() as u64) {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut record)?;
        match (u32_at(&record, 0), u64_at(&record, 40), u64_at(&record, 48)) {
            (Some(END_64), Some(wide_size), Some(wide_offset)) => (size, offset) = (wide_size, wide_offset),
            _ => return Ok(None),
        }
    }
    if offset.checked_add(size).is_none_or(|end| end > len) {
        return Ok(None);
    }
    let mut directory = vec![0; size as usize];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut directory)?;
    Ok(Some(directory))
}

fn parse_directory(bytes: &[u8]) -> Option<Vec<Member>> {
    let (mut members, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if u32_at(bytes, at)? != CENTRAL {
            return None;
        }
        let [name_len, extra_len, comment_len] = [28, 30, 32].map(|k| u16_at(bytes, at + k).map(usize::from));
        let (name_from, extra_from) = (at + 46, at + 46 + name_len?);
        let extra = bytes.get(extra_from..extra_from + extra_len?)?;
        let narrow = [24, 20, 42].map(|k| u32_at(bytes, at + k));
        let [size, packed, offset] = widen([narrow[0]?, narrow[1]?, narrow[2]?], extra)?;
        members.push(Member {
            // Names are printed, so control characters in them are escaped.
            name: String::from_utf8_lossy(bytes.get(name_from..extra_from)?).escape_debug().to_string(),
            is_encrypted: u16_at(bytes, at + 8)? & 1 != 0,
            method: u16_at(bytes, at + 10)?,
            crc: u32_at(bytes, at + 16)?,
            packed,
            size,
            offset,
        });
        at = extra_from + extra_len? + comment_len?;
    }
    Some(members)
}

/// Takes from the extra field, in order, what does not fit into 32 bits.
fn widen(narrow: [u32; 3], extra: &[u8]) -> Option<[u64; 3]> {
    let (mut wide, mut at) = (&[][..], 0);
    while let (Some(tag), Some(len)) = (u16_at(extra, at), u16_at(extra, at + 2)) {
        let field = extra.get(at + 4..at + 4 + usize::from(len))?;
        if tag == EXTRA_64 {
            wide = field;
        }
        at += 4 + usize::from(len);
    }
    let mut next = 0;
    let mut result = [0; 3];
    for (value, narrow) in result.iter_mut().zip(narrow) {
        *value = u64::from(narrow);
        if narrow == u32::MAX {
            *value = u64_at(wide, next)?;
            next += 8;
        }
    }
    Some(result)
}

/// Writes members without compression; all sizes are 64-bit ones, so that there is one form for any length.
pub fn write(out: &mut dyn Write, members: &[(&str, Output<'_>)]) -> std::io::Result<()> {
    let (mut directory, mut offset) = (Vec::new(), 0_u64);
    for (name, array) in members {
        let (name, header) = (format!("{name}.npy"), array.header());
        let size = (header.len() + array.bytes.len()) as u64;
        let mut crc = Crc::new();
        crc.update(&header);
        crc.update(array.bytes);
        // Version 4.5, no flags, stored, 1 January 1980.
        let mut common = Vec::new();
        for half in [45, 0, 0, 0, 0x21_u16] {
            common.extend(half.to_le_bytes());
        }
        for word in [crc.sum(), u32::MAX, u32::MAX] {
            common.extend(word.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        let sizes = [size.to_le_bytes(), size.to_le_bytes()].concat();
        let extra = |more: &[u8]| {
            let len = (sizes.len() + more.len()) as u16;
            [&EXTRA_64.to_le_bytes()[..], &len.to_le_bytes(), &sizes, more].concat()
        };
        let local = extra(&[]);
        let local_len = (local.len() as u16).to_le_bytes();
        let local = [&LOCAL.to_le_bytes()[..], &common, &local_len, name.as_bytes(), &local].concat();
        let central = extra(&offset.to_le_bytes());
        let central_len = (central.len() as u16).to_le_bytes();
        // No comment, first disk, no attributes; the offset stands in the extra field.
        let rest = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        directory.extend(CENTRAL.to_le_bytes());
        directory.extend(45_u16.to_le_bytes());
        for part in [&common[..], &central_len, &rest, name.as_bytes(), &central] {
            directory.extend(part);
        }
        out.write_all(&local)?;
        array.write(out)?;
        offset += local.len() as u64 + size;
    }
    out.write_all(&directory)?;
    out.write_all(&end_records(members.len(), directory.len() as u64, offset))
}

fn end_records(n: usize, size: u64, offset: u64) -> Vec<u8> {
    let mut end = END_64.to_le_bytes().to_vec();
    end.extend(44_u64.to_le_bytes());
    end.extend([45, 0, 45, 0]);
    end.extend([0; 8]);
    for value in [n as u64, n as u64, size, offset] {
        end.extend(value.to_le_bytes());
    }
    end.extend(END_64_LOCATOR.to_le_bytes());
    end.extend(0_u32.to_le_bytes());
    end.extend((offset + size).to_le_bytes());
    end.extend(1_u32.to_le_bytes());
    end.extend(END.to_le_bytes());
    end.extend([0; 4]);
    for half in [n as u16, n as u16] {
        end.extend(half.to_le_bytes());
    }
    end.extend([0xff; 8]);
    end.extend([0; 2]);
    end
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::Values;

    fn archive() -> Vec<u8> {
        let mut bytes = Vec::new();
        let numbers = [1.0_f64.to_ne_bytes(), (-0.5_f64).to_ne_bytes()].concat();
        let array = |shape| Output { shape, is_fortran: false, dtype: "f8", bytes: &numbers };
        write(&mut bytes, &[("u", array(&[2])), ("other", array(&[1, 2]))]).unwrap();
        bytes
    }

    fn open(bytes: &[u8]) -> Result<Archive, ArrayError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Archive::open(file.path())
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut found = open(&archive()).unwrap();
        assert_eq!(found.names().collect::<Vec<_>>(), ["u", "other"]);
        let u = found.read("u").unwrap();
        assert_eq!((u.shape, u.values), (vec![2], Values::F64(vec![1.0, -0.5])));
        assert_eq!(found.read("other").unwrap().shape, [1, 2]);
        assert!(found.read("nothing").is_err());
    }

    #[test]
    fn no_damaged_byte_is_taken_for_a_number() {
        let sound = archive();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x55;
            let Ok(mut found) = open(&bytes) else { continue };
            if let Ok(array) = found.read("u") {
                assert_eq!(array.values, Values::F64(vec![1.0, -0.5]), "byte {at}");
            }
        }
        for len in 0..sound.len() {
            if let Ok(mut found) = open(&sound[..len]) {
                assert!(found.read("u").is_err(), "{len} bytes");
            }
        }
    }
}
