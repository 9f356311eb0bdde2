//! Matches the sides of neighbouring cells in bounded memory.
//!
//! A half-facet is a facet of one cell. Half-facets with the same nodes match. Their smallest node
//! assigns them to a range of nodes; the ranges are processed one after another, so that only a few
//! million half-facets exist at any time for any mesh.

use std::ops::Range;

use femtile_device::parallel;

use super::facet_ranges::{FacetRanges, cells_of_block, each_key_node, smallest};
use crate::interrupt::Interrupt;
use crate::{CellKind, Mesh};

/// Half-facets held at once by all threads together: 64 MiB of them for tetrahedra.
const BUDGET: usize = 1 << 22;

/// A facet of a cell, with its nodes as key; `K` is one less than the number of nodes of a facet.
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

    /// A number that orders half-facets of the same smallest node by their other nodes, at most two.
    fn short_key(&self) -> u64 {
        self.rest.iter().fold(0, |key, &number| key << 32 | u64::from(number))
    }

    /// A number that orders half-facets of the same smallest node by their other nodes.
    fn long_key(&self) -> u128 {
        const { assert!(K <= 4, "128 bits hold four nodes") };
        self.rest.iter().fold(0, |key, &number| key << 32 | u128::from(number))
    }

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
/// $O(n \log d)$ for $n$ half-facets and $d$ of them at a node; [`BUDGET`] half-facets and a quarter of a
/// byte per cell beyond the mesh. Of 4096 buckets of nodes, one with more half-facets takes memory for them.
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
    let n_lanes = parallel::n_threads();
    let plan = FacetRanges::new(mesh, (budget / n_lanes).max(1));
    // Several stretches of ranges a thread, so that none waits long for another.
    let n_together = plan.ranges.len().div_ceil(4 * n_lanes).max(1);
    parallel::map_chunks(&plan.ranges, n_together, |_, ranges| {
        let (mut visitor, mut held) = (V::default(), Held::<K>::default());
        let blocks = plan.concerned(&(ranges[0].start..ranges[ranges.len() - 1].end), plan.blocks());
        for range in ranges.iter().take_while(|_| !interrupt.is_set()) {
            let blocks = plan.concerned(range, blocks.iter().copied());
            held.gather(mesh, &plan.nodes(range), &blocks);
            held.visit(mesh, &mut visitor);
        }
        visitor
    })
}

/// The half-facets of a range of nodes.
#[derive(Default)]
struct Held<const K: usize> {
    /// Those of one node together.
    facets: Vec<HalfFacet<K>>,
    /// The end of the half-facets of each node.
    ends: Vec<usize>,
    /// The cells that have them.
    cells: Vec<u32>,
}

impl<const K: usize> Held<K> {
    /// Collects the half-facets of some blocks of cells whose smallest node lies in a range.
    fn gather(&mut self, mesh: &Mesh, nodes: &Range<u32>, blocks: &[usize]) {
        // With the kind spelt out the compiler unrolls the loop over the facets of a cell.
        match mesh.kind {
            CellKind::Tetrahedron => self.gather_kind(CellKind::Tetrahedron, mesh, nodes, blocks),
            CellKind::Triangle => self.gather_kind(CellKind::Triangle, mesh, nodes, blocks),
            kind => self.gather_kind(kind, mesh, nodes, blocks),
        }
    }

    #[inline(always)]
    fn gather_kind(&mut self, kind: CellKind, mesh: &Mesh, range: &Range<u32>, blocks: &[usize]) {
        let (n, Self { facets, ends, cells }) = (kind.n_nodes(), self);
        ends.clear();
        ends.resize(range.len(), 0);
        cells.clear();
        for of_block in blocks.iter().map(|&block| cells_of_block(mesh, block)) {
            let nodes = mesh.cells[of_block.start * n..of_block.end * n].chunks_exact(n);
            for (cell, nodes) in of_block.zip(nodes) {
                let mut is_concerned = false;
                each_key_node(kind, nodes, |node, n_facets| {
                    if let Some(count) = ends.get_mut(node.wrapping_sub(range.start) as usize) {
                        *count += n_facets;
                        is_concerned = true;
                    }
                });
                if is_concerned {
                    cells.push(cell as u32);
                }
            }
        }
        // Filling advances the start of each node's stretch to its end, so the starts become the ends.
        let mut total = 0;
        for end in ends.iter_mut() {
            total += std::mem::replace(end, total);
        }
        facets.clear();
        facets.resize(total, HalfFacet::EMPTY);
        for &cell in &*cells {
            each_half_facet(kind, cell, mesh.cell(cell as usize), |first, facet| {
                if let Some(place) = ends.get_mut(first.wrapping_sub(range.start) as usize) {
                    facets[*place] = facet;
                    *place += 1;
                }
            });
        }
    }

