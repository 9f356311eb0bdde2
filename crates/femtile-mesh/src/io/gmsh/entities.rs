//! `$PhysicalNames`, `$Entities` and `$PartitionedEntities`: which named groups the parts of a geometry belong to.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::source::{Source, Version};
use crate::io::name::printable;
use crate::io::number;
use crate::io::scanner::show;
use crate::{Mesh, MeshError};

/// Physical groups of each entity by (dimension, tag), without entities that have no groups.
pub(super) type Entities = BTreeMap<(usize, i32), Vec<i32>>;

/// Reads `$Entities`.
pub(super) fn read_entities(source: &mut Source<'_>) -> Result<Entities, MeshError> {
    let counts = read_counts(source)?;
    let mut entities = Entities::new();
    for (dimension, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let tag = source.int("the tag of an entity")?;
            let groups = read_groups(source, dimension)?;
            if !groups.is_empty() {
                entities.insert((dimension, tag), groups);
            }
        }
    }
    Ok(entities)
}

/// Reads `$PartitionedEntities`: the part of an entity in a partition is in the groups of the entity, then in its
/// own.
pub(super) fn read_partitioned_entities(
    source: &mut Source<'_>,
    entities: &mut Entities,
) -> Result<(), MeshError> {
    source.size("the number of partitions")?;
    let n_ghosts = source.count("ghost entities", 4, 8)?;
    for _ in 0..n_ghosts {
        source.int("the tag of a ghost entity")?;
        source.int("a partition")?;
    }
    let mut n_inherited = 0;
    for (dimension, count) in read_counts(source)?.into_iter().enumerate() {
        for _ in 0..count {
            let tag = source.int("the tag of an entity")?;
            let of_parent = source.int("the dimension of the parent of an entity")?;
            let parent = (dimension, source.int("the tag of the parent of an entity")?);
            let n_partitions = source.count("partitions", 2, 4)?;
            for _ in 0..n_partitions {
                source.int("a partition")?;
            }
            let own = read_groups(source, dimension)?;
            // Borders of partitions have parents of a higher dimension.
            let parent = entities.get(&parent).filter(|_| usize::try_from(of_parent) == Ok(dimension));
            let mut groups = parent.cloned().unwrap_or_default();
            n_inherited += groups.len();
            // Groups are listed once a parent: without a bound a short list would be repeated for many entities.
            if n_inherited > 64 + source.scanner.len() / 4 {
                let what = "a partitioned mesh whose entities are in many physical groups";
                return Err(source.scanner.unsupported(what, "put each entity into one or two groups"));
            }
            let inherited: HashSet<i32> = groups.iter().copied().collect();
            groups.extend(own.into_iter().filter(|group| !inherited.contains(group)));
            if !groups.is_empty() {
                entities.insert((dimension, tag), groups);
            }
        }
    }
    Ok(())
}

/// Reads the numbers of points, curves, surfaces and volumes.
fn read_counts(source: &mut Source<'_>) -> Result<[u64; 4], MeshError> {
    let mut counts = [0; 4];
    for count in &mut counts {
        *count = source.size("a number of entities")?;
    }
    Ok(counts)
}

/// Reads the end of an entity, from its bounding box on, and returns its physical groups.
fn read_groups(source: &mut Source<'_>, dimension: usize) -> Result<Vec<i32>, MeshError> {
    // Version 4.0 gives points a box too.
    let is_point = dimension == 0 && source.version == Version::V41;
    source.skip_reals(if is_point { 3 } else { 6 })?;
    let n_groups = source.count("physical groups", 2, 4)?;
    let mut groups = Vec::with_capacity(n_groups);
    for _ in 0..n_groups {
        // The sign says on which side the group sees the entity; the group is the same.
        groups.push(source.int("a physical group")?.wrapping_abs());
    }
    if dimension > 0 {
        let n_sides = source.count("bounding entities", 2, 4)?;
        for _ in 0..n_sides {
            source.int("a bounding entity")?;
        }
    }
    Ok(groups)
}

/// Names of physical groups.
#[derive(Default)]
pub(super) struct Names {
    by_dimension: BTreeMap<(usize, i32), String>,
    /// Names of version 2.0, which do not tell the dimension; later files write −1 for it.
    of_any: BTreeMap<i32, String>,
}

impl Names {
    /// Reads `$PhysicalNames`, which is text also in binary files.
    ///
    /// A name is the text in quotes, else the rest of its line.
    pub(super) fn read(source: &mut Source<'_>) -> Result<Self, MeshError> {
        let scanner = &mut source.scanner;
        let n = scanner.count("physical names", 4)?;
        let mut names = Self::default();
        for _ in 0..n {
            scanner.next_line();
            let at_line = scanner.clone();
            let (word, line) = first_word(scanner.rest_of_line());
            let first = number::whole(word).and_then(|first| i32::try_from(first).ok());
            let first = first.ok_or_else(|| {
                at_line.error(format!("a dimension should be a whole number in range, not `{}`", show(word)))
            })?;
            let (word, rest) = first_word(line);
            let group = number::whole(word);
            let text = if group.is_some() { rest } else { line };
            let name = name_of(text).ok_or_else(|| {
                scanner.error("a physical group has no name, or one without a closing quote")
            })?;
            let name = printable(&String::from_utf8_lossy(name)).into_owned();
            match group.map(|group| (usize::try_from(first), i32::try_from(group))) {
                None => drop(names.of_any.insert(first, name)),
                Some((Err(_), Ok(group))) if first == -1 => drop(names.of_any.insert(group, name)),
                Some((Ok(dimension), Ok(group))) => {
                    drop(names.by_dimension.insert((dimension, group), name));
                }
                Some(_) => {
                    let message = "the dimension or the number of a physical group is out of range";
                    return Err(scanner.error(message));
                }
            }
        }
        Ok(names)
    }

    /// Returns the names of the tags of a mesh.
    pub(super) fn of_tags(self, mesh: &Mesh) -> BTreeMap<(usize, i32), String> {
        let mut names = self.by_dimension;
        if self.of_any.is_empty() {
            return names;
        }
        let dimension = mesh.dimension();
        for (dimension, tags) in [(dimension - 1, &mesh.facets.tags), (dimension, &mesh.cell_tags)] {
            let held: BTreeSet<i32> = tags.iter().copied().collect();
            let of_held = self.of_any.iter().filter(|(tag, _)| held.contains(tag));
            names.extend(of_held.map(|(&tag, name)| ((dimension, tag), name.clone())));
        }
        names
    }

    /// Returns `name (tag)` of a group of a dimension, its number if it has no name.
    pub(super) fn show(&self, dimension: usize, group: i32) -> String {
        match self.by_dimension.get(&(dimension, group)).or_else(|| self.of_any.get(&group)) {
            Some(name) => format!("`{name}` ({group})"),
            None => group.to_string(),
        }
    }
}

/// Splits a line after its first word, which ends at a blank or at the quote that begins a name.
fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'"';
    let (word, rest) = line.split_at(line.iter().position(ends).unwrap_or(line.len()));
    (word, rest.trim_ascii())
}

/// The name at the begin of a text.
fn name_of(text: &[u8]) -> Option<&[u8]> {
    match text.strip_prefix(b"\"") {
        Some(quoted) => quoted.iter().rposition(|&byte| byte == b'"').map(|end| &quoted[..end]),
        None => (!text.is_empty()).then_some(text),
    }
}
