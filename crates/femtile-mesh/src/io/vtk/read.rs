use std::path::Path;

use super::array::{Encoding, Number};
use super::attributes::{Attributes, read_field, skip_metadata};
use super::cells::Cells;
use crate::io::collect::pick_in_place;
use crate::io::file::bytes_of;
use crate::io::number;
use crate::io::scanner::{Scanner, show};
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
/// become tags.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line, or with the byte after binary data.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes);
    let (encoding, is_old) = begin(&mut scanner)?;
    let mut file = File { is_old, ..File::default() };
    while let Some(word) = scanner.word() {
        file.read_section(word, &mut scanner, encoding)?;
    }
    file.into_mesh(path)
}

/// Reads the first three lines: the encoding, and whether the version is one from before 5.1.
fn begin(scanner: &mut Scanner<'_>) -> Result<(Encoding, bool), MeshError> {
    let Some(version) = scanner.rest_of_line().strip_prefix(b"# vtk DataFile Version") else {
        return Err(scanner.error("a VTK file begins with `# vtk DataFile Version`"));
    };
    let is_old = number::real(version.trim_ascii()).is_some_and(|version| version < 5.1);
    scanner.rest_of_line();
    match scanner.expect("`ASCII` or `BINARY`")? {
        b"ASCII" => Ok((Encoding::Ascii, is_old)),
        b"BINARY" => Ok((Encoding::Binary, is_old)),
        word => Err(scanner.error(format!("`ASCII` or `BINARY` should stand here, not `{}`", show(word)))),
    }
}

#[derive(Default)]
struct File {
    /// True if Lagrange hexahedra are numbered as before VTK 9.
    is_old: bool,
    points: Option<Vec<[f64; 3]>>,
    cells: Option<Cells>,
    types: Option<Vec<u8>>,
    point_data: Attributes,
    cell_data: Attributes,
    /// Owner of the following arrays: true for cells, false for points, none before either section.
    cells_have_data: Option<bool>,
}

impl File {
    fn read_section(
        &mut self,
        word: &[u8],
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
    ) -> Result<(), MeshError> {
        match word {
            b"DATASET" => {
                let dataset = scanner.expect("a kind of data set")?;
                if dataset != b"UNSTRUCTURED_GRID" {
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
                let known = match self.cells_have_data {
                    None if word == b"FIELD" => read_field(scanner, encoding, None).map(|()| true)?,
                    None => false,
                    Some(true) => self.cell_data.read(word, scanner, encoding)?,
                    Some(false) => self.point_data.read(word, scanner, encoding)?,
                };
                if !known {
                    return Err(scanner.error(format!("`{}` stands where a keyword should", show(word))));
                }
            }
        }
        Ok(())
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

    fn into_mesh(self, path: &Path) -> Result<Mesh, MeshError> {
        let parse = |message: String| MeshError::Parse { path: path.into(), place: Place::Whole, message };
        let cells = self.cells.ok_or_else(|| parse("the file has no `CELLS`".into()))?;
        let types = self.types.ok_or_else(|| parse("the file has no `CELL_TYPES`".into()))?;
        let points = self.points.ok_or_else(|| parse("the file has no `POINTS`".into()))?;
        let mut found = VtkCells::new(self.is_old);
        let tags = self.cell_data.tags;
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
        for (name, mut field) in self.cell_data.fields {
            pick_in_place(&collected.entries, &mut field);
            mesh.cell_fields.insert(name, field);
        }
        for (name, mut field) in self.point_data.fields {
            if let Some(nodes) = &collected.nodes {
                pick_in_place(nodes, &mut field);
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
