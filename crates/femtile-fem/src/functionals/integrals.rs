use femtile_expression::{Expression, Variable};
use femtile_space::geometry::CellRule;
use femtile_space::{Space, TensorSpace};

use super::check_length;
use crate::FemError;
use crate::evaluation::{Evaluation, Rule, TensorBasis, Wanted};
use crate::forms::{Coefficient, Compiled, Form, PointCoefficients};

/// Returns the area or volume of the cells; of [bodies of revolution](Space::axisymmetric) the volume.
///
/// [`integral`], [`mean`], [`l2_norm`] and the errors have the weight of such bodies too; the energy and the integrals of source and
/// reaction are of equations that have none.
///
/// # Cost
/// The determinant of the Jacobian at $\lceil 3k/2 \rceil$ Gauss points along each axis for curved cells of order k, whatever
/// the degree of the space; they integrate it exactly.
/// # Errors
/// [`FemError::Space`] for a folded cell.
pub fn measure(space: &Space<'_>) -> Result<f64, FemError> {
    let evaluation = match space.tensor() {
        Some(tensor) => Evaluation::Tensor(basis_of_volumes(tensor)),
        None => Evaluation::new(space, Rule { tensor: CellRule::default(), simplex: of_weight(space) }),
    };
    let wanted = Wanted { revolved: space.is_axisymmetric(), ..Wanted::default() };
    evaluation.sum(wanted, |found| Ok(found.weights.iter().sum()))
}

fn basis_of_volumes<'a>(space: &'a TensorSpace<'a>) -> TensorBasis<'a> {
    let order = space.mesh().curved.as_ref().map_or(1, |curved| curved.order);
    TensorBasis::with_rule(space, CellRule::default(), (3 * order).div_ceil(2) - 1)
}

/// Returns the degree of the weight of integrals: 1 of a body of revolution.
fn of_weight(space: &Space<'_>) -> usize {
    usize::from(space.is_axisymmetric())
}

/// Returns $\int_\Omega u$.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell.
pub fn integral(space: &Space<'_>, u: &[f64]) -> Result<f64, FemError> {
    integrate(space, u, 1, |u| u)
}

/// Returns $\int_\Omega u\,/\,|\Omega|$.
///
/// # Errors
/// Errors of [`integral`].
pub fn mean(space: &Space<'_>, u: &[f64]) -> Result<f64, FemError> {
    Ok(integral(space, u)? / measure(space)?)
}

/// Returns $\sqrt{\int_\Omega u^2}$.
///
/// # Errors
/// Errors of [`integral`].
pub fn l2_norm(space: &Space<'_>, u: &[f64]) -> Result<f64, FemError> {
    Ok(integrate(space, u, 2, |u| u * u)?.sqrt())
}

/// Integrates a power of u, exactly on straight cells.
fn integrate(
    space: &Space<'_>,
    u: &[f64],
    power: usize,
    of_value: impl Fn(f64) -> f64 + Sync,
) -> Result<f64, FemError> {
    check_length(u, space.n_dofs())?;
    let simplex = power * space.element().degree() + of_weight(space);
    let rule = Rule { tensor: CellRule::Gauss { extra: 1 }, simplex };
    let wanted = Wanted { u, revolved: space.is_axisymmetric(), ..Wanted::default() };
    Evaluation::new(space, rule).sum(wanted, |found| Ok(found.integral(|q| of_value(found.values[q]))))
}

/// Returns the rule for errors against functions that are not polynomials: p + 3 points along each axis of quadrilaterals and
/// hexahedra, degree 2p + 3 on simplices.
fn error_rule(space: &Space<'_>) -> Rule {
    Rule { tensor: CellRule::Gauss { extra: 2 }, simplex: 2 * space.element().degree() + 3 }
}

