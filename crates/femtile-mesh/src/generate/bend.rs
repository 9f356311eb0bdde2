//! Maps straight meshes; cells become curved, with polynomials that interpolate the map at evenly spaced points.

use crate::numbering::number;
use crate::tensor::{apply, corner_places, evenly_spaced, ticks};
use crate::{CellKind, Curved, Mesh, MeshError};

/// Moves all nodes by a map; cells of an order above 1 become curved.
///
/// # Errors
/// [`MeshError::Invalid`] for an order out of range, simplices of an order above 1 and too many points to number.
pub(super) fn bend(
    mesh: &mut Mesh,
    order: usize,
    map: impl Fn([f64; 3]) -> [f64; 3],
) -> Result<(), MeshError> {
    let wrong = |message| Err(MeshError::Invalid { field: "order", message });
    if !(1..=Curved::MAX_ORDER).contains(&order) {
        return wrong(format!("{order}; cells have an order of 1 to {}", Curved::MAX_ORDER));
    }
    if order > 1 {
        if !matches!(mesh.kind, CellKind::Quadrilateral | CellKind::Hexahedron) {
            return wrong(format!(
                "{order}; {} cells are straight, quadrilaterals and hexahedra may be curved",
                mesh.kind
            ));
        }
        let Some(numbering) = number(mesh.kind, &mesh.cells, mesh.n_nodes(), order, false) else {
            return wrong(format!(
                "{order}; more than {} points: ask for fewer cells or a lower order",
                u32::MAX
            ));
        };
        mesh.curved = Some(Curved {
            order,
            points: images(mesh, order, &numbering.cells, numbering.n_points, &map),
            cells: numbering.cells,
        });
    }
    mesh.points.iter_mut().for_each(|point| *point = map(*point));
    Ok(())
}

/// Images of the points of straight cells.
fn images(
    mesh: &Mesh,
    order: usize,
    cells: &[u32],
    n_points: usize,
    map: impl Fn([f64; 3]) -> [f64; 3],
) -> Vec<[f64; 3]> {
    let dimension = mesh.dimension();
    let table = evenly_spaced(1).values(&ticks(order));
    let tables = vec![&table; dimension];
    let mut points = vec![[f64::NAN; 3]; n_points];
    let mut corners = vec![[0.0; 3]; mesh.kind.n_nodes()];
    let shapes = cells.chunks_exact((order + 1).pow(dimension as u32));
    for (nodes, shape) in mesh.cells.chunks_exact(mesh.kind.n_nodes()).zip(shapes) {
        for (place, &node) in corner_places(mesh.kind, 1).zip(nodes) {
            corners[place] = mesh.points[node as usize];
        }
        for (&point, straight) in shape.iter().zip(apply(&tables, &corners)) {
            // Neighbours may round differently: the first cell decides.
            if points[point as usize][0].is_nan() {
                points[point as usize] = map(straight);
            }
        }
    }
    // Nodes without a cell.
    points.iter_mut().filter(|point| point[0].is_nan()).for_each(|point| *point = [0.0; 3]);
    points
}
