//! Collections of files by time, for ParaView.

use std::path::Path;

use super::write_atomically;
use crate::MeshError;

/// Writes a collection: for each time a file, relative to the folder of the collection; it appears when it is complete.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub fn write(path: &Path, frames: &[(f64, String)]) -> Result<(), MeshError> {
    write_atomically(path, |out| {
        writeln!(out, "<?xml version=\"1.0\"?>")?;
        writeln!(out, "<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">")?;
        writeln!(out, "  <Collection>")?;
        for (time, file) in frames {
            writeln!(out, "    {}", entry(*time, file))?;
        }
        writeln!(out, "  </Collection>")?;
        writeln!(out, "</VTKFile>")
    })
}

/// Returns whether the text of a collection that [`write()`] has written has this file at this time.
pub fn lists(text: &str, time: f64, file: &str) -> bool {
    text.contains(&entry(time, file))
}

fn entry(time: f64, file: &str) -> String {
    format!("<DataSet timestep=\"{time:?}\" part=\"0\" file=\"{file}\"/>")
}
