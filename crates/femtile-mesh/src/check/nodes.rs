//! Unused nodes and coincident nodes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use femtile_device::parallel;

use super::geometry::{square_of, sub};
use super::report::CheckConfig;
use crate::extents::extents;
use crate::{Field, Mesh};

/// The data dropped with the nodes that no cell uses.
#[derive(Default)]
pub(super) struct Orphans {
    pub n_nodes: usize,
    /// Tagged facets on them.
    pub n_facets: usize,
    /// For each node that is left its number before; empty if none was dropped.
    kept: Vec<u32>,
}

impl Orphans {
    /// The number that a node had before.
    pub(super) fn number_before(&self, node: u32) -> u32 {
        self.kept.get(node as usize).copied().unwrap_or(node)
    }

    /// Joins the data dropped first with `self`.
    pub(super) fn after(mut self, first: &Self) -> Self {
        match self.kept.is_empty() {
            true => self.kept.clone_from(&first.kept),
            false => self.kept.iter_mut().for_each(|node| *node = first.number_before(*node)),
        }
        self
    }
}

/// Drops unused nodes and the facets on them.
pub(super) fn drop_orphans(mesh: &mut Mesh) -> Orphans {
    let is_used = parallel::map(mesh.n_nodes(), parallel::CHEAP, |_| AtomicBool::new(false));
    parallel::for_each(mesh.cells.len(), 1 << 14, |i| {
        let is_used = &is_used[mesh.cells[i] as usize];
        // Most nodes are marked already, and what is only read stays in the caches of all threads.
        if !is_used.load(Relaxed) {
            is_used.store(true, Relaxed);
        }
    });
    let n_orphans =
        parallel::sum(is_used.len(), parallel::CHEAP, |node| usize::from(!is_used[node].load(Relaxed)));
    if n_orphans == 0 {
        return Orphans::default();
    }
    let is_used: Vec<bool> = is_used.into_iter().map(AtomicBool::into_inner).collect();
    let n_stray = drop_facets_without_cells(mesh, &is_used);
    let mut new_number = Vec::with_capacity(is_used.len());
    let mut kept = Vec::new();
    for (&used, node) in is_used.iter().zip(0..) {
        new_number.push(kept.len() as u32);
        kept.extend(used.then_some(node));
    }
    let renumber = |node: &mut u32| *node = new_number[*node as usize];
    parallel::for_each_mut(&mut mesh.cells, parallel::CHEAP, renumber);
    mesh.facets.nodes.iter_mut().for_each(renumber);
    let mut used = is_used.iter();
    mesh.points.retain(|_| used.next() == Some(&true));
    for Field { n_components, values } in mesh.node_fields.values_mut() {
        let mut index = 0;
        values.retain(|_| {
            index += 1;
            is_used[(index - 1) / *n_components]
        });
    }
    Orphans { n_nodes: n_orphans, n_facets: n_stray, kept }
}

fn drop_facets_without_cells(mesh: &mut Mesh, is_used: &[bool]) -> usize {
    let n = mesh.kind.facet_kind().map_or(1, crate::CellKind::n_nodes);
    let keep: Vec<bool> =
        mesh.facets.nodes.chunks_exact(n).map(|facet| facet.iter().all(|&i| is_used[i as usize])).collect();
    let n_stray = keep.iter().filter(|&&kept| !kept).count();
    if n_stray > 0 {
        let mut index = 0;
        mesh.facets.nodes.retain(|_| {
            index += 1;
            keep[(index - 1) / n]
        });
        let mut kept = keep.iter();
        mesh.facets.tags.retain(|_| kept.next() == Some(&true));
    }
    n_stray
}

/// Coincident nodes: (node, the coincident node of smaller number).
pub(super) type Duplicates = Vec<(u32, u32)>;

/// Finds the nodes within `tolerance` of a node of smaller number that is not a duplicate itself.
///
/// # Cost
/// A sort of 16 bytes per node by all threads; a hash table of the nodes that have another one nearby.
pub(super) fn find_duplicates(points: &[[f64; 3]], tolerance: f64) -> Duplicates {
    let [low, high] = extents(points.len(), |node| points[node]);
    let largest = low.into_iter().chain(high).fold(0.0, |largest, x| f64::max(largest, x.abs()));
    // Below the spacing of numbers only equal coordinates coincide.
    let tolerance = if tolerance > 4.0 * f64::EPSILON * largest { tolerance } else { 0.0 };
    let candidates = crowded_nodes(points, tolerance);
    let mut kept: HashMap<[i64; 3], Vec<u32>> = HashMap::new();
    let mut duplicates = Vec::new();
    for node in candidates {
        let point = points[node as usize];
        let near = |other: u32| square_of(sub(points[other as usize], point)) <= tolerance * tolerance;
        let found = buckets(point, tolerance).filter_map(|bucket| kept.get(&bucket)).flatten();
        match found.copied().filter(|&other| near(other)).min() {
            Some(other) => duplicates.push((node, other)),
            None => kept.entry(bucket(point, tolerance)).or_default().push(node),
        }
    }
    duplicates
}

