//! Functions at evenly spaced points, as files have them.

use femtile_element::tensor::{Lagrange, Table};

use super::check_length;
use crate::FemError;
use crate::dofs::TensorSpace;
use crate::matrix_free::geometry::{CellMap, CellMaps};

/// A function at evenly spaced points of all cells.
#[derive(Debug, Clone, PartialEq)]
pub struct EvenPoints {
    /// The points; neighbours share those on their common side.
    pub points: Vec<[f64; 3]>,
    /// The function there.
    pub values: Vec<f64>,
    /// Points of each cell of the mesh, in its own axes, the first fastest: `[n_cells × (order + 1)^d]`.
    pub cells: Vec<u32>,
}

/// The function with degrees of freedom `u`, at the points of cells of some order.
///
/// # Errors
/// [`FemError::Length`] when `u` does not belong to the space, [`FemError::Degree`] for an order that is no degree.
pub fn at_even_points(space: &TensorSpace<'_>, order: usize, u: &[f64]) -> Result<EvenPoints, FemError> {
    check_length(space, u)?;
    // Points are numbered as the unknowns of a space of that order.
    let shape = &if order == space.degree() { space.clone() } else { TensorSpace::new(space.mesh(), order)? };
    let (n, d, per_cell) = (shape.degree() + 1, shape.dimension(), shape.dofs_per_cell());
    let even: Vec<f64> = (0..n).map(|i| i as f64 / shape.degree() as f64).collect();
    let values_at = Lagrange::gauss_lobatto(space.degree()).values(&even);
    let maps = CellMaps::new(shape, &even);
    let (mut points, mut values) = (vec![[0.0; 3]; shape.n_dofs()], vec![0.0; shape.n_dofs()]);
    let mut cells = vec![0; shape.n_cells() * per_cell];
    let (mut map, mut own) = (CellMap::default(), vec![0; space.dofs_per_cell()]);
    let mut numbers = vec![0; per_cell];
    for position in 0..shape.n_cells() {
        maps.of_cell(position, &mut map);
        space.cell_dofs(position, &mut own);
        shape.cell_dofs(position, &mut numbers);
        let local: Vec<f64> = own.iter().map(|&dof| u[dof as usize]).collect();
        let found = along_all(&values_at, &local, d);
        let orientation = shape.orientation(position);
        let cell = &mut cells[shape.order()[position] as usize * per_cell..][..per_cell];
        for (at, &number) in numbers.iter().enumerate() {
            (points[number as usize], values[number as usize]) = (map.points[at], found[at]);
            let third = if d == 3 { at / (n * n) } else { 0 };
            cell[orientation.given([at % n, at / n % n, third], n)] = number;
        }
    }
    Ok(EvenPoints { points, values, cells })
}

/// A table along every axis of a tensor.
fn along_all(table: &Table, tensor: &[f64], d: usize) -> Vec<f64> {
    let (m, n) = (table.n_points, table.n_shapes);
    (0..d).fold(tensor.to_vec(), |from, axis| {
        let inner = m.pow(axis as u32);
        let entry = |to: usize| -> f64 {
            let (outer, row, k) = (to / (m * inner), to / inner % m, to % inner);
            let line = table.row(row).iter().enumerate();
            line.map(|(column, factor)| factor * from[(outer * n + column) * inner + k]).sum()
        };
        (0..from.len() / n * m).map(entry).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

    #[test]
    fn polynomials_are_themselves_at_all_points_of_the_cells_in_their_own_axes() {
        let config = BoxConfig { cells: [3, 2, 2], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        // One cell lies the other way round than its neighbours.
        let given: Vec<u32> = mesh.cells[8..16].to_vec();
        for (node, from) in mesh.cells[8..16].iter_mut().zip([1, 2, 3, 0, 5, 6, 7, 4]) {
            *node = given[from];
        }
        let f = |[x, y, z]: [f64; 3]| x * x - 2.0 * y * z + z * z * x;
        let space = TensorSpace::new(&mesh, 3).unwrap();
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
