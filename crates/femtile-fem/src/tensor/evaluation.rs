//! Evaluation of functions of a space at the points of a rule, cell by cell.

use femtile_device::parallel;
use femtile_element::tensor::Table;
use femtile_expression::TapeScratch;
use femtile_space::geometry::{AtPoints, CellMap, CellMaps, CellRule, PointTables, along, inverse};
use femtile_space::{Group, TensorSpace};

use crate::FemError;
use crate::forms::{Compiled, Points};

/// Tables for evaluation at the points of a rule.
pub(crate) struct Evaluation<'a> {
    pub(super) space: &'a TensorSpace<'a>,
    pub(super) maps: CellMaps<'a>,
    tables: PointTables,
    /// The transpose of the values of shape functions at points.
    pub(super) moments: Table,
    /// The transpose of the slopes of shape functions at points.
    slope_moments: Table,
    pub(super) weights: Vec<f64>,
}

/// The points of a cell.
#[derive(Debug, Default)]
pub(crate) struct CellPoints {
    /// The cell of the mesh.
    pub cell: u32,
    /// Its degrees of freedom.
    pub dofs: Vec<u32>,
    map: CellMap,
    /// Weights of the rule times the Jacobian's determinant: `[n_q^d]`.
    pub weights: Vec<f64>,
}

/// Values at the points of a cell, with workspace.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Result of [`CellPoints::eval`].
    pub given: Vec<f64>,
    /// Result of [`Evaluation::values`] or [`Evaluation::gradients`].
    pub function: AtPoints,
    /// Result of [`Evaluation::gradients`].
    pub gradients: Vec<[f64; 3]>,
    pub points: Points,
    pub tape: TapeScratch,
}

impl CellPoints {
    /// Evaluates a given function at the points.
    pub fn eval(&self, found: &mut Found, function: &Compiled<'_>) -> Result<(), FemError> {
        found.given.resize(self.weights.len(), 0.0);
        self.write_points(found);
        Ok(function.eval_scalar(&mut found.given, &found.points, &mut found.tape)?)
    }

    /// Writes the points in the form of coefficients.
    pub fn write_points(&self, found: &mut Found) {
        found.points.clear();
        found.points.extend(self.cell, &self.map.points);
    }

    /// Writes the points with the values of the function that was evaluated last.
    pub fn write_points_with_values(&self, found: &mut Found) {
        self.write_points(found);
        found.points.unknown.extend_from_slice(&found.function.values);
    }

    /// Evaluates a coefficient at the points, at the function that was evaluated last.
    pub fn eval_with_values(&self, found: &mut Found, coefficient: &Compiled<'_>) -> Result<(), FemError> {
        found.given.resize(self.weights.len(), 0.0);
        self.write_points_with_values(found);
        Ok(coefficient.eval_scalar(&mut found.given, &found.points, &mut found.tape)?)
    }

    /// Returns the inverses of the Jacobians at the points.
    pub fn inverse_jacobians(&self) -> impl Iterator<Item = [[f64; 3]; 3]> + '_ {
        self.map.jacobians.iter().map(inverse)
    }

    fn gather(&self, found: &mut Found, u: &[f64]) {
        found.function.values.clear();
        found.function.values.extend(self.dofs.iter().map(|&dof| u[dof as usize]));
    }
}

impl<'a> Evaluation<'a> {
    /// Prepares evaluation with a rule along each axis.
    pub fn new(space: &'a TensorSpace<'a>, rule: CellRule) -> Self {
        let (points, _) = rule.rule(space.degree());
        let shapes = space.shapes();
        Self {
            space,
            maps: CellMaps::new(space, &points),
            moments: shapes.values(&points).transpose(),
            slope_moments: shapes.slopes(&points).transpose(),
            tables: PointTables::new(&shapes, &points),
            weights: rule.product_weights(space.degree(), space.dimension()),
        }
    }

    /// Computes the points of the cell at a position.
    fn write_points(&self, points: &mut CellPoints, position: usize) -> Result<(), FemError> {
        points.cell = self.space.order()[position];
        points.dofs.resize(self.space.dofs_per_cell(), 0);
        self.space.cell_dofs(position, &mut points.dofs);
        self.maps.of_sound_cell(position, &mut points.map)?;
        let volumes = points.map.determinants.iter().map(|determinant| determinant.abs());
        points.weights.clear();
        points.weights.extend(self.weights.iter().zip(volumes).map(|(weight, volume)| weight * volume));
        Ok(())
    }

