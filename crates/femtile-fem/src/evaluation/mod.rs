//! Evaluation of functions of a space at the points of a rule, cell by cell.

mod facets;
mod moments;
mod products;
mod simplex;
mod tensor;

use std::mem::take;

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_space::geometry::{AtPoints, CellMap, CellRule, inverse};
use femtile_space::{Group, ReferenceRule, Space, TensorSpace};

use crate::FemError;
use crate::forms::{Compiled, Points};
pub(crate) use facets::{FacetEvaluation, FacetPoints};
pub(crate) use products::{add_products, touching};
pub(crate) use simplex::SimplexBasis;
pub(crate) use tensor::TensorBasis;

/// Evaluation at the points of a rule in all cells of a space.
pub(crate) enum Evaluation<'a> {
    /// By sum factorization.
    Tensor(TensorBasis<'a>),
    /// By tables.
    Simplex(SimplexBasis<'a>),
}

/// The points in cells of either kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// On quadrilaterals and hexahedra.
    pub tensor: CellRule,
    /// The total degree that is integrated exactly on triangles and tetrahedra.
    pub simplex: usize,
}

/// The points of a cell.
#[derive(Debug, Default)]
pub(crate) struct CellPoints {
    /// The cell of the mesh.
    pub cell: u32,
    /// Its degrees of freedom.
    pub dofs: Vec<u32>,
    /// Of a simplex there is one Jacobian.
    pub map: CellMap,
    /// Weights of the rule times the Jacobian's determinant: `[n_q]`.
    pub weights: Vec<f64>,
}

/// Values at the points of a cell, with workspace.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Result of [`CellPoints::eval`].
    pub given: Vec<f64>,
    /// Result of [`Evaluation::gradients`].
    pub function: AtPoints,
    /// Result of [`Evaluation::gradients`].
    pub gradients: Vec<[f64; 3]>,
    pub points: Points,
    pub tape: TapeScratch,
    /// Values at nodes.
    pub nodal: Vec<f64>,
}

/// Quantities to evaluate at the points of cells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'u> {
    /// A function of the space; empty for none.
    pub u: &'u [f64],
    /// Its gradient as well.
    pub gradients: bool,
    /// The points, for coefficients.
    pub points: bool,
    /// The values of the function with the points, for coefficients that depend on it.
    pub unknown: bool,
    /// Weights times the circumference of the circle around the axis of a body of revolution.
    pub revolved: bool,
}

/// Points of some cells one after another, and a function there.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The positions of the cells.
    pub positions: Vec<usize>,
    pub points: Points,
    /// Weights of the rule times the Jacobian's determinant.
    pub weights: Vec<f64>,
    pub values: Vec<f64>,
    pub gradients: Vec<[f64; 3]>,
    /// Result of [`Samples::eval`].
    pub given: Vec<f64>,
    pub tape: TapeScratch,
    /// The cells, and a workspace, unless functions are linear.
    cells: Vec<CellPoints>,
    found: Found,
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

    /// Returns the inverses of the Jacobians at the points.
    pub fn inverse_jacobians(&self) -> impl Iterator<Item = [[f64; 3]; 3]> + '_ {
        self.map.jacobians.iter().map(inverse)
    }
}

impl Samples {
    /// Evaluates a coefficient at the points.
    pub fn eval(&mut self, coefficient: &Compiled<'_>) -> Result<(), FemError> {
        self.given.resize(self.weights.len(), 0.0);
        Ok(coefficient.eval_scalar(&mut self.given, &self.points, &mut self.tape)?)
    }

    /// Returns the integral of a function of the place of a point among all.
    pub fn integral(&self, of_point: impl Fn(usize) -> f64) -> f64 {
        self.weights.iter().enumerate().map(|(q, weight)| weight * of_point(q)).sum()
    }

    /// Multiplies the weights by the circumference of the circle around the axis x = 0.
    fn revolve(&mut self) {
        let all = self.weights.iter_mut().zip(&self.points.x);
        all.for_each(|(weight, x)| *weight *= std::f64::consts::TAU * x);
    }

    fn clear(&mut self) {
        self.positions.clear();
        self.points.clear();
        self.weights.clear();
        self.values.clear();
        self.gradients.clear();
    }
}

impl<'a> Evaluation<'a> {
    /// Prepares evaluation at the points of a rule.
    pub fn new(space: &'a Space<'a>, rule: Rule) -> Self {
        match space.tensor() {
            Some(tensor) => Self::on_tensor_cells(tensor, rule.tensor),
            None => Self::on_simplices(space, space.element().quadrature(rule.simplex)),
        }
    }

