//! Boundary facets selected by node sets.

use crate::CellShape;
use crate::facet_sides::key;
use crate::simplices::Polygon;

/// Finds the facets of the boundary all of whose nodes are in a set.
pub(super) struct NodeFacets<'a> {
    /// Nodes of all cells, by their shapes; cells are numbered one shape after another.
    shapes: Vec<(CellShape, &'a [u32])>,
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
type Candidate = ([u32; 4], Polygon);

impl<'a> NodeFacets<'a> {
    pub(super) fn new(shapes: Vec<(CellShape, &'a [u32])>, n_points: usize, n_bytes: usize) -> Self {
        let mut ends = vec![0u32; n_points + 1];
        let nodes = || shapes.iter().flat_map(|(_, nodes)| nodes.iter());
        nodes().for_each(|&node| ends[node as usize + 1] += 1);
        for node in 1..ends.len() {
            ends[node] += ends[node - 1];
        }
        let mut next = ends.clone();
        let mut cells = vec![0; nodes().count()];
        let of_shapes = shapes.iter().flat_map(|(shape, nodes)| nodes.chunks_exact(shape.n_nodes()));
        for (cell, nodes) in of_shapes.enumerate() {
            for &node in nodes {
                let slot = &mut next[node as usize];
                cells[*slot as usize] = cell as u32;
                *slot += 1;
            }
        }
        let set_of = vec![0; n_points];
        Self { shapes, ends, cells, set_of, n_sets: 0, budget: (1 << 20) + 8 * n_bytes }
    }

    /// Shape and nodes of a cell.
    fn cell(&self, mut cell: usize) -> (CellShape, &'a [u32]) {
        for &(shape, nodes) in &self.shapes {
            let n = shape.n_nodes();
            match nodes.get(cell * n..(cell + 1) * n) {
                Some(nodes) => return (shape, nodes),
                None => cell -= nodes.len() / n,
            }
        }
        (CellShape::Segment, &[])
    }

    /// Nodes of each facet of a set; none if the sets of a file are too large.
    pub(super) fn of_set(&mut self, nodes: &[u32]) -> Option<Vec<Polygon>> {
        self.n_sets += 1;
        nodes.iter().for_each(|&node| self.set_of[node as usize] = self.n_sets);
        let mut candidates: Vec<Candidate> = Vec::new();
        for &node in nodes {
            let [begin, end] = [node, node + 1].map(|node| self.ends[node as usize] as usize);
            self.budget = self.budget.checked_sub(end - begin)?;
            for &cell in &self.cells[begin..end] {
                let (shape, corners) = self.cell(cell as usize);
                for facet in shape.facets() {
                    // Of a collapsed cell some facets are an edge or a point.
                    let facet = Polygon::of(facet.iter().map(|&corner| corners[corner]));
                    let key = key(facet.nodes().iter().copied());
                    let is_in = |node: &u32| self.set_of[*node as usize] == self.n_sets;
                    let is_facet = facet.nodes().len() >= shape.dimension();
                    if is_facet && key[0] == node && facet.nodes().iter().all(is_in) {
                        candidates.push((key, facet));
                    }
                }
            }
        }
        candidates.sort_unstable_by_key(|(key, _)| *key);
        let groups = candidates.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() == 1);
        Some(groups.map(|group| group[0].1).collect())
    }
}
