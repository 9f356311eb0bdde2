//! Files that appear under their name only when they are complete.

use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// Writes a file through a temporary one in the same folder, which then takes the name.
///
/// # Errors
/// Errors of the operating system; an older file of that name is then unchanged.
pub(super) fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    // A device or a pipe is written to; renaming a file over it would replace it.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut out = BufWriter::new(std::fs::OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".femtile-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
