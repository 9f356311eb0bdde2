//! `POINT_DATA` and `CELL_DATA`: arrays with one entry per point or cell.

use std::collections::BTreeMap;

use super::array::{Encoding, Number};
use crate::io::name::printable;
use crate::io::scanner::{Scanner, show};
use crate::io::vtk_arrays::{TagArray, no_tag, note_of_two, several_components, tag_of};
use crate::{Field, MeshError};

/// Arrays over the points or the cells of a file.
#[derive(Default)]
pub(super) struct Attributes<'a> {
    pub n_entries: usize,
    pub fields: BTreeMap<String, Field>,
    /// The array that gives the tags of cells; none for points.
    pub tag_array: Option<TagArray<'a>>,
    /// The last array of tags, with its name.
    pub tags: Option<(String, Vec<i32>)>,
    pub notes: Vec<String>,
}

impl Attributes<'_> {
    /// Reads the array after a keyword in upper case, such as `SCALARS`; false if the keyword does not begin
    /// an array.
    pub(super) fn read(
        &mut self,
        keyword: &[u8],
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
    ) -> Result<bool, MeshError> {
        let n_components = match keyword {
            b"SCALARS" => 0,
            b"VECTORS" | b"NORMALS" => 3,
            b"TENSORS" => 9,
            b"TENSORS6" => 6,
            b"GLOBAL_IDS" | b"PEDIGREE_IDS" | b"EDGE_FLAGS" => 1,
            b"TEXTURE_COORDINATES" | b"COLOR_SCALARS" | b"LOOKUP_TABLE" => {
                self.read_colours(keyword, scanner, encoding)?;
                return Ok(true);
            }
            b"FIELD" => {
                read_field(scanner, encoding, Some(self))?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let name = decode_name(scanner.expect("the name of an array")?);
        let number = Number::parse(scanner)?;
        let n_components = if n_components > 0 { n_components } else { scalar_components(scanner)? };
        self.read_array(name, number, n_components, scanner, encoding)?;
        Ok(true)
    }

    /// Skips colours and texture coordinates, which are not data of a mesh.
    fn read_colours(
        &self,
        keyword: &[u8],
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
    ) -> Result<(), MeshError> {
        scanner.expect("the name of an array")?;
        let columns: usize = scanner.integer("a size")?;
        let colours = if encoding == Encoding::Binary { Number::U8 } else { Number::F32 };
        let (n, number) = match keyword {
            b"TEXTURE_COORDINATES" => (self.n_entries.checked_mul(columns), Number::parse(scanner)?),
            b"COLOR_SCALARS" => (self.n_entries.checked_mul(columns), colours),
            _ => (columns.checked_mul(4), colours),
        };
        let n = n.ok_or_else(|| scanner.error("the size of an array is out of range"))?;
        number.reals(scanner, encoding, n, "numbers").map(|_| ())
    }

    fn read_array(
        &mut self,
        name: String,
        number: Number,
        n_components: usize,
        scanner: &mut Scanner<'_>,
        encoding: Encoding,
    ) -> Result<(), MeshError> {
        let n = self.n_entries.checked_mul(n_components);
        let n = n.ok_or_else(|| scanner.error("the size of an array is out of range"))?;
        let begin = scanner.clone();
        let values = number.reals(scanner, encoding, n, "numbers")?;
        if !self.tag_array.is_some_and(|tags| tags.is(&name, n_components, number.is_integer())) {
            self.fields.insert(name, Field { n_components, values });
            return Ok(());
        }
        if n_components != 1 {
            return Err(begin.error(several_components(&name, n_components)));
        }
        let tags = values.iter().enumerate().map(|(cell, &value)| {
            tag_of(value).ok_or_else(|| {
                let mut at = begin.clone();
                if encoding == Encoding::Ascii {
                    (0..=cell).for_each(|_| _ = at.word());
                }
                at.error(no_tag(&name, cell, value))
            })
        });
        let tags = tags.collect::<Result<_, _>>()?;
        if let Some((other, _)) = self.tags.replace((name.clone(), tags)).filter(|(other, _)| *other != name)
        {
            self.notes.push(note_of_two(&name, &other));
        }
        Ok(())
    }
}

/// Returns whether a keyword follows, in letters of either case.
pub(super) fn next_is(scanner: &Scanner<'_>, keyword: &str) -> bool {
    scanner.peek().is_some_and(|word| word.eq_ignore_ascii_case(keyword.as_bytes()))
}

/// The rest of a line `SCALARS name type [components]` and the table of colours it may name.
fn scalar_components(scanner: &mut Scanner<'_>) -> Result<usize, MeshError> {
    let n_components = match scanner.word_of_line() {
        None => 1,
        Some(word) => match word {
            b"1" => 1,
            b"2" => 2,
            b"3" => 3,
            b"4" => 4,
            word => return Err(scanner.error(format!("`{}` components; 1 to 4 are allowed", show(word)))),
        },
    };
    if next_is(scanner, "LOOKUP_TABLE") {
        scanner.word();
        scanner.expect("the name of a table")?;
    }
    Ok(n_components)
}

/// Reads the arrays after `FIELD`; without `attributes` they are skipped.
pub(super) fn read_field(
    scanner: &mut Scanner<'_>,
    encoding: Encoding,
    mut attributes: Option<&mut Attributes<'_>>,
) -> Result<(), MeshError> {
    scanner.expect("the name of a field")?;
    let n_arrays = scanner.count("arrays", 8)?;
    for _ in 0..n_arrays {
        while next_is(scanner, "METADATA") {
            skip_metadata(scanner);
        }
        let name = decode_name(scanner.expect("the name of an array")?);
        let n_components: usize = scanner.integer("a number of components")?;
        let n_entries: usize = scanner.integer("a number of entries")?;
        let number = Number::parse(scanner)?;
        match &mut attributes {
            Some(attributes) if n_components > 0 => {
                if n_entries != attributes.n_entries {
                    let expected = attributes.n_entries;
                    let message = format!("array `{name}` has {n_entries} entries, not {expected}");
                    return Err(scanner.error(message));
                }
                attributes.read_array(name, number, n_components, scanner, encoding)?;
            }
            _ => {
                let n = n_entries.checked_mul(n_components);
                let n = n.ok_or_else(|| scanner.error("the size of an array is out of range"))?;
                number.reals(scanner, encoding, n, "numbers")?;
            }
        }
    }
    Ok(())
}

/// Passes over a block of remarks, which an empty line ends.
pub(super) fn skip_metadata(scanner: &mut Scanner<'_>) {
    scanner.word();
    scanner.rest_of_line();
    while scanner.remaining() > 0 && !scanner.rest_of_line().is_empty() {}
}

/// Decodes `%20` in a name, which VTK writes for blanks.
fn decode_name(word: &[u8]) -> String {
    let mut name = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| byte == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(decoded) => {
                name.push(decoded);
                rest = &tail[2..];
            }
            None => {
                name.push(byte);
                rest = tail;
            }
        }
    }
    printable(&String::from_utf8_lossy(&name)).into_owned()
}
