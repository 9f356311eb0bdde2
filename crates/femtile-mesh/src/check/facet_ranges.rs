//! Ranges of nodes whose half-facets are matched one after another, and the cells that each range concerns.

use std::ops::Range;

use femtile_device::parallel;

use crate::{CellKind, Mesh};

/// Cells that are passed over together if no key node of theirs lies in a range.
const CELLS_PER_BLOCK: usize = 2048;
/// The largest number of buckets of nodes; a range consists of several. Their marks use a quarter of a byte
/// per cell.
const MAX_BUCKETS: usize = 4096;
/// Half-facets that a thread sorts within its cache.
const IN_CACHE: usize = 1 << 17;
/// Ranges that concern a block of cells, on average, up to which ranges are made that small.
const MAX_VISITS: f64 = 4.0;

/// A partition of the nodes into ranges; the smallest node of a half-facet, its key node, assigns it to one.
pub(super) struct FacetRanges {
    /// The ranges, by buckets.
    pub(super) ranges: Vec<Range<usize>>,
    n_nodes: usize,
    /// Binary logarithm of the nodes of a bucket.
    shift: u32,
    /// A bit for each bucket that has key nodes of a block of cells: `[n_blocks × n_words]`.
    marks: Vec<u64>,
    n_words: usize,
}

impl FacetRanges {
    /// Cuts the nodes into ranges with at most `budget` half-facets, or one bucket, each; fewer if they then
    /// fit into caches.
    ///
    /// # Cost
    /// One pass over the cells by all threads.
    pub(super) fn new(mesh: &Mesh, budget: usize) -> Self {
        let n_nodes = mesh.n_nodes();
        let shift = (0..).find(|shift| n_nodes >> shift < MAX_BUCKETS).unwrap_or(0);
        let n_buckets = (n_nodes >> shift) + 1;
        let n_words = n_buckets.div_ceil(64);
        let per_block = CELLS_PER_BLOCK * mesh.kind.n_nodes();
        let n_blocks = mesh.cells.len().div_ceil(per_block);
        let mut marks = vec![0; n_blocks * n_words];
        let counts = parallel::count_chunks_mut(&mut marks, n_words, n_buckets, |begin, marks, counts| {
            let cells = mesh.cells[begin / n_words * per_block..].chunks(per_block);
            for (marks, cells) in marks.chunks_exact_mut(n_words).zip(cells) {
                match mesh.kind {
                    CellKind::Tetrahedron => count(CellKind::Tetrahedron, cells, shift, counts, marks),
                    kind => count(kind, cells, shift, counts, marks),
                }
            }
        });
        // If the numbers of neighbours are near, few ranges concern a block, and many small ranges cost
        // nothing.
        let n_marked = parallel::sum(marks.len(), parallel::CHEAP, |i| marks[i].count_ones() as usize);
        let n_marked_per_block = n_marked as f64 / n_blocks as f64;
        let n_small = counts.iter().sum::<usize>() as f64 / IN_CACHE as f64;
        let n_visits = n_marked_per_block * n_small / n_buckets as f64;
        let budget = if n_visits <= MAX_VISITS { budget.min(IN_CACHE) } else { budget };
        Self { ranges: cut(&counts, budget), n_nodes, shift, marks, n_words }
    }

    /// The nodes of a range.
    pub(super) fn nodes(&self, range: &Range<usize>) -> Range<u32> {
        let end = (range.end << self.shift).min(self.n_nodes);
        (range.start << self.shift) as u32..end as u32
    }

    /// The blocks of cells with a key node in a range of buckets, among some blocks.
    pub(super) fn concerned(&self, range: &Range<usize>, among: impl Iterator<Item = usize>) -> Vec<usize> {
        let words = range.start / 64..range.end.div_ceil(64);
        let bits = |word: usize| {
            let (low, high) = (range.start.max(64 * word), range.end.min(64 * word + 64));
            u64::MAX >> (64 - (high - low)) << (low - 64 * word)
        };
        let is_marked = |&block: &usize| {
            words.clone().any(|word| self.marks[block * self.n_words + word] & bits(word) != 0)
        };
        among.filter(is_marked).collect()
    }

    /// All blocks of cells.
    pub(super) fn blocks(&self) -> Range<usize> {
        0..self.marks.len() / self.n_words
    }
}

/// The cells of a block.
pub(super) fn cells_of_block(mesh: &Mesh, block: usize) -> Range<usize> {
    let start = block * CELLS_PER_BLOCK;
    start..(start + CELLS_PER_BLOCK).min(mesh.n_cells())
}

#[inline(always)]
fn count(kind: CellKind, cells: &[u32], shift: u32, counts: &mut [usize], marks: &mut [u64]) {
    for cell in cells.chunks_exact(kind.n_nodes()) {
        each_key_node(kind, cell, |node, n_facets| {
            let bucket = (node >> shift) as usize;
            counts[bucket] += n_facets;
            marks[bucket / 64] |= 1 << (bucket % 64);
        });
    }
}

/// Calls `found(key node, number of facets)` for the facets of a cell.
#[inline(always)]
pub(super) fn each_key_node(kind: CellKind, nodes: &[u32], mut found: impl FnMut(u32, usize)) {
    if kind != CellKind::Tetrahedron {
        return kind.facets().iter().for_each(|facet| found(smallest(nodes, facet), 1));
    }
    // Three facets have the smallest node and one the second smallest.
    let ((a, b), (c, d)) = ((nodes[0], nodes[1]), (nodes[2], nodes[3]));
    let (first, second) = (a.min(b), c.min(d));
    found(first.min(second), 3);
    found(first.max(second).min(a.max(b).min(c.max(d))), 1);
}

#[inline(always)]
pub(super) fn smallest(cell: &[u32], facet: &[usize]) -> u32 {
    facet.iter().fold(u32::MAX, |least, &i| least.min(cell[i]))
}

fn cut(counts: &[usize], budget: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut held) = (0, 0);
    for (bucket, &count) in counts.iter().enumerate() {
        if held > 0 && held + count > budget {
            ranges.push(start..bucket);
            (start, held) = (bucket, 0);
        }
        held += count;
    }
    if held > 0 {
        ranges.push(start..counts.len());
    }
    ranges
}