/// Returns $\|u - u_\text{exact}\|_{L^2}$ by a rule for functions that are not polynomials.
///
/// # Errors
/// Errors of [`integral`], and [`femtile_form::FormError::NotFinite`] if the exact solution is not finite at some point.
pub fn error_l2(space: &Space<'_>, u: &[f64], exact: &Expression) -> Result<f64, FemError> {
    check_length(u, space.n_dofs())?;
    let exact = Coefficient::Expression(exact.clone());
    let exact = Compiled::scalar("exact", &exact, space.mesh())?;
    let wanted = Wanted { u, points: true, revolved: space.is_axisymmetric(), ..Wanted::default() };
    let square = Evaluation::new(space, error_rule(space)).sum(wanted, |found| {
        found.eval(&exact)?;
        Ok(found.integral(|q| (found.values[q] - found.given[q]).powi(2)))
    })?;
    Ok(square.sqrt())
}

/// Returns the seminorm $\|\nabla u - \nabla u_\text{exact}\|_{L^2}$, with exact derivatives, by the rule of
/// [`error_l2`]; on a surface that of the gradients within it.
///
/// # Errors
/// Errors of [`integral`], and [`femtile_form::FormError::NotFinite`] if the gradient of the exact solution is not finite at some
/// point.
pub fn error_h1(space: &Space<'_>, u: &[f64], exact: &Expression) -> Result<f64, FemError> {
    check_length(u, space.n_dofs())?;
    let axes = &[Variable::X, Variable::Y, Variable::Z][..space.mesh().space_dimension()];
    let parts: Vec<Coefficient> =
        axes.iter().map(|&axis| Coefficient::Expression(exact.derivative(axis))).collect();
    let parts = parts.iter().map(|part| Compiled::scalar("gradient of exact", part, space.mesh()));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    if space.mesh().is_surface {
        return error_h1_within(space, u, &parts);
    }
    let revolved = space.is_axisymmetric();
    let wanted = Wanted { u, gradients: true, points: true, revolved, ..Wanted::default() };
    let square = Evaluation::new(space, error_rule(space)).sum(wanted, |found| {
        let mut sum = 0.0;
        for (axis, part) in parts.iter().enumerate() {
            found.eval(part)?;
            sum += found.integral(|q| (found.gradients[q][axis] - found.given[q]).powi(2));
        }
        Ok(sum)
    })?;
    Ok(square.sqrt())
}

/// Returns $\|\nabla u - P g\|_{L^2}$ on a surface, where P takes from the vectors g their part along the normal.
fn error_h1_within(space: &Space<'_>, u: &[f64], g: &[Compiled<'_>]) -> Result<f64, FemError> {
    let evaluation = Evaluation::new(space, error_rule(space));
    let squares = evaluation.map(|found, points| {
        let mut vectors = vec![[0.0; 3]; points.weights.len()];
        for (axis, part) in g.iter().enumerate() {
            points.eval(found, part)?;
            vectors.iter_mut().zip(&found.given).for_each(|(vector, part)| vector[axis] = *part);
        }
        evaluation.gradients(found, points, u);
        let mut square = 0.0;
        for (q, vector) in vectors.iter().enumerate() {
            // Triangles have one Jacobian, whose third column is the normal.
            let jacobian = points.map.jacobians[q.min(points.map.jacobians.len() - 1)];
            let gap = [0, 1, 2].map(|i| found.gradients[q][i] - vector[i]);
            let across: f64 = (0..3).map(|i| gap[i] * jacobian[i][2]).sum();
            square += points.weights[q] * (gap.iter().map(|gap| gap * gap).sum::<f64>() - across * across);
        }
        Ok(square)
    })?;
    Ok(squares.iter().sum::<f64>().max(0.0).sqrt())
}

/// Returns the degree of the rule on simplices for products of degree `exact` with coefficients: exact for coefficients that
/// are constant in cells, else that of assembly.
pub(crate) fn degree_for(space: &Space<'_>, coefficients: &[&Coefficient], exact: usize) -> usize {
    let is_exact = coefficients.iter().all(|coefficient| coefficient.is_constant_by_cell());
    if is_exact { exact } else { exact.max(space.element().degree() + 2) }
}

/// Returns the rule of the operator; `tensor` is that on quadrilaterals and hexahedra.
pub(super) fn operator_rule(space: &Space<'_>, form: &Form<'_>, tensor: CellRule) -> Rule {
    let degree = space.element().degree();
    let exact = if form.lambda.as_constant() == Some(0.0) { 2 * degree - 2 } else { 2 * degree };
    Rule { tensor, simplex: degree_for(space, &[form.sigma, form.lambda], exact) }
}

