use femtile_element::Affine;
use femtile_element::quadrature;
use femtile_expression::{Expression, TapeScratch, Variable};
use femtile_mesh::Mesh;

use super::{check_length, corners, sum_blocks};
use crate::FemError;
use crate::forms::{CHUNK, Coefficient, Compiled, Points, SimplexPoints};

/// Degree of the quadrature rule: errors of linear elements are dominated by quadratic terms, whose squares have degree
/// 4.
const DEGREE: usize = 5;

/// Returns $\|u - u_\text{exact}\|_{L^2}$.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node; [`femtile_form::FormError::NotFinite`] if the exact solution is
/// not finite at some point.
pub fn error_l2(mesh: &Mesh, u: &[f64], exact: &Expression) -> Result<f64, FemError> {
    check_length(mesh, u)?;
    let exact = Coefficient::Expression(exact.clone());
    let exact = Compiled::scalar("exact", &exact, mesh)?;
    let square = integrate(mesh, &[exact], |cell, exact, rule| {
        let (_, values, _) = corners(mesh, u, cell);
        let terms = exact[0].iter().zip(rule.iter()).map(|(exact, (point, weight))| {
            let found: f64 = values.iter().zip(point).map(|(value, shape)| value * shape).sum();
            weight * (found - exact) * (found - exact)
        });
        mesh.signed_measure(cell as usize).abs() * terms.sum::<f64>()
    })?;
    Ok(square.sqrt())
}

/// Returns the seminorm $\|\nabla u - \nabla u_\text{exact}\|_{L^2}$, with exact derivatives.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node; [`femtile_form::FormError::NotFinite`] if the gradient of the
/// exact solution is not finite at some point.
pub fn error_h1(mesh: &Mesh, u: &[f64], exact: &Expression) -> Result<f64, FemError> {
    check_length(mesh, u)?;
    let axes = [Variable::X, Variable::Y, Variable::Z];
    let parts = axes[..mesh.dimension()].iter().map(|&axis| Coefficient::Expression(exact.derivative(axis)));
    let parts: Vec<Coefficient> = parts.collect();
    let parts = parts.iter().map(|part| Compiled::scalar("gradient of exact", part, mesh));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let square = integrate(mesh, &parts, |cell, exact, rule| {
        let (points, values, n) = corners(mesh, u, cell);
        let map = Affine::simplex(&points[..n]);
        let found = map.gradient(&values);
        let mut sum = 0.0;
        for (found, exact) in found.iter().zip(exact) {
            let terms = exact.iter().zip(&rule.weights);
            sum += terms.map(|(exact, weight)| weight * (found - exact) * (found - exact)).sum::<f64>();
        }
        map.measure * sum
    })?;
    Ok(square.sqrt())
}

/// Sums `term(cell, values of each function at the points of the rule, rule)` over all cells.
fn integrate(
    mesh: &Mesh,
    functions: &[Compiled<'_>],
    term: impl Fn(u32, &[&[f64]], &quadrature::Quadrature) -> f64 + Sync,
) -> Result<f64, FemError> {
    let rule = quadrature::simplex(mesh.dimension(), DEGREE);
    let n_q = rule.n_q();
    sum_blocks(mesh, |cells| {
        let (mut points, mut tape) = (Points::default(), TapeScratch::default());
        let mut values = vec![vec![0.0; CHUNK * n_q]; functions.len()];
        let cells: Vec<u32> = cells.collect();
        let mut sum = 0.0;
        for cells in cells.chunks(CHUNK) {
            points.place(mesh, cells, Some(&rule));
            for (function, values) in functions.iter().zip(&mut values) {
                function.eval_scalar(&mut values[..cells.len() * n_q], &points, &mut tape)?;
            }
            for (lane, &cell) in cells.iter().enumerate() {
                let here: Vec<&[f64]> = values.iter().map(|v| &v[lane * n_q..(lane + 1) * n_q]).collect();
                sum += term(cell, &here, &rule);
            }
        }
        Ok(sum)
    })
}
