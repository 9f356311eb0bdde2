use std::collections::BTreeMap;
use std::path::Path;

use super::elements::{Elements, read_elements};
use super::entities::{Entities, read_entities, read_names};
use super::nodes::{Nodes, read_nodes};
use super::source::{Encoding, Source};
use crate::io::file::bytes_of;
use crate::io::scanner::{Scanner, show};
use crate::{Mesh, MeshError, Place};

/// Reads a file of Gmsh.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of a Gmsh file; `path` is used in messages only.
///
/// Physical groups are the tags of cells and facets, their names the names of the tags. A cell in several
/// groups keeps the first, a facet all of them. Sections of data and unknown sections are skipped.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line, or with the byte after binary data.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut source = begin(Scanner::new(path, bytes))?;
    let mut sections = Sections::default();
    while let Some(word) = source.scanner.word() {
        let Some(name) = word.strip_prefix(b"$") else {
            let message = format!("`{}` stands where a section should begin with `$`", show(word));
            return Err(source.scanner.error(message));
        };
        sections.read(name, &mut source)?;
    }
    sections.into_mesh(path, &source)
}

/// Reads `$MeshFormat`.
fn begin(mut scanner: Scanner<'_>) -> Result<Source<'_>, MeshError> {
    if scanner.word() != Some(b"$MeshFormat") {
        return Err(scanner.error("a file of Gmsh begins with `$MeshFormat`"));
    }
    let version = scanner.expect("the version")?;
    let is_version_4 = match version {
        b"4.1" => true,
        [b'2'] | [b'2', b'.', ..] => false,
        version => {
            let what = format!("version {} of the format", show(version));
            return Err(scanner.unsupported(what, "save it as version 4.1 or 2.2 (`gmsh -format msh41`)"));
        }
    };
    let file_type: i64 = scanner.integer("the type of file")?;
    let data_size: i64 = scanner.integer("the size of data")?;
    let mut encoding = Encoding::Ascii;
    if file_type == 1 {
        if data_size != 8 {
            let what = format!("binary data of {data_size} bytes a number");
            return Err(scanner.unsupported(what, "8 bytes can be read"));
        }
        scanner.rest_of_line();
        encoding = match scanner.take(4, "the mark of byte order")? {
            [1, 0, 0, 0] => Encoding::LittleEndian,
            [0, 0, 0, 1] => Encoding::BigEndian,
            bytes => return Err(scanner.error(format!("{bytes:?} is no mark of byte order"))),
        };
    } else if file_type != 0 {
        return Err(scanner.error(format!("file type {file_type}; 0 (text) and 1 (binary) exist")));
    }
    end(&mut scanner, b"MeshFormat")?;
    Ok(Source { scanner, encoding, is_version_4 })
}

/// Reads `$End…` of a section.
fn end(scanner: &mut Scanner<'_>, name: &[u8]) -> Result<(), MeshError> {
    let word = scanner.expect(&format!("`$End{}`", show(name)))?;
    if word.strip_prefix(b"$End") == Some(name) {
        return Ok(());
    }
    Err(scanner.error(format!("`$End{}` should stand here, not `{}`", show(name), show(word))))
}

#[derive(Default)]
struct Sections {
    names: BTreeMap<(usize, i32), String>,
    entities: Entities,
    nodes: Option<Nodes>,
    elements: Option<Elements>,
}

impl Sections {
    fn read(&mut self, name: &[u8], source: &mut Source<'_>) -> Result<(), MeshError> {
        let is_whole = matches!(name, b"Entities" | b"Nodes" | b"Elements") && source.is_version_4;
        if is_whole && source.is_binary() {
            source.scanner.rest_of_line();
        }
        match name {
            b"PhysicalNames" => self.names = read_names(source)?,
            b"Entities" if source.is_version_4 => self.entities = read_entities(source)?,
            b"Nodes" if self.nodes.is_none() => self.nodes = Some(read_nodes(source)?),
            b"Elements" if self.elements.is_none() => {
                let nodes = self.nodes.as_ref();
                let nodes =
                    nodes.ok_or_else(|| source.scanner.error("`$Nodes` should stand before `$Elements`"))?;
                self.elements = Some(read_elements(source, nodes, &self.entities)?);
            }
            b"Nodes" | b"Elements" => {
                return Err(source.scanner.error(format!("a second section `${}`", show(name))));
            }
            _ => return pass_over(&mut source.scanner, name),
        }
        end(&mut source.scanner, name)
    }

    fn into_mesh(self, path: &Path, source: &Source<'_>) -> Result<Mesh, MeshError> {
        let missing = |section| MeshError::Parse {
            path: path.into(),
            place: Place::Whole,
            message: format!("the file has no section `${section}`"),
        };
        let nodes = self.nodes.ok_or_else(|| missing("Nodes"))?;
        drop(nodes.numbers);
        let mut elements = self.elements.ok_or_else(|| missing("Elements"))?;
        elements.add_further_groups(source, &self.entities)?;
        let Elements { collector, is_tagged, .. } = elements;
        let mut mesh = collector.into_mesh(path, nodes.points, is_tagged)?.mesh;
        mesh.tag_names = self.names;
        Ok(mesh)
    }
}

/// Skips to the end of an unsupported section.
fn pass_over(scanner: &mut Scanner<'_>, name: &[u8]) -> Result<(), MeshError> {
    let end = [b"$End", name].concat();
    if scanner.skip_past(&end) {
        return Ok(());
    }
    Err(scanner.error(format!("the section `${}` does not end with `{}`", show(name), show(&end))))
}
