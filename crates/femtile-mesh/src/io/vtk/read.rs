use std::path::Path;

use super::array::{Encoding, Number};
use super::attributes::{Attributes, read_field, skip_metadata};
use super::cells::Cells;
use crate::io::collect::{insert_fields, pick};
use crate::io::file::bytes_of;
use crate::io::number;
use crate::io::scanner::{Scanner, show};
use crate::io::vtk_arrays::{Ghosts, TagArray, note_of_ghosts};
use crate::io::vtk_cell::{VtkCells, vtk_cell};
use crate::{Mesh, MeshError, Place};

/// Reads a legacy VTK file of an unstructured grid, ASCII or binary, of versions 2 to 5.1.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of a legacy VTK file; `path` is used in messages only.
///
/// Arrays of points and cells become fields; whole numbers under a name such as `region` or `mat_id`
/// become tags. Cells that `vtkGhostType` marks as those of another piece or as hidden are left out.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line, or with the byte after binary data.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    parse_with(path, bytes, TagArray(None))
}

/// Reads as [`parse`] does, with the tags of cells from the cell array of this name.
///
/// # Errors
/// [`MeshError::Invalid`] about `tags` if there is no such array; else those of [`parse`].
pub fn parse_tagged(path: &Path, bytes: &[u8], array: &str) -> Result<Mesh, MeshError> {
    parse_with(path, bytes, TagArray(Some(array)))
}

fn parse_with(path: &Path, bytes: &[u8], tag_array: TagArray<'_>) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes);
    let (encoding, is_old) = begin(&mut scanner)?;
    let mut file = File { is_old, ..File::default() };
    file.cell_data.tag_array = Some(tag_array);
    while let Some(word) = scanner.word() {
        if !file.read_section(&word.to_ascii_uppercase(), &mut scanner, encoding)? {
            return Err(scanner.error(format!("`{}` stands where a keyword should", show(word))));
        }
    }
    file.into_mesh(path, tag_array)
}

/// Reads the first three lines: the encoding, and whether the version is one from before 5.1.
fn begin(scanner: &mut Scanner<'_>) -> Result<(Encoding, bool), MeshError> {
    let Some(version) = scanner.rest_of_line().strip_prefix(b"# vtk DataFile Version") else {
        return Err(scanner.error("a VTK file begins with `# vtk DataFile Version`"));
    };
    let is_old = number::real(version.trim_ascii()).is_some_and(|version| version < 5.1);
    scanner.rest_of_line();
    let word = scanner.expect("`ASCII` or `BINARY`")?;
    match &*word.to_ascii_uppercase() {
        b"ASCII" => Ok((Encoding::Ascii, is_old)),
        b"BINARY" => Ok((Encoding::Binary, is_old)),
        _ => Err(scanner.error(format!("`ASCII` or `BINARY` should stand here, not `{}`", show(word)))),
    }
}

#[derive(Default)]
struct File<'a> {
    /// True if Lagrange hexahedra are numbered as before VTK 9.
    is_old: bool,
    points: Option<Vec<[f64; 3]>>,
    cells: Option<Cells>,
    types: Option<Vec<u8>>,
    point_data: Attributes<'a>,
    cell_data: Attributes<'a>,
    /// Owner of the following arrays: true for cells, false for points, none before either section.
    cells_have_data: Option<bool>,
}

