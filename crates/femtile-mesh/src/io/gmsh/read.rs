use std::collections::BTreeMap;
use std::path::Path;

use super::elements::{Elements, read_elements};
use super::entities::{Entities, Names, read_entities, read_partitioned_entities};
use super::nodes::{Nodes, read_nodes};
use super::source::{Encoding, Source, Version};
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
/// groups keeps the first, which a note tells, a facet all of them. Sections of data and unknown sections are skipped.
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

/// Reads `$MeshFormat` and comments before it; version 1 begins with `$NOD` instead.
fn begin(mut scanner: Scanner<'_>) -> Result<Source<'_>, MeshError> {
    const ADVICE: &str = "save it as version 4.1 or 2.2 (`gmsh -format msh41`)";
    loop {
        let before = scanner.clone();
        match scanner.word() {
            Some(b"$MeshFormat") => break,
            Some(b"$Comments") => pass_over(&mut scanner, b"Comments")?,
            Some(b"$NOD") => {
                return Ok(Source { scanner: before, encoding: Encoding::Ascii, version: Version::V1 });
            }
            _ => return Err(scanner.error("a file of Gmsh begins with `$MeshFormat`, or `$NOD`")),
        }
    }
    let version = match scanner.expect("the version")? {
        b"4.1" => Version::V41,
        b"4" | b"4.0" => Version::V40,
        [b'2'] | [b'2', b'.', ..] => Version::V2,
        version => {
            return Err(scanner.unsupported(format!("version {} of the format", show(version)), ADVICE));
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
    Ok(Source { scanner, encoding, version })
}

/// The name that later versions have for a section.
fn section_of(name: &[u8], version: Version) -> &[u8] {
    match name {
        b"NOD" if version == Version::V1 => b"Nodes",
        b"ELM" if version == Version::V1 => b"Elements",
        name => name,
    }
}

/// The word that ends a section.
fn end_of(name: &[u8]) -> Vec<u8> {
    let mark: &[u8] = if matches!(name, b"NOD" | b"ELM") { b"$END" } else { b"$End" };
    [mark, name].concat()
}

/// Reads `$End…` of a section.
fn end(scanner: &mut Scanner<'_>, name: &[u8]) -> Result<(), MeshError> {
    let end = end_of(name);
    let word = scanner.expect(&format!("`{}`", show(&end)))?;
    if word == end {
        return Ok(());
    }
    Err(scanner.error(format!("`{}` should stand here, not `{}`", show(&end), show(word))))
}

#[derive(Default)]
struct Sections {
    names: Names,
    entities: Entities,
    nodes: Option<Nodes>,
    elements: Option<Elements>,
    notes: Vec<String>,
}

impl Sections {
    fn read(&mut self, name: &[u8], source: &mut Source<'_>) -> Result<(), MeshError> {
        let is_whole = matches!(name, b"Entities" | b"PartitionedEntities" | b"Nodes" | b"Elements")
            && source.has_entities();
        if is_whole && source.is_binary() {
            source.scanner.rest_of_line();
        }
        let (written, name) = (name, section_of(name, source.version));
        match name {
            b"PhysicalNames" => self.names = Names::read(source)?,
            b"Entities" if source.has_entities() => self.entities = read_entities(source)?,
            b"PartitionedEntities" if source.has_entities() => {
                read_partitioned_entities(source, &mut self.entities)?;
            }
            b"GhostElements" => {
                self.notes.push(
                    "which elements are ghosts of other partitions (`$GhostElements`) is not read".into(),
                );
                return pass_over(&mut source.scanner, name);
            }
            b"Nodes" if self.nodes.is_none() => self.nodes = Some(read_nodes(source, false)?),
            b"ParametricNodes" if self.nodes.is_none() && !source.has_entities() => {
                self.nodes = Some(read_nodes(source, true)?);
            }
            b"Elements" if self.elements.is_none() => {
                let nodes = self.nodes.as_ref();
                let nodes =
                    nodes.ok_or_else(|| source.scanner.error("`$Nodes` should stand before `$Elements`"))?;
                self.elements = Some(read_elements(source, nodes, &self.entities)?);
            }
            b"Nodes" | b"ParametricNodes" | b"Elements" => {
                return Err(source.scanner.error(format!("a second section `${}`", show(written))));
            }
            _ => return pass_over(&mut source.scanner, written),
        }
        end(&mut source.scanner, written)
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
        let in_several = match source.has_entities() {
            true => elements.add_further_groups(source, &self.entities)?,
            false => elements.collector.drop_copies(),
        };
        let Elements { collector, is_tagged, .. } = elements;
        let mut mesh = collector.into_mesh(path, nodes.points, is_tagged)?.mesh;
        mesh.notes.extend(self.notes);
        let dimension = mesh.dimension();
        mesh.notes.extend(note_of_groups(&in_several, |group| self.names.show(dimension, group)));
        mesh.tag_names = self.names.of_tags(&mesh);
        Ok(mesh)
    }
}

/// Returns the note that cells of several groups keep the first; none if there are none.
fn note_of_groups(in_several: &BTreeMap<(i32, i32), usize>, show: impl Fn(i32) -> String) -> Option<String> {
    const MAX_LISTED: usize = 8;
    let each = in_several.iter().take(MAX_LISTED).map(|(&(kept, other), n)| {
        format!("{n} of {} {} not in {}", show(kept), if *n == 1 { "is" } else { "are" }, show(other))
    });
    let mut list: Vec<String> = each.collect();
    list.extend((in_several.len() > MAX_LISTED).then(|| "…".into()));
    let list = list.join(", ");
    (!list.is_empty()).then(|| {
        format!("cells in several physical groups keep the first, as a cell has one tag: here {list}")
    })
}

/// Skips to the end of an unsupported section.
fn pass_over(scanner: &mut Scanner<'_>, name: &[u8]) -> Result<(), MeshError> {
    let end = end_of(name);
    if scanner.skip_past(&end) {
        return Ok(());
    }
    Err(scanner.error(format!("the section `${}` does not end with `{}`", show(name), show(&end))))
}
