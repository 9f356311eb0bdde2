//! Maps from the reference cell to the cells of a space, at any points.

use std::sync::atomic::{AtomicU64, Ordering};

use femtile_device::parallel;
use femtile_element::tensor::Lagrange;

use super::Space;
use crate::element::{Element, Tabulation};
use crate::geometry::{CellMap, CellMaps, determinant, set_normal};
use crate::{SpaceError, TensorSpace};

/// The map of a cell at points.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PointMap {
    /// Points x.
    pub points: Vec<[f64; 3]>,
    /// Jacobians by rows, $J_{ia} = \partial x_i / \partial \xi_a$; in the plane the third row and column are those of the
    /// identity, on a surface the third column is the [unit normal](crate::geometry::set_normal).
    pub jacobians: Vec<[[f64; 3]; 3]>,
    /// Their determinants, never zero; the sign is that of the orientation of the cell's axes.
    pub determinants: Vec<f64>,
}

/// The maps of all cells at given points of the reference cell.
#[derive(Debug)]
pub struct CellMapping<'s, 'a> {
    space: &'s Space<'a>,
    points: Vec<[f64; 3]>,
    shapes: Option<TensorShapes<'s>>,
}

/// The polynomials of the map of quadrilaterals or hexahedra.
#[derive(Debug)]
struct TensorShapes<'s> {
    space: &'s TensorSpace<'s>,
    maps: CellMaps<'s>,
    tabulation: Tabulation,
}

impl<'a> Space<'a> {
    /// Prepares the maps of cells at points of the reference cell.
    pub fn mapping(&self, points: &[[f64; 3]]) -> CellMapping<'_, 'a> {
        let shapes = self.tensor().map(|space| {
            let maps = CellMaps::new(space, &[]);
            let tabulation = element_of_map(space, &maps).tabulate(points);
            TensorShapes { space, maps, tabulation }
        });
        CellMapping { space: self, points: points.to_vec(), shapes }
    }

    /// Evaluates the map of the cell at a position at points of the reference cell.
    ///
    /// # Cost
    /// Tabulates the map; [`Self::mapping`] does so once for all cells.
    /// # Errors
    /// As [`CellMapping::of_cell`].
    pub fn map(&self, position: usize, points: &[[f64; 3]], map: &mut PointMap) -> Result<(), SpaceError> {
        self.mapping(points).of_cell(position, map)
    }
}

impl Space<'_> {
    /// Returns for each degree of freedom the position of the first cell that has it, and its node of the element;
    /// [`u32::MAX`] twice for one that no cell has.
    ///
    /// # Cost
    /// A parallel pass over the degrees of freedom of all cells; 16 bytes per degree of freedom.
    pub fn first_cells(&self) -> Vec<[u32; 2]> {
        let n = self.element.n_dofs();
        let first = parallel::map(self.n_dofs(), parallel::CHEAP, |_| AtomicU64::new(u64::MAX));
        parallel::map_with(
            self.n_cells(),
            CELLS,
            || vec![0; n],
            |dofs, position| {
                self.cell_dofs(position, dofs);
                for (node, &dof) in dofs.iter().enumerate() {
                    first[dof as usize].fetch_min((position as u64) << 32 | node as u64, Ordering::Relaxed);
                }
            },
        );
        parallel::map(first.len(), parallel::CHEAP, |dof| {
            let first = first[dof].load(Ordering::Relaxed);
            [(first >> 32) as u32, first as u32]
        })
    }

    /// Returns the node of each degree of freedom.
    ///
    /// # Cost
    /// The map of each cell at its nodes, in parallel, with 40 bytes of workspace per degree of freedom; a copy of the nodes of the mesh
    /// for degree 1 on simplices.
    pub fn node_points(&self) -> Vec<[f64; 3]> {
        let (mesh, nodes, n_corners) = (self.mesh, self.element.nodes(), self.mesh.kind.n_nodes());
        let Some(space) = self.tensor() else {
            if nodes.len() == n_corners {
                return mesh.points.clone();
            }
            let first = self.first_cells();
            return parallel::map(self.n_dofs(), parallel::CHEAP, |dof| {
                let [cell, node] = first[dof].map(|at| at as usize);
                if dof < mesh.n_nodes() {
                    return mesh.points[dof];
                }
                let corners = mesh.cell(cell);
                let origin = mesh.points[corners[0] as usize];
                let shares = corners[1..].iter().zip(&nodes[node]);
                shares.fold(origin, |sum, (&corner, share)| {
                    std::array::from_fn(|i| sum[i] + share * (mesh.points[corner as usize][i] - origin[i]))
                })
            });
        };
        let (first, maps) = (self.first_cells(), CellMaps::new(space, space.shapes().nodes()));
        let points = parallel::map(self.n_dofs(), parallel::CHEAP, |_| [const { AtomicU64::new(0) }; 3]);
        let scratch = || (CellMap::default(), vec![0; nodes.len()]);
        parallel::map_with(self.n_cells(), 1, scratch, |(map, dofs), position| {
            maps.of_cell(position, map);
            self.cell_dofs(position, dofs);
            for (node, (&dof, point)) in dofs.iter().zip(&map.points).enumerate() {
                if first[dof as usize] == [position as u32, node as u32] {
                    let to = points[dof as usize].iter().zip(point);
                    to.for_each(|(to, x)| to.store(x.to_bits(), Ordering::Relaxed));
                }
            }
        });
        let coordinate = |x: &AtomicU64| f64::from_bits(x.load(Ordering::Relaxed));
        parallel::map(points.len(), parallel::CHEAP, |dof| points[dof].each_ref().map(coordinate))
    }
}

