//! Connected components, to find parts of a mesh whose solution is not determined.

use femtile_mesh::Mesh;

use crate::FemError;

/// The root of each node's component, the smallest node in it.
///
/// A forest that links each node to its smallest neighbour is tried first: where it has one root, as on
/// every mesh that is numbered sensibly, nothing else needs to be looked at.
fn roots(mesh: &Mesh) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..mesh.n_nodes() as u32).collect();
    let cells = || mesh.cells.chunks_exact(mesh.kind.n_nodes());
    for cell in cells() {
        let low = cell.iter().copied().min().unwrap_or(0);
        for &node in cell {
            let parent = &mut parent[node as usize];
            *parent = (*parent).min(low);
        }
    }
    // Parents are never larger than their children, so one ascending sweep reaches the roots.
    let flatten = |parent: &mut [u32]| {
        let mut n_roots = 0;
        for node in 0..parent.len() {
            n_roots += usize::from(parent[node] == node as u32);
            parent[node] = parent[parent[node] as usize];
        }
        n_roots
    };
    if flatten(&mut parent) > 1 {
        for cell in cells() {
            for &node in &cell[1..] {
                unite(&mut parent, cell[0], node);
            }
        }
        flatten(&mut parent);
    }
    parent
}

fn unite(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parent, a), find(parent, b));
    parent[a.max(b) as usize] = a.min(b);
}

fn find(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

/// Whether the solution is determined up to a constant only: nothing holds it anywhere, and the mesh is connected.
///
/// `held` says of each node whether something there ties the solution to a value.
///
/// # Errors
/// [`FemError::Floating`] when the mesh has several components and nothing holds one of them.
pub(super) fn floats(mesh: &Mesh, held: impl Fn(usize) -> bool) -> Result<bool, FemError> {
    let roots = roots(mesh);
    let mut is_held = vec![false; roots.len()];
    for (node, &root) in roots.iter().enumerate() {
        is_held[root as usize] |= held(node);
    }
    let is_root = |node: &usize| roots[*node] == *node as u32;
    let n_components = (0..roots.len()).filter(is_root).count();
    let Some(node) = (0..roots.len()).filter(is_root).find(|&root| !is_held[root]) else {
        return Ok(false);
    };
    if n_components == 1 {
        return Ok(true);
    }
    let n_nodes = roots.iter().filter(|&&root| root == node as u32).count();
    Err(FemError::Floating { n_components, node, point: mesh.points[node], n_nodes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::CellKind;

    fn triangles(cells: Vec<u32>) -> Mesh {
        let n = cells.iter().max().unwrap() + 1;
        Mesh::new((0..n).map(|i| [f64::from(i), 0.0, 0.0]).collect(), CellKind::Triangle, cells).unwrap()
    }

    #[test]
    fn components_are_found_in_any_numbering() {
        assert_eq!(roots(&triangles(vec![0, 1, 2, 2, 1, 3])), [0, 0, 0, 0]);
        // The forest of smallest neighbours falls apart here, the mesh does not.
        assert_eq!(roots(&triangles(vec![0, 5, 3, 1, 4, 2, 5, 4, 6])), [0; 7]);
        assert_eq!(roots(&triangles(vec![0, 5, 3, 1, 4, 2])), [0, 1, 1, 0, 1, 0]);
    }

    #[test]
    fn a_component_that_nothing_holds_is_an_error_unless_it_is_the_only_one() {
        let two = triangles(vec![0, 5, 3, 1, 4, 2]);
        assert!(matches!(
            floats(&two, |node| node == 5),
            Err(FemError::Floating { n_components: 2, node: 1, n_nodes: 3, .. })
        ));
        assert!(!floats(&two, |node| node == 5 || node == 4).unwrap());
        let one = triangles(vec![0, 1, 2]);
        assert!(floats(&one, |_| false).unwrap());
        assert!(!floats(&one, |node| node == 2).unwrap());
    }
}
