//! A test of the tangent: by Taylor's formula the residual differs from its linearization by a term of second order.

use femtile_operator::{CpuOperator, OperatorError, State};
use femtile_space::LinearConstraints;

use crate::SolveError;
use crate::rounding::sign;

/// Lengths of the directions, each a tenth of the one before.
const LENGTHS: [f64; 6] = [1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];

/// A term falls by more than this factor from one length to the next if it is not of first order; one of second order falls by a
/// hundred.
const FALL: f64 = 20.0;

/// A difference that is rounding, relative to the product of the tangent.
const ROUNDING: f64 = 1e-6;

/// Fails unless the tangent is the derivative of the residual at a state, along a direction of random signs at the free unknowns:
///
/// $$ |r(u + \varepsilon\delta) - r(u) - \varepsilon A(u)\,\delta| = O(\varepsilon^2). $$
///
/// # Cost
/// Three residuals and a product if the form is smooth.
/// # Errors
/// [`OperatorError::Mismatch`]. Without values around the state there is no error.
pub(super) fn check(
    operator: &CpuOperator<'_>,
    state: &State<'_>,
    constraints: &LinearConstraints,
) -> Result<(), SolveError> {
    let n = state.u.len();
    let mut direction: Vec<f64> = (0..n).map(sign).collect();
    constraints.distribute(&mut direction);
    let mut product = vec![0.0; n];
    operator.apply(state, &direction, &mut product)?;
    let residual = |length: f64| -> Option<Vec<f64>> {
        let moved = |from: &[f64], length: f64| -> Vec<f64> {
            from.iter().zip(&direction).map(|(from, by)| from + length * by).collect()
        };
        let (u, rate) = (moved(state.u, length), moved(state.rate, state.shift * length));
        let mut r = vec![0.0; n];
        operator.residual(&State { u: &u, rate: &rate, ..*state }, &mut r).ok().map(|()| r)
    };
    match difference(&residual, &product) {
        Some((difference, length)) => Err(OperatorError::Mismatch(format!(
            "the tangent is not the derivative of the residual: along a direction of length {length:.0e} they differ by \
             {difference:.2e}, and this falls as the length does, not as its square"
        ))
        .into()),
        None => Ok(()),
    }
}

/// Returns the difference of first order between a residual along a direction and the product of its tangent, and the shortest
/// length; none if there is none, or no value.
fn difference(residual: &dyn Fn(f64) -> Option<Vec<f64>>, product: &[f64]) -> Option<(f64, f64)> {
    let at_state = residual(0.0)?;
    let of_product = product.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut last = None;
    for length in LENGTHS {
        let Some(r) = residual(length) else { continue };
        let terms = r.iter().zip(&at_state).zip(product);
        let squares = terms.map(|((r, at_state), product)| (r - at_state - length * product).powi(2));
        let difference = squares.sum::<f64>().sqrt();
        let is_rounding = difference <= ROUNDING * length * of_product;
        let falls = last.is_some_and(|(before, _)| difference <= before / FALL);
        if is_rounding || falls || difference.is_nan() {
            return None;
        }
        last = Some((difference, length));
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_tangent_is_told_from_curvature() {
        // r = (u³, sin u) at u = 0.7 along 1.
        let residual = |length: f64| Some(vec![(0.7 + length).powi(3), (0.7 + length).sin()]);
        let tangent = [3.0 * 0.49, 0.7_f64.cos()];
        assert_eq!(difference(&residual, &tangent), None);
        let (found, length) = difference(&residual, &[tangent[0], 1.01 * tangent[1]]).unwrap();
        assert!((found / length / (1e-2 * tangent[1]) - 1.0).abs() < 0.1, "{found} {length}");
        // Beyond 1e-6 there is no value, and a zero has a cube around it.
        let near = |length: f64| (length < 2e-6).then(|| residual(length)).flatten();
        assert_eq!(difference(&near, &tangent), None);
        assert!(difference(&near, &[tangent[0], 0.0]).is_some());
        assert_eq!(difference(&|length: f64| Some(vec![length.powi(3)]), &[0.0]), None);
        assert_eq!(difference(&|_| None, &[0.0]), None);
    }
}
