//! Matches the sides of neighbouring cells in bounded memory.
//!
//! A half-facet is a facet of one cell. Half-facets with the same nodes match. Their smallest node
//! assigns them to a range of nodes; the ranges are processed one after another, so that only a few
//! million half-facets exist at any time for any mesh.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use crate::interrupt::Interrupt;
use crate::{CellKind, Mesh};

/// Half-facets held at once by all threads together: 64 MiB of them for tetrahedra.
const BUDGET: usize = 1 << 22;
/// Cells with a common range of key nodes, so that a pass can skip them together.
const CELLS_PER_BLOCK: usize = 2048;

/// A facet of a cell, keyed by its nodes; `K` is one less than the number of nodes of a facet.
#[derive(Debug, Clone, Copy)]
pub(super) struct HalfFacet<const K: usize> {
    /// All nodes but the smallest, ascending.
    rest: [u32; K],
    /// Its cell.
    pub(super) cell: u32,
    side: u32,
}

impl<const K: usize> HalfFacet<K> {
    const EMPTY: Self = Self { rest: [0; K], cell: 0, side: 0 };

    /// Number of the facet in its cell.
    pub(super) fn local(&self) -> u8 {
        (self.side >> 1) as u8
    }

    /// Returns whether the outward order of its nodes is an odd permutation of the ascending order.
    ///
    /// Two positively oriented cells on opposite sides of a facet differ here.
    pub(super) fn is_odd(&self) -> bool {
        self.side & 1 == 1
    }
}

/// The work on each facet of a mesh; one visitor sees a range of facets, in ascending order.
pub(super) trait FacetVisitor: Default + Send {
    /// Receives all half-facets that share the same nodes, by ascending cell.
    fn visit<const K: usize>(&mut self, mesh: &Mesh, group: &[HalfFacet<K>]);
}

/// Passes every facet of the mesh to a visitor and returns the visitors in the order of their ranges.
///
/// The results of the visitors in this order do not depend on the number of threads. After an interrupt
/// facets are missing.
///
/// # Cost
/// $O(n \log d)$ for $n$ half-facets and $d$ of them at a node; [`BUDGET`] half-facets and four bytes
/// a node beyond the mesh. A node that is the smallest of more half-facets takes memory for them.
pub(super) fn visit_facets<V: FacetVisitor>(mesh: &Mesh, interrupt: Interrupt<'_>) -> Vec<V> {
    match mesh.kind {
        CellKind::Segment => visit_with_budget::<0, V>(mesh, BUDGET, interrupt),
        CellKind::Triangle | CellKind::Quadrilateral => visit_with_budget::<1, V>(mesh, BUDGET, interrupt),
        CellKind::Tetrahedron => visit_with_budget::<2, V>(mesh, BUDGET, interrupt),
        CellKind::Hexahedron => visit_with_budget::<3, V>(mesh, BUDGET, interrupt),
    }
}

fn visit_with_budget<const K: usize, V: FacetVisitor>(
    mesh: &Mesh,
    budget: usize,
    interrupt: Interrupt<'_>,
) -> Vec<V> {
    let n_lanes = rayon::current_num_threads().max(1);
    let plan = Plan::new(mesh, (budget / n_lanes).max(1));
    let per_lane = plan.ranges.len().div_ceil(n_lanes).max(1);
    plan.ranges
        .par_chunks(per_lane)
        .map(|ranges| {
            let mut visitor = V::default();
            let (mut facets, mut ends) = (Vec::<HalfFacet<K>>::new(), Vec::new());
            for range in ranges.iter().take_while(|_| !interrupt.is_set()) {
                gather(mesh, &plan, range, &mut facets, &mut ends);
                visit_range(mesh, &mut facets, &ends, &mut visitor);
            }
            visitor
        })
        .collect()
}

/// Ranges of nodes to process, and the cells of each.
struct Plan {
    ranges: Vec<Range<u32>>,
    /// Half-facets whose smallest node this is.
    counts: Vec<AtomicU32>,
    /// The key nodes of each block of cells.
    blocks: Vec<KeyNodes>,
}

/// Smallest and largest of the key nodes in some cells.
type KeyNodes = (u32, u32);

