use std::collections::HashSet;
use std::path::Path;

use super::element_type::ElementType;
use super::faces::corners;
use super::include::with_included;
use super::line_origins::LineOrigins;
use super::model::{Beside, Model, Surface, SurfacePart};
use super::node_facets::NodeFacets;
use super::sets::Resolver;
use crate::io::collect::Collected;
use crate::io::file::bytes_of;
use crate::io::node_numbers::NodeNumbers;
use crate::io::number;
use crate::io::scanner::show;
use crate::io::vtk_cell::VtkCells;
use crate::{CellShape, Mesh, MeshError, Place};

/// Reads an input file of Abaqus or CalculiX.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`], and of files that it includes.
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse_with_included(path, &bytes_of(path)?)
}

/// Reads the bytes of an input file with the files that it includes, which are named relative to the file that includes them.
pub(in crate::io) fn parse_with_included(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let (text, places) = with_included(path, bytes)?;
    parse_text(&places, &text)
}

/// Reads the bytes of an input file that includes no other; `path` is used in messages only.
///
/// Sets of elements are the tags of cells. A cell in several sets has the set that a section names, else the
/// last. Sets of elements of one dimension less, surfaces, and sets of nodes that hold all nodes of boundary
/// facets are the tags of facets. A file has one part and one instance at most.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    parse_text(&LineOrigins::of_file(path), bytes)
}

fn parse_text(places: &LineOrigins, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut model = Model::read(places, bytes)?;
    let numbers = |numbers: Vec<u64>, what: &str| {
        let twice = |number| places.whole(format!("two {what} have the number {number}"));
        NodeNumbers::new(&numbers).map_err(twice)
    };
    let node_numbers = numbers(std::mem::take(&mut model.point_numbers), "nodes")?;
    let n_elements = model.element_numbers.len();
    let element_numbers = numbers(std::mem::take(&mut model.element_numbers), "elements")?;
    let elements = Elements::new(places, &mut model, &node_numbers)?;
    let points = std::mem::take(&mut model.points);
    let mut reader = Reader {
        places,
        n_bytes: bytes.len(),
        n_facets: 0,
        of_nodes: Resolver::new(places, &model.node_sets, &node_numbers, points.len(), "node", bytes.len()),
        of_elements: Resolver::new(
            places,
            &model.element_sets,
            &element_numbers,
            n_elements,
            "element",
            bytes.len(),
        )
        .with_beside(&model.beside),
        model: &model,
        elements,
        points,
        names: Vec::new(),
        cells: VtkCells::new(false),
    };
    reader.cells()?;
    reader.surfaces()?;
    reader.into_mesh()
}

/// Elements with their nodes by the order of the file.
struct Elements {
    /// Type of each block, with the number of its last element and the place of its first node.
    blocks: Vec<(ElementType, usize, usize)>,
    nodes: Vec<u32>,
    /// Highest dimension of an element.
    top: usize,
}

impl Elements {
    fn new(places: &LineOrigins, model: &mut Model<'_>, numbers: &NodeNumbers) -> Result<Self, MeshError> {
        let mut elements =
            Self { blocks: Vec::new(), nodes: std::mem::take(&mut model.element_nodes), top: 0 };
        for node in &mut elements.nodes {
            let number = *node;
            let message = || places.whole(format!("an element uses node {number}, which no `*NODE` has"));
            *node = numbers.find(number.into()).ok_or_else(message)?;
        }
        let (mut first, mut first_node) = (0, 0);
        for block in &model.blocks {
            elements.blocks.push((block.kind, block.end, first_node));
            first_node += (block.end - first) * block.kind.n_nodes;
            if block.end > first {
                elements.top = elements.top.max(block.kind.shape().dimension());
            }
            first = block.end;
        }
        Ok(elements)
    }

    /// Type and nodes of an element.
    fn get(&self, element: u32) -> (ElementType, &[u32]) {
        let element = element as usize;
        let block = self.blocks.partition_point(|(_, end, _)| *end <= element);
        let (kind, _, first_node) = self.blocks[block];
        let first = if block == 0 { 0 } else { self.blocks[block - 1].1 };
        let begin = first_node + (element - first) * kind.n_nodes;
        (kind, &self.nodes[begin..begin + kind.n_nodes])
    }
}

struct Reader<'a> {
    places: &'a LineOrigins,
    points: Vec<[f64; 3]>,
    n_bytes: usize,
    n_facets: usize,
    model: &'a Model<'a>,
    of_nodes: Resolver<'a>,
    of_elements: Resolver<'a>,
    elements: Elements,
    /// Dimension, tag and name of each tagged set.
    names: Vec<(usize, i32, String)>,
    cells: VtkCells,
}

