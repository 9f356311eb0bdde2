//! `$PhysicalNames` and `$Entities`: which named groups the parts of a geometry belong to.

use std::collections::BTreeMap;

use super::source::Source;
use crate::MeshError;
use crate::io::name::printable;

/// Physical groups of each entity by (dimension, tag), without entities that have no groups.
pub(super) type Entities = BTreeMap<(usize, i32), Vec<i32>>;

/// Reads `$Entities` of version 4.1.
pub(super) fn read_entities(source: &mut Source<'_>) -> Result<Entities, MeshError> {
    let mut counts = [0u64; 4];
    for count in &mut counts {
        *count = source.size("a number of entities")?;
    }
    let mut entities = Entities::new();
    for (dimension, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let tag = source.int("the tag of an entity")?;
            source.skip_reals(if dimension == 0 { 3 } else { 6 })?;
            let n_groups = source.count("physical groups", 2, 4)?;
            let mut groups = Vec::with_capacity(n_groups);
            for _ in 0..n_groups {
                // The sign says on which side the group sees the entity; the group is the same.
                groups.push(source.int("a physical group")?.wrapping_abs());
            }
            if n_groups > 0 {
                entities.insert((dimension, tag), groups);
            }
            if dimension > 0 {
                let n_sides = source.count("bounding entities", 2, 4)?;
                for _ in 0..n_sides {
                    source.int("a bounding entity")?;
                }
            }
        }
    }
    Ok(entities)
}

/// Reads `$PhysicalNames`, which is text also in binary files.
pub(super) fn read_names(source: &mut Source<'_>) -> Result<BTreeMap<(usize, i32), String>, MeshError> {
    let scanner = &mut source.scanner;
    let n = scanner.count("physical names", 7)?;
    let mut names = BTreeMap::new();
    for _ in 0..n {
        let dimension: usize = scanner.integer("a dimension")?;
        let tag: i32 = scanner.integer("a physical group")?;
        let quoted = scanner.rest_of_line();
        let name = quoted.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
        let name =
            name.ok_or_else(|| scanner.error("the name of a physical group should stand in quotes"))?;
        names.insert((dimension, tag), printable(&String::from_utf8_lossy(name)).into_owned());
    }
    Ok(names)
}
