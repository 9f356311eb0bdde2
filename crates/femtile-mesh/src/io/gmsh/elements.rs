//! `$Elements`.

use std::collections::BTreeMap;
use std::ops::Range;

use femtile_device::parallel;

use super::element_type::ElementType;
use super::entities::Entities;
use super::nodes::Nodes;
use super::source::{Source, Version};
use crate::first_where::first_where;
use crate::io::collect::Collector;
use crate::io::lagrange::Numbering;
use crate::{CellKind, CellShape, MeshError};

/// Elements of a file, sorted by kind.
#[derive(Default)]
pub(super) struct Elements {
    pub collector: Collector,
    /// Cells of entities that belong to several physical groups.
    shared: Vec<Shared>,
    pub is_tagged: bool,
    /// The last curved type that was read, with the order of its nodes.
    numbering: Option<(ElementType, CellKind, Numbering)>,
    found: Vec<u32>,
    arranged: Vec<u32>,
}

struct Shared {
    shape: CellShape,
    cells: Range<usize>,
    entity: (usize, i32),
}

/// Reads the section after its name.
pub(super) fn read_elements(
    source: &mut Source<'_>,
    nodes: &Nodes,
    entities: &Entities,
) -> Result<Elements, MeshError> {
    let mut elements = Elements::default();
    match source.version {
        Version::V1 => elements.version_1(source, nodes)?,
        Version::V2 if source.is_binary() => elements.version_2_binary(source, nodes)?,
        Version::V2 => elements.version_2_text(source, nodes)?,
        Version::V40 | Version::V41 => elements.version_4(source, nodes, entities)?,
    }
    Ok(elements)
}

impl Elements {
    fn version_1(&mut self, source: &mut Source<'_>, nodes: &Nodes) -> Result<(), MeshError> {
        let n = source.scanner.count("elements", 8)?;
        for _ in 0..n {
            source.int("the number of an element")?;
            let number = source.int("the type of an element")?;
            let element = ElementType::from_number(number, &source.scanner)?;
            let tag = source.int("the physical group of an element")?.wrapping_abs();
            source.int("the entity of an element")?;
            let n_nodes = source.size("the number of nodes of an element")?;
            if n_nodes != element.n_nodes() as u64 {
                let expected = element.n_nodes();
                let message = format!("an element of type {number} has {n_nodes} nodes, not {expected}");
                return Err(source.scanner.error(message));
            }
            self.read_one(source, nodes, element, &[tag])?;
        }
        Ok(())
    }

    fn version_2_text(&mut self, source: &mut Source<'_>, nodes: &Nodes) -> Result<(), MeshError> {
        let n = source.scanner.count("elements", 8)?;
        for _ in 0..n {
            source.int("the number of an element")?;
            let number = source.int("the type of an element")?;
            let element = ElementType::from_number(number, &source.scanner)?;
            let tag = first_tag(source)?;
            self.read_one(source, nodes, element, &[tag])?;
        }
        Ok(())
    }

    fn version_2_binary(&mut self, source: &mut Source<'_>, nodes: &Nodes) -> Result<(), MeshError> {
        let n = source.scanner.count("elements", 8)?;
        source.scanner.rest_of_line();
        let mut n_read = 0;
        while n_read < n {
            let number = source.int("the type of elements")?;
            let element = ElementType::from_number(number, &source.scanner)?;
            let n_here = source.count("elements of a block", 8, 8)?;
            let n_tags = source.int("the number of tags")?;
            if n_here == 0 || n_here > n - n_read || n_tags < 0 {
                let message =
                    format!("a block of {n_here} elements with {n_tags} tags, where {n} are announced");
                return Err(source.scanner.error(message));
            }
            for _ in 0..n_here {
                source.int("the number of an element")?;
                let tag = tags(source, n_tags as usize)?;
                self.read_one(source, nodes, element, &[tag])?;
            }
            n_read += n_here;
        }
        Ok(())
    }