/// Returns the rule of the right side: on quadrilaterals and hexahedra p + 2 points along each axis, or for a source that
/// depends on u that of the operator, `tensor`.
pub(crate) fn source_rule(space: &Space<'_>, source: &Coefficient, tensor: CellRule) -> Rule {
    let tensor = if source.uses_unknown() { tensor } else { crate::tensor::SOURCE_RULE };
    Rule { tensor, simplex: degree_for(space, &[source], space.element().degree()) }
}

/// Returns $\int_\Omega \sigma\nabla u\cdot\nabla u + \lambda u^2$, without a factor ½ and without boundary terms.
///
/// The rule is that of the operator, Gauss quadrature with p + 1 points along each axis of quadrilaterals and hexahedra, so that
/// this is $u^\mathsf{T} A u$.
///
/// # Errors
/// Errors of [`integral`]; a coefficient out of its range.
pub fn energy(space: &Space<'_>, form: &Form<'_>, u: &[f64]) -> Result<f64, FemError> {
    check_length(u, space.n_dofs())?;
    let coefficients = PointCoefficients::of_any_sign(form.mesh, form.sigma, form.lambda)?;
    let evaluation = Evaluation::new(space, operator_rule(space, form, CellRule::default()));
    let wanted = Wanted { u, gradients: true, points: true, unknown: true, revolved: false };
    evaluation.sum(wanted, |found| {
        let mut sigma = vec![[[0.0; 3]; 3]; found.points.len()];
        coefficients.sigma(&mut sigma, &found.points, &mut found.tape)?;
        found.given.resize(sigma.len(), 0.0);
        coefficients.lambda(&mut found.given, &found.points, &mut found.tape)?;
        let density = |q: usize| {
            let (s, g, u) = (&sigma[q], found.gradients[q], found.values[q]);
            let flux = |i: usize| s[i][0] * g[0] + s[i][1] * g[1] + s[i][2] * g[2];
            g[0] * flux(0) + g[1] * flux(1) + g[2] * flux(2) + found.given[q] * u * u
        };
        Ok(found.integral(density))
    })
}

/// Returns $\int_\Omega f$ at u with the quadrature of the right side. If f depends on u, `rule` is used on quadrilaterals and
/// hexahedra, which is that of the operator.
///
/// # Errors
/// [`FemError::Space`] for a folded cell, [`FemError::Length`] unless `u` has one entry per degree of freedom; a source
/// that is not finite.
pub fn source_integral(
    space: &Space<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
) -> Result<f64, FemError> {
    let source = Compiled::scalar("source", form.source, form.mesh)?;
    coefficient_integral(space, source_rule(space, form.source, rule), &source, u, |source, _| source)
}

/// Returns $\int_\Omega \lambda u$ with the rule of the operator, `rule` on quadrilaterals and hexahedra.
///
/// # Errors
/// Errors of [`source_integral`] for λ.
pub fn reaction_integral(
    space: &Space<'_>,
    form: &Form<'_>,
    rule: CellRule,
    u: &[f64],
) -> Result<f64, FemError> {
    let lambda = Compiled::scalar("lambda", form.lambda, form.mesh)?;
    coefficient_integral(space, operator_rule(space, form, rule), &lambda, u, |lambda, u| lambda * u)
}

/// Returns the integral of a function of a coefficient and u, with the coefficient at u.
fn coefficient_integral(
    space: &Space<'_>,
    rule: Rule,
    coefficient: &Compiled<'_>,
    u: &[f64],
    density: impl Fn(f64, f64) -> f64 + Sync,
) -> Result<f64, FemError> {
    check_length(u, space.n_dofs())?;
    let wanted = Wanted { u, points: true, unknown: true, ..Wanted::default() };
    Evaluation::new(space, rule).sum(wanted, |found| {
        found.eval(coefficient)?;
        Ok(found.integral(|q| density(found.given[q], found.values[q])))
    })
}
