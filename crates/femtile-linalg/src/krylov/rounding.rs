//! What rounding leaves of a residual.

use femtile_device::{Buffer, Scalar};

use super::acceptance::System;
use crate::LinalgError;
use crate::precondition::polynomial::start_of_lanczos;
use crate::vector::VectorKernels;

/// Products that estimate the terms of a row.
const SAMPLES: u64 = 3;

/// Rounding explains an entry of a residual up to this multiple of its terms times the machine epsilon: what a product
/// leaves, and what updates of x over hundreds of iterations add to it.
const EXPLAINED: f64 = 32.0;

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
    let mut terms: Vec<f64> = system.b.host_view()?.iter().map(square).collect();
    let (mut signed, mut product) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    for sample in 0..SAMPLES {
        let signs = (0..n as u64).map(|i| start_of_lanczos::<T>(SAMPLES * i + sample)).collect();
        device.scale_by(&mut signed, &Buffer::from_vec(device, signs)?, x)?;
        system.a.apply(&mut product, &signed)?;
        terms.iter_mut().zip(product.host_view()?.iter()).for_each(|(sum, value)| *sum += square(value));
    }
    let most = EXPLAINED * T::EPSILON.to_f64();
    let is_rounding = |r: T, terms: f64| r.to_f64().abs() <= most * terms.sqrt();
    let left = |(r, terms): (&T, &f64)| if is_rounding(*r, *terms) { T::ZERO } else { *r };
    let rest = r.host_view()?.iter().zip(&terms).map(left).collect();
    Ok(Buffer::from_vec(device, rest)?)
}

#[cfg(test)]
mod tests {
    use femtile_device::Reference;

    use super::*;
    use crate::comm::Alone;
    use crate::precondition::Jacobi;
    use crate::sparse::Triplets;

    /// Rows 0 to 3 hold 1e9 times the differences of a chain, rows 4 to 7 the differences themselves.
    #[test]
    fn what_is_rounding_in_a_row_of_large_terms_is_not_in_one_of_small_terms() {
        let (device, n) = (Reference, 8);
        let mut triplets = Triplets::new(n, n);
        for i in 0..n {
            let size = if i < 4 { 1e9 } else { 1.0 };
            for (j, value) in [(i, 2.0), ((i + 1) % 4 + i / 4 * 4, -1.0), ((i + 3) % 4 + i / 4 * 4, -1.0)] {
                triplets.push(i, j, size * value).unwrap();
            }
        }
        let a = triplets.into_csr(&device).unwrap().matrix;
        let buffer = |values: [f64; 8]| Buffer::from_vec(&device, values.to_vec()).unwrap();
        let (x, b) = (buffer([1.0; 8]), buffer([0.0; 8]));
        let m = Jacobi::identity(&device, n).unwrap();
        let system = System { a: &a, m: &m, b: &b, comm: &Alone };
        let r = buffer([1e-7, -1e-7, 1e-3, 0.0, 1e-7, 1e-16, -1e-16, 1.0]);
        let rest = unexplained(&r, &x, system).unwrap();
        assert_eq!(rest.as_slice(), [0.0, 0.0, 1e-3, 0.0, 1e-7, 0.0, 0.0, 1.0]);
    }
}