    fn version_4(
        &mut self,
        source: &mut Source<'_>,
        nodes: &Nodes,
        entities: &Entities,
    ) -> Result<(), MeshError> {
        let n_blocks = source.size("the number of blocks")?;
        let is_4_1 = source.version == Version::V41;
        let bytes_each = if is_4_1 { 16 } else { 8 };
        let n = source.count("elements", 4, bytes_each)?;
        if is_4_1 {
            source.size("the least number of an element")?;
            source.size("the greatest number of an element")?;
        }
        let mut n_read = 0;
        for _ in 0..n_blocks {
            let (dimension, tag);
            if is_4_1 {
                dimension = source.int("the dimension of an entity")?;
                tag = source.int("the tag of an entity")?;
            } else {
                tag = source.int("the tag of an entity")?;
                dimension = source.int("the dimension of an entity")?;
            }
            let number = source.int("the type of elements")?;
            let element = ElementType::from_number(number, &source.scanner)?;
            let n_here = source.count("elements of a block", 4, bytes_each)?;
            if n_here > n - n_read {
                return Err(source
                    .scanner
                    .error(format!("blocks hold more than the {n} elements announced")));
            }
            n_read += n_here;
            let groups =
                usize::try_from(dimension).ok().and_then(|dimension| entities.get(&(dimension, tag)));
            let groups = groups.map_or(&[0][..], |groups| groups);
            let n_before = element.shape().map_or(0, |shape| self.collector.n_cells(shape));
            if !is_4_1 || !self.read_block(source, nodes, (element, n_here), groups)? {
                for _ in 0..n_here {
                    source.number("the number of an element")?;
                    self.read_one(source, nodes, element, groups)?;
                }
            }
            if let Some(shape) = element.shape().filter(|_| groups.len() > 1 && n_here > 0) {
                let entity = (dimension.clamp(0, 3) as usize, tag);
                self.shared.push(Shared { shape, cells: n_before..n_before + n_here, entity });
            }
        }
        if n_read != n {
            return Err(source
                .scanner
                .error(format!("{n} elements are announced, but blocks hold {n_read}")));
        }
        Ok(())
    }

    /// Reads a binary block of straight cells of version 4.1 by all threads. Returns false, without moving,
    /// if the block is of another kind or has a fault.
    fn read_block(
        &mut self,
        source: &mut Source<'_>,
        nodes: &Nodes,
        (element, n): (ElementType, usize),
        groups: &[i32],
    ) -> Result<bool, MeshError> {
        let ElementType::Cell(shape) = element else { return Ok(false) };
        let Some(records) = source.records(n, 8 * (1 + shape.n_nodes())) else { return Ok(false) };
        let found = match shape {
            CellShape::Segment => nodes_of_records::<2>(source, nodes, records),
            CellShape::Triangle => nodes_of_records::<3>(source, nodes, records),
            CellShape::Quadrilateral | CellShape::Tetrahedron => {
                nodes_of_records::<4>(source, nodes, records)
            }
            CellShape::Pyramid => nodes_of_records::<5>(source, nodes, records),
            CellShape::Prism => nodes_of_records::<6>(source, nodes, records),
            CellShape::Hexahedron => nodes_of_records::<8>(source, nodes, records),
        };
        if first_where(&found, |&node| node == UNKNOWN).is_some() {
            return Ok(false);
        }
        self.is_tagged |= n > 0 && groups.iter().any(|&group| group != 0);
        self.collector.push_all(shape, found, &[], groups[0]);
        source.scanner.take(records.len(), "elements")?;
        Ok(true)
    }

