//! Sorts the cells of a file by shape: those of the highest dimension are the mesh, those one below its tagged facets. Cells of several
//! shapes, prisms, pyramids and collapsed cells are divided into simplices.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use femtile_device::parallel;

use super::lagrange::{Lattice, MISSING, Numbering, complete};
use crate::alike::for_each_alike;
use crate::first_where::first_where;
use crate::plane::flatten;
use crate::simplices::{CellsOfShape, CornerNumbers, Division, Polygon, Simplices, divide, is_collapsed};
use crate::tensor::{CORNERS, corner_places};
use crate::{CellKind, CellShape, Curved, Facets, Field, Mesh, MeshError, Place};

/// Cells of mixed shapes in the order of a file, with their tags.
#[derive(Debug, Default)]
pub(super) struct Collector {
    blocks: BTreeMap<CellShape, Block>,
    n_entries: usize,
}

#[derive(Debug, Default)]
struct Block {
    nodes: Vec<u32>,
    tags: Vec<i32>,
    /// Number of each cell among all entries of the file.
    entries: Vec<u32>,
    /// Order of the first cell, if it is curved.
    order: Option<usize>,
    /// Order of a cell that differs from that of the first.
    other_order: Option<usize>,
    /// All points of curved cells in lexicographic order.
    curved: Vec<u32>,
    /// Cells of higher order of which only the corners are kept.
    straightened: Straightened,
}

/// Cells that are read as straight.
#[derive(Debug, Default)]
struct Straightened {
    n_cells: usize,
    /// The highest order.
    order: usize,
    /// Largest distance of a node from the nearest one of a straight cell, in units of the cell's longest edge.
    farthest: f64,
}

/// Returns the note that cells of an order are read as straight; none if there are no such cells.
///
/// `farthest` is the largest distance of a node from the nearest one of a straight cell of the order, in units of the cell's
/// longest edge, if it is known.
pub(super) fn note_of_straightened(
    shape: CellShape,
    order: usize,
    n_cells: usize,
    farthest: Option<f64>,
) -> Option<String> {
    let cells = match n_cells {
        0 => return None,
        1 => format!("a {shape} of order {order} is"),
        n => format!("{} of order {order} are", shape.count(n)),
    };
    let (nodes, place, places) = match order {
        2 if shape.is_simplex() => ("midside nodes", "the middle of an edge", "in the middle of edges"),
        _ => ("nodes other than corners", "those of a straight cell", "where straight cells have them"),
    };
    let shape = match farthest {
        None => String::new(),
        // Coordinates of six digits, as many files have them, place a node no better than that.
        Some(farthest) if farthest > 1e-5 => {
            format!(
                "; some lie {farthest:.1e} longest edges away from {place}, and that curved shape is lost"
            )
        }
        Some(_) => format!(", all of which lie {places}"),
    };
    Some(format!("{cells} read as straight: {nodes} are dropped{shape}"))
}

/// Returns the note that tagged quadrilaterals, where they are, have nodes that leave no facet; none if there are none.
pub(super) fn note_of_left_out(n: usize, place: &str) -> Option<String> {
    let (facets, have, are) = match n {
        0 => return None,
        1 => ("quadrilateral", "has", "it is"),
        _ => ("quadrilaterals", "have", "they are"),
    };
    Some(format!("{n} tagged {facets}{place} {have} repeated nodes that leave no facet; {are} left out"))
}