    /// Evaluates a function of the space at the points of a cell.
    pub fn values(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        points.gather(found, u);
        self.tables.evaluate(&mut found.function, self.space.dimension(), 1);
    }

    /// Evaluates gradients and values of a function of the space at the points of a cell.
    pub fn gradients(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        let d = self.space.dimension();
        points.gather(found, u);
        self.tables.differentiate(&mut found.function, d, 1);
        found.gradients.clear();
        self.tables.for_points(d, |point, own| {
            let (mut gradient, back) = ([0.0; 3], inverse(&points.map.jacobians[point]));
            for (axis, slopes) in found.function.slopes[..d].iter().enumerate() {
                (0..3).for_each(|i| gradient[i] += back[axis][i] * slopes[own[axis]]);
            }
            found.gradients.push(gradient);
        });
    }

    /// Integrates a given function $f$ against each shape function: $\sum_q w_q f_q \varphi_i(x_q)$.
    pub fn moments<'f>(&self, found: &'f mut Found, points: &CellPoints) -> &'f [f64] {
        let Found { given, function, .. } = found;
        function.values.clear();
        function.values.extend(given.iter().zip(&points.weights).map(|(value, weight)| value * weight));
        function.along_all(&self.moments, self.space.dimension(), 1);
        &function.values
    }

    /// Returns $\sum_q w_q (F_q \cdot \nabla\varphi_i + v_q \varphi_i)$ for each shape function. `found`
    /// holds F as its gradients and v as its values.
    pub fn weak_moments(&self, found: &mut Found, points: &CellPoints) -> Vec<f64> {
        let d = self.space.dimension();
        let mut sum = self.moments(found, points).to_vec();
        let inverses: Vec<[[f64; 3]; 3]> = points.map.jacobians.iter().map(inverse).collect();
        for axis in 0..d {
            let along_axis = |q: usize| -> f64 {
                points.weights[q] * (0..3).map(|i| inverses[q][axis][i] * found.gradients[q][i]).sum::<f64>()
            };
            let mut part: Vec<f64> = (0..points.weights.len()).map(along_axis).collect();
            let mut next = Vec::new();
            for other in 0..d {
                let table = if other == axis { &self.slope_moments } else { &self.moments };
                along(&mut next, &part, table, table.n_points.pow(other as u32));
                std::mem::swap(&mut next, &mut part);
            }
            sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
        }
        sum
    }

    /// Replaces nodal values of a function with some components by its values at the points.
    pub fn interpolate(&self, nodal: &mut AtPoints, components: usize) {
        self.tables.evaluate(nodal, self.space.dimension(), components);
    }

    /// Collects `of_cell` over all cells, by position.
    pub fn map<R: Send>(
        &self,
        of_cell: impl Fn(&mut Found, &CellPoints) -> Result<R, FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let positions: Vec<usize> = (0..self.space.n_cells()).collect();
        self.map_at(&positions, |found, points, _| of_cell(found, points))
    }

    /// Collects `of_cell` over the cells at some positions; the position is its last argument.
    pub fn map_at<R: Send>(
        &self,
        positions: &[usize],
        of_cell: impl Fn(&mut Found, &CellPoints, usize) -> Result<R, FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let of_block = |(found, points): &mut (Found, CellPoints), block: usize| {
            let positions = &positions[block * CELLS..positions.len().min((block + 1) * CELLS)];
            let of_position = |&position: &usize| {
                self.write_points(points, position)?;
                of_cell(found, points, position)
            };
            positions.iter().map(of_position).collect::<Result<Vec<R>, FemError>>()
        };
        let found = parallel::map_with(positions.len().div_ceil(CELLS), 1, Default::default, of_block);
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Sums `of_cell` over all cells: the same bits for any number of threads.
    pub fn sum(
        &self,
        of_cell: impl Fn(&mut Found, &CellPoints) -> Result<f64, FemError> + Sync,
    ) -> Result<f64, FemError> {
        Ok(self.map(of_cell)?.into_iter().sum())
    }
}

/// Cells per task of a thread.
const CELLS: usize = 64;

/// Splits a vector at the first unknowns of groups, starting with the first group.
pub(super) fn of_groups<'v, T>(groups: &[Group], mut values: &'v mut [T]) -> Vec<&'v mut [T]> {
    let split = |group: &Group| values.split_off_mut(..group.dofs.len()).unwrap_or_default();
    groups.iter().map(split).collect()
}
