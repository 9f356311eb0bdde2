//! Content with its checksum at the end.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use super::CheckpointError;

/// Bytes that pass through, and their sum.
struct Summed<'a, S: ?Sized> {
    stream: &'a mut S,
    sum: Sha256,
}

impl<W: Write + ?Sized> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.stream.write(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<R: Read + ?Sized> Read for Summed<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }
}

/// Writes the output of `content`, and its SHA-256.
///
/// # Errors
/// [`CheckpointError::Io`], and those of `content`.
pub fn write_sealed(
    to: &mut impl Write,
    content: impl FnOnce(&mut dyn Write) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    let mut summed = Summed { stream: to, sum: Sha256::new() };
    content(&mut summed)?;
    let sum = summed.sum.finalize();
    Ok(to.write_all(&sum)?)
}

/// Reads `content`, and the SHA-256 after it.
///
/// # Errors
/// [`CheckpointError::Damaged`] if the sum does not match, and those of `content`.
pub fn read_sealed<C>(
    from: &mut impl Read,
    content: impl FnOnce(&mut dyn Read) -> Result<C, CheckpointError>,
) -> Result<C, CheckpointError> {
    let mut summed = Summed { stream: from, sum: Sha256::new() };
    let found = content(&mut summed)?;
    let sum = summed.sum.finalize();
    let mut expected = [0; 32];
    from.read_exact(&mut expected).map_err(|_| CheckpointError::Format("it ends too early"))?;
    if sum[..] == expected { Ok(found) } else { Err(CheckpointError::Damaged) }
}
