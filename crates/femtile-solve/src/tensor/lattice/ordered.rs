//! Rows of cells whose nodes are numbered row by row.

use femtile_device::parallel;
use femtile_space::TensorSpace;

use super::walk::is_left_handed;

/// Returns the lattice lines of each node of the mesh, if nodes are numbered along rows of equal length, row
/// after row, as generators do. The axes are those of [`super::walk::numbers`].
///
/// It is a guess from the first cell alone, to be verified for all others.
pub(super) fn numbers(space: &TensorSpace<'_>) -> Option<Vec<[u32; 3]>> {
    let (d, n, corners) = (space.dimension(), space.mesh().n_nodes(), space.corners(0));
    let step = |own: usize| i64::from(corners[1 << own]) - i64::from(corners[0]);
    let mut axes: Vec<(usize, usize)> = (0..d).map(|own| (step(own).unsigned_abs() as usize, own)).collect();
    axes.sort_unstable();
    let ends = axes.iter().skip(1).map(|(stride, _)| *stride).chain([n]);
    let counts: Vec<usize> = axes.iter().zip(ends).map(|((stride, _), end)| end / stride.max(&1)).collect();
    let product: usize = counts.iter().product();
    if axes[0].0 != 1 || product != n {
        return None;
    }
    let first_is_backwards = is_left_handed(space);
    let number = |node: usize| {
        let mut at = [0; 3];
        for (&(stride, own), &count) in axes.iter().zip(&counts) {
            let (line, falls) = (node / stride % count, (step(own) < 0) != (own == 0 && first_is_backwards));
            at[own] = if falls { count - 1 - line } else { line } as u32;
        }
        at
    };
    Some(parallel::map(n, 1 << 14, number))
}

#[cfg(test)]
mod tests {
    use femtile_mesh::Mesh;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};

    use super::super::walk;
    use super::*;

    fn meshes() -> Vec<Mesh> {
        let split = BoxSplit::Hexahedron;
        let cubes = |cells| box_mesh(&BoxConfig { cells, split, ..BoxConfig::default() }).unwrap();
        let split = SquareSplit::Quadrilateral;
        let squares = |cells| square(&SquareConfig { cells, split, ..SquareConfig::default() }).unwrap();
        vec![cubes([1, 1, 1]), cubes([4, 3, 5]), cubes([2, 1, 6]), squares([5, 7]), squares([1, 4])]
    }

    /// The same mesh with its nodes in other places.
    fn renumbered(mut mesh: Mesh, new: impl Fn(usize) -> usize) -> Mesh {
        let old = mesh.points.clone();
        (0..old.len()).for_each(|node| mesh.points[new(node)] = old[node]);
        mesh.cells.iter_mut().for_each(|node| *node = new(*node as usize) as u32);
        mesh
    }

    #[test]
    fn lines_are_those_that_a_walk_finds() {
        for mesh in meshes() {
            let n = mesh.n_nodes();
            let mut mirrored = mesh.clone();
            mirrored.points.iter_mut().for_each(|point| point[1] = -point[1]);
            let mut reversed = mesh.clone();
            reversed.cells = mesh.cells.chunks_exact(mesh.kind.n_nodes()).rev().flatten().copied().collect();
            for mesh in [renumbered(mesh.clone(), |node| n - 1 - node), mirrored, reversed, mesh] {
                // A space does not see that mirrored cells are inverted.
                let space = TensorSpace::new(&mesh, 1).unwrap();
                assert_eq!(numbers(&space).unwrap(), walk::numbers(&space).unwrap());
            }
        }
    }

    #[test]
    fn other_numberings_are_no_rows() {
        for mesh in meshes().into_iter().skip(1) {
            let n = mesh.n_nodes();
            let is_moved = |node: usize| node < 2 || node > n - 3;
            let mesh = renumbered(mesh, |node| if is_moved(node) { n - 1 - node } else { node });
            let space = TensorSpace::new(&mesh, 1).unwrap();
            let found = numbers(&space);
            assert!(found.is_none_or(|found| found != walk::numbers(&space).unwrap()));
        }
    }
}
