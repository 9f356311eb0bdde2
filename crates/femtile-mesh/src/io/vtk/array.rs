//! Arrays of numbers: words of text or big-endian binary.

use crate::MeshError;
use crate::io::scanner::{Scanner, show};

/// Type of the numbers of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// Encoding of the numbers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Ascii,
    Binary,
}

impl Number {
    /// Reads the name of a type.
    pub(super) fn parse(scanner: &mut Scanner<'_>) -> Result<Self, MeshError> {
        let word = scanner.expect("the type of an array")?;
        Ok(match word.to_ascii_lowercase().as_slice() {
            b"char" | b"signed_char" | b"vtktypeint8" => Self::I8,
            b"unsigned_char" | b"vtktypeuint8" => Self::U8,
            b"short" | b"vtktypeint16" => Self::I16,
            b"unsigned_short" | b"vtktypeuint16" => Self::U16,
            // VTK writes its own index type with four bytes.
            b"int" | b"vtktypeint32" | b"vtkidtype" => Self::I32,
            b"unsigned_int" | b"vtktypeuint32" => Self::U32,
            b"long" | b"vtktypeint64" => Self::I64,
            b"unsigned_long" | b"vtktypeuint64" => Self::U64,
            b"float" => Self::F32,
            b"double" => Self::F64,
            _ => {
                let what = format!("an array of type `{}`", show(word));
                return Err(
                    scanner.unsupported(what, "arrays of whole numbers, float and double can be read")
                );
            }
        })
    }

    pub(super) const fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64)
    }

    const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Returns a value read from text, rounded to the precision of the array type.
    fn round(self, value: f64) -> f64 {
        if self == Self::F32 { f64::from(value as f32) } else { value }
    }

    /// Passes each number of big-endian `bytes` on, whole ones as both kinds.
    fn decode(self, bytes: &[u8], mut each: impl FnMut(i64, f64)) {
        macro_rules! decode {
            ($type:ty, $integer:expr) => {
                bytes.as_chunks().0.iter().for_each(|&chunk| {
                    let value = <$type>::from_be_bytes(chunk);
                    each($integer(value), value as f64);
                })
            };
        }
        match self {
            Self::I8 => decode!(i8, i64::from),
            Self::U8 => decode!(u8, i64::from),
            Self::I16 => decode!(i16, i64::from),
            Self::U16 => decode!(u16, i64::from),
            Self::I32 => decode!(i32, i64::from),
            Self::U32 => decode!(u32, i64::from),
            Self::I64 => decode!(i64, |value: i64| value),
            Self::U64 => decode!(u64, |value: u64| i64::try_from(value).unwrap_or(i64::MAX)),
            Self::F32 => decode!(f32, |_| 0),
            Self::F64 => decode!(f64, |_| 0),
        }
    }

    /// The bytes of `n` numbers, which begin on the next line.
    fn block<'a>(self, scanner: &mut Scanner<'a>, n: usize, what: &str) -> Result<&'a [u8], MeshError> {
        scanner.rest_of_line();
        scanner.announce(n, what, self.size())?;
        scanner.take(n * self.size(), what)
    }

    /// Reads `n` numbers.
    pub(super) fn reals(
        self,
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
        n: usize,
        what: &str,
    ) -> Result<Vec<f64>, MeshError> {
        if encoding == Encoding::Ascii {
            scanner.announce(n, what, 2)?;
            let mut values = Vec::with_capacity(n);
            for _ in 0..n {
                values.push(self.round(scanner.real(what)?));
            }
            return Ok(values);
        }
        let bytes = self.block(scanner, n, what)?;
        let mut values = Vec::with_capacity(n);
        self.decode(bytes, |_, value| values.push(value));
        Ok(values)
    }

    /// Reads `n` points; text must hold finite numbers.
    pub(super) fn points(
        self,
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
        n: usize,
    ) -> Result<Vec<[f64; 3]>, MeshError> {
        if encoding == Encoding::Ascii {
            scanner.announce(n, "points", 6)?;
            let mut points = Vec::with_capacity(n);
            for _ in 0..n {
                let mut point = [0.0; 3];
                for x in &mut point {
                    *x = self.round(scanner.coordinate()?);
                }
                points.push(point);
            }
            return Ok(points);
        }
        scanner.announce(n, "points", 3 * self.size())?;
        let bytes = self.block(scanner, 3 * n, "points")?;
        let mut points = Vec::with_capacity(n);
        for bytes in bytes.chunks_exact(3 * self.size()) {
            let (mut point, mut axis) = ([0.0; 3], 0);
            self.decode(bytes, |_, value| {
                point[axis] = value;
                axis += 1;
            });
            points.push(point);
        }
        Ok(points)
    }

    /// Reads `n` whole numbers.
    pub(super) fn integers(
        self,
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
        n: usize,
        what: &str,
    ) -> Result<Vec<i64>, MeshError> {
        if !self.is_integer() {
            return Err(scanner.error(format!("{what} should be whole numbers, not of a floating type")));
        }
        if encoding == Encoding::Ascii {
            scanner.announce(n, what, 2)?;
            let mut values = Vec::with_capacity(n);
            for _ in 0..n {
                values.push(scanner.integer(what)?);
            }
            return Ok(values);
        }
        let bytes = self.block(scanner, n, what)?;
        let mut values = Vec::with_capacity(n);
        self.decode(bytes, |value, _| values.push(value));
        Ok(values)
    }
}
