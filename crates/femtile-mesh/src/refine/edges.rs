//! The edges of a mesh of simplices, numbered.

use crate::Mesh;
use crate::interrupt::Interrupt;

/// Ends of edges held at once while they are collected: 64 MiB.
const BUDGET: usize = 1 << 24;

/// All edges of a mesh, each once, by their smaller and then their larger node.
pub(super) struct Edges {
    /// Offsets of the edges of each smaller node: `[n_nodes + 1]`.
    offsets: Vec<u32>,
    /// Larger node of each edge, ascending for each smaller node.
    ends: Vec<u32>,
}

impl Edges {
    /// Collects the edges of simplices a range of smaller nodes at a time; after an interrupt edges are missing.
    ///
    /// # Cost
    /// Four bytes per edge and eight per node, and [`BUDGET`] ends; a pass over the cells for each range.
    pub(super) fn of(mesh: &Mesh, interrupt: Interrupt<'_>) -> Self {
        Self::with_budget(mesh, BUDGET, interrupt)
    }

    fn with_budget(mesh: &Mesh, budget: usize, interrupt: Interrupt<'_>) -> Self {
        let n_nodes = mesh.n_nodes();
        let mut counts = vec![0u32; n_nodes];
        each_edge(mesh, |low, _| counts[low as usize] += 1);
        let mut edges = Self { offsets: Vec::with_capacity(n_nodes + 1), ends: Vec::new() };
        edges.offsets.push(0);
        let (mut found, mut cursors) = (Vec::new(), Vec::new());
        let mut start = 0;
        while start < n_nodes && !interrupt.is_set() {
            // As many nodes as fit, one at least.
            let mut end = start;
            let mut held = 0;
            cursors.clear();
            while end < n_nodes && (end == start || held + counts[end] as usize <= budget) {
                cursors.push(held);
                held += counts[end] as usize;
                end += 1;
            }
            found.clear();
            found.resize(held, 0u32);
            each_edge(mesh, |low, high| {
                if (start..end).contains(&(low as usize)) {
                    let cursor = &mut cursors[low as usize - start];
                    found[*cursor] = high;
                    *cursor += 1;
                }
            });
            let mut first = 0;
            for &cursor in &cursors {
                edges.append_node(&mut found[first..cursor]);
                first = cursor;
            }
            start = end;
        }
        edges
    }

    fn append_node(&mut self, ends: &mut [u32]) {
        ends.sort_unstable();
        self.ends.extend(ends.chunk_by(|a, b| a == b).map(|group| group[0]));
        self.offsets.push(self.ends.len() as u32);
    }

    /// Number of edges.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of the edge between two nodes, if there is one.
    pub(super) fn find(&self, a: u32, b: u32) -> Option<u32> {
        let (low, high) = (a.min(b) as usize, a.max(b));
        let (start, end) = (self.offsets[low], self.offsets[low + 1]);
        let among = &self.ends[start as usize..end as usize];
        among.binary_search(&high).ok().map(|i| start + i as u32)
    }

    /// Both nodes of each edge, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = [u32; 2]> {
        let stretches = self.offsets.windows(2).zip(0u32..);
        stretches.flat_map(|(stretch, low)| {
            self.ends[stretch[0] as usize..stretch[1] as usize].iter().map(move |&high| [low, high])
        })
    }
}

fn each_edge(mesh: &Mesh, mut found: impl FnMut(u32, u32)) {
    for nodes in mesh.cells.chunks_exact(mesh.kind.n_nodes()) {
        for (i, &b) in nodes.iter().enumerate() {
            nodes[..i].iter().for_each(|&a| found(a.min(b), a.max(b)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Edges;
    use crate::generate::{BoxConfig, box_mesh};
    use crate::interrupt::Interrupt;

    #[test]
    fn edges_do_not_depend_on_the_budget_and_are_found_again() {
        let mesh = box_mesh(&BoxConfig { cells: [3, 4, 2], ..BoxConfig::default() }).unwrap();
        let whole = Edges::of(&mesh, Interrupt::NEVER);
        // Kuhn's split: an edge along each axis, each face diagonal and the cube's diagonal.
        assert_eq!(whole.len(), 3 * 5 * 3 + 4 * 4 * 3 + 4 * 5 * 2 + 12 * 3 + 6 * 5 + 8 * 4 + 24);
        for budget in [1, 7, 100] {
            let edges = Edges::with_budget(&mesh, budget, Interrupt::NEVER);
            assert!(edges.offsets == whole.offsets && edges.ends == whole.ends);
        }
        for (number, [a, b]) in (0..).zip(whole.iter()) {
            assert_eq!((whole.find(a, b), whole.find(b, a)), (Some(number), Some(number)));
        }
        assert_eq!(whole.find(0, 59), None);
    }
}