impl Plan {
    fn new(mesh: &Mesh, budget: usize) -> Self {
        let counts: Vec<AtomicU32> = (0..mesh.n_nodes()).map(|_| AtomicU32::new(0)).collect();
        let per_block = CELLS_PER_BLOCK * mesh.kind.n_nodes();
        let blocks = mesh.cells.par_chunks(per_block).map(|block| match mesh.kind {
            CellKind::Tetrahedron => count_block(CellKind::Tetrahedron, block, &counts),
            kind => count_block(kind, block, &counts),
        });
        Self { blocks: blocks.collect(), ranges: ranges(&counts, budget), counts }
    }

    /// Number of half-facets of a node.
    fn count(&self, node: u32) -> usize {
        self.counts[node as usize].load(Ordering::Relaxed) as usize
    }
}

#[inline(always)]
fn count_block(kind: CellKind, cells: &[u32], counts: &[AtomicU32]) -> KeyNodes {
    let (mut low, mut high) = (u32::MAX, 0);
    for cell in cells.chunks_exact(kind.n_nodes()) {
        for facet in kind.facets() {
            let first = smallest(cell, facet);
            counts[first as usize].fetch_add(1, Ordering::Relaxed);
            (low, high) = (low.min(first), high.max(first));
        }
    }
    (low, high)
}

/// Cuts the nodes into ranges with at most `budget` half-facets, or one node, each.
fn ranges(counts: &[AtomicU32], budget: usize) -> Vec<Range<u32>> {
    let mut ranges = Vec::new();
    let (mut start, mut held) = (0, 0);
    for (node, count) in (0..).zip(counts) {
        let count = count.load(Ordering::Relaxed) as usize;
        if held > 0 && held + count > budget {
            ranges.push(start..node);
            (start, held) = (node, 0);
        }
        held += count;
    }
    if held > 0 {
        ranges.push(start..counts.len() as u32);
    }
    ranges
}

/// Collects the half-facets whose smallest node lies in `range`, those of one node together.
///
/// Afterwards `ends[i]` is where the half-facets of node `range.start + i` end.
fn gather<const K: usize>(
    mesh: &Mesh,
    plan: &Plan,
    range: &Range<u32>,
    facets: &mut Vec<HalfFacet<K>>,
    ends: &mut Vec<usize>,
) {
    // Filling advances the start of each node's stretch to its end, so the starts become the ends.
    ends.clear();
    let mut total = 0;
    ends.extend(range.clone().map(|node| {
        total += plan.count(node);
        total - plan.count(node)
    }));
    facets.clear();
    facets.resize(total, HalfFacet::EMPTY);
    each_facet_of_range(mesh, plan, range, |kind, first, cell, local, nodes| {
        let position = &mut ends[(first - range.start) as usize];
        facets[*position] = half_facet(kind, first, cell, local, nodes);
        *position += 1;
    });
}

/// Calls `found(kind, smallest node, cell, local facet, nodes of the cell)` for the facets of a range.
#[inline(always)]
fn each_facet_of_range(
    mesh: &Mesh,
    plan: &Plan,
    range: &Range<u32>,
    found: impl FnMut(CellKind, u32, usize, usize, &[u32]),
) {
    // With the kind spelt out the compiler unrolls the loop over the facets of a cell.
    match mesh.kind {
        CellKind::Tetrahedron => scan(CellKind::Tetrahedron, mesh, plan, range, found),
        CellKind::Triangle => scan(CellKind::Triangle, mesh, plan, range, found),
        kind => scan(kind, mesh, plan, range, found),
    }
}

#[inline(always)]
fn scan(
    kind: CellKind,
    mesh: &Mesh,
    plan: &Plan,
    range: &Range<u32>,
    mut found: impl FnMut(CellKind, u32, usize, usize, &[u32]),
) {
    let n = kind.n_nodes();
    for (block, &(low, high)) in plan.blocks.iter().enumerate() {
        if low >= range.end || high < range.start {
            continue;
        }
        let start = block * CELLS_PER_BLOCK;
        let end = (start + CELLS_PER_BLOCK).min(mesh.n_cells());
        for (cell, nodes) in (start..end).zip(mesh.cells[start * n..end * n].chunks_exact(n)) {
            if !may_concern(kind, nodes, range) {
                continue;
            }
            for (local, facet) in kind.facets().iter().enumerate() {
                let first = smallest(nodes, facet);
                if range.contains(&first) {
                    found(kind, first, cell, local, nodes);
                }
            }
        }
    }
}