/// Cells whose degrees of freedom a thread visits at least.
const CELLS: usize = 1 << 8;

/// Returns the element of the coordinates of cells.
pub(super) fn element_of_map(space: &TensorSpace<'_>, maps: &CellMaps<'_>) -> Element {
    let n = maps.order();
    let polynomials = Lagrange::new((0..=n).map(|i| i as f64 / n as f64).collect());
    Element::of_polynomials(space.mesh().kind, polynomials)
}

impl CellMapping<'_, '_> {
    /// Evaluates the map of the cell at a position.
    ///
    /// Simplices may have either orientation. The axes of quadrilaterals and hexahedra are right-handed unless the space
    /// mirrored them; those of a surface are right-handed about the normal that they define.
    ///
    /// # Errors
    /// [`SpaceError::Inverted`] with the first inverted point of a quadrilateral or hexahedron, [`SpaceError::Degenerate`] for a
    /// simplex without volume.
    pub fn of_cell(&self, position: usize, map: &mut PointMap) -> Result<(), SpaceError> {
        map.points.clear();
        map.jacobians.clear();
        map.determinants.clear();
        match &self.shapes {
            None => self.of_simplex(position, map),
            Some(shapes) => shapes.of_cell(position, map),
        }
    }

    /// Evaluates the affine map of a simplex.
    fn of_simplex(&self, cell: usize, map: &mut PointMap) -> Result<(), SpaceError> {
        let mesh = self.space.mesh;
        let (d, nodes) = (mesh.dimension(), mesh.cell(cell));
        let corner = |i: usize| mesh.points[nodes[i] as usize];
        let origin = corner(0);
        let mut jacobian = IDENTITY;
        let n_axes = mesh.space_dimension();
        for axis in 0..d {
            (0..n_axes).for_each(|i| jacobian[i][axis] = corner(axis + 1)[i] - origin[i]);
        }
        if mesh.is_surface {
            set_normal(&mut jacobian);
        }
        let determinant = determinant(&jacobian);
        if determinant == 0.0 || determinant.is_nan() {
            let centre = std::array::from_fn(|i| (0..=d).map(|k| corner(k)[i]).sum::<f64>() / (d + 1) as f64);
            return Err(SpaceError::Degenerate { cell, measure: determinant, centre });
        }
        map.points.extend(self.points.iter().map(|reference| {
            let step = |i: usize| -> f64 { (0..d).map(|axis| jacobian[i][axis] * reference[axis]).sum() };
            std::array::from_fn(|i| if i < n_axes { origin[i] + step(i) } else { origin[i] })
        }));
        map.jacobians.resize(self.points.len(), jacobian);
        map.determinants.resize(self.points.len(), determinant);
        Ok(())
    }
}

impl TensorShapes<'_> {
    fn of_cell(&self, position: usize, map: &mut PointMap) -> Result<(), SpaceError> {
        let (d, nodes) = (self.space.dimension(), self.maps.nodes(position));
        let (mesh, sign) = (self.space.mesh(), self.space.sign(position));
        let n_axes = mesh.space_dimension();
        for q in 0..self.tabulation.n_points() {
            let (mut point, mut jacobian) = ([0.0; 3], IDENTITY);
            (0..n_axes).for_each(|i| jacobian[i] = [0.0; 3]);
            let shapes = self.tabulation.values(q).iter().zip(self.tabulation.gradients(q));
            for (node, (value, gradient)) in nodes.iter().zip(shapes) {
                (0..3).for_each(|i| point[i] += value * node[i]);
                for i in 0..n_axes {
                    (0..d).for_each(|axis| jacobian[i][axis] += node[i] * gradient[axis]);
                }
            }
            if mesh.is_surface {
                set_normal(&mut jacobian);
            }
            let determinant = determinant(&jacobian);
            if determinant.is_nan() || sign * determinant <= 0.0 {
                let cell = self.space.order()[position] as usize;
                return Err(SpaceError::Inverted { cell, point, value: sign * determinant });
            }
            map.points.push(point);
            map.jacobians.push(jacobian);
            map.determinants.push(determinant);
        }
        Ok(())
    }
}

const IDENTITY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
