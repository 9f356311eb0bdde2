//! Coefficients of a form linearized at a function: reaction, source and drift.
//!
//! The linearization is an ordinary form: λ + λ_u u − f_u stands for λ, with the matching source. The right side
//! minus the matrix times u is then the residual, and CPUs and GPUs refill it like any other form. The derivative
//! of σ adds a drift, on a GPU by a kernel of its own (`assembly/drift`).

use femtile_element::quadrature::Quadrature;
use femtile_expression::TapeScratch;

use super::cell_coefficients::{
    CHUNK, CellCoefficients, ChunkCoefficients, ChunkScratch, VOIGT, Varying, mass_entries,
};
use super::cell_points::shape_moments;
use super::{Coefficient, Compiled, Form, Points, Slopes};
use crate::FemError;

/// The compiled derivatives of coefficients by u.
///
/// With slopes, the reaction is $\lambda + g$ and the source is $f + g u$ with $g = \lambda_u u - f_u$. The
/// slope $\sigma_u$ makes the drift $\int \sigma_u\,\delta\,\nabla u\cdot\nabla v$.
#[derive(Default)]
pub(crate) struct CompiledSlopes<'a> {
    pub sigma: Option<Compiled<'a>>,
    pub lambda: Option<Compiled<'a>>,
    pub source: Option<Compiled<'a>>,
}

impl<'a> CompiledSlopes<'a> {
    pub fn new(form: &Form<'a>, slopes: &'a Slopes) -> Result<Self, FemError> {
        let scalar = |field, slope: &'a Option<Coefficient>| {
            slope.as_ref().map(|slope| Compiled::scalar(field, slope, form.mesh)).transpose()
        };
        let sigma = slopes.sigma.as_ref();
        Ok(Self {
            sigma: sigma.map(|slope| Compiled::tensor("∂sigma/∂u", slope, form.mesh)).transpose()?,
            lambda: scalar("∂lambda/∂u", &slopes.lambda)?,
            source: scalar("∂source/∂u", &slopes.source)?,
        })
    }

    /// Returns whether the reaction and the source have parts of the linearization.
    pub fn has_reaction(&self) -> bool {
        self.lambda.is_some() || self.source.is_some()
    }

    /// Adds $g = \lambda_u u - f_u$ to the values of λ at points, and $g u$ to those of f.
    pub fn add_reaction(
        &self,
        (reaction, source): (&mut [f64], &mut [f64]),
        points: &Points,
        (slopes, tape): (&mut Vec<f64>, &mut TapeScratch),
    ) -> Result<(), FemError> {
        slopes.resize(points.len(), 0.0);
        for (slope, is_of_lambda) in [(&self.lambda, true), (&self.source, false)] {
            let Some(slope) = slope else { continue };
            slope.eval_scalar(slopes, points, tape)?;
            let sums = reaction.iter_mut().zip(&mut *source);
            for ((reaction, source), (slope, u)) in sums.zip(slopes.iter().zip(&points.unknown)) {
                let own = if is_of_lambda { slope * u } else { -slope };
                *reaction += own;
                *source += own * u;
            }
        }
        Ok(())
    }

    /// Returns moments of the drift for a chunk, zero.
    pub fn start_drift(&self) -> Vec<[[f64; CHUNK]; 4]> {
        match &self.sigma {
            None => Vec::new(),
            Some(slope) => vec![[[0.0; CHUNK]; 4]; if slope.is_scalar() { 1 } else { 6 }],
        }
    }
}

