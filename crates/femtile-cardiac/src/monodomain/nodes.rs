//! The nodes of a run, or those of one of its ranks.

use femtile::comm::Comm;
use femtile::linalg::LinalgError;
use femtile::solve::RankPart;

/// The nodes that vectors have: all of the mesh, or those that a rank owns, in its order.
pub(crate) struct Nodes<'a> {
    n_whole: usize,
    /// Of a rank among several.
    owned: Option<&'a [u32]>,
    comm: Comm,
}

impl<'a> Nodes<'a> {
    /// All nodes of a mesh.
    pub fn all(n: usize) -> Self {
        Self { n_whole: n, owned: None, comm: Comm::alone() }
    }

    /// Those that a rank owns.
    pub fn of_rank(n: usize, rank: &'a RankPart<'_>) -> Self {
        Self { n_whole: n, owned: Some(rank.owned()), comm: rank.comm().clone() }
    }

    /// The ranks that share the mesh.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Returns whether one rank has all nodes.
    pub fn is_alone(&self) -> bool {
        self.owned.is_none()
    }

    /// Returns whether this is the first rank.
    pub fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// The number of entries of vectors.
    pub fn n(&self) -> usize {
        self.owned.map_or(self.n_whole, <[u32]>::len)
    }

    /// The number in the mesh of a node that is here.
    pub fn in_whole(&self, node: u32) -> u32 {
        self.owned.map_or(node, |owned| owned[node as usize])
    }

    /// The entries for nodes that are here, of an array for all nodes.
    pub fn of_whole<T: Copy>(&self, whole: &[T]) -> impl Iterator<Item = T> {
        (0..self.n() as u32).map(|node| whole[self.in_whole(node) as usize])
    }

    /// The entries of this rank of an array for all nodes; none where that has another length.
    pub fn own(&self, whole: &[f64]) -> Option<Vec<f64>> {
        (whole.len() == self.n_whole).then(|| self.of_whole(whole).collect())
    }

    /// Those nodes of an ascending list that are here, by their numbers here, ascending.
    pub fn listed(&self, nodes: &[u32]) -> Vec<u32> {
        let Some(owned) = self.owned else { return nodes.to_vec() };
        let here = owned.iter().zip(0..).filter(|(node, _)| nodes.binary_search(node).is_ok());
        here.map(|(_, number)| number).collect()
    }

    /// Returns a sum over all ranks. All ranks call it.
    pub fn sum(&self, own: f64) -> Result<f64, LinalgError> {
        let mut sum = [own];
        self.comm.sum_values(&mut sum)?;
        Ok(sum[0])
    }
}
