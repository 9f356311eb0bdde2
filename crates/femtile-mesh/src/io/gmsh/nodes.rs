//! `$Nodes`.

use super::source::Source;
use crate::MeshError;
use crate::io::node_numbers::NodeNumbers;

/// Nodes of a file and their numbers in it.
pub(super) struct Nodes {
    pub points: Vec<[f64; 3]>,
    pub numbers: NodeNumbers,
}

/// Reads the section after its name.
pub(super) fn read_nodes(source: &mut Source<'_>) -> Result<Nodes, MeshError> {
    let (points, numbers) = if source.is_version_4 { version_4(source)? } else { version_2(source)? };
    let numbers = NodeNumbers::new(&numbers);
    let numbers =
        numbers.map_err(|number| source.scanner.error(format!("two nodes have the number {number}")))?;
    Ok(Nodes { points, numbers })
}

type Numbered = (Vec<[f64; 3]>, Vec<u64>);

fn version_2(source: &mut Source<'_>) -> Result<Numbered, MeshError> {
    let n = source.scanner.count("nodes", if source.is_binary() { 28 } else { 8 })?;
    if source.is_binary() {
        source.scanner.rest_of_line();
    }
    let (mut points, mut numbers) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for _ in 0..n {
        numbers.push(source.size("the number of a node")?);
        points.push([source.coordinate()?, source.coordinate()?, source.coordinate()?]);
        source.end_of_record("a node")?;
    }
    Ok((points, numbers))
}

fn version_4(source: &mut Source<'_>) -> Result<Numbered, MeshError> {
    let n_blocks = source.size("the number of blocks")?;
    let n = source.count("nodes", 8, 32)?;
    source.size("the least number of a node")?;
    source.size("the greatest number of a node")?;
    let (mut points, mut numbers) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for _ in 0..n_blocks {
        let dimension = source.int("the dimension of an entity")?;
        source.int("the tag of an entity")?;
        let is_parametric = source.int("whether nodes have parameters")? != 0;
        let n_here = source.count("nodes of a block", 8, 32)?;
        if n_here > n - points.len() {
            return Err(source.scanner.error(format!("blocks hold more than the {n} nodes announced")));
        }
        for _ in 0..n_here {
            numbers.push(source.size("the number of a node")?);
        }
        let n_parameters = if is_parametric { dimension.clamp(0, 3) as usize } else { 0 };
        for _ in 0..n_here {
            points.push([source.coordinate()?, source.coordinate()?, source.coordinate()?]);
            source.skip_reals(n_parameters)?;
            source.end_of_record("a node")?;
        }
    }
    if points.len() != n {
        return Err(source
            .scanner
            .error(format!("{n} nodes are announced, but blocks hold {}", points.len())));
    }
    Ok((points, numbers))
}
