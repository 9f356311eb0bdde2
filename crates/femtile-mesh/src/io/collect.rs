//! Sorts the cells of a file by kind: those of the highest dimension are the mesh, those one below its tagged facets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::lagrange::{Lattice, Numbering, complete};
use crate::alike::for_each_alike;
use crate::first_where::first_where;
use crate::plane::flatten;
use crate::tensor::corner_places;
use crate::{CellKind, Curved, Facets, Field, Mesh, MeshError, Place};

/// Cells of mixed kinds in the order of a file, with their tags.
#[derive(Debug, Default)]
pub(super) struct Collector {
    blocks: BTreeMap<CellKind, Block>,
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
    /// Simplices of higher order among the cells.
    straightened: Straightened,
}

/// Simplices that are read as straight.
#[derive(Debug, Default)]
struct Straightened {
    n_cells: usize,
    /// The highest order.
    order: usize,
    /// Largest distance of a node from the nearest one of a straight cell, in units of the cell's longest edge.
    farthest: f64,
}

/// Returns the note that simplices of an order are read as straight; none if there are no such simplices.
///
/// `farthest` is the largest distance of a node from the nearest one of a straight cell of the order, in units of the cell's
/// longest edge, if it is known.
pub(super) fn note_of_straightened(
    kind: CellKind,
    order: usize,
    n_cells: usize,
    farthest: Option<f64>,
) -> Option<String> {
    let cells = match n_cells {
        0 => return None,
        1 => format!("a {kind} of order {order} is"),
        n => format!("{n} {} of order {order} are", plural(kind)),
    };
    let (nodes, place, places) = match order {
        2 => ("midside nodes", "the middle of an edge", "in the middle of edges"),
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

fn plural(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Tetrahedron => "tetrahedra",
        CellKind::Triangle => "triangles",
        _ => "cells",
    }
}

/// The middles of the edges of a simplex.
fn middles(corners: &[[f64; 3]]) -> impl Iterator<Item = [f64; 3]> + Clone {
    let edges = (0..corners.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    edges.map(|(i, j)| std::array::from_fn(|d| 0.5 * (corners[i][d] + corners[j][d])))
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

/// Largest distance of a node of a simplex from the nearest place of straight ones, in units of the longest edge.
fn distance_from(
    places: impl Iterator<Item = [f64; 3]> + Clone,
    corners: &[[f64; 3]],
    nodes: &[[f64; 3]],
) -> f64 {
    let distance =
        |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
    let edges = (0..corners.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let longest = edges.map(|(i, j)| distance(&corners[i], &corners[j])).fold(0.0, f64::max);
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
}

impl Collector {
    /// Adds one cell.
    pub(super) fn push(&mut self, kind: CellKind, nodes: impl IntoIterator<Item = u32>, tag: i32) {
        let block = self.blocks.entry(kind).or_default();
        block.is_of_order(1);
        block.nodes.extend(nodes);
        block.tags.push(tag);
        block.entries.push(self.n_entries as u32);
        self.n_entries += 1;
    }

    /// Adds cells of first order: the first with these tags, all further ones with `tag`.
    pub(super) fn push_all(&mut self, kind: CellKind, nodes: Vec<u32>, tags: &[i32], tag: i32) {
        let n = nodes.len() / kind.n_nodes();
        if n == 0 {
            return;
        }
        let block = self.blocks.entry(kind).or_default();
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
        let block = self.blocks.entry(kind).or_default();
        if block.is_of_order(order) {
            block.curved.extend_from_slice(points);
        }
        block.nodes.extend(corner_places(kind, order).map(|place| points[place]));
        block.tags.push(tag);
        block.entries.push(self.n_entries as u32);
        self.n_entries += 1;
    }

    /// Adds one simplex of order 2 by its corners and the nodes on its edges; only the corners are kept.
    ///
    /// `points` are those of the file; [`Collector::into_mesh`] refuses indices beyond them.
    pub(super) fn push_straightened(&mut self, kind: CellKind, nodes: &[u32], points: &[[f64; 3]], tag: i32) {
        let mut places = [[0.0; 3]; 10];
        let places = &mut places[..nodes.len().min(10)];
        for (place, &node) in places.iter_mut().zip(nodes) {
            *place = points.get(node as usize).copied().unwrap_or_default();
        }
        let (corners, others) = places.split_at(kind.n_nodes());
        let distance = distance_from(middles(corners), corners, others);
        self.push(kind, nodes[..kind.n_nodes()].iter().copied(), tag);
        self.straightened(kind, 2, distance);
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
        let distance = distance_from(straight.iter().copied(), corners, others);
        self.push(kind, nodes[..kind.n_nodes()].iter().copied(), tag);
        self.straightened(kind, numbering.order, distance);
    }

    /// Notes that the last cell of a kind was straightened.
    fn straightened(&mut self, kind: CellKind, order: usize, distance: f64) {
        let straightened = &mut self.blocks.entry(kind).or_default().straightened;
        straightened.n_cells += 1;
        straightened.order = straightened.order.max(order);
        straightened.farthest = straightened.farthest.max(distance);
    }

    /// Skips an entry that is neither cell nor facet, such as a point.
    pub(super) fn skip(&mut self) {
        self.n_entries += 1;
    }

    /// Number of cells of a kind so far.
    pub(super) fn n_cells(&self, kind: CellKind) -> usize {
        self.blocks.get(&kind).map_or(0, |block| block.tags.len())
    }

    /// Highest dimension of a cell so far.
    pub(super) fn top_dimension(&self) -> usize {
        self.blocks.keys().map(|kind| kind.dimension()).max().unwrap_or(0)
    }

    /// Adds cells that are there already once more under a further tag.
    pub(super) fn repeat(&mut self, kind: CellKind, cells: Range<usize>, tag: i32) {
        let Some(block) = self.blocks.get_mut(&kind) else { return };
        let n = kind.n_nodes();
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
        for (kind, block) in self.blocks.iter_mut().filter(|(kind, _)| kind.dimension() == top) {
            if block.tags.windows(2).all(|pair| pair[0] == pair[1]) || block.other_order.is_some() {
                continue;
            }
            let key = |cell: u32| {
                let mut key = [u32::MAX; 8];
                let n = kind.n_nodes();
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

    /// The kind of all cells of a dimension.
    fn only_kind(&self, path: &Path, dimension: usize) -> Result<CellKind, MeshError> {
        let kinds: Vec<_> =
            self.blocks.keys().copied().filter(|kind| kind.dimension() == dimension).collect();
        let [kind] = kinds[..] else {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(unsupported(
                path,
                format!("a mesh that mixes {} cells", names.join(" and ")),
                "split it, or mesh it with one kind",
            ));
        };
        Ok(kind)
    }

    /// Returns the mesh. `tagged` is true if the file has tags; facets with tag 0 are untagged.
    ///
    /// # Errors
    /// [`MeshError::Unsupported`] for cells of two kinds or orders of the highest dimension or surfaces in space,
    /// [`MeshError::Parse`] for a file without cells or with indices out of range.
    pub(super) fn into_mesh(
        mut self,
        path: &Path,
        mut points: Vec<[f64; 3]>,
        tagged: bool,
    ) -> Result<Collected, MeshError> {
        let parse = |message| MeshError::Parse { path: path.into(), place: Place::Whole, message };
        let top = self.blocks.keys().map(|kind| kind.dimension()).max().filter(|&dimension| dimension > 1);
        let top = top.ok_or_else(|| parse("the file has no triangles, tetrahedra or other cells".into()))?;
        let kind = self.only_kind(path, top)?;
        let cells = self.blocks.remove(&kind).unwrap_or_default();
        let is_surface = top == 2 && !flatten(&mut points, &[&cells.nodes, &cells.curved]);
        if let Some(other) = cells.other_order {
            return Err(unsupported(
                path,
                format!("a mesh that mixes cells of order {} and {other}", cells.order.unwrap_or(1)),
                "all cells of the highest dimension must have the same order",
            ));
        }
        let facets = kind.facet_kind().and_then(|facet| self.blocks.remove(&facet)).unwrap_or_default();
        let straightened = &cells.straightened;
        let mut mesh = Mesh {
            points,
            kind,
            is_surface,
            cells: cells.nodes,
            curved: None,
            cell_tags: if tagged { cells.tags } else { Vec::new() },
            facets: Facets::default(),
            tag_names: BTreeMap::new(),
            cell_fields: BTreeMap::new(),
            node_fields: BTreeMap::new(),
            notes: note_of_straightened(
                kind,
                straightened.order,
                straightened.n_cells,
                Some(straightened.farthest),
            )
            .into_iter()
            .collect(),
        };
        if tagged {
            let per_facet = kind.facet_kind().map_or(1, CellKind::n_nodes);
            for (nodes, tag) in facets.nodes.chunks_exact(per_facet).zip(facets.tags) {
                if tag != 0 {
                    mesh.facets.nodes.extend_from_slice(nodes);
                    mesh.facets.tags.push(tag);
                }
            }
        }
        let in_range =
            |nodes: &[u32]| first_where(nodes, |&node| node as usize >= mesh.points.len()).is_none();
        let nodes = match cells.order {
            _ if !(in_range(&mesh.cells) && in_range(&mesh.facets.nodes)) => None,
            Some(order) => Some(bend(&mut mesh, order, cells.curved)),
            None if straightened.n_cells > 0 => {
                Some(compact(&mut mesh.points, &mut [&mut mesh.cells, &mut mesh.facets.nodes]))
            }
            None => None,
        };
        mesh.validate().map_err(|error| parse(error.to_string()))?;
        Ok(Collected { mesh, entries: cells.entries, nodes })
    }
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

/// Keeps of a field over all entries of a file those of the mesh's cells; `entries` ascend.
pub(super) fn pick_in_place(entries: &[u32], field: &mut Field) {
    let n = field.n_components;
    if field.values.len() == entries.len() * n {
        return;
    }
    for (cell, &entry) in entries.iter().enumerate() {
        let begin = entry as usize * n;
        field.values.copy_within(begin..begin + n, cell * n);
    }
    field.values.truncate(entries.len() * n);
}

fn unsupported(path: &Path, what: String, advice: &str) -> MeshError {
    MeshError::Unsupported { path: path.into(), place: Place::Whole, what, advice: advice.into() }
}
