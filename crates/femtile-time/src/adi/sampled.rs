//! Stored arrays of varying coefficients.

use std::sync::Arc;

use femtile_device::{Buffer, Scalar};
use femtile_expression::Variable;
use femtile_linalg::vector::VectorKernels;
use femtile_tridiagonal::BandRule;

use super::line::{Sampler, Scratch};
use super::operator::{Coefficient, Operator};
use super::rule::AxisRule;
use super::{Arrays, Grid};
use crate::TimeError;

/// Evaluates a coefficient at all nodes; none if it is constant.
fn field<T: Scalar, D: VectorKernels<T>>(
    device: &D,
    grid: &Grid,
    coefficient: &Coefficient,
) -> Result<Option<Buffer<T, D>>, TimeError> {
    if coefficient.constant.is_some() {
        return Ok(None);
    }
    let (sampler, mut scratch) = (Sampler::new(coefficient), Scratch::default());
    let mut line = vec![0.0; grid.nodes()[0]];
    let mut values = Vec::with_capacity(grid.n_nodes());
    for number in 0..grid.n_nodes() / line.len() {
        sampler.line(grid, grid.node(0, number, 0), &mut line, &mut scratch);
        values.extend(line.iter().map(|&value| T::from_f64(value)));
    }
    Ok(Some(Buffer::from_vec(device, values)?))
}

/// Computes the bands of an axis at all nodes; none if all lines have the same matrix.
fn bands<T: Scalar, D: VectorKernels<T>>(
    device: &D,
    operator: &Arc<Operator>,
    axis: usize,
    tau: f64,
) -> Result<Option<[Buffer<T, D>; 3]>, TimeError> {
    if operator.has_constant_bands(axis) {
        return Ok(None);
    }
    let (grid, rule) = (operator.grid(), AxisRule::new(operator, axis, tau));
    let length = grid.nodes()[axis];
    let mut all = [(); 3].map(|()| vec![T::ZERO; grid.n_nodes()]);
    let mut line = [(); 3].map(|()| vec![T::ZERO; length]);
    for number in 0..grid.n_nodes() / length {
        let [lower, diagonal, upper] = &mut line;
        rule.fill(number..number + 1, 0..length, lower, diagonal, upper);
        for (all, line) in all.iter_mut().zip(&line) {
            for (row, &value) in line.iter().enumerate() {
                all[grid.index(grid.node(axis, number, row))] = value;
            }
        }
    }
    let [lower, diagonal, upper] = all.map(|values| Buffer::from_vec(device, values));
    Ok(Some([lower?, diagonal?, upper?]))
}

impl<T: Scalar, D: VectorKernels<T>> Arrays<T, D> {
    /// Computes the arrays of all coefficients that vary in space but not in time.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &D, operator: &Arc<Operator>, tau: f64) -> Result<Self, TimeError> {
        let grid = operator.grid();
        let mut arrays = Self::none(tau);
        for axis in 0..grid.dimension() {
            arrays.bands[axis] = bands(device, operator, axis, tau)?;
        }
        arrays.reaction = field(device, grid, &operator.reaction)?;
        for mixed in &operator.mixed {
            arrays.mixed.push(field(device, grid, &mixed.coefficient)?);
        }
        if !operator.source.formula.uses(Variable::T) {
            arrays.source = field(device, grid, &operator.source)?;
        }
        Ok(arrays)
    }
}