/// The middles of the edges of a simplex.
fn middles(corners: &[[f64; 3]]) -> impl Iterator<Item = [f64; 3]> + Clone {
    let edges = (0..corners.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    edges.map(|(i, j)| std::array::from_fn(|d| 0.5 * (corners[i][d] + corners[j][d])))
}

/// The middles of the edges and of the quadrilateral faces of a solid.
fn middles_of(shape: CellShape, corners: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let mean = |of: &[usize]| -> [f64; 3] {
        std::array::from_fn(|d| of.iter().map(|&i| corners[i][d]).sum::<f64>() / of.len() as f64)
    };
    let of_facet = |facet: &&[usize]| {
        let edges = (0..facet.len()).map(|i| mean(&[facet[i], facet[(i + 1) % facet.len()]]));
        edges.chain((facet.len() == 4).then(|| mean(facet))).collect::<Vec<_>>()
    };
    shape.facets().iter().flat_map(of_facet).collect()
}

/// The places of the points of a straight quadrilateral or hexahedron of an order, the first axis fastest.
fn places_of_product(dimension: usize, order: usize, corners: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let row = order + 1;
    let place = |point: usize| {
        let at = [point % row, point / row % row, point / row / row].map(|i| i as f64 / order as f64);
        let weight = |corner: &[usize; 3]| -> f64 {
            let along = |axis: usize| if corner[axis] == 1 { at[axis] } else { 1.0 - at[axis] };
            (0..dimension).map(along).product()
        };
        let weights: Vec<f64> = CORNERS[..corners.len()].iter().map(weight).collect();
        std::array::from_fn(|d| weights.iter().zip(corners).map(|(weight, corner)| weight * corner[d]).sum())
    };
    (0..row.pow(dimension as u32)).map(place).collect()
}

/// Places of the points of a straight simplex after its corners.
fn straight_places(numbering: &Numbering, corners: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let place = |at: &Lattice| {
        std::array::from_fn(|d| {
            let along = |(&i, corner): (&usize, &[f64; 3])| i as f64 * (corner[d] - corners[0][d]);
            corners[0][d] + at.iter().zip(&corners[1..]).map(along).sum::<f64>() / numbering.order as f64
        })
    };
    numbering.points()[corners.len()..].iter().map(place).collect()
}

/// Largest distance of a node of a cell from the nearest place of straight ones, in units of the longest edge.
fn distance_from(
    shape: CellShape,
    places: impl Iterator<Item = [f64; 3]> + Clone,
    corners: &[[f64; 3]],
    nodes: &[[f64; 3]],
) -> f64 {
    let distance =
        |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
    let edges = shape.facets().iter().flat_map(|facet| facet.iter().zip(facet.iter().cycle().skip(1)));
    let longest = edges.map(|(&i, &j)| distance(&corners[i], &corners[j])).fold(0.0, f64::max);
    let nearest = |node| places.clone().map(|place| distance(node, &place)).fold(f64::INFINITY, f64::min);
    let farthest = nodes.iter().map(nearest).fold(0.0, f64::max);
    if farthest > 0.0 { farthest / longest.max(f64::MIN_POSITIVE) } else { 0.0 }
}

impl Block {
    /// Keeps only some of the cells.
    fn retain(&mut self, is_kept: &[bool]) {
        fn retain<T: Copy>(values: &mut Vec<T>, is_kept: &[bool]) {
            let each = values.len() / is_kept.len().max(1);
            let mut index = 0;
            values.retain(|_| {
                index += 1;
                is_kept[(index - 1) / each]
            });
        }
        retain(&mut self.nodes, is_kept);
        retain(&mut self.tags, is_kept);
        retain(&mut self.entries, is_kept);
        retain(&mut self.curved, is_kept);
        self.straightened.n_cells = self.straightened.n_cells.min(self.tags.len());
    }

    /// Notes that the next cell is of `order`; whether all cells so far are.
    fn is_of_order(&mut self, order: usize) -> bool {
        let first = if self.tags.is_empty() { order } else { self.order.unwrap_or(1) };
        if order != first {
            self.other_order.get_or_insert(order);
        }
        self.order = (first > 1).then_some(first);
        self.other_order.is_none()
    }

    /// Keeps only the corners of curved cells.
    fn straighten(&mut self, kind: CellKind, points: &[[f64; 3]]) {
        let Some(order) = self.order.take() else { return };
        let curved = std::mem::take(&mut self.curved);
        let n = kind.n_nodes();
        let place = |&node: &u32| points.get(node as usize).copied().unwrap_or_default();
        let n_points = (order + 1).pow(kind.dimension() as u32);
        let distance = |(cell, nodes): (&[u32], &[u32])| {
            let corners: Vec<[f64; 3]> = nodes.iter().map(place).collect();
            let straight = places_of_product(kind.dimension(), order, &corners);
            // Serendipity cells lack the middles of faces.
            let known = cell.iter().zip(straight).filter(|(point, _)| **point != MISSING);
            let of_point = |(point, straight): (&u32, [f64; 3])| {
                distance_from(kind.into(), std::iter::once(straight), &corners, &[place(point)])
            };
            known.map(of_point).fold(0.0, f64::max)
        };
        let cells: Vec<_> = curved.chunks_exact(n_points).zip(self.nodes.chunks_exact(n)).collect();
        let farthest = parallel::map_chunks(&cells, 1024, |_, cells| {
            cells.iter().copied().map(distance).fold(0.0, f64::max)
        });
        let farthest = farthest.into_iter().fold(0.0, f64::max);
        self.straightened = Straightened { n_cells: self.tags.len(), order, farthest };
    }
}

/// Adds values at the end, without copying them if they are the first.
pub(super) fn append<T>(all: &mut Vec<T>, values: Vec<T>) {
    if all.is_empty() {
        *all = values;
    } else {
        all.extend(values);
    }
}

/// The mesh and the positions of its parts in the file.
pub(super) struct Collected {
    pub mesh: Mesh,
    /// For each cell, its number among all entries of the file.
    pub entries: Vec<u32>,
    /// For each node, its number among the points of the file; none if all points are nodes.
    pub nodes: Option<Vec<u32>>,
    /// By which faces of divided cells are cut; of the points of the file.
    pub numbers: CornerNumbers,
}

impl Collector {
    /// Adds one cell.
    pub(super) fn push(
        &mut self,
        shape: impl Into<CellShape>,
        nodes: impl IntoIterator<Item = u32>,
        tag: i32,
    ) {
        let block = self.blocks.entry(shape.into()).or_default();
        block.is_of_order(1);
        block.nodes.extend(nodes);
        block.tags.push(tag);
        block.entries.push(self.n_entries as u32);
        self.n_entries += 1;
    }

    /// Adds cells of first order: the first with these tags, all further ones with `tag`.
    pub(super) fn push_all(&mut self, shape: CellShape, nodes: Vec<u32>, tags: &[i32], tag: i32) {
        let n = nodes.len() / shape.n_nodes();
        if n == 0 {
            return;
        }
        let block = self.blocks.entry(shape).or_default();
        block.is_of_order(1);
        append(&mut block.nodes, nodes);
        let n_before = block.tags.len();
        block.tags.extend_from_slice(tags);
        block.tags.resize(n_before + n, tag);
        block.entries.extend((self.n_entries..self.n_entries + n).map(|entry| entry as u32));
        self.n_entries += n;
    }

    /// Adds one cell of higher order by its points in lexicographic order.
    pub(super) fn push_curved(&mut self, kind: CellKind, order: usize, points: &[u32], tag: i32) {
        let block = self.blocks.entry(kind.into()).or_default();
        if block.is_of_order(order) {
            block.curved.extend_from_slice(points);
        }
        block.nodes.extend(corner_places(kind, order).map(|place| points[place]));
        block.tags.push(tag);
        block.entries.push(self.n_entries as u32);
        self.n_entries += 1;
    }

    /// Adds one simplex, pyramid or prism of order 2 by its corners and the nodes on its edges and faces; only the corners are kept.
    ///
    /// `points` are those of the file; [`Collector::into_mesh`] refuses indices beyond them.
    pub(super) fn push_straightened(
        &mut self,
        shape: impl Into<CellShape>,
        nodes: &[u32],
        points: &[[f64; 3]],
        tag: i32,
    ) {
        let shape = shape.into();
        let mut places = [[0.0; 3]; 18];
        let places = &mut places[..nodes.len().min(18)];
        for (place, &node) in places.iter_mut().zip(nodes) {
            *place = points.get(node as usize).copied().unwrap_or_default();
        }
        let (corners, others) = places.split_at(shape.n_nodes());
        let distance = match shape.is_simplex() {
            true => distance_from(shape, middles(corners), corners, others),
            false => distance_from(shape, middles_of(shape, corners).into_iter(), corners, others),
        };
        self.push(shape, nodes[..shape.n_nodes()].iter().copied(), tag);
        self.straightened(shape, 2, distance);
    }

    /// Adds one simplex of higher order by its points as [`Collector::push_straightened`] does.
    pub(super) fn push_straightened_of(
        &mut self,
        (kind, numbering): (CellKind, &Numbering),
        nodes: &[u32],
        points: &[[f64; 3]],
        tag: i32,
    ) {
        let place = |&node: &u32| points.get(node as usize).copied().unwrap_or_default();
        let places: Vec<[f64; 3]> = nodes.iter().map(place).collect();
        let (corners, others) = places.split_at(kind.n_nodes());
        let straight = straight_places(numbering, corners);
        let distance = distance_from(kind.into(), straight.iter().copied(), corners, others);
        self.push(kind, nodes[..kind.n_nodes()].iter().copied(), tag);
        self.straightened(kind.into(), numbering.order, distance);
    }

    /// Notes that the last cell of a shape was straightened.
    fn straightened(&mut self, shape: CellShape, order: usize, distance: f64) {
        let straightened = &mut self.blocks.entry(shape).or_default().straightened;
        straightened.n_cells += 1;
        straightened.order = straightened.order.max(order);
        straightened.farthest = straightened.farthest.max(distance);
    }

    /// Skips an entry that is neither cell nor facet, such as a point.
    pub(super) fn skip(&mut self) {
        self.n_entries += 1;
    }

    /// Number of cells of a shape so far.
    pub(super) fn n_cells(&self, shape: CellShape) -> usize {
        self.blocks.get(&shape).map_or(0, |block| block.tags.len())
    }

    /// Highest dimension of a cell so far.
    pub(super) fn top_dimension(&self) -> usize {
        self.blocks.keys().map(|shape| shape.dimension()).max().unwrap_or(0)
    }

    /// Nodes of all cells of the highest dimension, by their shapes.
    pub(super) fn cells(&self) -> Vec<(CellShape, &[u32])> {
        let top = self.top_dimension();
        let blocks = self.blocks.iter().filter(|(shape, _)| shape.dimension() == top);
        blocks.map(|(&shape, block)| (shape, &block.nodes[..])).collect()
    }

    /// Nodes of all cells of a shape, which may be put in another order within a cell.
    pub(super) fn nodes_mut(&mut self, shape: CellShape) -> &mut [u32] {
        self.blocks.get_mut(&shape).map_or(&mut [], |block| &mut block.nodes)
    }

    /// Adds cells that are there already once more under a further tag.
    pub(super) fn repeat(&mut self, shape: CellShape, cells: Range<usize>, tag: i32) {
        let Some(block) = self.blocks.get_mut(&shape) else { return };
        let n = shape.n_nodes();
        block.nodes.extend_from_within(cells.start * n..cells.end * n);
        block.tags.resize(block.tags.len() + cells.len(), tag);
        block.entries.extend_from_within(cells);
    }

    /// Drops further copies of cells of the highest dimension if they have other tags than the first; counts
    /// them by the tag of the first and their own.
    ///
    /// # Cost
    /// If cells have several tags, a sort of 8 bytes per cell by all threads.
    pub(super) fn drop_copies(&mut self) -> BTreeMap<(i32, i32), usize> {
        let top = self.top_dimension();
        let mut dropped = BTreeMap::new();
        for (shape, block) in self.blocks.iter_mut().filter(|(shape, _)| shape.dimension() == top) {
            if block.tags.windows(2).all(|pair| pair[0] == pair[1]) || block.other_order.is_some() {
                continue;
            }
            let key = |cell: u32| {
                let mut key = [u32::MAX; 8];
                let n = shape.n_nodes();
                key[..n].copy_from_slice(&block.nodes[cell as usize * n..][..n]);
                key.sort_unstable();
                key
            };
            let tag = |cell: u32| block.tags[cell as usize];
            let mut is_kept = vec![true; block.tags.len()];
            let mut has_copies = false;
            for_each_alike(block.tags.len(), &key, &mut |copies| {
                for &copy in copies.iter().filter(|&&copy| tag(copy) != tag(copies[0])) {
                    (is_kept[copy as usize], has_copies) = (false, true);
                    *dropped.entry((tag(copies[0]), tag(copy))).or_default() += 1;
                }
            });
            if has_copies {
                block.retain(&is_kept);
            }
        }
        dropped
    }

    /// Number of entries so far.
    pub(super) fn len(&self) -> usize {
        self.n_entries
    }

    /// Takes the cells of the highest dimension, divided into simplices if a mesh cannot have them.
    fn take_cells(&mut self, path: &Path, top: usize, points: &[[f64; 3]]) -> Result<Cells, MeshError> {
        let of_top = |shape: &CellShape, _: &mut Block| shape.dimension() == top;
        let blocks: Vec<(CellShape, Block)> = self.blocks.extract_if(.., of_top).collect();
        for (_, block) in &blocks {
            if let Some(other) = block.other_order {
                return Err(unsupported(
                    path,
                    format!("a mesh that mixes cells of order {} and {other}", block.order.unwrap_or(1)),
                    "all cells of a kind must have the same order",
                ));
            }
        }
        match <[(CellShape, Block); 1]>::try_from(blocks) {
            Ok([(shape, block)]) => {
                let collapsed = shape.kind().and_then(|kind| block.collapsed(kind));
                match shape.kind().filter(|_| collapsed.is_none()) {
                    Some(kind) => Ok(block.of_one_kind(kind)),
                    None => {
                        let mut cells = divided(path, top, vec![(shape, block)], points)?;
                        cells.notes.extend(collapsed);
                        Ok(cells)
                    }
                }
            }
            Err(blocks) => divided(path, top, blocks, points),
        }
    }

    /// Takes the tagged facets of cells of a kind; those of four nodes are cut if the cells are, by the numbers that the cells are cut by.
    /// Those that are no polygons are left out with a note.
    fn take_facets(
        &mut self,
        kind: CellKind,
        numbers: Option<&CornerNumbers>,
        notes: &mut Vec<String>,
    ) -> Facets {
        let mut found = Facets::default();
        let Some(facet) = kind.facet_kind() else { return found };
        let Block { nodes, tags, .. } = self.blocks.remove(&facet.into()).unwrap_or_default();
        for (nodes, tag) in nodes.chunks_exact(facet.n_nodes()).zip(tags).filter(|(_, tag)| *tag != 0) {
            found.nodes.extend_from_slice(nodes);
            found.tags.push(tag);
        }
        let Some(numbers) = numbers.filter(|_| facet == CellKind::Triangle) else { return found };
        let Block { nodes, tags, .. } = self.blocks.remove(&CellShape::Quadrilateral).unwrap_or_default();
        let mut n_left_out = 0;
        for (nodes, tag) in nodes.chunks_exact(4).zip(tags).filter(|(_, tag)| *tag != 0) {
            let polygon = Polygon::of(nodes.iter().copied());
            if !polygon.encloses_area() {
                n_left_out += 1;
                continue;
            }
            for triangle in polygon.triangles(numbers) {
                found.nodes.extend(triangle);
                found.tags.push(tag);
            }
        }
        notes.extend(note_of_left_out(n_left_out, ""));
        found
    }

    /// Returns the mesh. `tagged` is true if the file has tags; facets with tag 0 are untagged.
    ///
    /// # Errors
    /// [`MeshError::Unsupported`] for cells of two orders of the highest dimension, [`MeshError::Parse`] for a file without cells,
    /// with indices out of range or with a collapsed cell that is none.
    pub(super) fn into_mesh(
        mut self,
        path: &Path,
        mut points: Vec<[f64; 3]>,
        tagged: bool,
    ) -> Result<Collected, MeshError> {
        let top = self.top_dimension();
        if top < 2 {
            return Err(parse(path, "the file has no triangles, tetrahedra or other cells".into()));
        }
        let mut cells = self.take_cells(path, top, &points)?;
        let is_surface = top == 2 && !flatten(&mut points, &[&cells.nodes, &cells.curved]);
        let facets = match tagged {
            true => {
                let numbers = cells.division.is_some().then_some(&cells.numbers);
                self.take_facets(cells.kind, numbers, &mut cells.notes)
            }
            false => Facets::default(),
        };
        let mut mesh = Mesh {
            points,
            kind: cells.kind,
            is_surface,
            cells: cells.nodes,
            curved: None,
            cell_tags: if tagged { cells.tags } else { Vec::new() },
            facets,
            tag_names: BTreeMap::new(),
            cell_fields: BTreeMap::new(),
            node_fields: BTreeMap::new(),
            division: None,
            notes: cells.notes,
        };
        if let Some((division, numbers)) = cells.division {
            mesh.cell_fields.insert(Division::FIELD.into(), Field { n_components: 1, values: numbers });
            mesh.division = Some(division);
        }
        let in_range =
            |nodes: &[u32]| first_where(nodes, |&node| node as usize >= mesh.points.len()).is_none();
        let nodes = match cells.order {
            _ if !(in_range(&mesh.cells) && in_range(&mesh.facets.nodes)) => None,
            Some(order) => Some(bend(&mut mesh, order, cells.curved)),
            None if cells.is_straightened => {
                Some(compact(&mut mesh.points, &mut [&mut mesh.cells, &mut mesh.facets.nodes]))
            }
            None => None,
        };
        mesh.validate().map_err(|error| parse(path, error.to_string()))?;
        Ok(Collected { mesh, entries: cells.entries, nodes, numbers: cells.numbers })
    }
}

/// Cells as a mesh has them.
struct Cells {
    kind: CellKind,
    nodes: Vec<u32>,
    tags: Vec<i32>,
    entries: Vec<u32>,
    /// Order and points of curved cells.
    order: Option<usize>,
    curved: Vec<u32>,
    is_straightened: bool,
    /// The cells of the file, with the number of that which each simplex is a part of.
    division: Option<(Division, Vec<f64>)>,
    numbers: CornerNumbers,
    notes: Vec<String>,
}

impl Block {
    /// Returns the note that quadrilaterals or hexahedra have a node twice; none if none has, or the cells are curved.
    fn collapsed(&self, kind: CellKind) -> Option<String> {
        if kind.is_simplex() || self.order.is_some() {
            return None;
        }
        let (n_cells, n) = (self.tags.len(), kind.n_nodes());
        let has_twice = |cell: usize| is_collapsed(&self.nodes[cell * n..][..n]);
        let first = parallel::first(n_cells, parallel::CHEAP, has_twice)?;
        let shape = CellShape::from(kind);
        let which = match parallel::sum(n_cells, parallel::CHEAP, |cell| usize::from(has_twice(cell))) {
            1 => format!("1 of {} has repeated nodes, cell {first}", shape.count(n_cells)),
            n => format!("{n} of {} have repeated nodes, the first is cell {first}", shape.count(n_cells)),
        };
        Some(format!("{which}: therefore all cells are divided"))
    }

    fn note(&self, shape: CellShape) -> Option<String> {
        let Straightened { n_cells, order, farthest } = self.straightened;
        note_of_straightened(shape, order, n_cells, Some(farthest))
    }

    fn of_one_kind(self, kind: CellKind) -> Cells {
        let notes = self.note(kind.into()).into_iter().collect();
        Cells {
            kind,
            nodes: self.nodes,
            tags: self.tags,
            entries: self.entries,
            order: self.order,
            curved: self.curved,
            is_straightened: self.straightened.n_cells > 0,
            division: None,
            numbers: CornerNumbers::default(),
            notes,
        }
    }
}

/// Divides cells of several shapes into simplices.
fn divided(
    path: &Path,
    top: usize,
    mut blocks: Vec<(CellShape, Block)>,
    points: &[[f64; 3]],
) -> Result<Cells, MeshError> {
    for (shape, block) in &mut blocks {
        shape.kind().into_iter().for_each(|kind| block.straighten(kind, points));
    }
    let shapes: Vec<CellsOfShape<'_>> = blocks
        .iter()
        .map(|(shape, block)| CellsOfShape { shape: *shape, nodes: &block.nodes, entries: &block.entries })
        .collect();
    let numbers = CornerNumbers::of(points, &shapes.iter().map(|of| of.nodes).collect::<Vec<_>>());
    let Simplices { nodes, cell_of, cells, division } = divide(&shapes, &numbers).map_err(|number| {
        parse(
            path,
            format!("cell {number} has repeated nodes that leave no cell; remove it or correct its nodes"),
        )
    })?;
    let of_cell = |number: u32| {
        let at = cells[number as usize];
        (&blocks[at.shape].1, at.cell)
    };
    let entry = |part: usize| {
        let (block, cell) = of_cell(cell_of[part]);
        block.entries[cell]
    };
    let tag = |part: usize| {
        let (block, cell) = of_cell(cell_of[part]);
        block.tags[cell]
    };
    let entries = parallel::map(cell_of.len(), parallel::CHEAP, entry);
    let tags = parallel::map(cell_of.len(), parallel::CHEAP, tag);
    let cells_of_file = parallel::map(cell_of.len(), parallel::CHEAP, |part| f64::from(cell_of[part]));
    Ok(Cells {
        kind: if top == 2 { CellKind::Triangle } else { CellKind::Tetrahedron },
        nodes,
        tags,
        entries,
        order: None,
        curved: Vec::new(),
        is_straightened: blocks.iter().any(|(_, block)| block.straightened.n_cells > 0),
        division: Some((division, cells_of_file)),
        numbers,
        notes: blocks.iter().filter_map(|(shape, block)| block.note(*shape)).collect(),
    })
}

/// Sets the curved shapes of a mesh and keeps its corners as nodes; returns their numbers in the file.
fn bend(mesh: &mut Mesh, order: usize, mut cells: Vec<u32>) -> Vec<u32> {
    let mut points = mesh.points.clone();
    if order == 2 {
        complete(mesh.kind, &mut cells, &mut points);
    }
    let nodes = compact(&mut mesh.points, &mut [&mut mesh.cells, &mut mesh.facets.nodes]);
    compact(&mut points, &mut [&mut cells]);
    mesh.curved = Some(Curved { order, points, cells });
    nodes
}

/// Drops unused points, keeps the order of the others and returns their old numbers.
pub(super) fn compact(points: &mut Vec<[f64; 3]>, indices: &mut [&mut Vec<u32>]) -> Vec<u32> {
    let mut new_number = vec![u32::MAX; points.len()];
    indices.iter().flat_map(|part| part.iter()).for_each(|&point| new_number[point as usize] = 0);
    let mut kept = Vec::new();
    for (number, point) in new_number.iter_mut().zip(0u32..).filter(|(number, _)| **number == 0) {
        *number = kept.len() as u32;
        kept.push(point);
    }
    let renumber = |point: &mut u32| *point = new_number[*point as usize];
    indices.iter_mut().flat_map(|part| part.iter_mut()).for_each(renumber);
    *points = kept.iter().map(|&point| points[point as usize]).collect();
    kept
}

/// Keeps of a field over all entries of a file those of the mesh's cells or nodes; `entries` ascend, and come once for each simplex of
/// a divided cell.
pub(super) fn pick(entries: &[u32], field: &mut Field) {
    let n = field.n_components;
    // Entries that ascend to the last one are all.
    let is_all = entries.last().is_none_or(|&last| last as usize + 1 == entries.len());
    let are_once = entries.windows(2).all(|pair| pair[0] < pair[1]);
    if is_all && are_once && field.values.len() == entries.len() * n {
        return;
    }
    if !are_once {
        let mut values = Vec::with_capacity(entries.len() * n);
        entries.iter().for_each(|&entry| values.extend_from_slice(&field.values[entry as usize * n..][..n]));
        field.values = values;
        return;
    }
    for (cell, &entry) in entries.iter().enumerate() {
        let begin = entry as usize * n;
        field.values.copy_within(begin..begin + n, cell * n);
    }
    field.values.truncate(entries.len() * n);
}

/// Sets the fields of cells of a mesh from those over all entries of a file.
pub(super) fn insert_fields(
    mesh: &mut Mesh,
    entries: &[u32],
    fields: impl IntoIterator<Item = (String, Field)>,
) {
    for (name, mut field) in fields {
        if mesh.division.is_some() && name == Division::FIELD {
            mesh.notes.push(format!(
                "the cell array `{name}` of the file is left out: here it has the numbers of its cells"
            ));
            continue;
        }
        pick(entries, &mut field);
        mesh.cell_fields.insert(name, field);
    }
}

fn parse(path: &Path, message: String) -> MeshError {
    MeshError::Parse { path: path.into(), place: Place::Whole, message }
}

fn unsupported(path: &Path, what: String, advice: &str) -> MeshError {
    MeshError::Unsupported { path: path.into(), place: Place::Whole, what, advice: advice.into() }
}