/// Returns the duplicates without those that only seem to coincide because cells are small compared with the mesh:
/// the tolerance is at most a tenth of the shortest edge.
pub(super) fn without_neighbours(mesh: &Mesh, duplicates: Duplicates, tolerance: f64) -> Duplicates {
    let of_cell = |nodes: &[u32]| {
        let point = |i: usize| mesh.points[nodes[i] as usize];
        let squares = (0..nodes.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        squares.map(|(i, j)| square_of(sub(point(i), point(j)))).fold(f64::INFINITY, f64::min)
    };
    let n = mesh.kind.n_nodes();
    let of_cells = |_, cells: &[u32]| cells.chunks_exact(n).map(of_cell).fold(f64::INFINITY, f64::min);
    let shortest = parallel::map_chunks(&mesh.cells, n << 12, of_cells);
    let shortest = shortest.into_iter().fold(f64::INFINITY, f64::min).sqrt();
    match 0.1 * shortest < tolerance {
        true => find_duplicates(&mesh.points, 0.1 * shortest),
        false => duplicates,
    }
}

/// Returns for each point the first one that coincides with it, as a merge by the default settings takes them; empty if none do. `nodes`
/// are those that count for the size of the mesh.
pub(crate) fn first_of_coincident(points: &[[f64; 3]], nodes: &[&[u32]]) -> Vec<u32> {
    let nodes: Vec<&[u32]> = nodes.iter().copied().filter(|nodes| !nodes.is_empty()).collect();
    let place = |node: u32| points.get(node as usize).copied().unwrap_or_default();
    let boxes = nodes.iter().flat_map(|nodes| extents(nodes.len(), |i| place(nodes[i])));
    let corners: Vec<[f64; 3]> = boxes.collect();
    let [low, high] = extents(corners.len(), |i| corners[i]);
    let tolerance = CheckConfig::default().tolerance * square_of(sub(high, low)).sqrt();
    let duplicates = find_duplicates(points, tolerance);
    if duplicates.is_empty() {
        return Vec::new();
    }
    let mut first: Vec<u32> = (0..points.len() as u32).collect();
    duplicates.into_iter().for_each(|(node, other)| first[node as usize] = other);
    first
}

/// Ascending nodes that share a bucket, or a bucket's margin, with another node.
///
/// Hashes are sorted in parts by their first bits, each part within the cache of a thread.
fn crowded_nodes(points: &[[f64; 3]], tolerance: f64) -> Vec<u32> {
    let n_pieces = points.len().div_ceil(NODES_PER_PIECE);
    let n_bits = (points.len() / KEYS_PER_PART).max(1).ilog2().min(12);
    let pieces = parallel::map(n_pieces, 1, |piece| {
        let nodes = piece * NODES_PER_PIECE..points.len().min((piece + 1) * NODES_PER_PIECE);
        PartedKeys::new(points, nodes, tolerance, n_bits)
    });
    let crowded_of = |part: usize| {
        let mut keys: Vec<(u64, u32)> = pieces.iter().flat_map(|piece| piece.part(part)).copied().collect();
        keys.sort_unstable();
        let groups = keys.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
        groups.flatten().map(|&(_, node)| node).collect::<Vec<u32>>()
    };
    let mut nodes = parallel::map(1 << n_bits, 1, crowded_of).concat();
    parallel::sort(&mut nodes);
    nodes.dedup();
    nodes
}

/// Nodes whose hashes are computed together.
const NODES_PER_PIECE: usize = 1 << 16;
/// Hashes that are sorted together, about.
const KEYS_PER_PART: usize = 1 << 13;

/// Hashes of the buckets of some nodes with the nodes, those with the same first bits together.
struct PartedKeys {
    keys: Vec<(u64, u32)>,
    /// Offset of each part, and the end of the last one.
    begin: Vec<u32>,
}

impl PartedKeys {
    fn new(points: &[[f64; 3]], nodes: std::ops::Range<usize>, tolerance: f64, n_bits: u32) -> Self {
        // A shift by all 64 bits of a number is none.
        let part = |key: u64| (key >> 1 >> (63 - n_bits)) as usize;
        let mut unsorted = Vec::with_capacity(nodes.len());
        for (&point, node) in points[nodes.clone()].iter().zip(nodes.start as u32..) {
            buckets(point, tolerance).for_each(|bucket| unsorted.push((hash(&bucket), node)));
        }
        let mut begin = vec![0; (1 << n_bits) + 1];
        unsorted.iter().for_each(|&(key, _)| begin[part(key) + 1] += 1);
        (1..begin.len()).for_each(|i| begin[i] += begin[i - 1]);
        let (mut next, mut keys) = (begin.clone(), vec![(0, 0); unsorted.len()]);
        for entry in unsorted {
            let next = &mut next[part(entry.0)];
            keys[*next as usize] = entry;
            *next += 1;
        }
        Self { keys, begin }
    }

    fn part(&self, part: usize) -> &[(u64, u32)] {
        &self.keys[self.begin[part] as usize..self.begin[part + 1] as usize]
    }
}

/// Width of a bucket in tolerances: wide enough that few points lie in a margin.
const BUCKET_WIDTH: f64 = 64.0;

#[inline]
fn bucket(point: [f64; 3], tolerance: f64) -> [i64; 3] {
    match tolerance > 0.0 {
        // The offset keeps round coordinates away from the margins.
        true => point.map(|x| floor(x / (BUCKET_WIDTH * tolerance) + 0.382)),
        // Adding zero makes a negative zero positive.
        false => point.map(|x| (x + 0.0).to_bits() as i64),
    }
}

/// The largest integer not above a number, or the nearest that there is: instructions where `f64::floor` is a call.
#[inline]
fn floor(x: f64) -> i64 {
    let towards_zero = x as i64;
    towards_zero.saturating_sub(i64::from(x < towards_zero as f64))
}

/// The buckets within `tolerance` of a point: first its own, then, near a margin, some neighbours.
#[inline]
fn buckets(point: [f64; 3], tolerance: f64) -> impl Iterator<Item = [i64; 3]> {
    let lower = bucket(point.map(|x| x - tolerance), tolerance);
    let upper = bucket(point.map(|x| x + tolerance), tolerance);
    let (home, n_choices) = if lower == upper { (lower, 1) } else { (bucket(point, tolerance), 8_usize) };
    (0..n_choices).filter_map(move |choice| {
        let takes = |d: usize| choice >> d & 1 == 1;
        let alike = |d: usize| lower[d] == upper[d];
        if (0..3).any(|d| takes(d) && alike(d)) {
            return None;
        }
        let other = |d: usize| if lower[d] == home[d] { upper[d] } else { lower[d] };
        Some(std::array::from_fn(|d| if takes(d) { other(d) } else { home[d] }))
    })
}

/// Spreads numbers over 64 bits.
pub(crate) fn hash(numbers: &[i64]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, &i| {
        let mixed = (state ^ i as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 29)
    })
}

