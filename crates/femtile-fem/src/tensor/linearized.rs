//! Cell matrices and loads of linearized forms.

use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::CellRule;

use super::cell_matrices::{DenseShapes, PointTerms};
use crate::FemError;
use crate::evaluation::{CellPoints, Evaluation, Found, dot};
use crate::forms::{Compiled, CompiledSlopes, Form, PointCoefficients, Points, Slopes, State};

/// The integrals of a space over its cells by one rule.
pub(super) struct CellIntegrals<'a> {
    pub evaluation: Evaluation<'a>,
    shapes: DenseShapes,
    dimension: usize,
}

/// The compiled coefficients of a form and their derivatives by u.
pub(super) struct LinearizedCoefficients<'a> {
    sigma_and_lambda: PointCoefficients<'a>,
    /// None if the source does not depend on u: then it is not in the linearization.
    source: Option<Compiled<'a>>,
    slopes: CompiledSlopes<'a>,
}

/// The matrix `[n][n]` and the load `[n]` of a cell.
pub(super) struct CellSystem {
    pub matrix: Vec<f64>,
    pub load: Vec<f64>,
}

impl<'a> LinearizedCoefficients<'a> {
    pub fn new(form: &Form<'a>, slopes: &'a Slopes) -> Result<Self, FemError> {
        let mesh = form.mesh;
        let source = Some(form.source).filter(|source| source.uses_unknown());
        Ok(Self {
            sigma_and_lambda: PointCoefficients::of_any_sign(mesh, form.sigma, form.lambda)?,
            source: source.map(|source| Compiled::scalar("source", source, mesh)).transpose()?,
            slopes: CompiledSlopes::new(form, slopes)?,
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
            shapes: DenseShapes::new(space, rule),
            dimension: space.dimension(),
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
        let n = points.dofs.len();
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
        let values = coefficients.eval(at, gradients, self.dimension, tape)?;
        let mut system = CellSystem { matrix: vec![0.0; n * n], load: vec![0.0; n] };
        let mut fluxes = Vec::with_capacity(n);
        for (q, inverse) in points.inverse_jacobians().enumerate() {
            let weight = points.weights[q];
            let mut terms = PointTerms::new(weight, &inverse, &values.sigma[q], values.reaction[q]);
            let mut u = 0.0;
            if let Some(drift) = values.drift.get(q) {
                terms.drift = inverse.map(|row| weight * dot(row, *drift));
                u = at.unknown[q];
            }
            self.shapes.add_point(&mut system.matrix, q, &terms, &mut fluxes);
            let shapes = self.shapes.values(q).iter().zip(self.shapes.gradients(q));
            for (load, (shape, gradient)) in system.load.iter_mut().zip(shapes) {
                *load += weight * values.source[q] * shape + dot(terms.drift, *gradient) * u;
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
        let (mut sigma, mut reaction) = (vec![[[0.0; 3]; 3]; n], vec![0.0; n]);
        self.sigma_and_lambda.sigma(&mut sigma, points, tape)?;
        self.sigma_and_lambda.lambda(&mut reaction, points, tape)?;
        let mut source = vec![0.0; n];
        if let Some(own) = &self.source {
            own.eval_scalar(&mut source, points, tape)?;
        }
        self.slopes.add_reaction((&mut reaction, &mut source), points, (&mut Vec::new(), tape))?;
        let mut drift = Vec::new();
        if let Some(slope) = &self.slopes.sigma {
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
