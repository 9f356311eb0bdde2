//! The nodes of a run: all nodes, or those of one rank.

use femtile::comm::Comm;
use femtile::linalg::LinalgError;
use femtile::solve::LocalProblem;

/// The nodes that vectors have: all of the mesh, or those that a rank owns, in its order.
pub(crate) struct Nodes<'a> {
    /// The number of global nodes.
    n_global: usize,
    /// Of a rank among several, by their numbers in the whole mesh.
    owned: Option<&'a [u32]>,
    /// Whether the mesh of the rank is its part, which begins with the nodes that it owns.
    is_part: bool,
    comm: Comm,
}

impl<'a> Nodes<'a> {
    /// All nodes of a mesh.
    pub fn all(n: usize) -> Self {
        Self { n_global: n, owned: None, is_part: false, comm: Comm::alone() }
    }

    /// Those that a rank owns.
    pub fn owned_by(rank: &'a LocalProblem<'_>) -> Self {
        Self {
            n_global: rank.n_nodes(),
            owned: Some(rank.owned()),
            is_part: rank.has_local_mesh(),
            comm: rank.comm().clone(),
        }
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
        self.owned.map_or(self.n_global, <[u32]>::len)
    }

    /// Returns the number of global nodes.
    pub fn n_global(&self) -> usize {
        self.n_global
    }

    /// The number in the whole mesh of a node that is here.
    pub fn to_global(&self, node: u32) -> u32 {
        self.owned.map_or(node, |owned| owned[node as usize])
    }

    /// The number of first nodes of the mesh of this rank whose cells are all in it.
    pub fn n_complete(&self) -> usize {
        if self.is_part { self.n() } else { self.n_global }
    }

    /// The number in the whole mesh of a node of the mesh of this rank, one of [`Nodes::n_complete`].
    pub fn number(&self, node: usize) -> u32 {
        if self.is_part { self.to_global(node as u32) } else { node as u32 }
    }

    /// The entries for nodes that are here, of an array for the nodes of the mesh of this rank.
    pub fn of_mesh<T: Copy>(&self, values: &[T]) -> impl Iterator<Item = T> {
        let at = |node: u32| if self.is_part { node } else { self.to_global(node) };
        (0..self.n() as u32).map(move |node| values[at(node) as usize])
    }

    /// Those nodes of an ascending list of nodes of the mesh of this rank that are here, by their numbers here, ascending.
    pub fn listed(&self, nodes: &[u32]) -> Vec<u32> {
        match self.owned {
            None => nodes.to_vec(),
            Some(_) if self.is_part => {
                nodes.iter().copied().filter(|&node| (node as usize) < self.n()).collect()
            }
            Some(owned) => self.held(owned, nodes),
        }
    }

    /// Returns the local numbers of those of the global `nodes` that this rank has, ascending. On a
    /// distributed mesh, only owned nodes are returned.
    pub fn to_local(&self, nodes: Vec<u32>) -> Vec<u32> {
        match self.owned.filter(|_| self.is_part) {
            Some(owned) => self.held(owned, &nodes),
            None => nodes,
        }
    }

    fn held(&self, owned: &[u32], nodes: &[u32]) -> Vec<u32> {
        let here = owned.iter().zip(0..).filter(|(node, _)| nodes.binary_search(node).is_ok());
        here.map(|(_, number)| number).collect()
    }

    /// Returns which of these are so on a rank at least. Collective.
    pub fn any<const N: usize>(&self, is_so: [bool; N]) -> Result<[bool; N], LinalgError> {
        self.comm.any(is_so)
    }

    /// Returns the least of the numbers that ranks have. Collective.
    pub fn least(&self, own: Option<u32>) -> Result<Option<u32>, LinalgError> {
        Ok(self.comm.all_gather(own.as_slice())?.into_iter().flatten().min())
    }

    /// Returns a sum over all ranks. Collective.
    pub fn sum(&self, own: f64) -> Result<f64, LinalgError> {
        let mut sum = [own];
        self.comm.sum_values(&mut sum)?;
        Ok(sum[0])
    }
}