    /// Sorts the half-facets of each node and passes those with the same nodes to the visitor.
    fn visit<V: FacetVisitor>(&mut self, mesh: &Mesh, visitor: &mut V) {
        let mut start = 0;
        for &end in &self.ends {
            let of_node = &mut self.facets[start..end];
            // They are in the order of their cells, which a stable sort keeps.
            match K {
                0..=2 => of_node.sort_by_key(HalfFacet::short_key),
                _ => of_node.sort_by_key(HalfFacet::long_key),
            }
            of_node.chunk_by(|a, b| a.rest == b.rest).for_each(|group| visitor.visit(mesh, group));
            start = end;
        }
    }
}

/// Calls `found(smallest node, half-facet)` for each facet of a cell.
#[inline(always)]
fn each_half_facet<const K: usize>(
    kind: CellKind,
    cell: u32,
    nodes: &[u32],
    mut found: impl FnMut(u32, HalfFacet<K>),
) {
    if kind == CellKind::Tetrahedron {
        return each_of_tetrahedron(cell, [nodes[0], nodes[1], nodes[2], nodes[3]], found);
    }
    for (local, facet) in kind.facets().iter().enumerate() {
        let first = smallest(nodes, facet);
        found(first, half_facet(kind, first, cell, local, nodes));
    }
}

/// As [`each_half_facet`]: the facets of a sorted tetrahedron are sorted, and each is even or odd as the order is and as
/// the place of the node that it leaves out.
#[inline(always)]
fn each_of_tetrahedron<const K: usize>(cell: u32, nodes: [u32; 4], mut found: impl FnMut(u32, HalfFacet<K>)) {
    let mut sorted: [u64; 4] = std::array::from_fn(|i| u64::from(nodes[i]) << 2 | i as u64);
    let mut odd = false;
    for (i, j) in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)] {
        let (a, b) = (sorted[i], sorted[j]);
        (sorted[i], sorted[j]) = (a.min(b), a.max(b));
        odd ^= a > b;
    }
    let node = |i: usize| (sorted[i] >> 2) as u32;
    for (left_out, [first, rest @ ..]) in [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]].into_iter().enumerate()
    {
        let local = (sorted[left_out] & 3) as u32;
        let is_odd = odd ^ (left_out % 2 == 1);
        let rest = std::array::from_fn(|i| node(rest[i]));
        found(node(first), HalfFacet { rest, cell, side: local << 1 | u32::from(is_odd) });
    }
}

#[inline(always)]
fn half_facet<const K: usize>(
    kind: CellKind,
    first: u32,
    cell: u32,
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
    HalfFacet { rest, cell, side: (local as u32) << 1 | u32::from(odd) }
}

#[cfg(test)]
mod tests {
    use super::{FacetVisitor, HalfFacet, each_of_tetrahedron, half_facet, smallest, visit_with_budget};
    use crate::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
    use crate::interrupt::Interrupt;
    use crate::{CellKind, Mesh};

    #[derive(Default)]
    struct Groups(Vec<Vec<(u32, u8, bool)>>);

    impl FacetVisitor for Groups {
        fn visit<const K: usize>(&mut self, _: &Mesh, group: &[HalfFacet<K>]) {
            self.0.push(group.iter().map(|half| (half.cell, half.local(), half.is_odd())).collect());
        }
    }

    fn assert_independent_of_the_budget<const K: usize>(mesh: &Mesh) {
        let groups = |budget, threads| -> Vec<_> {
            let pool = femtile_device::Cpu::new(threads).unwrap();
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
        // The second has more nodes than there are buckets.
        for cells in [[31, 40], [83, 71]] {
            let config = SquareConfig { cells, ..SquareConfig::default() };
            assert_independent_of_the_budget::<1>(&square(&config).unwrap());
        }
    }

    #[test]
    fn facets_of_a_sorted_tetrahedron_are_those_of_its_list_of_facets() {
        let numbers = [3, u32::MAX, 0, 1 << 31];
        for order in 0..256_usize {
            let places: [usize; 4] = std::array::from_fn(|i| order >> (2 * i) & 3);
            let nodes = places.map(|place| numbers[place]);
            if (1..4).any(|i| places[..i].contains(&places[i])) {
                continue;
            }
            let mut n_found = 0;
            each_of_tetrahedron::<2>(7, nodes, |first, found| {
                let local = usize::from(found.local());
                let kind = CellKind::Tetrahedron;
                assert_eq!(first, smallest(&nodes, kind.facets()[local]));
                let expected: HalfFacet<2> = half_facet(kind, first, 7, local, &nodes);
                assert_eq!(
                    (found.rest, found.cell, found.side),
                    (expected.rest, 7, expected.side),
                    "{nodes:?}"
                );
                n_found |= 1 << local;
            });
            assert_eq!(n_found, 0b1111);
        }
    }
}
