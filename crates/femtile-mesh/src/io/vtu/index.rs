//! `.pvtu`: a file that names the files of the pieces of a mesh.

use std::collections::HashSet;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::array::Arrays;
use super::document::{Problem, attribute, document};
use super::read::{Grid, note_of_later_steps};
use crate::io::file::{bytes_of, regular_file};
use crate::io::name::printable;
use crate::io::vtk_arrays::TagArray;
use crate::{Mesh, MeshError, Place};

/// Reads the pieces that a `.pvtu` file names, relative to its folder, as one mesh.
///
/// Points at the same place are merged if no piece has two of them there. Cells that `vtkGhostType` marks as
/// cells of another piece or as hidden, and cells of an earlier piece, are left out.
///
/// # Errors
/// [`MeshError::Io`] when a file cannot be read; [`MeshError::Parse`] and [`MeshError::Unsupported`] with the byte of the file
/// in which the trouble begins.
pub fn read_pieces(path: &Path) -> Result<Mesh, MeshError> {
    read_pieces_with(path, TagArray(None))
}

/// Reads as [`read_pieces`] does, with the tags of cells from the cell array of this name.
///
/// # Errors
/// [`MeshError::Invalid`] about `tags` if there is no such array; else those of [`read_pieces`].
pub fn read_pieces_tagged(path: &Path, array: &str) -> Result<Mesh, MeshError> {
    read_pieces_with(path, TagArray(Some(array)))
}

fn read_pieces_with(path: &Path, tag_array: TagArray<'_>) -> Result<Mesh, MeshError> {
    let parse = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
    let names = names(&bytes_of(path)?).map_err(parse)?;
    let mut grid = Grid::new(tag_array);
    let mut found = HashSet::new();
    let (mut is_old, mut has_later_steps) = (false, false);
    for (byte, name) in names {
        let file = path.with_file_name(&name);
        let piece = regular_file(&file)
            .map_err(|error| parse((byte, format!("the piece `{name}` cannot be read: {error}"))))?;
        if !found.insert(piece) {
            return Err(parse((byte, format!("the piece `{name}` is named twice"))));
        }
        let bytes = bytes_of(&file)?;
        let of_piece =
            |(byte, message)| MeshError::Parse { path: file.clone(), place: Place::Byte(byte), message };
        let document = document(&bytes).map_err(of_piece)?;
        is_old |= document.version < (2, 1);
        has_later_steps |= document.has_later_steps;
        let mut arrays = Arrays::new(&document);
        for piece in &document.pieces {
            grid.begins.push([grid.points.len(), grid.types.len()]);
            grid.append(&file, &mut arrays, piece)?;
        }
    }
    let mut mesh = grid.into_mesh(path, is_old)?;
    mesh.notes.extend(has_later_steps.then(note_of_later_steps));
    Ok(mesh)
}

/// Returns the names of the files of the pieces, with their byte positions.
fn names(bytes: &[u8]) -> Result<Vec<(usize, String)>, Problem> {
    let mut reader = Reader::from_reader(bytes);
    let mut names = Vec::new();
    loop {
        let place = reader.buffer_position() as usize;
        let event = reader
            .read_event()
            .map_err(|e| (reader.error_position() as usize, printable(&e.to_string()).into_owned()))?;
        let element = match event {
            Event::Eof => return Ok(names),
            Event::Start(element) | Event::Empty(element) => element,
            _ => continue,
        };
        match element.name().as_ref() {
            "VTKFile" => {
                let kind = attribute(&element, "type", place)?;
                if let Some(kind) = kind.filter(|kind| kind != "PUnstructuredGrid") {
                    let message = format!("the file holds a {kind}; only a PUnstructuredGrid can be read");
                    return Err((place, message));
                }
            }
            "Piece" => {
                let source = attribute(&element, "Source", place)?;
                let source = source.ok_or_else(|| (place, "a piece names no file by `Source`".into()))?;
                names.push((place, source));
            }
            _ => {}
        }
    }
}
