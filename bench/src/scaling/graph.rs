//! Who sends how many values to whom.

use femtile::mesh::Mesh;
use femtile::mesh::partition::Partition;

/// The exports of each rank for one exchange of the finest level.
#[derive(Debug, Clone, PartialEq)]
pub struct HaloGraph {
    owned: Vec<f64>,
    cells: Vec<f64>,
    offsets: Vec<usize>,
    to: Vec<u32>,
    values: Vec<f32>,
}

impl HaloGraph {
    /// Returns a single rank with `n` unknowns.
    pub fn alone(n: f64) -> Self {
        Self { owned: vec![n], cells: vec![1.0], offsets: vec![0, 0], to: Vec::new(), values: Vec::new() }
    }

    /// Takes the graph of a partition for elements of some degree, as if the mesh were so much finer that it had `n` unknowns.
    ///
    /// A rank imports what it does not own of the nodes of all cells that touch a node of its own, as
    /// [`Part`](femtile::mesh::partition::Part) does. Of degree p the unknowns within a cell belong to the highest owner of
    /// its corners: so the lower of two ranks imports whole cells, p³ values for each node, the higher one faces, p².
    /// Refinement makes messages larger as areas grow, and the differences between ranks smaller as lengths do.
    pub fn of_partition(mesh: &Mesh, partition: &Partition, degree: usize, n: f64) -> Self {
        let n_ranks = partition.n_ranks();
        let owners = partition.owners(mesh);
        let mut owned = vec![0.0; n_ranks];
        owners.iter().filter(|owner| **owner != u32::MAX).for_each(|owner| owned[*owner as usize] += 1.0);
        let mut cells = vec![0.0; n_ranks];
        // Node after owner and importer, in one number that is sorted.
        let mut ghosts: Vec<(u64, u32)> = Vec::new();
        for cell in 0..mesh.n_cells() {
            let nodes = mesh.cell(cell);
            let mut of_nodes: Vec<u32> = nodes.iter().map(|node| owners[*node as usize]).collect();
            of_nodes.sort_unstable();
            of_nodes.dedup();
            of_nodes.iter().for_each(|rank| cells[*rank as usize] += 1.0);
            if of_nodes.len() == 1 {
                continue;
            }
            for &importer in &of_nodes {
                let others = nodes.iter().filter(|node| owners[**node as usize] != importer);
                ghosts.extend(
                    others.map(|&node| (u64::from(owners[node as usize]) << 32 | u64::from(importer), node)),
                );
            }
        }
        ghosts.sort_unstable();
        ghosts.dedup();
        let p = degree as f64;
        let n_nodes: f64 = owned.iter().sum();
        let finer = n / (n_nodes * p.powi(3));
        let share = mesh.n_cells() as f64 / n_ranks as f64;
        let per_node = |owner: u32, importer: u32| if importer < owner { p.powi(3) } else { p.powi(2) };
        let mut graph = Self {
            owned: evened(&owned, n / n_ranks as f64, finer),
            cells: cells.iter().map(|cells| 1.0 + (cells / share - 1.0) / finer.cbrt()).collect(),
            offsets: vec![0],
            to: Vec::new(),
            values: Vec::new(),
        };
        for of_message in ghosts.chunk_by(|one, other| one.0 == other.0) {
            let (owner, importer) = ((of_message[0].0 >> 32) as u32, of_message[0].0 as u32);
            while graph.offsets.len() <= owner as usize {
                graph.offsets.push(graph.to.len());
            }
            graph.to.push(importer);
            let n_values = of_message.len() as f64 * per_node(owner, importer) * finer.powf(2.0 / 3.0);
            graph.values.push(n_values as f32);
        }
        graph.offsets.resize(n_ranks + 1, graph.to.len());
        graph
    }

