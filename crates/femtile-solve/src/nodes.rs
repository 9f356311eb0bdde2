//! Nodes of a mesh, as conditions name them.

use femtile_device::parallel;
use femtile_expression::Condition as Comparison;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use crate::SolveError;
use crate::ranks::OnMesh;
use crate::setting::Key;

/// Nodes of a mesh, on its boundary or inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// All that satisfy a comparison such as `x < 1e-9 && y < 1e-9`.
    Where(String),
    /// Their numbers in the mesh, or in the part of a rank.
    Listed(Vec<u32>),
}

impl From<&str> for Nodes {
    fn from(comparison: &str) -> Self {
        Self::Where(comparison.into())
    }
}

impl From<&String> for Nodes {
    fn from(comparison: &String) -> Self {
        Self::Where(comparison.clone())
    }
}

impl From<Vec<u32>> for Nodes {
    fn from(nodes: Vec<u32>) -> Self {
        Self::Listed(nodes)
    }
}

impl Nodes {
    /// Returns the comparison, if it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Where(comparison) => Some(comparison),
            Self::Listed(_) => None,
        }
    }

    /// Returns the numbers of the nodes, ascending; `path` is the setting that names them. Collective if the
    /// mesh is distributed.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if there is none, with the extents of the mesh.
    pub(crate) fn numbers(&self, on: OnMesh<'_>, path: &[Key]) -> Result<Vec<u32>, SolveError> {
        match self {
            Self::Where(comparison) => on.found(satisfying(on, comparison, path)),
            // A rank may have none of those that all ranks list.
            Self::Listed(nodes) if nodes.is_empty() && on.divided.is_some() => Ok(Vec::new()),
            Self::Listed(nodes) => listed(on.mesh, nodes, path),
        }
    }
}

/// Returns the boundary facets whose nodes are all in a list, ascending.
pub(crate) fn facets_within(mesh: &Mesh, boundary: &BoundaryFacets, nodes: &[u32]) -> Vec<u32> {
    let mut is_named = vec![false; mesh.n_nodes()];
    nodes.iter().for_each(|&node| is_named[node as usize] = true);
    let has_all = |facet: usize| boundary.facet(facet).iter().all(|&node| is_named[node as usize]);
    parallel::filter(boundary.len(), has_all)
}

/// Checks a list of nodes and sorts it.
fn listed(mesh: &Mesh, nodes: &[u32], path: &[Key]) -> Result<Vec<u32>, SolveError> {
    let n = mesh.n_nodes();
    if let Some(&far) = nodes.iter().find(|&&node| node as usize >= n) {
        return Err(SolveError::setting(path, format!("there is no node {far}: the mesh has {n}")));
    }
    if nodes.is_empty() {
        return Err(SolveError::setting(path, "the list of nodes is empty: leave the condition out"));
    }
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

fn satisfying(on: OnMesh<'_>, text: &str, path: &[Key]) -> Result<Vec<u32>, SolveError> {
    let mesh = on.mesh;
    let comparison = Comparison::parse(text).map_err(|error| SolveError::Setting {
        path: path.to_vec(),
        within: Some(error.span.clone()),
        message: format!("`{text}` is no comparison such as \"x < 1e-9 && y < 1e-9\" ({error})"),
    })?;
    let nodes = parallel::filter(mesh.n_nodes(), |node| comparison.holds(mesh.points[node]));
    if nodes.is_empty() {
        let message = format!(
            "this holds at no node; the mesh reaches {}: compare the unit of length (mm against m?) and leave room for \
             rounding, as in \"x < 1e-9\", or for the width of a cell where no node lies",
            on.extents()
        );
        return Err(SolveError::setting(path, message));
    }
    Ok(nodes)
}