impl Reader<'_> {
    /// Adds all cells with the tags of their sets, and elements of one dimension less once for each of their sets.
    fn cells(&mut self) -> Result<(), MeshError> {
        let sets = &self.model.element_sets;
        let find = |(key, scope): &(String, &str)| sets.find(key, scope);
        let sections: HashSet<usize> = self.model.sections.iter().filter_map(find).collect();
        let of_surface = |part: SurfacePart<'_>| sets.find(&part.of, part.scope);
        let surfaces = self.model.surfaces.iter().filter(|surface| !surface.is_of_nodes);
        let sides: HashSet<usize> = surfaces.flat_map(Surface::parts).filter_map(of_surface).collect();
        let n_elements = self.elements.blocks.last().map_or(0, |block| block.1);
        let mut tags = vec![0i32; n_elements];
        let mut is_of_section = vec![false; n_elements];
        for (number, set) in sets.sets.iter().enumerate() {
            let (tag, is_section) = (number as i32 + 1, sections.contains(&number));
            let is_region = is_section || !(set.is_internal || sides.contains(&number));
            let mut has_facets = false;
            for element in self.of_elements.members(number)? {
                let (kind, nodes) = self.elements.get(element);
                let (shape, dimension) = (kind.shape(), kind.shape().dimension());
                if dimension + 1 == self.elements.top && !set.is_internal {
                    has_facets = true;
                    push_facet(&mut self.cells, shape, &nodes[..shape.n_nodes()], tag);
                    self.n_facets += 1;
                    check_facets(self.places.path(), self.n_facets, self.n_bytes)?;
                }
                let held = &mut is_of_section[element as usize];
                if dimension == self.elements.top && is_region && (is_section || !*held) {
                    tags[element as usize] = tag;
                    *held |= is_section;
                }
            }
            if has_facets {
                self.names.push((self.elements.top - 1, tag, set.name.clone()));
            }
        }
        drop(is_of_section);
        self.push_cells(&tags)?;
        let used: HashSet<i32> = tags.into_iter().collect();
        let named = sets.sets.iter().enumerate().map(|(number, set)| (number as i32 + 1, set));
        let named = named.filter(|(tag, _)| used.contains(tag));
        self.names.extend(named.map(|(tag, set)| (self.elements.top, tag, set.name.clone())));
        Ok(())
    }

    fn push_cells(&mut self, tags: &[i32]) -> Result<(), MeshError> {
        for (element, &tag) in tags.iter().enumerate() {
            let (kind, nodes) = self.elements.get(element as u32);
            if kind.shape().dimension() == self.elements.top {
                let pushed = self.cells.push(element, kind.cell, nodes, &self.points, tag);
                pushed.map_err(|message| self.places.whole(message))?;
            }
        }
        Ok(())
    }

    /// Adds the sides of elements that surfaces name.
    fn surfaces(&mut self) -> Result<(), MeshError> {
        let model = self.model;
        let first = model.element_sets.sets.len() as i32 + 1;
        for (tag, surface) in (first..).zip(&model.surfaces).filter(|(_, surface)| !surface.is_of_nodes) {
            let n_before = self.n_facets;
            for part in surface.parts() {
                for element in self.elements_of(surface, &part)? {
                    self.push_side(surface, &part, element, tag)?;
                }
            }
            if self.n_facets > n_before {
                self.names.push((self.elements.top.saturating_sub(1), tag, surface.name.clone()));
            }
        }
        Ok(())
    }

    fn elements_of(&mut self, surface: &Surface<'_>, part: &SurfacePart<'_>) -> Result<Vec<u32>, MeshError> {
        if let Some(set) = self.model.element_sets.find(&part.of, part.scope) {
            return self.of_elements.members(set);
        }
        Ok(member(&mut self.of_elements, surface, part).into_iter().collect())
    }

    fn push_side(
        &mut self,
        surface: &Surface<'_>,
        part: &SurfacePart<'_>,
        element: u32,
        tag: i32,
    ) -> Result<(), MeshError> {
        let (kind, nodes) = self.elements.get(element);
        let shape = kind.shape();
        let is_facet = shape.dimension() + 1 == self.elements.top;
        let local: &[usize] = match part.side.to_ascii_uppercase().as_slice() {
            b"SPOS" | b"SNEG" if is_facet => &[0, 1, 2, 3][..shape.n_nodes()],
            side => {
                let digits = side.strip_prefix(b"S").or_else(|| side.strip_prefix(b"E"));
                let number = digits.and_then(number::integer).and_then(|number| usize::try_from(number).ok());
                let found = number.and_then(|number| corners(shape, number));
                match found.filter(|_| shape.dimension() == self.elements.top) {
                    Some(found) => found,
                    None => {
                        let message = format!(
                            "the surface `{}` names the side `{}` of a {shape}; sides are S1, S2, …, those of shells on \
                             solids SPOS and SNEG",
                            surface.name,
                            show(part.side)
                        );
                        return Err(self.places.error(surface.line, message));
                    }
                }
            }
        };
        let mut side = [0; 4];
        side.iter_mut().zip(local).for_each(|(to, &corner)| *to = nodes[corner]);
        push_facet(&mut self.cells, facet_shape(local.len()), &side[..local.len()], tag);
        self.n_facets += 1;
        check_facets(self.places.path(), self.n_facets, self.n_bytes)
    }

    /// Returns the mesh, with the facets selected by node sets.
    fn into_mesh(mut self) -> Result<Mesh, MeshError> {
        let sets = self.node_sets()?;
        let top = self.elements.top;
        drop(std::mem::take(&mut self.elements.nodes));
        self.add_node_sets(sets)?;
        let cells = std::mem::take(&mut self.cells);
        let points = std::mem::take(&mut self.points);
        let notes = self.notes();
        let Collected { mut mesh, .. } = cells.collector.into_mesh(self.places.path(), points, true)?;
        if !self.names.iter().any(|(dimension, ..)| *dimension == top) {
            mesh.cell_tags.clear();
        }
        mesh.tag_names =
            self.names.into_iter().map(|(dimension, tag, name)| ((dimension, tag), name)).collect();
        mesh.notes.extend(notes);
        Ok(mesh)
    }

    /// Adds the boundary facets selected by node sets.
    fn add_node_sets(&mut self, sets: Vec<NodeSet>) -> Result<(), MeshError> {
        // Without cells of two or three dimensions the file is refused later.
        if sets.is_empty() || self.elements.top < 2 {
            return Ok(());
        }
        let path = self.places.path();
        let mut found = Vec::new();
        let mut finder = NodeFacets::new(self.cells.collector.cells(), self.points.len(), self.n_bytes);
        for (tag, name, nodes) in sets {
            let facets = finder.of_set(&nodes).ok_or_else(|| too_many(path))?;
            self.n_facets += facets.len();
            check_facets(path, self.n_facets, self.n_bytes)?;
            if !facets.is_empty() {
                self.names.push((self.elements.top - 1, tag, name));
                found.push((tag, facets));
            }
        }
        for (tag, facets) in found {
            for facet in facets {
                let nodes = facet.nodes();
                push_facet(&mut self.cells, facet_shape(nodes.len()), nodes, tag);
            }
        }
        Ok(())
    }

    /// Returns notes on the parts of the file that are left out.
    fn notes(&self) -> Vec<String> {
        let Beside { types, beams, .. } = &self.model.beside;
        let beams = beams.iter().filter(|_| self.elements.top == 3);
        let types: Vec<String> = types.iter().chain(beams).map(|name| format!("`{name}`")).collect();
        let beside = match types.is_empty() {
            true => None,
            false => {
                Some(format!("elements that are no cells are left out, of the types {}", types.join(", ")))
            }
        };
        [beside, self.of_nodes.note(), self.of_elements.note()].into_iter().flatten().collect()
    }

    /// Returns tag, name and nodes of the node sets that may name parts of the boundary.
    fn node_sets(&mut self) -> Result<Vec<NodeSet>, MeshError> {
        let model = self.model;
        let mut found = Vec::new();
        let first = (model.element_sets.sets.len() + 1) as i32;
        for (tag, surface) in (first..).zip(&model.surfaces).filter(|(_, surface)| surface.is_of_nodes) {
            let mut nodes = Vec::new();
            for part in surface.parts() {
                match model.node_sets.find(&part.of, part.scope) {
                    Some(set) => nodes.extend(self.of_nodes.members(set)?),
                    None => nodes.extend(member(&mut self.of_nodes, surface, &part)),
                }
            }
            nodes.sort_unstable();
            nodes.dedup();
            found.push((tag, surface.name.clone(), nodes));
        }
        let first = first + model.surfaces.len() as i32;
        for (number, set) in model.node_sets.sets.iter().enumerate().filter(|(_, set)| !set.is_internal) {
            found.push((first + number as i32, set.name.clone(), self.of_nodes.members(number)?));
        }
        Ok(found)
    }
}

