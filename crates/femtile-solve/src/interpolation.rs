//! Values of fields between the points of cells of any order, as files and [`SolutionData`](crate::SolutionData) have them.

use femtile_mesh::CellKind;
use femtile_mesh::io::vtu::lattice;
use femtile_space::Element;

use crate::SolveError;

/// Lagrange interpolation on cells of one kind and order, which have polynomials of that order as their shapes.
///
/// ```
/// use femtile_mesh::CellKind;
/// use femtile_solve::Interpolation;
///
/// // A triangle of order 2: corners, then edges.
/// let points = [[0., 0., 0.], [2., 0., 0.], [0., 2., 0.], [1., 0., 0.], [1., 1., 0.], [0., 1., 0.]];
/// let u = points.map(|[x, y, _]| x * x + y);
/// let interpolation = Interpolation::new(CellKind::Triangle, 2, &points, &[0, 1, 2, 3, 4, 5])?;
/// let found = interpolation.value_at(&u, 1, [0.3, 0.5, 0.0]).unwrap();
/// assert!((found[0] - 0.59).abs() < 1e-12);
/// assert!(interpolation.value_at(&u, 1, [1.5, 1.5, 0.0]).is_none());
/// # Ok::<(), femtile_solve::SolveError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Interpolation<'a> {
    element: Element,
    points: &'a [[f64; 3]],
    cells: &'a [u32],
    /// For each node of the element its place among the points of a cell.
    places: Vec<usize>,
    /// Lower and upper corner of each cell, with a margin.
    boxes: Vec<[[f64; 3]; 2]>,
}

impl<'a> Interpolation<'a> {
    /// Prepares cells, given by their points in the order of VTK.
    ///
    /// # Cost
    /// Stores six values per cell.
    /// # Errors
    /// [`SolveError::Fem`] for an element that does not exist, [`SolveError::Mesh`] for indices that do not fit.
    pub fn new(
        kind: CellKind,
        order: usize,
        points: &'a [[f64; 3]],
        cells: &'a [u32],
    ) -> Result<Self, SolveError> {
        let element = Element::evenly_spaced(kind, order)?;
        let lattice = lattice(kind, order)?;
        let place = |node: &[f64; 3]| {
            let at = node.map(|x| (x * order as f64).round() as usize);
            lattice.iter().position(|point| *point == at).unwrap_or_default()
        };
        let places: Vec<usize> = element.nodes().iter().map(place).collect();
        let is_within = cells.iter().all(|&point| (point as usize) < points.len());
        if !cells.len().is_multiple_of(places.len()) || !is_within {
            let message = format!("{} indices of {} points do not fit", cells.len(), points.len());
            return Err(femtile_mesh::MeshError::Invalid { field: "cells", message }.into());
        }
        // Curved sides may leave the box of their points.
        let margin = if order > 1 { 0.25 } else { 1e-6 };
        let of_cell = |cell: &[u32]| {
            let mut bounds = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
            for point in cell.iter().map(|&point| points[point as usize]) {
                for axis in 0..3 {
                    bounds[0][axis] = bounds[0][axis].min(point[axis]);
                    bounds[1][axis] = bounds[1][axis].max(point[axis]);
                }
            }
            let size = (0..3).map(|axis| bounds[1][axis] - bounds[0][axis]).fold(0.0, f64::max);
            [bounds[0].map(|x| x - margin * size), bounds[1].map(|x| x + margin * size)]
        };
        let boxes = cells.chunks(places.len()).map(of_cell).collect();
        Ok(Self { element, points, cells, places, boxes })
    }

    /// Returns the value at a point of a field with some components at each point of the cells; none if it lies in no cell.
    pub fn value_at(&self, field: &[f64], n_components: usize, at: [f64; 3]) -> Option<Vec<f64>> {
        let (cell, reference) = self.locate(at)?;
        let table = self.element.tabulate(&[reference]);
        let component = |c: usize| {
            let nodes = self.points_of(cell).zip(table.values(0));
            nodes.map(|(point, shape)| shape * field[point * n_components + c]).sum()
        };
        Some((0..n_components).map(component).collect())
    }

    /// Returns a cell that has a point, and the point of the reference cell.
    fn locate(&self, at: [f64; 3]) -> Option<(usize, [f64; 3])> {
        let is_near = |[lower, upper]: &[[f64; 3]; 2]| {
            (0..3).all(|axis| (lower[axis]..=upper[axis]).contains(&at[axis]))
        };
        let near = self.boxes.iter().enumerate().filter(|(_, bounds)| is_near(bounds));
        near.map(|(cell, _)| cell).find_map(|cell| {
            let nodes: Vec<[f64; 3]> = self.points_of(cell).map(|point| self.points[point]).collect();
            Some((cell, self.element.preimage(&nodes, at)?))
        })
    }

    /// Returns the points of a cell in the order of the nodes of the element.
    fn points_of(&self, cell: usize) -> impl Iterator<Item = usize> {
        let own = &self.cells[cell * self.places.len()..][..self.places.len()];
        self.places.iter().map(|&place| own[place] as usize)
    }
}

#[cfg(test)]
mod tests {
    use femtile_mesh::Mesh;
    use femtile_mesh::generate::{DeformConfig, SquareConfig, SquareSplit, deform, square};

    use super::*;
    use crate::{Fields, Poisson, SolverConfig};

    fn mesh(split: SquareSplit) -> Mesh {
        square(&SquareConfig { cells: [4, 3], split, ..SquareConfig::default() }).unwrap()
    }

    #[test]
    fn linear_functions_are_found_between_the_points_of_straight_and_curved_cells() {
        let mut bent = mesh(SquareSplit::Quadrilateral);
        deform(&mut bent, &DeformConfig { amplitude: 0.05, order: 3 }).unwrap();
        for (mesh, degree) in
            [(mesh(SquareSplit::Triangles), 1), (mesh(SquareSplit::Quadrilateral), 2), (bent, 3)]
        {
            let problem = Poisson::new(&mesh).degree(degree).dirichlet("all", "x + 2*y").unwrap();
            let config = SolverConfig { tolerance: 1e-12, ..SolverConfig::default() };
            let data = problem.solve(&config).unwrap().data(&Fields::default()).unwrap();
            let found = Interpolation::new(data.kind, data.order, &data.points, &data.cells).unwrap();
            let u = &data.point_fields["u"].values;
            for at in [[0.0, 0.0, 0.0], [0.31, 0.57, 0.0], [0.5, 0.5, 0.0], [0.99, 0.02, 0.0]] {
                let value = found.value_at(u, 1, at).unwrap();
                assert!((value[0] - at[0] - 2.0 * at[1]).abs() < 1e-9, "{at:?}: {value:?}");
            }
            assert!(
                [[1.2, 0.5, 0.0], [0.5, 0.5, 0.1]].into_iter().all(|at| found.value_at(u, 1, at).is_none())
            );
        }
    }

    #[test]
    fn cells_without_elements_and_wrong_indices_are_refused() {
        let error =
            |kind, cells: &[u32]| Interpolation::new(kind, 1, &[[0.0; 3]; 3], cells).unwrap_err().to_string();
        assert!(error(CellKind::Segment, &[0, 1]).contains("no elements on segment"));
        assert!(error(CellKind::Triangle, &[0, 1, 3]).contains("do not fit"));
        assert!(error(CellKind::Triangle, &[0, 1]).contains("do not fit"));
    }
}
