//! Functionals of a solution of any degree; names and errors are those of [`crate::functionals`].
//!
//! Vectors have one entry per degree of freedom, the value at its node. Sums are added cell after cell: the same bits
//! for any number of threads.

mod flux;
mod inverse_map;
mod point;

use femtile_device::parallel;
use femtile_expression::{Expression, Variable};
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellMap, CellMaps, CellRule};

use super::{CellPoints, Evaluation, Found, check_length};
use crate::FemError;
use crate::forms::{Coefficient, Compiled, Form, PointCoefficients};
pub use crate::functionals::{Line, max, min};
pub use flux::{facet_fluxes, facet_shares, flux, reaction_integral, source_integral};
pub use point::{along, value_at, values_at};

/// The rule for functions of the space.
const RULE: CellRule = CellRule::Gauss { extra: 1 };
/// The rule for errors against functions that are not polynomials.
const ERROR_RULE: CellRule = CellRule::Gauss { extra: 2 };

/// Returns the area or volume of the curved cells.
///
/// # Cost
/// The determinant of the Jacobian at $\lceil 3k/2 \rceil$ Gauss points along each axis for cells of order k, whatever the
/// degree of the space; they integrate it exactly.
/// # Errors
/// [`FemError::Space`] for a folded cell.
pub fn measure(space: &TensorSpace<'_>) -> Result<f64, FemError> {
    let order = space.mesh().curved.as_ref().map_or(1, |curved| curved.order);
    let (rule, degree) = (CellRule::Gauss { extra: 0 }, (3 * order).div_ceil(2) - 1);
    let maps = CellMaps::new(space, &rule.rule(degree).0);
    let weights = rule.product_weights(degree, space.dimension());
    let of_cell = |map: &mut CellMap, position: usize| -> Result<f64, FemError> {
        maps.of_sound_cell(position, map)?;
        Ok(map
            .determinants
            .iter()
            .zip(&weights)
            .map(|(determinant, weight)| determinant.abs() * weight)
            .sum())
    };
    Ok(parallel::try_map_with(space.n_cells(), CellMap::default, of_cell)?.into_iter().sum())
}

/// Returns $\int_\Omega u$.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell.
pub fn integral(space: &TensorSpace<'_>, u: &[f64]) -> Result<f64, FemError> {
    integrate(space, u, |u| u)
}

/// Returns $\int_\Omega u\,/\,|\Omega|$.
///
/// # Errors
/// Errors of [`integral`].
pub fn mean(space: &TensorSpace<'_>, u: &[f64]) -> Result<f64, FemError> {
    Ok(integral(space, u)? / measure(space)?)
}

/// Returns $\sqrt{\int_\Omega u^2}$.
///
/// # Errors
/// Errors of [`integral`].
pub fn l2_norm(space: &TensorSpace<'_>, u: &[f64]) -> Result<f64, FemError> {
    Ok(integrate(space, u, |u| u * u)?.sqrt())
}

fn integrate(
    space: &TensorSpace<'_>,
    u: &[f64],
    of_value: impl Fn(f64) -> f64 + Sync,
) -> Result<f64, FemError> {
    check_length(space, u)?;
    let evaluation = Evaluation::new(space, RULE);
    evaluation.sum(|found, points| {
        evaluation.values(found, points, u);
        let values = found.function.values.iter().zip(&points.weights);
        Ok(values.map(|(value, weight)| weight * of_value(*value)).sum())
    })
}

