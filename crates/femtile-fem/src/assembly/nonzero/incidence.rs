//! Node-to-cell incidence.

use femtile_mesh::Mesh;

/// The cells of each node, ascending.
pub(in crate::assembly) struct Incidence {
    /// Offset of the cells of each node, and the end of the last node.
    starts: Vec<u64>,
    cells: Vec<u32>,
}

impl Incidence {
    /// # Cost
    /// Two sweeps over the cells; 4 bytes per corner and 8 per node.
    pub fn new(mesh: &Mesh) -> Self {
        let n_corners = mesh.kind.n_nodes();
        // Filling moves each start to its end, which is the next one's start: hence the shift by one.
        let mut starts = vec![0u64; mesh.n_nodes() + 2];
        mesh.cells.iter().for_each(|&node| starts[node as usize + 2] += 1);
        for node in 2..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut cells = vec![0; mesh.cells.len()];
        for (cell, corners) in mesh.cells.chunks_exact(n_corners).enumerate() {
            for &node in corners {
                let next = &mut starts[node as usize + 1];
                cells[*next as usize] = cell as u32;
                *next += 1;
            }
        }
        starts.pop();
        Self { starts, cells }
    }

    /// Returns the offset of the cells of each node, and the end of the last node.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Returns the cells of one node after another.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Returns the cells of any of some nodes, ascending, each once.
    pub fn cells_of(&self, nodes: &[u32]) -> Vec<u32> {
        let of_node = |&node: &u32| {
            let node = node as usize;
            &self.cells[self.starts[node] as usize..self.starts[node + 1] as usize]
        };
        let mut cells: Vec<u32> = nodes.iter().flat_map(of_node).copied().collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }
}