    /// Prepares evaluation with a rule along each axis.
    pub fn on_tensor_cells(space: &'a TensorSpace<'a>, rule: CellRule) -> Self {
        Self::Tensor(TensorBasis::new(space, rule))
    }

    /// Prepares evaluation at points of the reference simplex.
    pub fn on_simplices(space: &'a Space<'a>, rule: ReferenceRule) -> Self {
        Self::Simplex(SimplexBasis::new(space, rule))
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        match self {
            Self::Tensor(basis) => basis.space.n_cells(),
            Self::Simplex(basis) => basis.space.n_cells(),
        }
    }

    /// Returns the number of points of a cell.
    pub fn n_q(&self) -> usize {
        match self {
            Self::Tensor(basis) => basis.weights.len(),
            Self::Simplex(basis) => basis.rule.n_q(),
        }
    }

    /// Writes the degrees of freedom of the cell at a position.
    pub fn cell_dofs(&self, position: usize, dofs: &mut Vec<u32>) {
        match self {
            Self::Tensor(basis) => {
                dofs.resize(basis.space.dofs_per_cell(), 0);
                basis.space.cell_dofs(position, dofs);
            }
            Self::Simplex(basis) => {
                dofs.resize(basis.space.element().n_dofs(), 0);
                basis.space.cell_dofs(position, dofs);
            }
        }
    }

    /// Computes the map of the cell at a position, and its points if they are needed.
    fn write_points(
        &self,
        points: &mut CellPoints,
        position: usize,
        are_needed: bool,
    ) -> Result<(), FemError> {
        self.cell_dofs(position, &mut points.dofs);
        match self {
            Self::Tensor(basis) => basis.write_points(points, position),
            Self::Simplex(basis) => {
                basis.write_points(points, position, are_needed);
                Ok(())
            }
        }
    }

    /// Evaluates a function of the space at the points of a cell.
    fn values(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        match self {
            Self::Tensor(basis) => basis.values(found, points, u),
            Self::Simplex(basis) => basis.values(found, points, u),
        }
    }

    /// Evaluates gradients and values of a function of the space at the points of a cell.
    pub fn gradients(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        match self {
            Self::Tensor(basis) => basis.gradients(found, points, u),
            Self::Simplex(basis) => basis.gradients(found, points, u),
        }
    }

    /// Adds $\int f\varphi_i$ to a vector, cell after cell: the same bits for any number of threads.
    pub fn add_moments(&self, out: &mut [f64], f: &Compiled<'_>) -> Result<(), FemError> {
        match self {
            Self::Tensor(basis) => basis.add_moments(out, f, f64::NAN),
            Self::Simplex(basis) => basis.add_moments(out, f),
        }
    }

    /// Returns $\sum_q w_q (F_q \cdot \nabla\varphi_i + v_q \varphi_i)$ for the degrees of freedom of each cell that are kept, with
    /// the gradients of the samples as F, zero if there are none, and the values that the caller has put beside them as v.
    pub fn kept_moments(&self, samples: &mut Samples, is_kept: impl Fn(u32) -> bool) -> Vec<(u32, f64)> {
        let mut kept = Vec::new();
        self.moments(samples, |dof, moment| {
            if is_kept(dof) {
                kept.push((dof, moment));
            }
        });
        kept
    }

    /// Calls `visit` with each degree of freedom of each cell and its moment.
    fn moments(&self, samples: &mut Samples, mut visit: impl FnMut(u32, f64)) {
        if let Self::Simplex(basis) = self
            && basis.space.is_linear()
        {
            return match basis.space.mesh().dimension() {
                2 => basis.linear_moments::<3>(samples, visit),
                _ => basis.linear_moments::<4>(samples, visit),
            };
        }
        let (n_q, Samples { positions, gradients, given, cells, found, .. }) = (self.n_q(), samples);
        for (i, points) in cells[..positions.len()].iter().enumerate() {
            found.given.clear();
            found.given.extend_from_slice(&given[i * n_q..(i + 1) * n_q]);
            found.gradients.clear();
            if !gradients.is_empty() {
                found.gradients.extend_from_slice(&gradients[i * n_q..(i + 1) * n_q]);
            }
            let moments = match self {
                Self::Tensor(basis) => basis.weak_moments(found, points),
                Self::Simplex(basis) => basis.weak_moments(found, points),
            };
            points.dofs.iter().zip(moments).for_each(|(&dof, moment)| visit(dof, moment));
        }
    }

