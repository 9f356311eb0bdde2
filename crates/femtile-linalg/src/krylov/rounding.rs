//! The part of a residual that rounding does not explain.

use femtile_device::{Buffer, Scalar, parallel};

use super::acceptance::System;
use crate::LinalgError;
use crate::precondition::polynomial::start_of_lanczos;
use crate::vector::VectorKernels;

/// Products that estimate the terms of a row.
const SAMPLES: u64 = 3;

/// Multiple of the machine epsilon and of its terms up to which rounding explains an entry of a residual: the rounding of a
/// product and of hundreds of updates of x.
const EXPLAINED: f64 = 32.0;

/// Rows that a thread visits at least.
const ROWS: usize = 1 << 14;

/// Returns the residual r = b − Ax without the entries that are no larger than rounding makes them,
/// $|r_i| \le 32\, \varepsilon\, t_i$.
///
/// $t_i$ stands for the terms of row i,
///
/// $$ t_i^2 = b_i^2 + \sum_k (A S_k x)_i^2, \quad \mathrm{E}\, (A S_k x)_i^2 = \sum_j s^2 a_{ij}^2 x_j^2 $$
///
/// where $S_k$ is a diagonal of numbers near one with random signs, so that terms which cancel in Ax do not cancel here.
///
/// # Cost
/// Three products; vectors pass through the host.
pub(super) fn unexplained<T: Scalar, D: VectorKernels<T>, C>(
    r: &Buffer<T, D>,
    x: &Buffer<T, D>,
    system: System<'_, T, D, C>,
) -> Result<Buffer<T, D>, LinalgError> {
    let (device, n) = (r.device(), r.len());
    let square = |value: &T| value.to_f64() * value.to_f64();
    let b = system.b.host_view()?;
    let mut terms = parallel::map(n, ROWS, |i| square(&b[i]));
    let (mut signed, mut product) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    for sample in 0..SAMPLES {
        let signs = parallel::map(n, ROWS, |i| start_of_lanczos::<T>(SAMPLES * i as u64 + sample));
        device.scale_by(&mut signed, &Buffer::from_vec(device, signs)?, x)?;
        system.a.apply(&mut product, &signed)?;
        let found = product.host_view()?;
        terms = parallel::map(n, ROWS, |i| terms[i] + square(&found[i]));
    }
    let most = EXPLAINED * T::EPSILON.to_f64();
    let is_rounding = |r: T, terms: f64| r.to_f64().abs() <= most * terms.sqrt();
    let r = r.host_view()?;
    let left = |i: usize| if is_rounding(r[i], terms[i]) { T::ZERO } else { r[i] };
    Ok(Buffer::from_vec(device, parallel::map(n, ROWS, left))?)
}

#[cfg(test)]
mod tests {
    use femtile_device::Reference;

    use super::*;
    use crate::LinearOperator;
    use crate::comm::Alone;
    use crate::hooks::Hook;
    use crate::precondition::Jacobi;

    /// Two closed chains of four unknowns, $y_i = s (2 x_i - x_{i+1} - x_{i-1})$, with s = 1e9 in the first.
    struct Chains;

    impl LinearOperator<f64, Reference> for Chains {
        fn n_rows(&self) -> usize {
            8
        }

        fn n_cols(&self) -> usize {
            8
        }

        fn device(&self) -> &Reference {
            &Reference
        }

        fn apply_with(
            &self,
            y: &mut Buffer<f64, Reference>,
            x: &Buffer<f64, Reference>,
            _: &dyn Hook<f64>,
        ) -> Result<(), LinalgError> {
            let x = x.as_slice();
            for (i, y) in y.as_mut_slice().iter_mut().enumerate() {
                let (size, first) = (if i < 4 { 1e9 } else { 1.0 }, i / 4 * 4);
                *y = size * (2.0 * x[i]) - size * x[(i + 1) % 4 + first] - size * x[(i + 3) % 4 + first];
            }
            Ok(())
        }
    }

    /// Rows 0 to 3 hold 1e9 times the differences of a chain, rows 4 to 7 the differences themselves.
    #[test]
    fn what_is_rounding_in_a_row_of_large_terms_is_not_in_one_of_small_terms() {
        let (device, n, a) = (Reference, 8, Chains);
        let buffer = |values: [f64; 8]| Buffer::from_vec(&device, values.to_vec()).unwrap();
        let (x, b) = (buffer([1.0; 8]), buffer([0.0; 8]));
        let m = Jacobi::identity(&device, n).unwrap();
        let system = System { a: &a, m: &m, b: &b, comm: &Alone };
        let r = buffer([1e-7, -1e-7, 1e-3, 0.0, 1e-7, 1e-16, -1e-16, 1.0]);
        let rest = unexplained(&r, &x, system).unwrap();
        assert_eq!(rest.as_slice(), [0.0, 0.0, 1e-3, 0.0, 1e-7, 0.0, 0.0, 1.0]);
    }
}