impl File<'_> {
    /// Reads the section of a keyword in upper case; false when it is none.
    fn read_section(
        &mut self,
        word: &[u8],
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
    ) -> Result<bool, MeshError> {
        match word {
            b"DATASET" => {
                let dataset = scanner.expect("a kind of data set")?;
                if !dataset.eq_ignore_ascii_case(b"UNSTRUCTURED_GRID") {
                    let what = format!("a data set `{}`", show(dataset));
                    return Err(scanner.unsupported(what, "`UNSTRUCTURED_GRID` can be read"));
                }
            }
            b"POINTS" => {
                once(word, self.points.is_some(), scanner)?;
                let n = scanner.integer("the number of points")?;
                self.points = Some(Number::parse(scanner)?.points(scanner, encoding, n)?);
            }
            b"CELLS" => {
                once(word, self.cells.is_some(), scanner)?;
                self.cells = Some(Cells::read(scanner, encoding)?);
            }
            b"CELL_TYPES" => {
                once(word, self.types.is_some(), scanner)?;
                self.types = Some(self.read_types(scanner, encoding)?);
            }
            b"METADATA" => skip_metadata(scanner),
            b"CELL_DATA" | b"POINT_DATA" => {
                let of_cells = word == b"CELL_DATA";
                let (expected, before) = match of_cells {
                    true => (self.types.as_ref().map(Vec::len), "CELL_TYPES"),
                    false => (self.points.as_ref().map(Vec::len), "POINTS"),
                };
                let expected = expected.ok_or_else(|| {
                    scanner.error(format!("the section `{}` should follow `{before}`", show(word)))
                })?;
                let n: usize = scanner.integer("the number of entries")?;
                if n != expected {
                    let what = if of_cells { "cells" } else { "points" };
                    return Err(scanner.error(format!("data of {n} {what}, but there are {expected}")));
                }
                self.cells_have_data = Some(of_cells);
                if of_cells { self.cell_data.n_entries = n } else { self.point_data.n_entries = n }
            }
            word => {
                return match self.cells_have_data {
                    None if word == b"FIELD" => read_field(scanner, encoding, None).map(|()| true),
                    None => Ok(false),
                    Some(true) => self.cell_data.read(word, scanner, encoding),
                    Some(false) => self.point_data.read(word, scanner, encoding),
                };
            }
        }
        Ok(true)
    }

    fn read_types(&self, scanner: &mut Scanner<'_>, encoding: Encoding) -> Result<Vec<u8>, MeshError> {
        let n: usize = scanner.integer("the number of cells")?;
        let cells = self.cells.as_ref();
        let cells = cells.ok_or_else(|| scanner.error("the section `CELL_TYPES` should follow `CELLS`"))?;
        let n_cells = cells.len();
        if n != n_cells {
            return Err(scanner.error(format!("types of {n} cells, but there are {n_cells} cells")));
        }
        let place = scanner.place();
        let types = Number::I32.integers(scanner, encoding, n, "types of cells")?;
        let checked = types.into_iter().map(|vtk_type| {
            vtk_cell(scanner.path(), place, vtk_type)?;
            Ok(vtk_type as u8)
        });
        checked.collect()
    }

    fn into_mesh(mut self, path: &Path, tag_array: TagArray<'_>) -> Result<Mesh, MeshError> {
        let parse = |message: String| MeshError::Parse { path: path.into(), place: Place::Whole, message };
        let cells = self.cells.ok_or_else(|| parse("the file has no `CELLS`".into()))?;
        let types = self.types.ok_or_else(|| parse("the file has no `CELL_TYPES`".into()))?;
        let points = self.points.ok_or_else(|| parse("the file has no `POINTS`".into()))?;
        let mut found = VtkCells::new(self.is_old);
        tag_array.refuse_missing(self.cell_data.tags.is_some(), &self.cell_data.fields)?;
        let tags = self.cell_data.tags.map(|(_, tags)| tags);
        let ghosts = Ghosts::take(&mut self.cell_data.fields, &mut self.point_data.fields);
        let (has_ghosts, mut n_ghosts) = (!ghosts.is_empty(), 0);
        let n_points = points.len();
        let mut of_cell = Vec::new();
        let added = cells.for_each(|number, nodes| {
            let cell = vtk_cell(path, Place::Whole, i64::from(types[number])).map_err(Problem::Mesh)?;
            let Some(cell) = cell else {
                found.collector.skip();
                return Ok(());
            };
            if let Some(point) = nodes.iter().find(|&&point| !(0..n_points as i64).contains(&point)) {
                let message = format!("cell {number} uses point {point}, but there are {n_points} points");
                return Err(Problem::Message(message));
            }
            if has_ghosts && ghosts.has(number, nodes.iter().map(|&point| point as usize)) {
                n_ghosts += 1;
                found.collector.skip();
                return Ok(());
            }
            of_cell.clear();
            of_cell.extend(nodes.iter().map(|&point| point as u32));
            let tag = tags.as_ref().map_or(0, |tags| tags[number]);
            found.push(number, cell, &of_cell, &points, tag).map_err(Problem::Message)
        });
        added.map_err(|problem| match problem {
            Problem::Message(message) => parse(message),
            Problem::Mesh(error) => error,
        })?;
        drop(cells);
        let collected = found.collector.into_mesh(path, points, tags.is_some())?;
        let mut mesh = collected.mesh;
        mesh.notes.extend(self.cell_data.notes);
        mesh.notes.extend(note_of_ghosts(n_ghosts));
        insert_fields(&mut mesh, &collected.entries, self.cell_data.fields);
        for (name, mut field) in self.point_data.fields {
            if let Some(nodes) = &collected.nodes {
                pick(nodes, &mut field);
            }
            mesh.node_fields.insert(name, field);
        }
        Ok(mesh)
    }
}

/// Refuses a repeated section.
fn once(section: &[u8], is_there: bool, scanner: &Scanner<'_>) -> Result<(), MeshError> {
    if is_there { Err(scanner.error(format!("a second section `{}`", show(section)))) } else { Ok(()) }
}

enum Problem {
    Message(String),
    Mesh(MeshError),
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}