type NodeSet = (i32, String, Vec<u32>);

/// Finds the node or element that a line of a surface names by its number; none if it is left out or not
/// defined.
fn member(resolver: &mut Resolver<'_>, surface: &Surface<'_>, part: &SurfacePart<'_>) -> Option<u32> {
    let said = |what| {
        let line = surface.places.show(surface.line);
        format!("{line}: the surface `{}` names {what} `{}`", surface.name, part.of)
    };
    match part.of.parse() {
        Ok(number) => resolver.find(number, said),
        Err(_) => {
            resolver.miss(said);
            None
        }
    }
}

/// The shape of a facet of some nodes.
const fn facet_shape(n_nodes: usize) -> CellShape {
    match n_nodes {
        2 => CellShape::Segment,
        3 => CellShape::Triangle,
        _ => CellShape::Quadrilateral,
    }
}

fn push_facet(cells: &mut VtkCells, shape: CellShape, nodes: &[u32], tag: i32) {
    cells.collector.push(shape, nodes.iter().copied(), tag);
}

/// Bounds the number of facets: sets may name the same elements repeatedly, so a short file could need much memory.
fn check_facets(path: &Path, n_facets: usize, n_bytes: usize) -> Result<(), MeshError> {
    if n_facets > 64 + n_bytes / 8 { Err(too_many(path)) } else { Ok(()) }
}

fn too_many(path: &Path) -> MeshError {
    MeshError::Unsupported {
        path: path.into(),
        place: Place::Whole,
        what: "a mesh in which most facets belong to several sets and surfaces".into(),
        advice: "put each part of the boundary into one or two".into(),
    }
}
