//! Boundary facets selected by node sets.

use crate::{CellKind, Mesh};

/// Finds the facets of the boundary all of whose nodes are in a set.
pub(super) struct NodeFacets<'a> {
    mesh: &'a Mesh,
    /// Cells of node `i` are `cells[ends[i]..ends[i + 1]]`.
    ends: Vec<u32>,
    cells: Vec<u32>,
    /// The last set that had a node.
    set_of: Vec<u32>,
    n_sets: u32,
    /// Remaining number of cells to examine: bounds the work caused by few nodes.
    budget: usize,
}

/// Nodes of a facet in ascending order, then as its cell has them.
type Candidate = ([u32; 4], [u32; 4]);

impl<'a> NodeFacets<'a> {
    pub(super) fn new(mesh: &'a Mesh, n_bytes: usize) -> Self {
        let mut ends = vec![0u32; mesh.n_nodes() + 1];
        mesh.cells.iter().for_each(|&node| ends[node as usize + 1] += 1);
        for node in 1..ends.len() {
            ends[node] += ends[node - 1];
        }
        let mut next = ends.clone();
        let mut cells = vec![0; mesh.cells.len()];
        for (place, &node) in mesh.cells.iter().enumerate() {
            let slot = &mut next[node as usize];
            cells[*slot as usize] = (place / mesh.kind.n_nodes()) as u32;
            *slot += 1;
        }
        let set_of = vec![0; mesh.n_nodes()];
        Self { mesh, ends, cells, set_of, n_sets: 0, budget: (1 << 20) + 8 * n_bytes }
    }

    /// Nodes of the facets of a set, one facet after another; none if the sets of a file are too large.
    pub(super) fn of_set(&mut self, nodes: &[u32]) -> Option<Vec<u32>> {
        self.n_sets += 1;
        nodes.iter().for_each(|&node| self.set_of[node as usize] = self.n_sets);
        let kind = self.mesh.kind;
        let n = kind.facet_kind().map_or(1, CellKind::n_nodes);
        let mut candidates: Vec<Candidate> = Vec::new();
        for &node in nodes {
            let [begin, end] = [node, node + 1].map(|node| self.ends[node as usize] as usize);
            self.budget = self.budget.checked_sub(end - begin)?;
            for &cell in &self.cells[begin..end] {
                let corners = self.mesh.cell(cell as usize);
                for facet in kind.facets() {
                    let mut facet_nodes = [u32::MAX; 4];
                    facet_nodes.iter_mut().zip(*facet).for_each(|(to, &corner)| *to = corners[corner]);
                    let mut sorted = facet_nodes;
                    sorted.sort_unstable();
                    let is_in = |node: &u32| self.set_of[*node as usize] == self.n_sets;
                    if sorted[0] == node && sorted[..n].iter().all(is_in) {
                        candidates.push((sorted, facet_nodes));
                    }
                }
            }
        }
        candidates.sort_unstable();
        let groups = candidates.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() == 1);
        Some(groups.flat_map(|group| group[0].1[..n].iter().copied()).collect())
    }
}
