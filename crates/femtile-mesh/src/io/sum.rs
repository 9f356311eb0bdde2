//! Checksums of files, taken while they are written.
//!
//! The SHA-256 of a VTU file is taken from the pieces that are written, by another thread.

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::path::Path;

use femtile_device::parallel;
use sha2::{Digest, Sha256};

use crate::MeshError;
use crate::interrupt::Interrupt;

/// Size and SHA-256 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSum {
    /// Bytes of the file.
    pub n_bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

impl FileSum {
    /// Reads a file and returns its sum.
    ///
    /// # Errors
    /// [`MeshError::Io`] with the path.
    pub fn of(path: &Path) -> std::result::Result<Self, MeshError> {
        let read = || {
            let (mut file, mut part) = (File::open(path)?, vec![0; 1 << 18]);
            let mut sum = Sum::default();
            loop {
                match file.read(&mut part)? {
                    0 => return Ok(sum.finish()),
                    n => sum.add(&part[..n]),
                }
            }
        };
        read().map_err(|source| MeshError::Io { path: path.into(), action: "read", source })
    }

    /// Returns the SHA-256 in hexadecimal digits.
    pub fn digits(&self) -> String {
        self.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The sum of bytes up to some place of a file.
#[derive(Debug, Default)]
pub(super) struct Sum {
    n_bytes: u64,
    state: Sha256,
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        self.state.update(bytes);
    }

    /// Returns the sum of all bytes.
    pub(super) fn finish(self) -> FileSum {
        FileSum { n_bytes: self.n_bytes, sha256: self.state.finalize().into() }
    }
}

/// A file that is written from its begin to its end, with its sum if one is wanted.
pub(super) struct Summed<'a> {
    file: &'a mut (dyn Write + Send),
    sum: Option<Sum>,
    /// Ends [`Summed::write_beside`] with an error.
    interrupt: Interrupt<'a>,
}

impl<'a> Summed<'a> {
    /// Creates a file with the sum of what was written so far, if a sum is requested.
    pub(super) fn new(file: &'a mut (dyn Write + Send), sum: Option<Sum>) -> Self {
        Self { file, sum, interrupt: Interrupt::NEVER }
    }

    /// The same, with an interrupt that makes further writing fail.
    pub(super) fn until(self, interrupt: Interrupt<'a>) -> Self {
        Self { interrupt, ..self }
    }

    /// Writes bytes; other threads take their sum and do other work at the same time.
    pub(super) fn write_beside(&mut self, bytes: &[u8], work: impl FnOnce() + Send) -> Result<()> {
        let Self { file, sum, interrupt } = self;
        if interrupt.is_set() {
            return Err(Error::other("no longer wanted"));
        }
        let add = || sum.iter_mut().for_each(|sum| sum.add(bytes));
        // The sum takes longest, so it is begun first.
        parallel::join(add, || parallel::join(|| file.write_all(bytes), work).0).1
    }

    /// Returns the sum of all that was written.
    pub(super) fn into_sum(self) -> Option<Sum> {
        self.sum
    }
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let n = self.file.write(bytes)?;
        self.sum.iter_mut().for_each(|sum| sum.add(&bytes[..n]));
        Ok(n)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_what_is_written_is_that_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for n in [0, 1, 63, 64, 1_000_003] {
            let bytes: Vec<u8> = (0..n).map(|i: usize| (i * i % 251) as u8).collect();
            let mut written = Vec::new();
            let mut out = Summed::new(&mut written, Some(Sum::default()));
            let (first, second) = bytes.split_at(n / 3);
            let mut worked = false;
            out.write_all(first).unwrap();
            out.write_beside(second, || worked = true).unwrap();
            let sum = out.into_sum().unwrap().finish();
            std::fs::write(&path, &bytes).unwrap();
            assert!(worked && written == bytes && sum == FileSum::of(&path).unwrap(), "{n}");
        }
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-4, example of one block.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let sum = FileSum::of(&path).unwrap();
        assert_eq!((sum.n_bytes, sum.digits().as_str()), (3, abc));
    }
}
