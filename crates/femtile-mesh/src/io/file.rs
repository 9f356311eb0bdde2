use std::path::Path;

use crate::MeshError;

/// The bytes of a mesh file.
pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>, MeshError> {
    std::fs::read(path).map_err(|source| MeshError::Io { path: path.into(), action: "read", source })
}
