//! Cell matrices and loads of linearized forms.

use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::CellRule;

use super::cell_matrices::ShapeTables;
use crate::FemError;
use crate::evaluation::{CellPoints, Evaluation, Found};
use crate::forms::{Coefficient, Compiled, Form, PointCoefficients, Points, Slopes, State};

/// The integrals of a space over its cells by one rule.
pub(super) struct CellIntegrals<'a> {
    pub evaluation: Evaluation<'a>,
    tables: ShapeTables,
    dimension: usize,
    n: usize,
}

/// The compiled coefficients of a form and their derivatives by u.
pub(super) struct LinearizedCoefficients<'a> {
    sigma_and_lambda: PointCoefficients<'a>,
    /// None if the source does not depend on u: then it is not in the linearization.
    source: Option<Compiled<'a>>,
    sigma_slope: Option<Compiled<'a>>,
    lambda_slope: Option<Compiled<'a>>,
    source_slope: Option<Compiled<'a>>,
}

/// The matrix `[n][n]` and the load `[n]` of a cell.
pub(super) struct CellSystem {
    pub matrix: Vec<f64>,
    pub load: Vec<f64>,
}

impl<'a> LinearizedCoefficients<'a> {
    pub fn new(form: &Form<'a>, slopes: &'a Slopes) -> Result<Self, FemError> {
        let mesh = form.mesh;
        let scalar = |field, slope: &'a Option<Coefficient>| {
            slope.as_ref().map(|slope| Compiled::scalar(field, slope, mesh)).transpose()
        };
        let sigma = slopes.sigma.as_ref();
        let source = Some(form.source).filter(|source| source.uses_unknown());
        Ok(Self {
            sigma_and_lambda: PointCoefficients::of_any_sign(mesh, form.sigma, form.lambda)?,
            source: source.map(|source| Compiled::scalar("source", source, mesh)).transpose()?,
            sigma_slope: sigma.map(|slope| Compiled::tensor("∂sigma/∂u", slope, mesh)).transpose()?,
            lambda_slope: scalar("∂lambda/∂u", &slopes.lambda)?,
            source_slope: scalar("∂source/∂u", &slopes.source)?,
        })
    }
}

/// Coefficients at the points of a cell.
struct AtPoints {
    sigma: Vec<[[f64; 3]; 3]>,
    /// $\lambda + \lambda_u u - f_u$.
    reaction: Vec<f64>,
    /// $f + (\lambda_u u - f_u) u$.
    source: Vec<f64>,
    /// $\sigma_u \nabla u$; empty without a derivative.
    drift: Vec<[f64; 3]>,
}

impl<'a> CellIntegrals<'a> {
    pub fn new(space: &'a TensorSpace<'a>, rule: CellRule) -> Self {
        Self {
            evaluation: Evaluation::on_tensor_cells(space, rule),
            tables: ShapeTables::new(space, rule),
            dimension: space.dimension(),
            n: space.dofs_per_cell(),
        }
    }

    /// Computes the matrix and the load of a cell, see [`crate::AssemblyKernels::queue`].
    ///
    /// # Cost
    /// $O(n_q n^2)$.
    pub fn cell_system(
        &self,
        found: &mut Found,
        points: &CellPoints,
        coefficients: &LinearizedCoefficients<'_>,
        state: State<'_>,
    ) -> Result<CellSystem, FemError> {
        let (n, d) = (self.n, self.dimension);
        let has_function = !state.unknown.is_empty();
        if has_function {
            self.evaluation.gradients(found, points, state.unknown);
            points.write_points_with_values(found);
        } else {
            points.write_points(found);
        }
        found.points.time = state.time;
        let Found { points: at, gradients, tape, .. } = found;
        let gradients = if has_function { gradients.as_slice() } else { &[] };
        let values = coefficients.eval(at, gradients, d, tape)?;
        let mut system = CellSystem { matrix: vec![0.0; n * n], load: vec![0.0; n] };
        let mut fluxes = vec![[0.0; 3]; n];
        for (q, inverse) in points.inverse_jacobians().enumerate() {
            let weight = points.weights[q];
            let metric = metric(&inverse, &values.sigma[q], weight, d);
            let shapes = &self.tables.values[q * n..][..n];
            let slopes = &self.tables.gradients[q * n..][..n];
            for (flux, slope) in fluxes.iter_mut().zip(slopes) {
                *flux = metric.map(|row| dot(row, *slope));
            }
            let (reaction, source) = (weight * values.reaction[q], weight * values.source[q]);
            // The drift on the reference cell.
            let drift = values.drift.get(q).map(|drift| inverse.map(|row| weight * dot(row, *drift)));
            for (i, row) in system.matrix.chunks_exact_mut(n).enumerate() {
                let from_drift = drift.map_or(0.0, |drift| dot(drift, slopes[i]));
                let with_value = reaction * shapes[i] + from_drift;
                for (j, entry) in row.iter_mut().enumerate() {
                    *entry += dot(fluxes[i], slopes[j]) + with_value * shapes[j];
                }
                system.load[i] += source * shapes[i];
                if drift.is_some() {
                    system.load[i] += from_drift * at.unknown[q];
                }
            }
        }
        Ok(system)
    }
}

impl LinearizedCoefficients<'_> {
    fn eval(
        &self,
        points: &Points,
        gradients: &[[f64; 3]],
        dimension: usize,
        tape: &mut TapeScratch,
    ) -> Result<AtPoints, FemError> {
        let n = points.len();
        let u = &points.unknown;
        let (mut sigma, mut reaction) = (vec![[[0.0; 3]; 3]; n], vec![0.0; n]);
        self.sigma_and_lambda.sigma(&mut sigma, points, tape)?;
        self.sigma_and_lambda.lambda(&mut reaction, points, tape)?;
        let mut source = vec![0.0; n];
        if let Some(own) = &self.source {
            own.eval_scalar(&mut source, points, tape)?;
        }
        let mut slopes = vec![0.0; n];
        for (slope, factor_is_u) in [(&self.lambda_slope, true), (&self.source_slope, false)] {
            let Some(slope) = slope else { continue };
            slope.eval_scalar(&mut slopes, points, tape)?;
            for q in 0..n {
                let slope = if factor_is_u { slopes[q] * u[q] } else { -slopes[q] };
                reaction[q] += slope;
                source[q] += slope * u[q];
            }
        }
        let mut drift = Vec::new();
        if let Some(slope) = &self.sigma_slope {
            let mut tensors = vec![[[0.0; 3]; 3]; n];
            slope.eval_tensor(&mut tensors, points, dimension, tape)?;
            let product = |(t, g): (&[[f64; 3]; 3], &[f64; 3])| -> [f64; 3] {
                std::array::from_fn(|i| (0..3).map(|j| 0.5 * (t[i][j] + t[j][i]) * g[j]).sum())
            };
            drift = tensors.iter().zip(gradients).map(product).collect();
        }
        Ok(AtPoints { sigma, reaction, source, drift })
    }
}

/// Returns $w J^{-1} \sigma J^{-\mathsf{T}}$.
fn metric(inverse: &[[f64; 3]; 3], sigma: &[[f64; 3]; 3], weight: f64, d: usize) -> [[f64; 3]; 3] {
    let times = |row: [f64; 3]| sigma.map(|sigma| dot(sigma, row));
    std::array::from_fn(|a| {
        let flux = times(inverse[a]);
        std::array::from_fn(|b| if a < d && b < d { weight * dot(flux, inverse[b]) } else { 0.0 })
    })
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
