//! The points at which a model is integrated.

use femtile::device::{Buffer, Device};

use crate::CardiacError;

/// Entries of a vector at which a model is integrated: all, or those of a list.
///
/// Kernels rely on a list: its numbers are below the length of the vector, and each occurs once.
#[derive(Debug)]
pub struct Points<D: Device> {
    n_nodes: usize,
    n: usize,
    listed: Option<Buffer<u32, D>>,
}

impl<D: Device> Points<D> {
    /// All entries of vectors of length `n_nodes`.
    pub fn all(n_nodes: usize) -> Self {
        Self { n_nodes, n: n_nodes, listed: None }
    }

    /// The entries of vectors of length `n_nodes` that `nodes` lists; states are in the order of the list.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] for a number that is not below `n_nodes` or occurs twice.
    pub fn listed(device: &D, n_nodes: usize, nodes: &[u32]) -> Result<Self, CardiacError> {
        let mut seen = vec![false; n_nodes];
        for &node in nodes {
            match seen.get_mut(node as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    return Err(CardiacError::setting("points", format!("node {node} is listed twice")));
                }
                None => {
                    let message = format!("node {node} is listed, but there are {n_nodes} nodes");
                    return Err(CardiacError::setting("points", message));
                }
            }
        }
        Ok(Self { n_nodes, n: nodes.len(), listed: Some(Buffer::from_host(device, nodes)?) })
    }

    /// Length of the vectors.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Number of points.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns the node indices; none for all.
    pub fn list(&self) -> Option<&Buffer<u32, D>> {
        self.listed.as_ref()
    }

    /// Distance between the values of successive states of a point. It is a multiple of 32 but not of 512, so
    /// that arrays of states begin at aligned addresses that share no set of a cache.
    pub fn stride(&self) -> usize {
        stride_of(self.n)
    }
}

/// Returns [`Points::stride`] for `n` points.
pub(crate) fn stride_of(n: usize) -> usize {
    let stride = n.next_multiple_of(32);
    if stride.is_multiple_of(512) && stride > 0 { stride + 32 } else { stride }
}
