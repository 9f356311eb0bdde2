//! The `.npy` format, versions 1 to 3: a header that is a Python dictionary, then the numbers.

use std::io::Read;

use super::{Array, ArrayError, Values};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longer headers than this are refused: those of arrays of numbers have a hundred bytes.
const LONGEST_HEADER: usize = 1 << 16;
/// Numbers are read in parts of this many bytes, so that memory grows with what a file holds.
const PART: usize = 1 << 20;
/// Longer words than this are none.
const LONGEST_WORD: usize = 64;

/// An array as the header of its file announces it.
#[derive(Debug, Clone)]
pub struct Announced {
    pub shape: Vec<usize>,
    /// The first axis is contiguous.
    pub is_fortran: bool,
    /// Bytes of a number in memory: 4, or 8, which integers have too.
    pub size: usize,
    stored: Stored,
    is_swapped: bool,
    /// Bytes of the numbers in the file.
    n_bytes: usize,
    available: Option<u64>,
}

/// The type of the numbers of a file, with the bytes of an integer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stored {
    Float(usize),
    Integer(usize),
    Unsigned(usize),
}

impl Stored {
    /// Bytes of a number.
    fn width(self) -> usize {
        match self {
            Self::Float(width) | Self::Integer(width) | Self::Unsigned(width) => width,
        }
    }
}

impl Announced {
    /// An array in memory.
    pub fn of_array(shape: &[usize], is_fortran: bool, size: usize) -> Self {
        let n_bytes = size * shape.iter().product::<usize>();
        let stored = Stored::Float(size);
        Self { shape: shape.to_vec(), is_fortran, size, stored, is_swapped: false, n_bytes, available: None }
    }

