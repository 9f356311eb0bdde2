//! Files that appear under their name only when they are complete.
//!
//! A file is written under a temporary name in its folder and renamed, so a crash leaves the old file.

use std::fs::{File, FileType, OpenOptions};
use std::io::{BufWriter, Error, Result, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::unfinished::{PREFIX, hold, remove_stale};
use crate::MeshError;

/// Writes a file through a temporary file in the same folder, which is then renamed; returns the result of
/// `write`.
///
/// An existing file of that name stays until then, also if writing fails. Temporary files that killed programs
/// have left in the folder are removed. A pipe or a character device is written to in place.
///
/// # Errors
/// [`MeshError::Io`] with the path: the folder is missing or cannot be written to, the name is that of a folder, of a
/// pipe without a reader, of a socket or of a disk.
pub fn write_atomically<R>(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<R>,
) -> std::result::Result<R, MeshError> {
    let result = || {
        let mut file = PendingFile::create(path)?;
        let returned = write(file.out())?;
        file.commit()?;
        Ok(returned)
    };
    result().map_err(|source| MeshError::Io { path: path.into(), action: "write", source })
}

/// A file that takes its name when it is complete.
pub(super) struct PendingFile {
    path: PathBuf,
    out: Out,
}

enum Out {
    /// A pipe or a device. It is written in place, because renaming a file over it would replace it.
    Special(BufWriter<File>),
    Temporary(BufWriter<NamedTempFile>),
}

impl PendingFile {
    /// A file without content; one of this name stays as it is.
    pub(super) fn create(path: &Path) -> Result<Self> {
        if let Some(out) = special(path)? {
            return Ok(Self { path: path.into(), out: Out::Special(BufWriter::new(out)) });
        }
        // A link stays, and what it leads to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        let out = BufWriter::with_capacity(1 << 18, temporary(&path)?);
        Ok(Self { path, out: Out::Temporary(out) })
    }

    /// Returns the writer.
    pub(super) fn out(&mut self) -> &mut (dyn Write + Send) {
        match &mut self.out {
            Out::Special(out) => out,
            Out::Temporary(out) => out,
        }
    }

    /// Claims space for bytes that are written later, so that a disk that is too small is noticed now; if the
    /// file system cannot do so, it is noticed when they are written.
    pub(super) fn reserve(&mut self, n_bytes: usize) -> Result<()> {
        let Out::Temporary(out) = &mut self.out else {
            return Ok(());
        };
        out.flush()?;
        claim(out.get_ref().as_file(), n_bytes as u64)
    }

    /// Gives the file its name.
    pub(super) fn commit(self) -> Result<()> {
        match self.out {
            Out::Special(mut out) => out.flush(),
            Out::Temporary(out) => {
                let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                file.persist(&self.path).map_err(|e| e.error)?;
                Ok(())
            }
        }
    }
}

/// Claims space for bytes after the place of a file, without changing its length.
#[cfg(target_os = "linux")]
fn claim(mut file: &File, n_bytes: u64) -> Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    use std::io::Seek;
    let place = file.stream_position()?;
    match fallocate(file, FallocateFlags::KEEP_SIZE, place, n_bytes) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn claim(_file: &File, _n_bytes: u64) -> Result<()> {
    Ok(())
}

/// A temporary file beside `path`, locked while it is written.
fn temporary(path: &Path) -> Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Other ranks write into a staging folder, and locks of another machine may not be seen here.
    let is_staging =
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    if !is_staging {
        remove_stale(folder);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    loop {
        let file = builder.tempfile_in(folder)?;
        if hold(file.as_file(), file.path()) {
            return Ok(file);
        }
    }
}

/// The pipe or device of this name, ready to be written to; none if the name is free or that of a file.
fn special(path: &Path) -> Result<Option<File>> {
    match path.metadata() {
        Ok(found) if !found.is_file() => open_special(path, found.file_type()).map(Some),
        _ => Ok(None),
    }
}

#[cfg(unix)]
fn open_special(path: &Path, kind: FileType) -> Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let mut options = OpenOptions::new();
    options.write(true);
    if kind.is_fifo() {
        // Opening a pipe waits for a reader: see first, without waiting, that there is one.
        let probe = options.clone().custom_flags(libc::O_NONBLOCK).open(path);
        let _kept_until_opened = probe.map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => Error::other("it is a pipe that no program reads; start its reader first"),
            _ => error,
        })?;
        return options.open(path);
    }
    match kind.is_char_device() {
        true => options.open(path),
        false => Err(refusal(kind)),
    }
}

#[cfg(not(unix))]
fn open_special(_path: &Path, kind: FileType) -> Result<File> {
    Err(refusal(kind))
}

/// Returns the reason why nothing is written to something that is not a file.
pub(super) fn refusal(kind: FileType) -> Error {
    Error::other(match kind.is_dir() {
        true => "a folder has this name; choose another name, or move the folder away",
        false => "this name belongs to a pipe, a socket or a device; choose another name",
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    fn said(path: &Path) -> String {
        write_atomically(path, |out| out.write_all(b"new")).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_file_is_written_to_or_refused_and_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, socket, inner] = ["pipe", "socket", "inner"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::fs::create_dir(&inner).unwrap();
        assert!(said(&pipe).contains("a pipe that no program reads"), "{}", said(&pipe));
        assert!(said(&socket).contains("a socket"), "{}", said(&socket));
        assert!(said(&inner).contains("a folder has this name"), "{}", said(&inner));
        write_atomically(Path::new("/dev/null"), |out| out.write_all(b"new")).unwrap();

        let reader = Command::new("cat").arg(&pipe).stdout(std::process::Stdio::piped()).spawn().unwrap();
        while write_atomically(&pipe, |out| out.write_all(b"new")).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(reader.wait_with_output().unwrap().stdout, b"new");

        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomically(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
    }
}
