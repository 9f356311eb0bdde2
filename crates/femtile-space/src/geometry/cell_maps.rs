//! Maps from the reference square or cube to the cells of a space.

use femtile_element::tensor::{Lagrange, Table};

use super::point_tables::{AtPoints, PointTables, along};
use crate::SpaceError;
use crate::TensorSpace;

/// Maps of the cells of a space, evaluated at given coordinates on the reference cell.
#[derive(Debug)]
pub struct CellMaps<'a> {
    space: &'a TensorSpace<'a>,
    /// The shape functions along an axis at the coordinates.
    tables: PointTables,
}

/// The map of one cell at each product of coordinates, the first axis fastest: `[n_q^d]`.
#[derive(Debug, Clone, Default)]
pub struct CellMap {
    /// Points x.
    pub points: Vec<[f64; 3]>,
    /// Jacobians by rows, $J_{ia} = \partial x_i / \partial \xi_a$; in the plane the third row and column are those of the
    /// identity, on a surface the third column is the [unit normal](set_normal).
    pub jacobians: Vec<[[f64; 3]; 3]>,
    /// Their determinants, after [`CellMaps::of_sound_cell`].
    pub determinants: Vec<f64>,
    /// Workspace.
    coordinates: AtPoints,
}

/// Cells whose maps are evaluated together: their numbers lie beside each other, as SIMD lanes.
pub const LANES: usize = 8;

/// The maps of [`LANES`] cells at each product of coordinates.
#[derive(Debug, Default)]
pub struct CellMapBatch {
    /// Determinants of Jacobians, by points.
    pub determinants: Vec<[f64; LANES]>,
    /// Points `[n_q^d][3][LANES]` and slopes.
    coordinates: AtPoints,
}

impl CellMapBatch {
    /// Returns the points: `[n_q^d][3]`.
    pub fn points(&self) -> &[[f64; LANES]] {
        self.coordinates.values.as_chunks().0
    }
}

impl<'a> CellMaps<'a> {
    /// Prepares maps at coordinates on [0, 1] along each axis.
    pub fn new(space: &'a TensorSpace<'a>, coordinates: &[f64]) -> Self {
        let order = space.mesh().curved.as_ref().map_or(1, |curved| curved.order);
        let shapes = Lagrange::new((0..=order).map(|i| i as f64 / order as f64).collect());
        Self { space, tables: PointTables::new(&shapes, coordinates) }
    }

    /// Returns the order of the polynomials of the map.
    pub fn order(&self) -> usize {
        self.tables.n_shapes() - 1
    }

    /// Returns the nodes of the map of the cell at a position, the first axis fastest: `[(order + 1)^d]`.
    pub fn nodes(&self, position: usize) -> Vec<[f64; 3]> {
        let mut nodes = Vec::with_capacity(self.tables.n_shapes().pow(self.space.dimension() as u32));
        self.for_nodes(position, |node| nodes.push(node));
        nodes
    }

    /// Calls `found` with each node of the map of the cell at a position, in the order of [`Self::nodes`].
    pub(crate) fn for_nodes(&self, position: usize, mut found: impl FnMut([f64; 3])) {
        let (space, mesh) = (self.space, self.space.mesh());
        let Some(curved) = &mesh.curved else {
            return space.corners(position).iter().for_each(|&node| found(mesh.points[node as usize]));
        };
        let (n, d) = (curved.order + 1, space.dimension());
        let per_cell = curved.n_points(d);
        let points = &curved.cells[space.order()[position] as usize * per_cell..][..per_cell];
        let orientation = space.orientation(position);
        // In two dimensions the third axis has one entry, whose index is the same in either order.
        let index = |at: usize| [at % n, at / n % n, if d == 3 { at / (n * n) } else { 0 }];
        (0..per_cell).for_each(|at| found(curved.points[points[orientation.given(index(at), n)] as usize]));
    }

    /// Evaluates the points of the cell at a position, one after another.
    pub fn points(&self, position: usize, coordinates: &mut AtPoints) {
        self.take_nodes(position, coordinates);
        self.tables.evaluate(coordinates, self.space.dimension(), 3);
    }

    /// Evaluates the points of the cell at a position, without Jacobians.
    pub fn points_of_cell(&self, position: usize, map: &mut CellMap) {
        self.points(position, &mut map.coordinates);
        map.points.clear();
        map.points.extend_from_slice(map.coordinates.values.as_chunks().0);
    }

    fn take_nodes(&self, position: usize, coordinates: &mut AtPoints) {
        coordinates.values.clear();
        self.for_nodes(position, |node| coordinates.values.extend(node));
    }