    /// Bytes of the numbers in memory.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes / self.stored.width() * self.size
    }

    /// Reads the header; `available` is the length of the file or member, where it is known.
    pub fn read(from: &mut impl Read, available: Option<u64>, place: &str) -> Result<Self, ArrayError> {
        let (header, before) = Header::read(from, place)?;
        let (stored, is_swapped) = kind(&header.descr, place)?;
        let found = Self::of_header(header, (stored.width(), is_swapped), before, available, place)?;
        let size = if stored == Stored::Float(4) { 4 } else { 8 };
        Ok(Self { stored, size, ..found })
    }

    /// An array with entries of `size` bytes behind its header, which has `before` of them.
    fn of_header(
        header: Header,
        (size, is_swapped): (usize, bool),
        before: usize,
        available: Option<u64>,
        place: &str,
    ) -> Result<Self, ArrayError> {
        let Header { is_fortran, shape, .. } = header;
        // Sizes are multiplied without zeros, as NumPy does: strides must fit as well.
        let Some(most) = shape.iter().try_fold(size, |bytes, &n| bytes.checked_mul(n.max(1))) else {
            return Err(ArrayError::format(place, format!("the shape {shape:?} is too large")));
        };
        let n_bytes = if shape.contains(&0) { 0 } else { most };
        if let Some(available) = available {
            let held = available.saturating_sub(before as u64);
            if held != n_bytes as u64 {
                return Err(disagree(place, &shape, n_bytes, held));
            }
        }
        Ok(Self { shape, is_fortran, size, stored: Stored::Float(size), is_swapped, n_bytes, available })
    }

    /// Reads the numbers, which follow the header.
    pub fn read_numbers(self, from: impl Read, place: &str) -> Result<Array, ArrayError> {
        let values = match self.stored {
            Stored::Float(4) => Values::F32(self.ordered(from, place, f32::from_le_bytes)?),
            Stored::Float(_) => Values::F64(self.ordered(from, place, f64::from_le_bytes)?),
            Stored::Integer(1) => Values::F64(self.ordered(from, place, |[b]: [u8; 1]| (b as i8).into())?),
            Stored::Integer(2) => Values::F64(self.ordered(from, place, |b| i16::from_le_bytes(b).into())?),
            Stored::Integer(4) => Values::F64(self.ordered(from, place, |b| i32::from_le_bytes(b).into())?),
            Stored::Integer(_) => Values::F64(self.ordered(from, place, |b| i64::from_le_bytes(b) as f64)?),
            Stored::Unsigned(1) => Values::F64(self.ordered(from, place, |[b]: [u8; 1]| b.into())?),
            Stored::Unsigned(2) => Values::F64(self.ordered(from, place, |b| u16::from_le_bytes(b).into())?),
            Stored::Unsigned(4) => Values::F64(self.ordered(from, place, |b| u32::from_le_bytes(b).into())?),
            Stored::Unsigned(_) => Values::F64(self.ordered(from, place, |b| u64::from_le_bytes(b) as f64)?),
        };
        Ok(Array { shape: self.shape, is_fortran: self.is_fortran, values })
    }

    /// Reads numbers from bytes in the order of this machine's files, least significant first.
    fn ordered<T, const SIZE: usize>(
        &self,
        from: impl Read,
        place: &str,
        number: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, ArrayError> {
        let is_swapped = self.is_swapped;
        self.numbers(from, place, |mut bytes: [u8; SIZE]| {
            if is_swapped {
                bytes.reverse();
            }
            number(bytes)
        })
    }

    fn numbers<T, const SIZE: usize>(
        &self,
        from: impl Read,
        place: &str,
        number: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, ArrayError> {
        let io = |source| ArrayError::io(place, source);
        let n_bytes = self.n_bytes;
        // Where the length of the file is unknown, memory grows by doubling instead of following an unchecked shape.
        let mut values = Vec::with_capacity(if self.available.is_some() { n_bytes / SIZE } else { 0 });
        let mut from = from.take(n_bytes as u64 + 1);
        let mut part = Vec::with_capacity(PART.min(n_bytes + 1));
        loop {
            part.clear();
            let read = from.by_ref().take(PART as u64).read_to_end(&mut part).map_err(io)?;
            let held = values.len() * SIZE + read;
            if held > n_bytes || (read < PART && held < n_bytes) {
                return Err(disagree(place, &self.shape, n_bytes, held as u64));
            }
            values.extend(part.as_chunks::<SIZE>().0.iter().map(|&bytes| number(bytes)));
            if read < PART {
                return Ok(values);
            }
        }
    }
}

/// Reads one array; `available` is the length of the file or member, where it is known.
pub fn read(mut from: impl Read, available: Option<u64>, place: &str) -> Result<Array, ArrayError> {
    Announced::read(&mut from, available, place)?.read_numbers(from, place)
}

/// Reads an array of one axis of 32 or 64-bit integers.
pub fn read_integers(
    mut from: impl Read,
    available: Option<u64>,
    place: &str,
) -> Result<Vec<i64>, ArrayError> {
    let (header, before) = Header::read(&mut from, place)?;
    let refuse = |message| Err(ArrayError::format(place, message));
    let swapped = header.descr.starts_with('>');
    let size = match header.descr.trim_start_matches(['<', '>', '=']) {
        "i4" => 4,
        "i8" => 8,
        _ => {
            let descr = header.descr.escape_debug();
            return refuse(format!("int32 or int64 is needed here, and it holds `{descr}`"));
        }
    };
    if header.shape.len() != 1 {
        return refuse(format!("one axis is needed here, and its shape is {:?}", header.shape));
    }
    let announced = Announced::of_header(header, (size, swapped), before, available, place)?;
    if size == 4 {
        announced.numbers(from, place, |bytes| {
            let number = i32::from_le_bytes(bytes);
            i64::from(if swapped { number.swap_bytes() } else { number })
        })
    } else {
        announced.numbers(from, place, |bytes| {
            let number = i64::from_le_bytes(bytes);
            if swapped { number.swap_bytes() } else { number }
        })
    }
}

/// Reads a word: an array without axes of bytes or of Unicode.
pub fn read_word(mut from: impl Read, available: Option<u64>, place: &str) -> Result<String, ArrayError> {
    let (header, before) = Header::read(&mut from, place)?;
    let code = header.descr.trim_start_matches(['<', '>', '=', '|']);
    let (kind, length) = code.split_at(usize::from(!code.is_empty() && code.is_char_boundary(1)));
    let width = match kind {
        "S" => 1,
        "U" => 4,
        _ => 0,
    };
    let length = length.parse::<usize>().ok().filter(|n| (1..=LONGEST_WORD).contains(n));
    let (Some(length), true, true) = (length, width > 0, header.shape.is_empty()) else {
        return Err(ArrayError::format(place, "a word is needed here"));
    };
    let announced = Announced::of_header(header, (width * length, false), before, available, place)?;
    let letters: Vec<u8> = announced.numbers(from, place, |[byte]: [u8; 1]| byte)?;
    Ok(letters.into_iter().filter(|&letter| letter != 0).map(char::from).collect())
}

fn disagree(place: &str, shape: &[usize], announced: usize, held: u64) -> ArrayError {
    let message = format!(
        "the shape {shape:?} announces {announced} bytes of numbers, but there are {held}: it is damaged"
    );
    ArrayError::format(place, message)
}

/// The header's text, and the bytes before the numbers.
fn read_header(from: &mut impl Read, place: &str) -> Result<(String, usize), ArrayError> {
    let io = |source| ArrayError::io(place, source);
    let mut start = [0; 8];
    from.read_exact(&mut start).map_err(io)?;
    if start[..6] != MAGIC[..] {
        return Err(ArrayError::format(place, "this is no .npy file: it does not begin with \\x93NUMPY"));
    }
    let (len, before) = match start[6] {
        1 => {
            let mut len = [0; 2];
            from.read_exact(&mut len).map_err(io)?;
            (u16::from_le_bytes(len) as usize, 10)
        }
        2 | 3 => {
            let mut len = [0; 4];
            from.read_exact(&mut len).map_err(io)?;
            (u32::from_le_bytes(len) as usize, 12)
        }
        version => {
            return Err(ArrayError::format(
                place,
                format!("version {version} of .npy is not known, 1 to 3 are"),
            ));
        }
    };
    if len > LONGEST_HEADER {
        return Err(ArrayError::format(
            place,
            format!("its header has {len} bytes, more than {LONGEST_HEADER}"),
        ));
    }
    let mut text = vec![0; len];
    from.read_exact(&mut text).map_err(io)?;
    Ok((String::from_utf8_lossy(&text).trim().to_string(), before + len))
}

/// The parsed header.
struct Header {
    descr: String,
    is_fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Reads the header, and says how many bytes stand before the numbers.
    fn read(from: &mut impl Read, place: &str) -> Result<(Self, usize), ArrayError> {
        let (text, before) = read_header(from, place)?;
        let header = Self::parse(&text)
            .ok_or_else(|| ArrayError::format(place, format!("its header cannot be understood: {text:?}")))?;
        Ok((header, before))
    }

    fn parse(text: &str) -> Option<Self> {
        let inner = text.strip_prefix('{')?.strip_suffix('}')?;
        let value = |key: &str| {
            let after = ["'", "\""].iter().find_map(|quote| {
                let key = format!("{quote}{key}{quote}");
                Some(&inner[inner.find(&key)? + key.len()..])
            })?;
            Some(after.trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = value("descr")?;
        let descr = match descr.chars().next()? {
            quote @ ('\'' | '"') => descr[1..].split(quote).next()?.to_string(),
            // A list describes a structured type, which is not supported.
            '[' => "a structure".to_string(),
            _ => return None,
        };
        let order = value("fortran_order")?;
        let is_fortran =
            if order.starts_with("True") { true } else { order.starts_with("False").then_some(false)? };
        let shape = value("shape")?.strip_prefix('(')?.split(')').next()?;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        // Python 2 wrote long integers as `3L`.
        let shape = sizes.map(|size| size.trim_end_matches('L').parse().ok()).collect::<Option<_>>()?;
        Some(Self { descr, is_fortran, shape })
    }
}

/// The type of the numbers, and whether their bytes stand in the order that is not ours.
fn kind(descr: &str, place: &str) -> Result<(Stored, bool), ArrayError> {
    let (order, code) = descr.split_at(usize::from(descr.starts_with(['<', '>', '=', '|'])));
    let swapped = order == ">";
    let (dtype, advice) = match (code, code.get(..1).unwrap_or_default(), code.get(1..).unwrap_or_default()) {
        ("f4", ..) => return Ok((Stored::Float(4), swapped)),
        ("f8", ..) => return Ok((Stored::Float(8), swapped)),
        ("i1" | "i2" | "i4" | "i8", _, size) => {
            return Ok((Stored::Integer(size.parse().unwrap_or(8)), swapped));
        }
        ("u1" | "u2" | "u4" | "u8", _, size) => {
            return Ok((Stored::Unsigned(size.parse().unwrap_or(8)), swapped));
        }
        ("b1", ..) => return Ok((Stored::Unsigned(1), false)),
        ("f2", ..) => ("float16".to_string(), "convert it with .astype('float32')"),
        (_, "f", _) => ("extended precision (longdouble)".to_string(), "convert it with .astype('float64')"),
        (_, "c", size) => (
            bits("complex", size),
            "solve for the real and the imaginary part of the right side apart, where the matrix is real",
        ),
        (_, "O", _) => ("Python objects".to_string(), "convert it with .astype('float64')"),
        _ => (format!("`{}`", descr.escape_debug()), "save the numbers alone, as float32 or float64"),
    };
    Err(ArrayError::Type { place: place.into(), dtype, advice: advice.into() })
}

/// NumPy's name of a type, whose descriptions count bytes.
fn bits(kind: &str, bytes: &str) -> String {
    bytes.parse().map_or_else(|_| kind.to_string(), |n: u32| format!("{kind}{}", n.saturating_mul(8)))
}

/// All that stands before the numbers, padded to a multiple of 64 bytes.
pub fn header(descr: &str, is_fortran: bool, shape: &[usize]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    // One axis is written `(3,)`, several `(3, 4)`.
    let sizes =
        sizes.trim_end().strip_suffix(if shape.len() == 1 { " " } else { "," }).unwrap_or(sizes.trim_end());
    let order = if is_fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({sizes}), }}");
    let padding = 63 - (10 + text.len()) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, numbers: &[u8]) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &[version, 0]].concat();
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        [bytes, header.as_bytes().to_vec(), numbers.to_vec()].concat()
    }

    fn refusal(bytes: &[u8], available: bool) -> String {
        read(bytes, available.then_some(bytes.len() as u64), "x.npy").unwrap_err().to_string()
    }

    #[test]
    fn headers_of_all_versions_orders_and_shapes_are_read() {
        let two = [1.0_f64.to_le_bytes(), (-2.5_f64).to_le_bytes()].concat();
        for version in [1, 2, 3] {
            let header = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 1), }  \n";
            let array = read(&*file(version, header, &two), None, "").unwrap();
            assert_eq!((array.shape, array.is_fortran), (vec![2, 1], true));
            assert_eq!(array.values, Values::F64(vec![1.0, -2.5]));
        }
        let big = [1.0_f32.to_be_bytes(), (-2.5_f32).to_be_bytes()].concat();
        let header = "{\"shape\": (2L,), \"fortran_order\": False, \"descr\": \">f4\"}";
        assert_eq!(read(&*file(1, header, &big), None, "").unwrap().values, Values::F32(vec![1.0, -2.5]));
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (), }";
        assert_eq!(read(&*file(1, header, &two[..8]), None, "").unwrap(), Array::scalar(1.0));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for shape in [&[][..], &[3], &[0], &[2, 3], &[1, 2, 3, 4], &[100_000_000_000, 0]] {
            let n: usize = shape.iter().product();
            let numbers: Vec<u8> = (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect();
            let header = header("<f4", false, shape);
            assert_eq!(header.len() % 64, 0);
            let array = read(&*[header, numbers].concat(), None, "").unwrap();
            assert_eq!(array.shape, shape);
            assert_eq!(array.values, Values::F32((0..n).map(|i| i as f32).collect()));
        }
    }

    #[test]
    fn other_types_are_refused_by_name() {
        for (descr, name) in [
            ("'<f2'", "float16"),
            ("'<c16'", "complex128"),
            ("'|O'", "objects"),
            ("'<U3'", "<U3"),
            ("'<f16'", "longdouble"),
            ("[('a', '<f8')]", "a structure"),
        ] {
            let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
            let said = refusal(&file(1, &header, &[0; 16]), true);
            assert!(said.contains(name) && said.contains("x.npy"), "{said}");
        }
    }

    #[test]
    fn integers_of_every_width_are_numbers_of_double_precision() {
        for (descr, bytes, expected) in [
            ("|b1", vec![0, 1], [0.0, 1.0]),
            ("|i1", vec![0xff, 5], [-1.0, 5.0]),
            ("|u1", vec![0xff, 5], [255.0, 5.0]),
            ("<i2", vec![0xfe, 0xff, 0, 1], [-2.0, 256.0]),
            (">u2", vec![0xff, 0xfe, 0, 1], [65534.0, 1.0]),
            ("<i4", vec![0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0], [-1.0, 3.0]),
            (">u4", vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3], [4294967295.0, 3.0]),
            (">i8", [(-7_i64).to_be_bytes(), 9_i64.to_be_bytes()].concat(), [-7.0, 9.0]),
            ("<u8", [(1_u64 << 63).to_le_bytes(), 9_u64.to_le_bytes()].concat(), [(1_u64 << 63) as f64, 9.0]),
        ] {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}");
            let file = file(1, &header, &bytes);
            let announced = Announced::read(&mut &*file, Some(file.len() as u64), "").unwrap();
            assert_eq!((announced.size, announced.n_bytes()), (8, 16), "{descr}");
            let array = read(&*file, Some(file.len() as u64), "").unwrap();
            assert_eq!(array.values, Values::F64(expected.to_vec()), "{descr}");
        }
    }

    #[test]
    fn integers_and_words_are_read_in_either_order_of_bytes() {
        let header = |descr: &str, shape: &str| {
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
        };
        let integers = |descr: &str, bytes: &[u8]| {
            read_integers(&*file(1, &header(descr, "(2,)"), bytes), None, "x.npy").map_err(|e| e.to_string())
        };
        assert_eq!(integers("<i4", &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).unwrap(), [1, -1]);
        assert_eq!(integers(">i4", &[0, 0, 0, 1, 0, 0, 1, 0]).unwrap(), [1, 256]);
        assert_eq!(integers("<i8", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1]).unwrap()[0], 1);
        assert!(integers("<f8", &[0; 16]).unwrap_err().contains("int32 or int64"));
        let matrix = file(1, &header("<i4", "(1, 2)"), &[0; 8]);
        assert!(read_integers(&*matrix, None, "").unwrap_err().to_string().contains("one axis"));
        let word =
            |descr: &str, bytes: &[u8]| read_word(&*file(1, &header(descr, "()"), bytes), None, "").ok();
        assert_eq!(word("|S3", b"csr").as_deref(), Some("csr"));
        assert_eq!(word("|S4", b"csr\0").as_deref(), Some("csr"));
        assert_eq!(word("<U2", b"a\0\0\0b\0\0\0").as_deref(), Some("ab"));
        for (descr, bytes) in
            [("<f8", &[0; 8][..]), ("|S0", &[]), ("|S99", &[65; 99]), ("", b"x"), ("é", b"x")]
        {
            assert_eq!(word(descr, bytes), None, "{descr}");
        }
    }

    #[test]
    fn a_count_without_bytes_behind_it_takes_no_memory() {
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000000, 1000), }";
        for available in [false, true] {
            assert!(refusal(&file(1, header, &[0; 64]), available).contains("there are 64"));
        }
        let header = header.replace("1000)", "9999999999999)");
        assert!(refusal(&file(1, &header, &[0; 64]), true).contains("too large"));
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 18446744073709551615), }";
        assert_eq!(
            refusal(&file(1, header, &[]), true),
            "x.npy: the shape [0, 18446744073709551615] is too large"
        );
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
        for n in [0, 15, 17, 24] {
            for available in [false, true] {
                assert!(refusal(&file(1, header, &vec![0; n]), available).contains("announces 16"), "{n}");
            }
        }
    }

    #[test]
    fn damaged_headers_are_refused() {
        for bytes in [&b""[..], b"\x93NUMPY", b"PK\x03\x04 and so on", b"\x93NUMPY\x09\x00 "] {
            refusal(bytes, true);
        }
        assert!(refusal(&file(2, &" ".repeat(1 << 20), &[]), false).contains("header"));
        for header in
            ["", "{}", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"]
        {
            assert!(refusal(&file(1, header, &[]), true).contains("understood"), "{header}");
        }
    }
}
