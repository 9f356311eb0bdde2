use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::io::file::bytes_of;
use crate::{MeshError, Place};

/// The content of the files of a mesh.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Nodes.
    pub pts: Vec<u8>,
    /// Cells.
    pub elem: Vec<u8>,
    /// Fibres, if there are any.
    pub lon: Option<Vec<u8>>,
    /// Surfaces by name.
    pub surfaces: Vec<(String, Vec<u8>)>,
}

/// Returns the name of a mesh without extension. `path` is its `.pts`, `.elem` or `.lon` file, or has no
/// extension. None if `path` has no such extension and there is no `.elem` file beside it.
pub fn find(path: &Path) -> Option<PathBuf> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "pts" | "elem" | "lon" => Some(path.with_extension("")),
        _ => with(path, "elem").is_file().then(|| path.into()),
    }
}

/// Returns the path of a file of the mesh `base`, whose name may itself have dots.
pub(super) fn with(base: &Path, extension: &str) -> PathBuf {
    let mut name = OsString::from(base);
    name.push(".");
    name.push(extension);
    name.into()
}

/// Reads the files of the mesh `base`.
pub(super) fn files(base: &Path) -> Result<Files, MeshError> {
    let lon = with(base, "lon");
    let surfaces = surfaces(base)?.into_iter().map(|name| {
        let bytes = bytes_of(&with(base, &format!("{name}.surf")))?;
        Ok((name, bytes))
    });
    Ok(Files {
        pts: bytes_of(&with(base, "pts"))?,
        elem: bytes_of(&with(base, "elem"))?,
        lon: if lon.is_file() { Some(bytes_of(&lon)?) } else { None },
        surfaces: surfaces.collect::<Result<_, MeshError>>()?,
    })
}

/// Returns the names of the surfaces `base.NAME.surf`, sorted.
pub(super) fn surfaces(base: &Path) -> Result<Vec<String>, MeshError> {
    let folder = match base.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let failed = |source| MeshError::Io { path: folder.into(), action: "read", source };
    let Some(base_name) = base.file_name() else {
        let message = "the name of a mesh is needed".into();
        return Err(MeshError::Parse { path: base.into(), place: Place::Whole, message });
    };
    let begin = format!("{}.", base_name.to_string_lossy());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix(&begin)) else { continue };
        names.extend(name.strip_suffix(".surf").filter(|name| !name.is_empty()).map(String::from));
    }
    names.sort_unstable();
    Ok(names)
}
