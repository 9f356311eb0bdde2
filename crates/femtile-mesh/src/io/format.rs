//! Selects the reader or writer by the file name.

use std::path::Path;

use super::file::bytes_of;
use super::{abaqus, carp, freefem, gmsh, medit, mfem, tetgen, ucd, vtk, vtu};
use crate::{Mesh, MeshError, Place};

/// Reads a mesh file. Its extension determines the format; if formats share an extension, its first bytes do.
///
/// # Errors
/// [`MeshError::Unsupported`] for an unsupported extension, with the list of supported ones; else the errors
/// of the format.
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    match extension(path).as_str() {
        "pts" | "elem" | "lon" => carp::read(path),
        extension @ ("inp" | "mesh" | "msh") => read_by_content(path, extension),
        "node" | "ele" => tetgen::read(path),
        "vtk" => vtk::read(path),
        "vtu" => vtu::read(path),
        "pvtu" => vtu::read_pieces(path),
        _ if carp::find(path).is_some() => carp::read(path),
        "geo" | "geo_unrolled" | "brep" | "step" | "stp" | "iges" | "igs" => Err(geometry(path)),
        _ => Err(unknown(
            path,
            "read",
            ".inp (Abaqus, UCD), .node/.ele, .mesh (MEDIT, MFEM), .msh (Gmsh, FreeFEM), .pts/.elem (openCARP), .vtk, \
             .vtu, .pvtu",
        )),
    }
}

/// Reads a `.vtu`, `.pvtu` or `.vtk` file as [`read()`] does, with the tags of cells from the cell array of this name.
///
/// # Errors
/// [`MeshError::Invalid`] about `tags` if the file has no such array, or has another format; else those of
/// [`read()`].
pub fn read_tagged(path: &Path, array: &str) -> Result<Mesh, MeshError> {
    match extension(path).as_str() {
        "vtk" => vtk::parse_tagged(path, &bytes_of(path)?, array),
        "vtu" => vtu::parse_tagged(path, &bytes_of(path)?, array),
        "pvtu" => vtu::read_pieces_tagged(path, array),
        _ => {
            let message =
                format!("{}: arrays give the tags of .pvtu, .vtu and .vtk files alone", path.display());
            Err(MeshError::Invalid { field: "tags", message })
        }
    }
}

/// Reads a file whose first bytes tell the format: several programs write `.inp`, `.mesh` and `.msh`.
fn read_by_content(path: &Path, extension: &str) -> Result<Mesh, MeshError> {
    let bytes = bytes_of(path)?;
    match bytes.trim_ascii_start() {
        _ if extension == "inp" && ucd::is_ucd(&bytes) => ucd::parse(path, &bytes),
        _ if extension == "inp" => abaqus::parse_with_included(path, &bytes),
        [b'$', ..] => gmsh::parse(path, &bytes),
        // Meshes that CalculiX's cgx writes.
        [b'*', ..] => abaqus::parse_with_included(path, &bytes),
        _ if mfem::is_mfem(&bytes) => mfem::parse(path, &bytes),
        _ if extension == "mesh" => medit::parse(path, &bytes),
        _ if freefem::is_freefem(&bytes) => freefem::parse(path, &bytes),
        _ => gmsh::parse(path, &bytes),
    }
}

/// Writes a mesh file atomically; its extension determines the format.
///
/// # Errors
/// [`MeshError::Unsupported`] for an unsupported extension or a mesh that the format cannot represent,
/// [`MeshError::Io`] when the file cannot be written.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    match extension(path).as_str() {
        "mesh" => medit::write(path, mesh),
        "msh" => gmsh::write(path, mesh),
        "node" | "ele" => tetgen::write(path, mesh),
        "pts" | "elem" | "lon" => carp::write(path, mesh),
        "vtu" => write_vtu(path, mesh, false),
        _ => Err(unknown(
            path,
            "written",
            ".node/.ele, .mesh (MEDIT), .msh (Gmsh), .pts/.elem (openCARP), .vtu",
        )),
    }
}

/// Writes as [`write()`] does, with zlib compression.
///
/// # Errors
/// [`MeshError::Unsupported`] for other files than `.vtu`; else those of [`write()`].
pub fn write_compressed(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    if extension(path) == "vtu" {
        return write_vtu(path, mesh, true);
    }
    Err(MeshError::Unsupported {
        path: path.into(),
        place: Place::Whole,
        what: "compressing a file of this format".into(),
        advice: "write .vtu, or without compression".into(),
    })
}

/// Writes as [`write()`] does, with numbers in binary.
///
/// # Errors
/// [`MeshError::Unsupported`] for other files than `.msh`; else those of [`write()`].
pub fn write_binary(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    if extension(path) == "msh" {
        return gmsh::write_binary(path, mesh);
    }
    Err(MeshError::Unsupported {
        path: path.into(),
        place: Place::Whole,
        what: "an option for binary numbers in a file of this format".into(),
        advice: "write .msh, or without the option: .vtu is binary, others are text".into(),
    })
}

fn write_vtu(path: &Path, mesh: &Mesh, compress: bool) -> Result<(), MeshError> {
    let facets = !mesh.facets.tags.is_empty();
    let compression = if compress { vtu::Compression::Zlib } else { vtu::Compression::None };
    let options = vtu::WriteOptions { compression, facets, ..Default::default() };
    vtu::write_with(path, mesh, &[], &[], options).map(drop)
}

/// Refuses curved cells in a format without them.
pub(super) fn refuse_curved(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    if mesh.curved.is_none() {
        return Ok(());
    }
    Err(MeshError::Unsupported {
        path: path.into(),
        place: Place::Whole,
        what: "writing curved cells in this format".into(),
        advice: "write .vtu".into(),
    })
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// Says how to mesh a geometry.
fn geometry(path: &Path) -> MeshError {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let mesh = path.with_extension("msh");
    MeshError::Unsupported {
        path: path.into(),
        place: Place::Whole,
        what: "a geometry, which has no cells,".into(),
        advice: format!(
            "`gmsh -3 -format msh41 {file}` (of a plane one `-2`) writes its mesh to `{}`",
            mesh.file_name().unwrap_or_default().to_string_lossy()
        ),
    }
}

fn unknown(path: &Path, action: &str, extensions: &str) -> MeshError {
    MeshError::Unsupported {
        path: path.into(),
        place: Place::Whole,
        what: match extension(path).as_str() {
            "" => "a file name without extension".into(),
            extension => format!("the extension `.{extension}`"),
        },
        advice: format!("meshes are {action} as {extensions}"),
    }
}