/// A cheap test that most cells fail: whether a facet may have its smallest node in the range.
#[inline(always)]
fn may_concern(kind: CellKind, nodes: &[u32], range: &Range<u32>) -> bool {
    if kind != CellKind::Tetrahedron {
        return true;
    }
    // Three facets start at the smallest node and one at the second smallest.
    let ((a, b), (c, d)) = ((nodes[0], nodes[1]), (nodes[2], nodes[3]));
    let (low, high) = (a.min(b).min(c.min(d)), a.min(b).max(c.min(d)).min(a.max(b).min(c.max(d))));
    range.contains(&low) | range.contains(&high)
}

#[inline(always)]
fn smallest(cell: &[u32], facet: &[usize]) -> u32 {
    facet.iter().fold(u32::MAX, |least, &i| least.min(cell[i]))
}

#[inline(always)]
fn half_facet<const K: usize>(
    kind: CellKind,
    first: u32,
    cell: usize,
    local: usize,
    nodes: &[u32],
) -> HalfFacet<K> {
    let facet = kind.facets()[local];
    let start = facet.iter().position(|&i| nodes[i] == first).unwrap_or(0);
    // A cycle of K + 1 nodes read from the smallest on keeps the orientation.
    let mut rest: [u32; K] = std::array::from_fn(|i| nodes[facet[(start + 1 + i) % (K + 1)]]);
    let odd = match K {
        0 => local == 1,
        1 => start == 1,
        _ => rest[0] > rest[K - 1],
    };
    rest.sort_unstable();
    HalfFacet { rest, cell: cell as u32, side: (local as u32) << 1 | u32::from(odd) }
}

/// Sorts the half-facets of each node and passes those with the same nodes to the visitor.
fn visit_range<const K: usize, V: FacetVisitor>(
    mesh: &Mesh,
    facets: &mut [HalfFacet<K>],
    ends: &[usize],
    visitor: &mut V,
) {
    let mut start = 0;
    for &end in ends {
        let of_node = &mut facets[start..end];
        of_node.sort_unstable_by_key(|facet| (facet.rest, facet.cell));
        of_node.chunk_by(|a, b| a.rest == b.rest).for_each(|group| visitor.visit(mesh, group));
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::{FacetVisitor, HalfFacet, visit_with_budget};
    use crate::Mesh;
    use crate::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
    use crate::interrupt::Interrupt;

    #[derive(Default)]
    struct Groups(Vec<Vec<(u32, u8, bool)>>);

    impl FacetVisitor for Groups {
        fn visit<const K: usize>(&mut self, _: &Mesh, group: &[HalfFacet<K>]) {
            self.0.push(group.iter().map(|half| (half.cell, half.local(), half.is_odd())).collect());
        }
    }

    fn assert_independent_of_the_budget<const K: usize>(mesh: &Mesh) {
        let groups = |budget, threads| -> Vec<_> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let parts = pool.install(|| visit_with_budget::<K, Groups>(mesh, budget, Interrupt::NEVER));
            parts.into_iter().flat_map(|part| part.0).collect()
        };
        let whole = groups(usize::MAX, 1);
        assert_eq!(whole.iter().map(Vec::len).sum::<usize>(), mesh.n_cells() * mesh.kind.facets().len());
        assert!(whole.iter().all(|group| group.len() == 1 || group[0].2 != group[1].2));
        for (budget, threads) in [(1, 1), (7, 3), (100, 2), (1000, 5)] {
            assert_eq!(groups(budget, threads), whole, "{budget} {threads}");
        }
    }

    #[test]
    fn groups_do_not_depend_on_the_budget_or_the_threads() {
        // More cells than one block holds.
        for split in [BoxSplit::Kuhn, BoxSplit::Five] {
            let mesh = box_mesh(&BoxConfig { cells: [9, 7, 8], split, ..BoxConfig::default() }).unwrap();
            assert_independent_of_the_budget::<2>(&mesh);
        }
        let config = BoxConfig { cells: [5, 1, 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        assert_independent_of_the_budget::<3>(&box_mesh(&config).unwrap());
        let config = SquareConfig { cells: [31, 40], ..SquareConfig::default() };
        assert_independent_of_the_budget::<1>(&square(&config).unwrap());
    }
}