/// Replaces merged nodes in cells and facets.
pub(super) fn merge(mesh: &mut Mesh, duplicates: &Duplicates) {
    let mut target: Vec<u32> = (0..mesh.n_nodes() as u32).collect();
    for &(node, kept) in duplicates {
        target[node as usize] = kept;
    }
    for node in mesh.cells.iter_mut().chain(&mut mesh.facets.nodes) {
        *node = target[*node as usize];
    }
}

/// Replaces coincident curved points in cells.
pub(super) fn merge_curved(mesh: &mut Mesh, tolerance: f64) {
    let Some(curved) = &mut mesh.curved else { return };
    let duplicates = find_duplicates(&curved.points, tolerance);
    let replace = |point: &mut u32| *point = representative(&duplicates, *point);
    parallel::for_each_mut(&mut curved.cells, parallel::CHEAP, replace);
}

/// The kept node of a pair, or the node itself.
pub(super) fn representative(duplicates: &Duplicates, node: u32) -> u32 {
    match duplicates.binary_search_by_key(&node, |&(node, _)| node) {
        Ok(i) => duplicates[i].1,
        Err(_) => node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coincident_nodes_are_found_however_far_apart_their_numbers_are() {
        // More nodes than a piece and than a part hold; no two originals lie within the tolerance of each other.
        let n = 2 * NODES_PER_PIECE + 7919;
        let tolerance = 1e-6;
        let mut points: Vec<[f64; 3]> =
            (0..n).map(|i| [(i % 100) as f64, (i / 100 % 100) as f64, (i / 10_000) as f64 + 0.5]).collect();
        let mut expected = Vec::new();
        for (node, of) in [(1, 0), (70_000, 3), (70_001, 69_999), (n - 2, 123), (n - 1, 65_536)] {
            // Within the tolerance, for some on the other side of a border of buckets.
            points[node] = points[of].map(|x| x + 0.5 * tolerance);
            expected.push((node as u32, of as u32));
        }
        points[n - 3] = points[77].map(|x| x + tolerance);
        for threads in [1, 3] {
            let pool = femtile_device::Cpu::new(threads).unwrap();
            assert_eq!(pool.install(|| find_duplicates(&points, tolerance)), expected, "{threads}");
            assert_eq!(pool.install(|| find_duplicates(&points, 0.0)), [], "{threads}");
        }
    }

    #[test]
    fn floors_are_those_of_the_library() {
        let large = [1e300, -1e300, 9.3e18, -9.3e18, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let small = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, -1.5, 2f64.powi(52) - 0.5, -(2f64.powi(52) - 0.5)];
        large.into_iter().chain(small).for_each(|x| assert_eq!(floor(x), x.floor() as i64, "{x}"));
    }
}
