use std::path::Path;

use super::array::{Encoding, Number};
use super::attributes::{Attributes, read_field, skip_metadata};
use super::cells::Cells;
use crate::io::collect::{Collector, pick_in_place, vtk_kind};
use crate::io::scanner::{Scanner, show};
use crate::{Mesh, MeshError, Place};

/// Reads a legacy VTK file of an unstructured grid, ASCII or binary, of versions 2 to 5.1.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|source| MeshError::Io { path: path.into(), action: "read", source })?;
    parse(path, &bytes)
}

/// Reads the bytes of a legacy VTK file; `path` serves messages only.
///
/// Arrays of points and cells become fields; whole numbers under a name such as `region` or `mat_id`
/// become tags.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line, or with the byte after binary data.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes);
    let encoding = begin(&mut scanner)?;
    let mut file = File::default();
    while let Some(word) = scanner.word() {
        file.read_section(word, &mut scanner, encoding)?;
    }
    file.into_mesh(path)
}

/// Reads the first three lines.
fn begin(scanner: &mut Scanner<'_>) -> Result<Encoding, MeshError> {
    if !scanner.rest_of_line().starts_with(b"# vtk DataFile Version") {
        return Err(scanner.error("a VTK file begins with `# vtk DataFile Version`"));
    }
    scanner.rest_of_line();
    match scanner.expect("`ASCII` or `BINARY`")? {
        b"ASCII" => Ok(Encoding::Ascii),
        b"BINARY" => Ok(Encoding::Binary),
        word => Err(scanner.error(format!("`ASCII` or `BINARY` should stand here, not `{}`", show(word)))),
    }
}

#[derive(Default)]
struct File {
    points: Vec<[f64; 3]>,
    cells: Option<Cells>,
    types: Vec<u8>,
    point_data: Attributes,
    cell_data: Attributes,
    /// Whether arrays belong to cells, to points or, before either, to neither.
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
                let n = scanner.integer("the number of points")?;
                self.points = Number::parse(scanner)?.points(scanner, encoding, n)?;
            }
            b"CELLS" => self.cells = Some(Cells::read(scanner, encoding)?),
            b"CELL_TYPES" => self.read_types(scanner, encoding)?,
            b"METADATA" => skip_metadata(scanner),
            b"CELL_DATA" | b"POINT_DATA" => {
                let of_cells = word == b"CELL_DATA";
                let expected = if of_cells { self.types.len() } else { self.points.len() };
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

    fn read_types(&mut self, scanner: &mut Scanner<'_>, encoding: Encoding) -> Result<(), MeshError> {
        let n: usize = scanner.integer("the number of cells")?;
        let n_cells = self.cells.as_ref().map_or(0, Cells::len);
        if n != n_cells {
            return Err(scanner.error(format!("types of {n} cells, but there are {n_cells} cells")));
        }
        let place = scanner.place();
        let types = Number::I32.integers(scanner, encoding, n, "types of cells")?;
        self.types = Vec::with_capacity(n);
        for vtk_type in types {
            vtk_kind(scanner.path(), place, vtk_type)?;
            self.types.push(vtk_type as u8);
        }
        Ok(())
    }

    fn into_mesh(self, path: &Path) -> Result<Mesh, MeshError> {
        let parse = |message: String| MeshError::Parse { path: path.into(), place: Place::Whole, message };
        let cells = self.cells.ok_or_else(|| parse("the file has no `CELLS`".into()))?;
        if self.types.len() != cells.len() {
            return Err(parse("the file has no `CELL_TYPES` for its cells".into()));
        }
        let mut collector = Collector::default();
        let tags = self.cell_data.tags;
        let n_points = self.points.len();
        let added = cells.for_each(|cell, nodes| {
            let Some(kind) =
                vtk_kind(path, Place::Whole, i64::from(self.types[cell])).map_err(Problem::Mesh)?
            else {
                collector.skip();
                return Ok(());
            };
            if kind.n_nodes() != nodes.len() {
                return Err(Problem::Message(format!("cell {cell} is a {kind} with {} nodes", nodes.len())));
            }
            if let Some(node) = nodes.iter().find(|&&node| !(0..n_points as i64).contains(&node)) {
                let message = format!("cell {cell} uses point {node}, but there are {n_points} points");
                return Err(Problem::Message(message));
            }
            let tag = tags.as_ref().map_or(0, |tags| tags[cell]);
            collector.push(kind, nodes.iter().map(|&node| node as u32), tag);
            Ok(())
        });
        added.map_err(|problem| match problem {
            Problem::Message(message) => parse(message),
            Problem::Mesh(error) => error,
        })?;
        drop(cells);
        let collected = collector.into_mesh(path, self.points, tags.is_some())?;
        let mut mesh = collected.mesh;
        for (name, mut field) in self.cell_data.fields {
            pick_in_place(&collected.entries, &mut field);
            mesh.cell_fields.insert(name, field);
        }
        mesh.node_fields = self.point_data.fields;
        Ok(mesh)
    }
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
