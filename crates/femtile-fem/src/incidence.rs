//! Node-to-cell incidence.

/// The cells of each node, or of each degree of freedom, ascending.
#[derive(Debug)]
pub(crate) struct Incidence {
    /// Offset of the cells of each node, and the end of the last node.
    starts: Vec<u64>,
    cells: Vec<u32>,
}

impl Incidence {
    /// Lists the cells of all nodes from the nodes of all cells: `[n_cells][per_cell]`.
    ///
    /// # Cost
    /// Two sweeps over the cells; 4 bytes per node of a cell and 8 per node.
    pub fn new(n_nodes: usize, nodes: &[u32], per_cell: usize) -> Self {
        // Filling moves each start to its end, which is the next one's start: hence the shift by one.
        let mut starts = vec![0u64; n_nodes + 2];
        nodes.iter().for_each(|&node| starts[node as usize + 2] += 1);
        for node in 2..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut cells = vec![0; nodes.len()];
        for (cell, own) in nodes.chunks_exact(per_cell).enumerate() {
            for &node in own {
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

    /// Returns the cells of one node.
    pub fn around(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.cells[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Returns the cells of any of some nodes, ascending, each once.
    pub fn cells_of(&self, nodes: &[u32]) -> Vec<u32> {
        let mut cells: Vec<u32> = nodes.iter().flat_map(|&node| self.around(node)).copied().collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }
}
