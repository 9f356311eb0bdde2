//! Arrays in the files of NumPy: `.npy`, and `.npz`, which is a ZIP archive of them.

#[cfg(test)]
mod fuzz;
mod npy;
mod zip;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

pub use npy::Announced;
pub use zip::{Archive, write as write_archive};

/// Numbers of either precision.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// An array as a file holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    /// The first axis is contiguous.
    pub is_fortran: bool,
    pub values: Values,
}

/// An array of any type to be written.
pub struct Output<'a> {
    pub shape: &'a [usize],
    pub is_fortran: bool,
    /// NumPy's name of the type, such as `f8`.
    pub dtype: &'static str,
    /// The numbers in native byte order.
    pub bytes: &'a [u8],
}

/// Errors of reading arrays.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    #[error("{place}: {source}")]
    Io { place: String, source: std::io::Error },
    #[error("{place}: {message}")]
    Format { place: String, message: String },
    #[error("{place} holds {dtype}, and systems are solved in float32 or float64: {advice}")]
    Type { place: String, dtype: String, advice: String },
}

impl ArrayError {
    fn format(place: &str, message: impl Into<String>) -> Self {
        Self::Format { place: place.into(), message: message.into() }
    }

    /// An error of reading; a file that ends early is one of its format.
    fn io(place: &str, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::format(place, "the file ends early"),
            _ => Self::Io { place: place.into(), source },
        }
    }
}

impl Array {
    /// An array without axes.
    pub fn scalar(value: f64) -> Self {
        Self { shape: Vec::new(), is_fortran: false, values: Values::F64(vec![value]) }
    }

    /// Reads a `.npy` file.
    pub fn read(path: &Path) -> Result<Self, ArrayError> {
        Opened::new(path)?.read()
    }

    /// Returns the numbers in double precision.
    pub fn into_f64(self) -> Vec<f64> {
        match self.values {
            Values::F32(values) => values.into_iter().map(f64::from).collect(),
            Values::F64(values) => values,
        }
    }
}

/// An array whose header has been read.
pub struct Opened {
    pub announced: Announced,
    content: Content,
}

/// The unread part of an array.
enum Content {
    /// All of it.
    Array(Array),
    /// The header of a file.
    File(BufReader<File>, String),
}

impl Opened {
    /// A number without axes.
    pub fn scalar(value: f64) -> Self {
        Self::of_array(Array::scalar(value))
    }

    /// Opens a `.npy` file and reads its header; all of it where it is a pipe, as who writes several of them may wait.
    pub fn new(path: &Path) -> Result<Self, ArrayError> {
        let place = path.display().to_string();
        let io = |source| ArrayError::io(&place, source);
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?;
        let mut file = BufReader::new(file);
        if !size.is_file() {
            return Ok(Self::of_array(npy::read(file, None, &place)?));
        }
        let announced = Announced::read(&mut file, Some(size.len()), &place)?;
        Ok(Self { announced, content: Content::File(file, place) })
    }

    fn of_array(array: Array) -> Self {
        let size = if matches!(array.values, Values::F32(_)) { 4 } else { 8 };
        let announced = Announced::of_array(&array.shape, array.is_fortran, size);
        Self { announced, content: Content::Array(array) }
    }

    /// Reads what is left.
    pub fn read(self) -> Result<Array, ArrayError> {
        match self.content {
            Content::Array(array) => Ok(array),
            Content::File(file, place) => self.announced.read_numbers(file, &place),
        }
    }
}

/// Strides of an array without gaps.
pub fn strides(shape: &[usize], is_fortran: bool) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    let mut next = 1;
    for k in 0..shape.len() {
        let axis = if is_fortran { k } else { shape.len() - 1 - k };
        strides[axis] = next;
        next *= shape[axis].max(1);
    }
    strides
}

impl Output<'_> {
    /// Writes a `.npy` file to a stream.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&self.header())?;
        out.write_all(self.bytes)
    }

    fn header(&self) -> Vec<u8> {
        let order = match self.dtype {
            "b1" => '|',
            _ if cfg!(target_endian = "big") => '>',
            _ => '<',
        };
        npy::header(&format!("{order}{}", self.dtype), self.is_fortran, self.shape)
    }
}