impl CellCoefficients<'_> {
    /// Returns whether the form has a drift.
    pub fn has_drift(&self) -> bool {
        self.slopes.sigma.is_some()
    }

    /// Evaluates the reaction and the source of the linearization for some cells.
    pub(super) fn eval_linearized(
        &self,
        chunk: &mut ChunkCoefficients,
        cells: &[u32],
        scratch: &mut ChunkScratch,
        unknown: &[f64],
    ) -> Result<(), FemError> {
        let (Varying::ByPoint(lambda), Varying::ByPoint(source)) = (&self.lambda, &self.source) else {
            return Ok(());
        };
        scratch.place_points(self.mesh, cells, Some(&self.rule), unknown);
        let ChunkScratch { points, scalars, loads, slopes, tape, .. } = scratch;
        let n = points.len();
        [&mut *scalars, loads].into_iter().for_each(|values| values.resize(n, 0.0));
        // Errors of values come before those of their derivatives.
        lambda.eval_scalar(scalars, points, tape)?;
        source.eval_scalar(loads, points, tape)?;
        self.slopes.add_reaction((scalars, loads), points, (slopes, tape))?;
        self.take_reaction(chunk, scalars, cells.len(), Some(&self.rule));
        self.take_source(chunk, loads, cells.len(), Some(&self.rule));
        Ok(())
    }

    /// Evaluates the moments of the derivative of σ for some cells.
    pub(super) fn eval_drift(
        &self,
        chunk: &mut ChunkCoefficients,
        cells: &[u32],
        scratch: &mut ChunkScratch,
        unknown: &[f64],
    ) -> Result<(), FemError> {
        let Some(slope) = &self.slopes.sigma else { return Ok(()) };
        let (rule, dimension) = (&self.rule, self.mesh.dimension());
        scratch.place_points(self.mesh, cells, Some(rule), unknown);
        let ChunkScratch { points, scalars, tensors, tape, .. } = scratch;
        let n_q = rule.n_q();
        if slope.is_scalar() {
            scalars.resize(points.len(), 0.0);
            slope.eval_scalar(scalars, points, tape)?;
            for (lane, values) in scalars.chunks(n_q).enumerate() {
                shape_moments(&mut chunk.drift[0], lane, values.iter().copied(), rule, dimension);
            }
            return Ok(());
        }
        tensors.resize(points.len(), [[0.0; 3]; 3]);
        slope.eval_tensor(tensors, points, dimension, tape)?;
        for (lane, tensors) in tensors.chunks(n_q).enumerate() {
            for (moments, &(i, j)) in chunk.drift.iter_mut().zip(&VOIGT) {
                let values = tensors.iter().map(|t| 0.5 * (t[i][j] + t[j][i]));
                shape_moments(moments, lane, values, rule, dimension);
            }
        }
        Ok(())
    }

    /// Computes the moments of a reaction from its values at the points of `n` cells.
    pub(super) fn take_reaction(
        &self,
        chunk: &mut ChunkCoefficients,
        values: &[f64],
        n: usize,
        rule: Option<&Quadrature>,
    ) {
        let n_q = values.len() / n.max(1);
        let Some(rule) = rule else {
            return self.fill_mass(&mut chunk.mass, |lane| values[lane], 0..n);
        };
        for (lane, values) in values.chunks(n_q).enumerate() {
            for (moment, (a, b)) in mass_entries(self.mesh.dimension()) {
                let terms = values.iter().zip(rule.iter());
                chunk.mass[moment][lane] = terms.map(|(value, (p, w))| w * value * p[a] * p[b]).sum();
            }
        }
    }

    /// Computes the moments of a source from its values at the points of `n` cells.
    pub(super) fn take_source(
        &self,
        chunk: &mut ChunkCoefficients,
        values: &[f64],
        n: usize,
        rule: Option<&Quadrature>,
    ) {
        let n_q = values.len() / n.max(1);
        let dimension = self.mesh.dimension();
        for (lane, values) in values.chunks(n_q).enumerate() {
            match rule {
                None => {
                    let share = values[0] / (dimension + 1) as f64;
                    chunk.load[..=dimension].iter_mut().for_each(|row| row[lane] = share);
                }
                Some(rule) => {
                    shape_moments(&mut chunk.load, lane, values.iter().copied(), rule, dimension);
                }
            }
        }
    }
}