    /// Returns the graph of a box of `ranks` boxes with `n` unknowns each: 26 neighbours where none is at the boundary, with
    /// the values of [`HaloGraph::of_partition`].
    pub fn of_boxes(ranks: [usize; 3], degree: usize, n: f64) -> Self {
        let n_ranks = ranks.iter().product();
        let p = degree as f64;
        let side = n.cbrt() / p;
        let mut graph = Self {
            owned: vec![n; n_ranks],
            cells: vec![0.0; n_ranks],
            offsets: vec![0],
            to: Vec::new(),
            values: Vec::new(),
        };
        let place = |[i, j, k]: [usize; 3]| i + ranks[0] * (j + ranks[1] * k);
        for rank in 0..n_ranks {
            let at = [rank % ranks[0], rank / ranks[0] % ranks[1], rank / (ranks[0] * ranks[1])];
            // The lower rank owns the nodes between two, and works on the cells beyond them.
            let grown = (0..3).map(|axis| if at[axis] + 1 < ranks[axis] { side + 1.0 } else { side });
            graph.cells[rank] = grown.product::<f64>() / side.powi(3);
            for step in 0..27 {
                let by = [step % 3, step / 3 % 3, step / 9];
                let moved: [usize; 3] = std::array::from_fn(|axis| (at[axis] + by[axis]).wrapping_sub(1));
                if step == 13 || (0..3).any(|axis| moved[axis] >= ranks[axis]) {
                    continue;
                }
                let importer = place(moved);
                let n_axes = by.iter().filter(|by| **by == 1).count();
                let per_node = if importer < rank { p.powi(3) } else { p.powi(2) };
                graph.to.push(importer as u32);
                graph.values.push((side.powi(n_axes as i32) * per_node).max(1.0) as f32);
            }
            graph.offsets.push(graph.to.len());
        }
        graph
    }

    /// Returns the graph of a cube with `n` unknowns whose layers of cells are divided among ranks.
    pub fn of_layers(n_ranks: usize, degree: usize, n: f64) -> Self {
        let p = degree as f64;
        let layers = n.cbrt() / p / n_ranks as f64;
        let of_plane = n.powf(2.0 / 3.0);
        let mut graph = Self {
            owned: vec![n / n_ranks as f64; n_ranks],
            cells: vec![1.0 + 1.0 / layers; n_ranks],
            offsets: vec![0],
            to: Vec::new(),
            values: Vec::new(),
        };
        graph.cells[n_ranks - 1] = 1.0;
        for rank in 0..n_ranks {
            // The lower rank owns the plane of nodes between two.
            let below = rank.checked_sub(1).map(|below| (below, p * of_plane));
            let above = Some((rank + 1, of_plane)).filter(|(above, _)| *above < n_ranks);
            for (to, values) in below.into_iter().chain(above) {
                graph.to.push(to as u32);
                graph.values.push(values as f32);
            }
            graph.offsets.push(graph.to.len());
        }
        graph
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> usize {
        self.owned.len()
    }

    /// Returns the unknowns of each rank.
    pub fn owned(&self) -> &[f64] {
        &self.owned
    }

    /// Returns the cells that each rank works on, over those of an even share without any twice.
    pub fn cells(&self) -> &[f64] {
        &self.cells
    }

    /// Returns whom a rank sends values to, and how many.
    pub fn exports(&self, rank: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.offsets[rank]..self.offsets[rank + 1];
        self.to[range.clone()].iter().zip(&self.values[range]).map(|(to, n)| (*to as usize, f64::from(*n)))
    }

    /// Returns the number of messages of an exchange.
    pub fn n_messages(&self) -> usize {
        self.to.len()
    }
}

/// Counts of the ranks of a coarse mesh as those of a mesh with `mean` a rank and `finer` times as many nodes.
fn evened(counts: &[f64], mean: f64, finer: f64) -> Vec<f64> {
    let coarse = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| (mean * (1.0 + (count / coarse - 1.0) / finer.cbrt())).max(0.0)).collect()
}
