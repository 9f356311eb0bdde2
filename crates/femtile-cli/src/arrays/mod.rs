//! Arrays in the files of NumPy: `.npy`, and `.npz`, which is a ZIP archive of them.

#[cfg(test)]
mod fuzz;
mod npy;
mod zip;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

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
    /// Whether the first axis is the contiguous one.
    pub is_fortran: bool,
    pub values: Values,
}

/// An array of any type to be written.
pub struct Output<'a> {
    pub shape: &'a [usize],
    pub is_fortran: bool,
    /// NumPy's name of the type, such as `f8`.
    pub dtype: &'static str,
    /// The numbers as the machine holds them.
    pub bytes: &'a [u8],
}

/// Why an array could not be read.
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
        let place = path.display().to_string();
        let io = |source| ArrayError::io(&place, source);
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?;
        npy::read(BufReader::new(file), size.is_file().then_some(size.len()), &place)
    }

    /// Returns the numbers in double precision.
    pub fn into_f64(self) -> Vec<f64> {
        match self.values {
            Values::F32(values) => values.into_iter().map(f64::from).collect(),
            Values::F64(values) => values,
        }
    }

    /// Strides in entries.
    pub fn strides(&self) -> Vec<usize> {
        strides(&self.shape, self.is_fortran)
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