    /// Evaluates the map of the cell at a position.
    pub fn of_cell(&self, position: usize, map: &mut CellMap) {
        let (d, CellMap { points, jacobians, coordinates, .. }) = (self.space.dimension(), map);
        self.take_nodes(position, coordinates);
        self.tables.differentiate(coordinates, d, 3);
        let AtPoints { values, slopes, .. } = coordinates;
        points.clear();
        points.extend_from_slice(values.as_chunks().0);
        // In the plane the third row and column stay as they are.
        jacobians.resize(points.len(), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        let mesh = self.space.mesh();
        self.tables.for_points(d, |point, own| {
            for (axis, slopes) in slopes[..d].iter().enumerate() {
                let column = &slopes[3 * own[axis]..3 * own[axis] + mesh.space_dimension()];
                column.iter().enumerate().for_each(|(i, slope)| jacobians[point][i][axis] = *slope);
            }
            if mesh.is_surface {
                set_normal(&mut jacobians[point]);
            }
        });
    }

    /// Evaluates the map of the cell at a position, whose Jacobians are positive for right-handed axes; those of surfaces always are.
    ///
    /// # Errors
    /// [`SpaceError::Inverted`] with the first inverted point.
    pub fn of_sound_cell(&self, position: usize, map: &mut CellMap) -> Result<(), SpaceError> {
        self.of_cell(position, map);
        let sign = self.space.sign(position);
        map.determinants.clear();
        map.determinants.extend(map.jacobians.iter().map(determinant));
        let is_unsound = |value: &f64| value.is_nan() || sign * value <= 0.0;
        let unsound = map.determinants.iter().position(is_unsound);
        unsound.map_or(Ok(()), |at| {
            let cell = self.space.order()[position] as usize;
            Err(SpaceError::Inverted { cell, point: map.points[at], value: sign * map.determinants[at] })
        })
    }

    /// Evaluates the maps of the cells at some positions, with the bits of [`CellMaps::of_sound_cell`].
    ///
    /// # Errors
    /// [`SpaceError::Inverted`] as there, for the first of the cells.
    /// # Panics
    /// On a surface.
    pub fn of_sound_cells(
        &self,
        positions: &[usize; LANES],
        maps: &mut CellMapBatch,
    ) -> Result<(), SpaceError> {
        assert!(!self.space.mesh().is_surface, "maps of several cells of a surface at a time");
        let (d, CellMapBatch { determinants, coordinates }) = (self.space.dimension(), maps);
        coordinates.values.resize(3 * LANES * self.tables.n_shapes().pow(d as u32), 0.0);
        for (lane, &position) in positions.iter().enumerate() {
            let mut to = coordinates.values[lane..].iter_mut().step_by(LANES);
            self.for_nodes(position, |node| node.iter().zip(&mut to).for_each(|(x, to)| *to = *x));
        }
        self.tables.differentiate(coordinates, d, 3 * LANES);
        let slopes = coordinates.slopes.each_ref().map(|slopes| slopes.as_chunks::<LANES>().0);
        determinants.clear();
        // In two dimensions the third row and column stay as they are.
        let mut jacobians = [[[0.0; LANES]; 3]; 3];
        jacobians[2][2] = [1.0; LANES];
        self.tables.for_points(d, |_, own| {
            for axis in 0..d {
                let columns = &slopes[axis][3 * own[axis]..3 * own[axis] + d];
                jacobians.iter_mut().zip(columns).for_each(|(row, slopes)| row[axis] = *slopes);
            }
            determinants.push(determinants_of(&jacobians));
        });
        let signs = positions.map(|position| self.space.sign(position));
        let is_sound = |of_point: &[f64; LANES]| (0..LANES).all(|lane| signs[lane] * of_point[lane] > 0.0);
        if determinants.iter().all(is_sound) {
            return Ok(());
        }
        let mut map = CellMap::default();
        positions.iter().try_for_each(|&position| self.of_sound_cell(position, &mut map))
    }
}

/// Applies a table along each axis of a tensor of points.
pub fn along_all(tensor: &[[f64; 3]], tables: &[&Table]) -> Vec<[f64; 3]> {
    let (mut found, mut next, mut inner) = (tensor.as_flattened().to_vec(), Vec::new(), 3);
    for table in tables {
        along(&mut next, &found, table, inner);
        std::mem::swap(&mut found, &mut next);
        inner *= table.n_points;
    }
    found.as_chunks().0.to_vec()
}

/// Returns $\det J$.
pub fn determinant(j: &[[f64; 3]; 3]) -> f64 {
    j[0][0] * (j[1][1] * j[2][2] - j[1][2] * j[2][1])
        + j[0][1] * (j[1][2] * j[2][0] - j[1][0] * j[2][2])
        + j[0][2] * (j[1][0] * j[2][1] - j[1][1] * j[2][0])
}

/// Sets the third column of the Jacobian of a surface to the unit normal, so that $\det J$ is the ratio of areas, and the first two rows
/// of $J^{-1}$ turn derivatives in reference coordinates into the gradient within the surface. Without an area it is zero.
pub fn set_normal(j: &mut [[f64; 3]; 3]) {
    let [x, y, z] = *j;
    let area = [y[0] * z[1] - z[0] * y[1], z[0] * x[1] - x[0] * z[1], x[0] * y[1] - y[0] * x[1]];
    let size = area.iter().map(|a| a * a).sum::<f64>().sqrt();
    for (row, area) in j.iter_mut().zip(area) {
        row[2] = if size == 0.0 { 0.0 } else { area / size };
    }
}

/// Returns $\det J$ of several cells.
#[inline]
fn determinants_of([x, y, z]: &[[[f64; LANES]; 3]; 3]) -> [f64; LANES] {
    let mut found = [0.0; LANES];
    for (lane, found) in found.iter_mut().enumerate() {
        *found = x[0][lane] * (y[1][lane] * z[2][lane] - y[2][lane] * z[1][lane])
            + x[1][lane] * (y[2][lane] * z[0][lane] - y[0][lane] * z[2][lane])
            + x[2][lane] * (y[0][lane] * z[1][lane] - y[1][lane] * z[0][lane]);
    }
    found
}

/// Returns $J^{-1}$ for a non-zero determinant.
pub fn inverse(j: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let scale = 1.0 / determinant(j);
    std::array::from_fn(|a| {
        std::array::from_fn(|b| {
            // Cyclic minors include their signs.
            let (r, s, u, v) = ((b + 1) % 3, (b + 2) % 3, (a + 1) % 3, (a + 2) % 3);
            scale * (j[r][u] * j[s][v] - j[r][v] * j[s][u])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
    use femtile_mesh::{Curved, Mesh};

    fn bend([x, y, z]: [f64; 3]) -> [f64; 3] {
        [x + 0.1 * y * y * z, y - 0.2 * x * z * z, z + 0.1 * x * y]
    }

    /// Returns a box whose cells are bent by quadratic polynomials.
    fn bent() -> Mesh {
        let config = BoxConfig { cells: [2, 2, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        let (mut points, mut cells) = (Vec::new(), Vec::new());
        for cell in 0..mesh.n_cells() {
            let corner = |i: usize| mesh.points[mesh.cell(cell)[i] as usize];
            let (low, high) = (corner(0), corner(6));
            for at in 0..27 {
                let t = [at % 3, at / 3 % 3, at / 9].map(|i| i as f64 / 2.0);
                cells.push(points.len() as u32);
                points.push(bend(std::array::from_fn(|a| low[a] + t[a] * (high[a] - low[a]))));
            }
        }
        mesh.points.iter_mut().for_each(|point| *point = bend(*point));
        mesh.curved = Some(Curved { order: 2, points, cells });
        mesh.validate().unwrap();
        mesh
    }

    #[test]
    fn maps_of_bent_cells_are_exact() {
        let mesh = bent();
        let space = TensorSpace::new(&mesh, 2).unwrap();
        let coordinates = [0.1, 0.5, 0.75];
        let maps = CellMaps::new(&space, &coordinates);
        let mut map = CellMap::default();
        for position in 0..space.n_cells() {
            maps.of_sound_cell(position, &mut map).unwrap();
            let cell = space.order()[position] as usize;
            let (i, j) = (cell % 2, cell / 2);
            for (at, (point, jacobian)) in map.points.iter().zip(&map.jacobians).enumerate() {
                let t = [at % 3, at / 3 % 3, at / 9].map(|i| coordinates[i]);
                let [x, y, z] = [0.5 * (i as f64 + t[0]), 0.5 * (j as f64 + t[1]), t[2]];
                let expected = bend([x, y, z]);
                let slopes = [
                    [1.0, 0.2 * y * z, 0.1 * y * y],
                    [-0.2 * z * z, 1.0, -0.4 * x * z],
                    [0.1 * y, 0.1 * x, 1.0],
                ];
                for a in 0..3 {
                    assert!((point[a] - expected[a]).abs() < 1e-14);
                    let found = [2.0 * jacobian[a][0], 2.0 * jacobian[a][1], jacobian[a][2]];
                    assert!((0..3).all(|b| (found[b] - slopes[a][b]).abs() < 1e-13), "{found:?} {slopes:?}");
                }
                let product = |a: usize, b: usize| {
                    (0..3).map(|k| inverse(jacobian)[a][k] * jacobian[k][b]).sum::<f64>()
                };
                assert!(
                    (0..9).all(|ab| (product(ab / 3, ab % 3) - f64::from(ab / 3 == ab % 3)).abs() < 1e-13)
                );
            }
        }
    }

    #[test]
    fn a_cell_that_folds_over_is_named() {
        let mut mesh = bent();
        // The midpoint of an edge is moved far beyond its end.
        let curved = mesh.curved.as_mut().unwrap();
        let point = curved.cells[27 * 3 + 1] as usize;
        curved.points[point][0] += 2.0;
        let space = TensorSpace::new(&mesh, 2).unwrap();
        let maps = CellMaps::new(&space, &[0.1, 0.9]);
        let mut map = CellMap::default();
        let failed: Vec<SpaceError> =
            (0..4).filter_map(|position| maps.of_sound_cell(position, &mut map).err()).collect();
        assert!(
            matches!(failed[..], [SpaceError::Inverted { cell: 3, value, .. }] if value <= 0.0),
            "{failed:?}"
        );
    }
}
