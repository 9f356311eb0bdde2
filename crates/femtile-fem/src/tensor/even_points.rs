//! Functions at evenly spaced points, for output files.

use super::check_length;
use super::evaluation::of_groups;
use crate::FemError;
use crate::dofs::{Group, TensorSpace};
use crate::geometry::CellMaps;
use crate::geometry::point_tables::AtPoints;
use femtile_device::parallel;

/// A function at evenly spaced points of all cells.
#[derive(Debug, Clone, PartialEq)]
pub struct EvenPoints {
    /// The points; neighbours share those on their common side.
    pub points: Vec<[f64; 3]>,
    /// The values of the function.
    pub values: Vec<f64>,
    /// Points of each cell of the mesh, in its own axes, the first fastest: `[n_cells × (order + 1)^d]`.
    pub cells: Vec<u32>,
}

/// Evaluates the function with degrees of freedom `u` at evenly spaced points of cells.
///
/// # Errors
/// [`FemError::Length`] if `u` does not match the space, [`FemError::Degree`] for an unsupported order.
pub fn at_even_points(space: &TensorSpace<'_>, order: usize, u: &[f64]) -> Result<EvenPoints, FemError> {
    check_length(space, u)?;
    // Points are numbered as the unknowns of a space of that order.
    let own;
    let shape = if order == space.degree() {
        space
    } else {
        own = TensorSpace::new(space.mesh(), order)?;
        &own
    };
    let even: Vec<f64> = (0..=order).map(|i| i as f64 / order as f64).collect();
    let interpolation = space.shapes().values(&even);
    let maps = CellMaps::new(shape, &even);
    let (mut points, mut values) = (vec![[0.0; 3]; shape.n_dofs()], vec![0.0; shape.n_dofs()]);
    let of_group = |workspace: &mut Workspace, group: &Group, points: &mut [[f64; 3]], values: &mut [f64]| {
        for position in group.cells.clone() {
            workspace.dofs.resize(space.dofs_per_cell(), 0);
            space.cell_dofs(position, &mut workspace.dofs);
            workspace.function.values.clear();
            workspace.function.values.extend(workspace.dofs.iter().map(|&dof| u[dof as usize]));
            workspace.function.along_all(&interpolation, space.dimension(), 1);
            maps.points(position, &mut workspace.coordinates);
            workspace.dofs.resize(shape.dofs_per_cell(), 0);
            shape.cell_dofs(position, &mut workspace.dofs);
            let found = workspace.coordinates.values.as_chunks().0.iter().zip(&workspace.function.values);
            for (&number, (point, value)) in workspace.dofs.iter().zip(found) {
                // Earlier groups have the other points.
                if let Some(at) = (number as usize).checked_sub(group.dofs.start) {
                    (points[at], values[at]) = (*point, *value);
                }
            }
        }
    };
    let groups = shape.groups();
    let parts = of_groups(groups, &mut points).into_iter().zip(of_groups(groups, &mut values));
    let parts: Vec<_> = groups.iter().zip(parts).collect();
    parallel::for_each_item_with(parts, 1, Workspace::default, |workspace, (group, (points, values))| {
        of_group(workspace, group, points, values);
    });
    Ok(EvenPoints { points, values, cells: cells(shape) })
}

/// Workspace for a cell.
#[derive(Default)]
struct Workspace {
    dofs: Vec<u32>,
    function: AtPoints,
    coordinates: AtPoints,
}

/// Returns the degrees of freedom of each cell of the mesh, in its own axes.
fn cells(shape: &TensorSpace<'_>) -> Vec<u32> {
    let (n, d, per_cell) = (shape.degree() + 1, shape.dimension(), shape.dofs_per_cell());
    let mut positions = vec![0u32; shape.n_cells()];
    shape.order().iter().zip(0..).for_each(|(&cell, position)| positions[cell as usize] = position);
    let mut cells = vec![0; shape.n_cells() * per_cell];
    let write = |numbers: &mut Vec<u32>, (cell, position): (&mut [u32], u32)| {
        shape.cell_dofs(position as usize, numbers);
        let orientation = shape.orientation(position as usize);
        for (at, &number) in numbers.iter().enumerate() {
            let third = if d == 3 { at / (n * n) } else { 0 };
            cell[orientation.given([at % n, at / n % n, third], n)] = number;
        }
    };
    let of_cells = cells.chunks_exact_mut(per_cell).zip(positions).collect();
    parallel::for_each_item_with(of_cells, 1, || vec![0; per_cell], write);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::CellMap;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

    #[test]
    fn polynomials_are_themselves_at_all_points_of_the_cells_in_their_own_axes() {
        let config = BoxConfig { cells: [7, 5, 5], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        // One cell is mirrored relative to its neighbours.
        let given: Vec<u32> = mesh.cells[8..16].to_vec();
        for (node, from) in mesh.cells[8..16].iter_mut().zip([1, 2, 3, 0, 5, 6, 7, 4]) {
            *node = given[from];
        }
        let f = |[x, y, z]: [f64; 3]| 1.0 + x * x - 2.0 * y * z + z * z * x;
        let space = TensorSpace::new(&mesh, 3).unwrap();
        assert!(space.groups().len() > 1);
        let nodes = CellMaps::new(&space, space.shapes().nodes());
        let (mut map, mut dofs) = (CellMap::default(), vec![0; space.dofs_per_cell()]);
        let mut u = vec![f64::NAN; space.n_dofs()];
        for position in 0..space.n_cells() {
            nodes.of_cell(position, &mut map);
            space.cell_dofs(position, &mut dofs);
            dofs.iter().zip(&map.points).for_each(|(&dof, &point)| u[dof as usize] = f(point));
        }
        for order in [1, 3, 4] {
            let found = at_even_points(&space, order, &u).unwrap();
            assert!(
                found
                    .points
                    .iter()
                    .zip(&found.values)
                    .all(|(&point, value)| (f(point) - value).abs() < 1e-13)
            );
            let n = order + 1;
            for (cell, points) in found.cells.chunks_exact(n.pow(3)).enumerate() {
                let nodes = mesh.cell(cell);
                for (local, at) in [(0, 0), (1, order), (3, n * order), (4, n * n * order), (6, n.pow(3) - 1)]
                {
                    assert_eq!(found.points[points[at] as usize], mesh.points[nodes[local] as usize]);
                }
            }
        }
    }
}
