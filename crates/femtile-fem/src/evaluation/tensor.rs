//! Evaluation on quadrilaterals and hexahedra, one axis after another.

use femtile_element::tensor::Table;
use femtile_space::TensorSpace;
use femtile_space::geometry::{AtPoints, CellMaps, CellRule, PointTables, along, inverse};

use super::{CellPoints, Found};
use crate::FemError;

/// Tables for evaluation at products of points along the axes.
pub(crate) struct TensorBasis<'a> {
    pub space: &'a TensorSpace<'a>,
    pub maps: CellMaps<'a>,
    tables: PointTables,
    /// The transpose of the values of shape functions at points.
    pub moments: Table,
    /// The transpose of the slopes of shape functions at points.
    slope_moments: Table,
    /// `[n_q^d]`.
    pub weights: Vec<f64>,
}

impl<'a> TensorBasis<'a> {
    /// Tabulates shape functions at the points of a rule.
    pub fn new(space: &'a TensorSpace<'a>, rule: CellRule) -> Self {
        Self::with_rule(space, rule, space.degree())
    }

    /// As [`Self::new`], with the points that a rule has for another degree.
    pub fn with_rule(space: &'a TensorSpace<'a>, rule: CellRule, degree: usize) -> Self {
        let (points, _) = rule.rule(degree);
        let shapes = space.shapes();
        Self {
            space,
            maps: CellMaps::new(space, &points),
            moments: shapes.values(&points).transpose(),
            slope_moments: shapes.slopes(&points).transpose(),
            tables: PointTables::new(&shapes, &points),
            weights: rule.product_weights(degree, space.dimension()),
        }
    }

    /// Computes the points of the cell at a position.
    pub fn write_points(&self, points: &mut CellPoints, position: usize) -> Result<(), FemError> {
        points.cell = self.space.order()[position];
        self.maps.of_sound_cell(position, &mut points.map)?;
        let volumes = points.map.determinants.iter().map(|determinant| determinant.abs());
        points.weights.clear();
        points.weights.extend(self.weights.iter().zip(volumes).map(|(weight, volume)| weight * volume));
        Ok(())
    }

    fn gather(found: &mut Found, points: &CellPoints, u: &[f64]) {
        found.function.values.clear();
        found.function.values.extend(points.dofs.iter().map(|&dof| u[dof as usize]));
    }

    pub fn values(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        Self::gather(found, points, u);
        self.tables.evaluate(&mut found.function, self.space.dimension(), 1);
    }

    pub fn gradients(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        let d = self.space.dimension();
        Self::gather(found, points, u);
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

    pub fn moments<'f>(&self, found: &'f mut Found, points: &CellPoints) -> &'f [f64] {
        let Found { given, function, .. } = found;
        function.values.clear();
        function.values.extend(given.iter().zip(&points.weights).map(|(value, weight)| value * weight));
        function.along_all(&self.moments, self.space.dimension(), 1);
        &function.values
    }

    pub fn weak_moments(&self, found: &mut Found, points: &CellPoints) -> Vec<f64> {
        let d = self.space.dimension();
        let mut sum = self.moments(found, points).to_vec();
        if found.gradients.is_empty() {
            return sum;
        }
        let inverses: Vec<[[f64; 3]; 3]> = points.inverse_jacobians().collect();
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

    pub fn interpolate(&self, nodal: Vec<[f64; 3]>) -> Vec<[f64; 3]> {
        let mut vectors = AtPoints::default();
        vectors.values = nodal.into_flattened();
        self.tables.evaluate(&mut vectors, self.space.dimension(), 3);
        vectors.values.as_chunks().0.to_vec()
    }
}
