use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};

use crate::MeshError;

/// Bytes that a thread reads at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Returns the bytes of a mesh file, read by all threads if it is large.
pub(super) fn bytes_of(path: &Path) -> std::result::Result<Vec<u8>, MeshError> {
    let read = || {
        let mut file = File::open(path)?;
        let found = file.metadata()?;
        let n = usize::try_from(found.len()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if found.is_file() && n > BLOCK_BYTES {
            // Refused as an error where there is no room.
            Vec::<u8>::new().try_reserve_exact(n)?;
            bytes = read_blocks(&file, n)?;
            std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(n as u64))?;
        }
        // All of what is no file, and what another program has added in the meantime.
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|source| MeshError::Io { path: path.into(), action: "read", source })
}

/// Returns the canonical path of a file that another one names.
///
/// # Errors
/// Those of the file system, and one for a file that is not regular: a device or a pipe may have no end.
pub(super) fn regular_file(path: &Path) -> Result<PathBuf> {
    let found = std::fs::canonicalize(path)?;
    match std::fs::metadata(&found)?.is_file() {
        true => Ok(found),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    }
}

#[cfg(unix)]
fn read_blocks(file: &File, n: usize) -> Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; n];
    let read = |begin: usize, block: &mut [u8]| file.read_exact_at(block, begin as u64);
    femtile_device::parallel::map_chunks_mut(&mut bytes, BLOCK_BYTES, read)
        .into_iter()
        .collect::<Result<()>>()?;
    Ok(bytes)
}

#[cfg(not(unix))]
fn read_blocks(mut file: &File, n: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; n];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_length_are_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for n in [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES - 1] {
            let bytes: Vec<u8> = (0..n).map(|i| (i / 7 * i) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert!(bytes_of(&path).unwrap() == bytes, "{n}");
        }
        let error = bytes_of(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none: cannot read"), "{error}");
    }
}