    /// Appends vectors at the points of a cell, interpolated between those at its nodes.
    pub fn interpolate(&self, vectors: &mut Vec<[f64; 3]>, nodal: &[[f64; 3]]) {
        match self {
            Self::Tensor(basis) => vectors.extend(basis.interpolate(nodal.to_vec())),
            Self::Simplex(basis) => basis.interpolate(vectors, nodal),
        }
    }

    /// Collects `of_cell` over all cells, by position.
    pub fn map<R: Send>(
        &self,
        of_cell: impl Fn(&mut Found, &CellPoints) -> Result<R, FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let positions: Vec<usize> = (0..self.n_cells()).collect();
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
                self.write_points(points, position, true)?;
                of_cell(found, points, position)
            };
            positions.iter().map(of_position).collect::<Result<Vec<R>, FemError>>()
        };
        let found = parallel::map_with(positions.len().div_ceil(CELLS), 1, Default::default, of_block);
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Sums `of_cells`, a function of the points of some cells, over all cells: the same bits for any number of threads.
    pub fn sum(
        &self,
        wanted: Wanted<'_>,
        of_cells: impl Fn(&mut Samples) -> Result<f64, FemError> + Sync,
    ) -> Result<f64, FemError> {
        Ok(self.blocks(None, wanted, of_cells)?.into_iter().sum())
    }

    /// Collects `of_cells`, a function of the points of some cells, over blocks of the cells at some positions, or of all cells.
    pub fn blocks<R: Send>(
        &self,
        positions: Option<&[usize]>,
        wanted: Wanted<'_>,
        of_cells: impl Fn(&mut Samples) -> Result<R, FemError> + Sync,
    ) -> Result<Vec<R>, FemError> {
        let n_cells = positions.map_or(self.n_cells(), <[usize]>::len);
        let together = (POINTS / self.n_q()).clamp(1, CELLS);
        let wanted = Wanted { points: wanted.points || wanted.revolved, ..wanted };
        let of_block = |samples: &mut Samples, block: usize| {
            let range = block * together..n_cells.min((block + 1) * together);
            samples.clear();
            match positions {
                Some(positions) => samples.positions.extend_from_slice(&positions[range]),
                None => samples.positions.extend(range),
            }
            match self {
                Self::Simplex(basis) if basis.space.is_linear() => match basis.space.mesh().dimension() {
                    2 => basis.sample_linear::<3>(samples, wanted),
                    _ => basis.sample_linear::<4>(samples, wanted),
                },
                _ => self.add_cells(samples, wanted)?,
            }
            if wanted.revolved {
                samples.revolve();
            }
            of_cells(samples)
        };
        let found = parallel::map_with(n_cells.div_ceil(together), 1, Default::default, of_block);
        found.into_iter().collect()
    }

    fn add_cells(&self, samples: &mut Samples, wanted: Wanted<'_>) -> Result<(), FemError> {
        let (mut cells, mut found) = (take(&mut samples.cells), take(&mut samples.found));
        cells.resize_with(samples.positions.len().max(cells.len()), CellPoints::default);
        for (i, points) in cells[..samples.positions.len()].iter_mut().enumerate() {
            self.write_points(points, samples.positions[i], wanted.points)?;
            self.add_samples(samples, &mut found, points, wanted);
        }
        (samples.cells, samples.found) = (cells, found);
        Ok(())
    }

    fn add_samples(&self, samples: &mut Samples, found: &mut Found, points: &CellPoints, wanted: Wanted<'_>) {
        samples.weights.extend_from_slice(&points.weights);
        if wanted.points {
            samples.points.extend(points.cell, &points.map.points);
        }
        match wanted {
            Wanted { u: [], .. } => return,
            Wanted { u, gradients: true, .. } => {
                self.gradients(found, points, u);
                samples.gradients.extend_from_slice(&found.gradients);
            }
            Wanted { u, .. } => self.values(found, points, u),
        }
        samples.values.extend_from_slice(&found.function.values);
        if wanted.unknown {
            samples.points.unknown.extend_from_slice(&found.function.values);
        }
    }
}

/// Returns $a \cdot b$.
#[inline]
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Returns $M v$.
#[inline]
pub(crate) fn times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| dot(row, v))
}

/// Cells per task of a thread.
const CELLS: usize = 64;

/// Points that are evaluated together, about.
const POINTS: usize = 512;

/// Splits a vector at the first unknowns of groups, starting with the first group.
pub(crate) fn of_groups<'v, T>(groups: &[Group], mut values: &'v mut [T]) -> Vec<&'v mut [T]> {
    let split = |group: &Group| values.split_off_mut(..group.dofs.len()).unwrap_or_default();
    groups.iter().map(split).collect()
}