    /// Reads the nodes of an element that belongs to `groups`, one at least.
    fn read_one(
        &mut self,
        source: &mut Source<'_>,
        nodes: &Nodes,
        element: ElementType,
        groups: &[i32],
    ) -> Result<(), MeshError> {
        self.found.clear();
        for _ in 0..element.n_nodes() {
            let number = source.number("a node of an element")?;
            self.found.push(nodes.numbers.find(number).ok_or_else(|| {
                source.scanner.error(format!("an element uses node {number}, which `$Nodes` does not have"))
            })?);
        }
        source.end_of_record("an element")?;
        let Some(shape) = element.shape() else {
            self.collector.skip();
            return Ok(());
        };
        self.is_tagged |= groups.iter().any(|&group| group != 0);
        if self.numbering.as_ref().is_none_or(|(of, ..)| *of != element) {
            self.numbering = element.numbering().map(|(kind, numbering)| (element, kind, numbering));
        }
        match &self.numbering {
            Some((_, kind, numbering)) => {
                numbering.arrange(&self.found, &mut self.arranged);
                self.collector.push_curved(*kind, numbering.order, &self.arranged, groups[0]);
            }
            None if shape.dimension() > 1 && element.n_nodes() > shape.n_nodes() => {
                self.collector.push_straightened(shape, &self.found, &nodes.points, groups[0]);
            }
            None => self.collector.push(shape, self.found[..shape.n_nodes()].iter().copied(), groups[0]),
        }
        Ok(())
    }

    /// Adds a copy of a facet for each further physical group; counts cells by their first and each further group.
    pub(super) fn add_further_groups(
        &mut self,
        source: &Source<'_>,
        entities: &Entities,
    ) -> Result<BTreeMap<(i32, i32), usize>, MeshError> {
        let top = self.collector.top_dimension();
        let mut n_further = 0;
        let mut n_cells = BTreeMap::<_, usize>::new();
        for Shared { shape, cells, entity } in self.shared.drain(..) {
            if shape.dimension() == top {
                *n_cells.entry(entity).or_default() += cells.len();
            }
            if shape.dimension() + 1 != top {
                continue;
            }
            let further = entities.get(&entity).and_then(|groups| groups.get(1..)).unwrap_or_default();
            // Groups are listed once an entity: without a bound a short list would multiply a long block.
            n_further += further.len() * cells.len();
            if n_further > 64 + source.scanner.len() / 8 {
                let what = "a mesh in which most facets belong to several physical groups";
                return Err(source.scanner.unsupported(what, "put each surface into one or two groups"));
            }
            further.iter().for_each(|&group| self.collector.repeat(shape, cells.clone(), group));
        }
        let mut in_several = BTreeMap::new();
        for (entity, n) in n_cells {
            let Some([first, further @ ..]) = entities.get(&entity).map(Vec::as_slice) else { continue };
            let further = further.iter().filter(|group| *group != first);
            further.for_each(|&group| *in_several.entry((*first, group)).or_default() += n);
        }
        Ok(in_several)
    }
}

/// Stands for a node that `$Nodes` does not have.
const UNKNOWN: u32 = u32::MAX;

/// Returns the nodes of elements, each of which is its own number and those of its `N` nodes.
fn nodes_of_records<const N: usize>(source: &Source<'_>, nodes: &Nodes, records: &[u8]) -> Vec<u32> {
    let numbers = records.as_chunks().0;
    let of_record = |record: usize| -> [u32; N] {
        let of_node = |i: usize| source.size_of(numbers[record * (N + 1) + i + 1]);
        std::array::from_fn(|i| nodes.numbers.find(of_node(i)).unwrap_or(UNKNOWN))
    };
    parallel::map(numbers.len() / (N + 1), parallel::CHEAP, of_record).into_flattened()
}

/// The number of tags, then the tags: the first is the physical group.
fn first_tag(source: &mut Source<'_>) -> Result<i32, MeshError> {
    let n_tags = source.scanner.count("tags", 2)?;
    tags(source, n_tags)
}

fn tags(source: &mut Source<'_>, n_tags: usize) -> Result<i32, MeshError> {
    let mut first = 0;
    for tag in 0..n_tags {
        let value = source.int("a tag")?;
        if tag == 0 {
            first = value.wrapping_abs();
        }
    }
    Ok(first)
}
