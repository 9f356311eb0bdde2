//! Files that appear under their name only when they are complete.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::MeshError;

/// Writes a file through a temporary one in the same folder, which then takes the name.
///
/// What stood under the name before stays until then, also when writing fails.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> Result<(), MeshError> {
    let result = || {
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
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    result().map_err(|source| MeshError::Io { path: path.into(), action: "write", source })
}
