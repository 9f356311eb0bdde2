//! Values at the nodes of a mesh with curved cells, taken to all points of the cells.

use crate::tensor::{apply, corner_places, evenly_spaced, ticks};
use crate::{Curved, Field, Mesh, MeshError};

/// Interpolates a field at nodes to the points of curved cells, linearly in each coordinate of a cell.
pub(super) fn spread(mesh: &Mesh, curved: &Curved, field: &Field) -> Field {
    let n = field.n_components;
    let table = evenly_spaced(1).values(&ticks(curved.order));
    let tables = vec![&table; mesh.dimension()];
    let mut values = vec![0.0; n * curved.points.len()];
    let mut corners = vec![[0.0]; mesh.kind.n_nodes()];
    for (cell, points) in curved.cells.chunks_exact(curved.n_points(mesh.dimension())).enumerate() {
        for c in 0..n {
            for (place, &node) in corner_places(mesh.kind, 1).zip(mesh.cell(cell)) {
                corners[place] = [field.values[node as usize * n + c]];
            }
            for (&point, [value]) in points.iter().zip(apply(&tables, &corners)) {
                values[point as usize * n + c] = value;
            }
        }
    }
    Field { n_components: n, values }
}

/// Returns the points of curved cells that are nodes, by the first cell that has them.
///
/// # Errors
/// [`MeshError::Invalid`] for a node that no cell has.
pub(super) fn node_points(mesh: &Mesh, curved: &Curved, nodes: &[u32]) -> Result<Vec<u32>, MeshError> {
    let places: Vec<usize> = corner_places(mesh.kind, curved.order).collect();
    let mut point_of = vec![None; mesh.n_nodes()];
    for (cell, points) in curved.cells.chunks_exact(curved.n_points(mesh.dimension())).enumerate() {
        for (&node, &place) in mesh.cell(cell).iter().zip(&places) {
            point_of[node as usize].get_or_insert(points[place]);
        }
    }
    let find = |&node: &u32| {
        point_of[node as usize].ok_or_else(|| MeshError::Invalid {
            field: "facets",
            message: format!("a tagged facet uses node {node}, which no cell has; check the mesh first"),
        })
    };
    nodes.iter().map(find).collect()
}
