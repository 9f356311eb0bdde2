//! Functions at evenly spaced points, for output files.

use crate::FemError;
use crate::evaluation::of_groups;
use crate::functionals::check_length;
use femtile_device::parallel;
use femtile_space::geometry::{AtPoints, CellMaps};
use femtile_space::{Group, TensorSpace};

/// Evenly spaced points of all cells of a space.
#[derive(Debug)]
pub struct EvenPoints<'a> {
    space: &'a TensorSpace<'a>,
    /// The space whose unknowns number the points, if it differs.
    shape: Option<TensorSpace<'a>>,
}

impl<'a> EvenPoints<'a> {
    /// Numbers the points of all cells, `order + 1` along each axis; neighbours share those on their common side.
    ///
    /// # Errors
    /// [`FemError::Space`] for an unsupported order.
    pub fn new(space: &'a TensorSpace<'a>, order: usize) -> Result<Self, FemError> {
        let is_other = order != space.degree();
        let shape = is_other.then(|| TensorSpace::new(space.mesh(), order)).transpose()?;
        Ok(Self { space, shape })
    }

    /// Returns the space whose unknowns number the points.
    fn shape(&self) -> &TensorSpace<'a> {
        self.shape.as_ref().unwrap_or(self.space)
    }

    /// Returns coordinates along an axis of the reference cell.
    fn along(&self) -> Vec<f64> {
        let order = self.shape().degree();
        (0..=order).map(|i| i as f64 / order as f64).collect()
    }

    /// Returns the points.
    pub fn points(&self) -> Vec<[f64; 3]> {
        let maps = CellMaps::new(self.shape(), &self.along());
        self.at_all([0.0; 3], |workspace, position| {
            maps.points(position, &mut workspace.function);
            workspace.points.clear();
            workspace.points.extend_from_slice(workspace.function.values.as_chunks().0);
        })
    }

    /// Returns the values of the function with degrees of freedom `u` at the points.
    ///
    /// # Errors
    /// [`FemError::Length`] if `u` does not match the space.
    pub fn values(&self, u: &[f64]) -> Result<Vec<f64>, FemError> {
        check_length(u, self.space.n_dofs())?;
        let interpolation = self.space.shapes().values(&self.along());
        Ok(self.at_all(0.0, |workspace, position| {
            workspace.dofs.resize(self.space.dofs_per_cell(), 0);
            self.space.cell_dofs(position, &mut workspace.dofs);
            workspace.function.values.clear();
            workspace.function.values.extend(workspace.dofs.iter().map(|&dof| u[dof as usize]));
            workspace.function.along_all(&interpolation, self.space.dimension(), 1);
            workspace.points.clear();
            workspace.points.extend_from_slice(&workspace.function.values);
        }))
    }

    /// Collects the `points` of the workspace after `of_cell` for each cell, the first axis fastest.
    fn at_all<R: Copy + Send + Default + Sync>(
        &self,
        zero: R,
        of_cell: impl Fn(&mut Workspace<R>, usize) + Sync,
    ) -> Vec<R> {
        let shape = self.shape();
        let mut found = vec![zero; shape.n_dofs()];
        let of_group = |workspace: &mut Workspace<R>, (group, own): (&Group, &mut [R])| {
            for position in group.cells.clone() {
                of_cell(workspace, position);
                workspace.dofs.resize(shape.dofs_per_cell(), 0);
                shape.cell_dofs(position, &mut workspace.dofs);
                for (&number, value) in workspace.dofs.iter().zip(&workspace.points) {
                    // Earlier groups have the other points.
                    if let Some(at) = (number as usize).checked_sub(group.dofs.start) {
                        own[at] = *value;
                    }
                }
            }
        };
        let groups = shape.groups();
        let parts: Vec<_> = groups.iter().zip(of_groups(groups, &mut found)).collect();
        parallel::for_each_item_with(parts, 1, Workspace::default, of_group);
        found
    }

    /// Returns the points of each cell of the mesh, in its own axes, the first fastest: `[n_cells × (order + 1)^d]`.
    pub fn cells(&self) -> Vec<u32> {
        cells(self.shape())
    }
}

/// Workspace for a cell.
#[derive(Default)]
struct Workspace<R> {
    dofs: Vec<u32>,
    function: AtPoints,
    points: Vec<R>,
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
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
    use femtile_space::Space;

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
        let u: Vec<f64> = Space::from(&space).node_points().into_iter().map(f).collect();
        for order in [1, 3, 4] {
            let even = EvenPoints::new(&space, order).unwrap();
            let (points, values, cells) = (even.points(), even.values(&u).unwrap(), even.cells());
            assert!(points.iter().zip(&values).all(|(&point, value)| (f(point) - value).abs() < 1e-13));
            let n = order + 1;
            for (cell, own) in cells.chunks_exact(n.pow(3)).enumerate() {
                let nodes = mesh.cell(cell);
                for (local, at) in [(0, 0), (1, order), (3, n * order), (4, n * n * order), (6, n.pow(3) - 1)]
                {
                    assert_eq!(points[own[at] as usize], mesh.points[nodes[local] as usize]);
                }
            }
        }
    }
}
