//! Functions of a space at the points of a rule, cell by cell.

use femtile_element::tensor::Table;
use femtile_expression::TapeScratch;
use femtile_tensor::{Factor, Parity, contract_plainly};
use rayon::prelude::*;

use crate::FemError;
use crate::dofs::TensorSpace;
use crate::forms::{Compiled, Points};
use crate::matrix_free::CellRule;
use crate::matrix_free::geometry::{CellMap, CellMaps, determinant, inverse};

/// What is needed to evaluate functions of a space at the points of a rule.
pub(crate) struct Evaluation<'a> {
    space: &'a TensorSpace<'a>,
    maps: CellMaps<'a>,
    values: Factor<f64>,
    slopes: Factor<f64>,
    /// The transpose of `values`.
    moments: Factor<f64>,
    weights: Vec<f64>,
}

/// The points of a cell.
pub(crate) struct CellPoints {
    /// The cell of the mesh.
    pub cell: u32,
    /// Its degrees of freedom.
    pub dofs: Vec<u32>,
    pub map: CellMap,
    /// Weights of the rule times the Jacobian's determinant: `[n_q^d]`.
    pub weights: Vec<f64>,
}

impl CellPoints {
    /// Values of a function at the points.
    pub fn eval(&self, function: &Compiled<'_>) -> Result<Vec<f64>, FemError> {
        let mut values = vec![0.0; self.weights.len()];
        function.eval_scalar(&mut values, &self.to_points(), &mut TapeScratch::default())?;
        Ok(values)
    }

    /// The points as coefficients take them.
    pub fn to_points(&self) -> Points {
        let mut points = Points::default();
        self.map.points.iter().for_each(|&point| points.push(self.cell, point));
        points
    }

    /// What a vector has on the cell.
    pub fn gather(&self, u: &[f64]) -> Vec<f64> {
        self.dofs.iter().map(|&dof| u[dof as usize]).collect()
    }
}

impl<'a> Evaluation<'a> {
    /// For a rule along each axis.
    pub fn new(space: &'a TensorSpace<'a>, rule: CellRule) -> Self {
        let (points, _) = rule.rule(space.degree());
        let shapes = space.shapes();
        let factor = |table: &Table| Factor::with_parity(table, Parity::None);
        let values = shapes.values(&points);
        Self {
            space,
            maps: CellMaps::new(space, &points),
            values: factor(&values),
            slopes: factor(&shapes.slopes(&points)),
            moments: factor(&values.transpose()),
            weights: rule.product_weights(space.degree(), space.dimension()),
        }
    }

    /// The points of the cell at a position.
    ///
    /// # Errors
    /// [`FemError::Inverted`] where the cell is folded.
    pub fn points(&self, position: usize) -> Result<CellPoints, FemError> {
        let (mut map, mut dofs) = (CellMap::default(), vec![0; self.space.dofs_per_cell()]);
        self.maps.of_sound_cell(position, &mut map)?;
        self.space.cell_dofs(position, &mut dofs);
        let volumes = map.jacobians.iter().map(|jacobian| determinant(jacobian).abs());
        let weights = self.weights.iter().zip(volumes).map(|(weight, volume)| weight * volume).collect();
        Ok(CellPoints { cell: self.space.order()[position], dofs, map, weights })
    }

    /// Values at the points of a function with these values at the nodes of a cell.
    pub fn values(&self, nodal: &[f64]) -> Vec<f64> {
        along_all(nodal, &[&self.values; 3][..self.space.dimension()])
    }

    /// Its gradients there.
    pub fn gradients(&self, nodal: &[f64], points: &CellPoints) -> Vec<[f64; 3]> {
        let mut found = vec![[0.0; 3]; points.weights.len()];
        for axis in 0..self.space.dimension() {
            let mut factors = [&self.values; 3];
            factors[axis] = &self.slopes;
            let slopes = along_all(nodal, &factors[..self.space.dimension()]);
            for ((gradient, slope), jacobian) in found.iter_mut().zip(slopes).zip(&points.map.jacobians) {
                let row = inverse(jacobian)[axis];
                (0..3).for_each(|i| gradient[i] += row[i] * slope);
            }
        }
        found
    }

    /// $\sum_q f_q \varphi_i(x_q)$ for each shape function.
    pub fn moments(&self, at_points: &[f64]) -> Vec<f64> {
        along_all(at_points, &[&self.moments; 3][..self.space.dimension()])
    }

    /// What `of_cell` says of each cell, by position.
    pub fn map<R: Send>(
        &self,
        of_cell: impl Fn(&CellPoints) -> Result<R, FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let cells = (0..self.space.n_cells()).into_par_iter();
        let found: Vec<_> = cells.map(|position| of_cell(&self.points(position)?)).collect();
        found.into_iter().collect()
    }

    /// The sum of what `of_cell` says of all cells: the same bits for any number of threads.
    pub fn sum(
        &self,
        of_cell: impl Fn(&CellPoints) -> Result<f64, FemError> + Sync,
    ) -> Result<f64, FemError> {
        Ok(self.map(of_cell)?.into_iter().sum())
    }

    /// Adds $\int f\varphi_i$ to a vector, where `term` gives f at the points of a cell.
    pub fn add_moments(
        &self,
        out: &mut [f64],
        term: impl Fn(&CellPoints) -> Result<Vec<f64>, FemError> + Sync,
    ) -> Result<(), FemError> {
        let of_cell = |position| {
            let points = self.points(position)?;
            let mut at_points = term(&points)?;
            at_points.iter_mut().zip(&points.weights).for_each(|(value, weight)| *value *= weight);
            Ok((self.moments(&at_points), points.dofs))
        };
        // The cells of a block are worked on while those before are added, one after another.
        let mut ready = Vec::new();
        for block in (0..self.space.n_cells()).step_by(CELLS) {
            let cells = block..(block + CELLS).min(self.space.n_cells());
            let work = || cells.into_par_iter().map(of_cell).collect();
            let (parts, added) = rayon::join(work, || add(out, ready));
            added?;
            ready = parts;
        }
        add(out, ready)
    }
}

/// What cells have for their degrees of freedom.
type Part = Result<(Vec<f64>, Vec<u32>), FemError>;

/// Adds the parts of some cells, in their order.
fn add(out: &mut [f64], parts: Vec<Part>) -> Result<(), FemError> {
    for part in parts {
        let (moments, dofs) = part?;
        dofs.iter().zip(moments).for_each(|(&dof, moment)| out[dof as usize] += moment);
    }
    Ok(())
}

/// Cells that are worked on at once.
const CELLS: usize = 1024;

/// A table for each axis, the first axis fastest.
fn along_all(tensor: &[f64], factors: &[&Factor<f64>]) -> Vec<f64> {
    let (mut found, mut inner) = (tensor.to_vec(), 1);
    for factor in factors {
        let mut next = vec![0.0; found.len() / factor.n_cols() * factor.n_rows()];
        contract_plainly(factor, (inner, 1), &found, &mut next);
        (found, inner) = (next, inner * factor.n_rows());
    }
    found
}
