//! Meshes of every kind of cell, and surfaces of them.

use femtile_mesh::generate::{
    BoxConfig, BoxSplit, DeformConfig, SquareConfig, SquareSplit, box_mesh, deform, square,
};
use femtile_mesh::{CellKind, Mesh};

/// All kinds of cells.
pub const KINDS: [CellKind; 4] =
    [CellKind::Triangle, CellKind::Quadrilateral, CellKind::Tetrahedron, CellKind::Hexahedron];

/// Returns the unit square or cube with `n` cells along each axis (`n` and 1 along the others if `is_thin`), its inside moved.
pub fn mesh(kind: CellKind, n: [usize; 3], deformation: Option<DeformConfig>) -> Mesh {
    let mut mesh = match kind {
        CellKind::Triangle | CellKind::Quadrilateral => {
            let split =
                if kind == CellKind::Triangle { SquareSplit::Triangles } else { SquareSplit::Quadrilateral };
            square(&SquareConfig { cells: [n[0], n[1]], split, ..SquareConfig::default() }).unwrap()
        }
        _ => {
            let split = if kind == CellKind::Tetrahedron { BoxSplit::Kuhn } else { BoxSplit::Hexahedron };
            box_mesh(&BoxConfig { cells: n, split, ..BoxConfig::default() }).unwrap()
        }
    };
    if let Some(config) = deformation {
        deform(&mut mesh, &config).unwrap();
    }
    mesh
}

/// Returns a mesh of the plane moved into space, with its curved cells.
pub fn into_space(mesh: &Mesh, map: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    let mut mesh = mesh.clone();
    let curved = mesh.curved.iter_mut().flat_map(|curved| &mut curved.points);
    mesh.points.iter_mut().chain(curved).for_each(|point| *point = map(*point));
    mesh.is_surface = true;
    mesh
}