/// Returns $\|u - u_\text{exact}\|_{L^2}$ by Gauss quadrature with p + 3 points along each axis.
///
/// # Errors
/// Errors of [`integral`], and [`femtile_form::FormError::NotFinite`] if the exact solution is not finite.
pub fn error_l2(space: &TensorSpace<'_>, u: &[f64], exact: &Expression) -> Result<f64, FemError> {
    check_length(space, u)?;
    let exact = Coefficient::Expression(exact.clone());
    let exact = Compiled::scalar("exact", &exact, space.mesh())?;
    let evaluation = Evaluation::new(space, ERROR_RULE);
    let square = evaluation.sum(|found, points| {
        evaluation.values(found, points, u);
        points.eval(found, &exact)?;
        let terms = found.function.values.iter().zip(&found.given).zip(&points.weights);
        Ok(terms.map(|((found, exact), weight)| weight * (found - exact) * (found - exact)).sum())
    })?;
    Ok(square.sqrt())
}

/// Returns the seminorm $\|\nabla u - \nabla u_\text{exact}\|_{L^2}$, with exact derivatives, by the rule of
/// [`error_l2`].
///
/// # Errors
/// Errors of [`integral`], and [`femtile_form::FormError::NotFinite`] if the gradient of the exact solution is not finite.
pub fn error_h1(space: &TensorSpace<'_>, u: &[f64], exact: &Expression) -> Result<f64, FemError> {
    check_length(space, u)?;
    let axes = &[Variable::X, Variable::Y, Variable::Z][..space.dimension()];
    let parts: Vec<Coefficient> =
        axes.iter().map(|&axis| Coefficient::Expression(exact.derivative(axis))).collect();
    let parts = parts.iter().map(|part| Compiled::scalar("gradient of exact", part, space.mesh()));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let evaluation = Evaluation::new(space, ERROR_RULE);
    let square = evaluation.sum(|found, points| {
        evaluation.gradients(found, points, u);
        let mut sum = 0.0;
        for (axis, part) in parts.iter().enumerate() {
            points.eval(found, part)?;
            let terms = found.gradients.iter().zip(&found.given).zip(&points.weights);
            sum +=
                terms.map(|((g, exact), weight)| weight * (g[axis] - exact) * (g[axis] - exact)).sum::<f64>();
        }
        Ok(sum)
    })?;
    Ok(square.sqrt())
}

/// Returns $\int_\Omega \sigma\nabla u\cdot\nabla u + \lambda u^2$, without a factor ½ and without boundary terms.
///
/// The rule is that of the operator, Gauss quadrature with p + 1 points along each axis, so that this is $u^\mathsf{T}
/// A u$.
///
/// # Errors
/// Errors of [`integral`]; a coefficient out of its range.
pub fn energy(space: &TensorSpace<'_>, form: &Form<'_>, u: &[f64]) -> Result<f64, FemError> {
    check_length(space, u)?;
    let coefficients = PointCoefficients::of_any_sign(form.mesh, form.sigma, form.lambda)?;
    let evaluation = Evaluation::new(space, CellRule::default());
    evaluation.sum(|found, points| {
        evaluation.gradients(found, points, u);
        let densities = densities(found, &coefficients, points)?;
        Ok(densities.iter().zip(&points.weights).map(|(density, weight)| weight * density).sum())
    })
}

/// Returns $\sigma g\cdot g + \lambda u^2$ at the points of a cell.
fn densities(
    found: &mut Found,
    coefficients: &PointCoefficients<'_>,
    points: &CellPoints,
) -> Result<Vec<f64>, FemError> {
    points.write_points_with_values(found);
    let Found { given: lambda, function, gradients, points, tape } = found;
    let mut sigma = vec![[[0.0; 3]; 3]; points.len()];
    lambda.resize(points.len(), 0.0);
    coefficients.sigma(&mut sigma, points, tape)?;
    coefficients.lambda(lambda, points, tape)?;
    let density = |q: usize| {
        let (s, g, u) = (&sigma[q], gradients[q], function.values[q]);
        let flux = |i: usize| s[i][0] * g[0] + s[i][1] * g[1] + s[i][2] * g[2];
        g[0] * flux(0) + g[1] * flux(1) + g[2] * flux(2) + lambda[q] * u * u
    };
    Ok((0..points.len()).map(density).collect())
}
