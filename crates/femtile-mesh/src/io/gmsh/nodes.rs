//! `$Nodes`.

use femtile_device::parallel;

use super::source::{Source, Version};
use crate::MeshError;
use crate::first_where::first_where;
use crate::io::collect::append;
use crate::io::node_numbers::NodeNumbers;

/// Nodes of a file and their numbers in it.
pub(super) struct Nodes {
    pub points: Vec<[f64; 3]>,
    pub numbers: NodeNumbers,
}

/// Reads `$Nodes`, `$NOD` of version 1, or `$ParametricNodes` of version 2.2, after its name.
pub(super) fn read_nodes(source: &mut Source<'_>, are_parametric: bool) -> Result<Nodes, MeshError> {
    let (points, numbers) = match source.version {
        Version::V1 | Version::V2 => version_2(source, are_parametric)?,
        Version::V40 => version_4_0(source)?,
        Version::V41 => version_4_1(source)?,
    };
    let numbers = NodeNumbers::new(&numbers);
    let numbers =
        numbers.map_err(|number| source.scanner.error(format!("two nodes have the number {number}")))?;
    Ok(Nodes { points, numbers })
}

type Numbered = (Vec<[f64; 3]>, Vec<u64>);

fn version_2(source: &mut Source<'_>, are_parametric: bool) -> Result<Numbered, MeshError> {
    let n = source.scanner.count("nodes", if source.is_binary() { 28 } else { 8 })?;
    if source.is_binary() {
        source.scanner.rest_of_line();
    }
    let (mut points, mut numbers) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for _ in 0..n {
        numbers.push(source.number("the number of a node")?);
        points.push([source.coordinate()?, source.coordinate()?, source.coordinate()?]);
        if are_parametric {
            let dimension = source.int("the dimension of an entity")?;
            source.int("the tag of an entity")?;
            // Points have no parameters, and volumes none besides the coordinates.
            source.skip_reals(if matches!(dimension, 1 | 2) { dimension as usize } else { 0 })?;
        }
        source.end_of_record("a node")?;
    }
    Ok((points, numbers))
}

/// Each node after its number.
fn version_4_0(source: &mut Source<'_>) -> Result<Numbered, MeshError> {
    let n_blocks = source.size("the number of blocks")?;
    let n = source.count("nodes", 8, 28)?;
    let (mut points, mut numbers) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for _ in 0..n_blocks {
        source.int("the tag of an entity")?;
        let dimension = source.int("the dimension of an entity")?;
        let is_parametric = source.int("whether nodes have parameters")? != 0;
        let n_here = source.count("nodes of a block", 8, 28)?;
        fit(source, n_here, n - points.len(), n)?;
        // In volumes the parameters are the coordinates.
        let n_parameters = if is_parametric && matches!(dimension, 1 | 2) { dimension as usize } else { 0 };
        for _ in 0..n_here {
            numbers.push(source.number("the number of a node")?);
            points.push([source.coordinate()?, source.coordinate()?, source.coordinate()?]);
            source.skip_reals(n_parameters)?;
            source.end_of_record("a node")?;
        }
    }
    all_there(source, points.len(), n)?;
    Ok((points, numbers))
}

/// Refuses a block of more nodes than are left of all `n`.
fn fit(source: &Source<'_>, n_here: usize, n_left: usize, n: usize) -> Result<(), MeshError> {
    match n_here > n_left {
        true => Err(source.scanner.error(format!("blocks hold more than the {n} nodes announced"))),
        false => Ok(()),
    }
}

fn all_there(source: &Source<'_>, n_found: usize, n: usize) -> Result<(), MeshError> {
    match n_found == n {
        true => Ok(()),
        false => Err(source.scanner.error(format!("{n} nodes are announced, but blocks hold {n_found}"))),
    }
}

/// The numbers of the nodes of a block, then their coordinates.
fn version_4_1(source: &mut Source<'_>) -> Result<Numbered, MeshError> {
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
        fit(source, n_here, n - points.len(), n)?;
        let n_parameters = if is_parametric { dimension.clamp(0, 3) as usize } else { 0 };
        if read_block(source, (n_here, n_parameters), &mut numbers, &mut points)? {
            continue;
        }
        for _ in 0..n_here {
            numbers.push(source.size("the number of a node")?);
        }
        for _ in 0..n_here {
            points.push([source.coordinate()?, source.coordinate()?, source.coordinate()?]);
            source.skip_reals(n_parameters)?;
            source.end_of_record("a node")?;
        }
    }
    all_there(source, points.len(), n)?;
    Ok((points, numbers))
}

/// Reads a binary block by all threads. Returns false, without moving, if the block is text or has a fault.
fn read_block(
    source: &mut Source<'_>,
    (n, n_parameters): (usize, usize),
    numbers: &mut Vec<u64>,
    points: &mut Vec<[f64; 3]>,
) -> Result<bool, MeshError> {
    let size = 24 + 8 * n_parameters;
    let Some(records) = source.records(n, 8 + size) else { return Ok(false) };
    let (of_numbers, of_points) = records.split_at(8 * n);
    let real = |bytes: [u8; 8]| f64::from_bits(source.size_of(bytes));
    let n_before = points.len();
    append(
        points,
        parallel::map(n, parallel::CHEAP, |i| {
            let coordinates = of_points[i * size..][..24].as_chunks().0;
            [0, 1, 2].map(|axis| real(coordinates[axis]))
        }),
    );
    if first_where(&points[n_before..], |point| !point.iter().all(|x| x.is_finite())).is_some() {
        points.truncate(n_before);
        return Ok(false);
    }
    let words = of_numbers.as_chunks().0;
    append(numbers, parallel::map(n, parallel::CHEAP, |i| source.size_of(words[i])));
    source.scanner.take(records.len(), "nodes")?;
    Ok(true)
}
