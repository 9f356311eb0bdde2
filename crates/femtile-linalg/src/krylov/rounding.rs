//! The rounding of a residual: the part of it that rounding does not explain, and the part that rounding may
//! hide.

use femtile_device::{Buffer, Scalar, parallel};

use super::acceptance::PreconditionedSystem;
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

/// The sizes of the terms that the rows of $b - Ax$ sum.
pub(super) struct RowTerms {
    squares: Vec<f64>,
}

impl RowTerms {
    /// Estimates the terms $t_i$ of each row i,
    ///
    /// $$ t_i^2 = b_i^2 + \sum_k (A S_k x)_i^2, \quad \mathrm{E}\, (A S_k x)_i^2 = \sum_j s^2 a_{ij}^2 x_j^2 $$
    ///
    /// with a diagonal $S_k$ of numbers near one with random signs, so that terms which cancel in Ax do not
    /// cancel here.
    ///
    /// # Cost
    /// Three products; vectors pass through the host.
    pub(super) fn of<T: Scalar, D: VectorKernels<T>, C>(
        x: &Buffer<T, D>,
        system: PreconditionedSystem<'_, T, D, C>,
    ) -> Result<Self, LinalgError> {
        let (device, n) = (x.device(), system.b.len());
        let square = |value: &T| value.to_f64() * value.to_f64();
        let b = system.b.host_view()?;
        let mut squares = parallel::map(n, ROWS, |i| square(&b[i]));
        let (mut signed, mut product) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        for sample in 0..SAMPLES {
            let signs = parallel::map(n, ROWS, |i| start_of_lanczos::<T>(SAMPLES * i as u64 + sample));
            device.scale_by(&mut signed, &Buffer::from_vec(device, signs)?, x)?;
            system.a.apply(&mut product, &signed)?;
            let found = product.host_view()?;
            squares = parallel::map(n, ROWS, |i| squares[i] + square(&found[i]));
        }
        Ok(Self { squares })
    }

    /// Returns the residual r without entries that rounding explains, $|r_i| \le 32\, \varepsilon\, t_i$.
    pub(super) fn unexplained<T: Scalar, D: VectorKernels<T>>(
        &self,
        r: &Buffer<T, D>,
    ) -> Result<Buffer<T, D>, LinalgError> {
        let most = EXPLAINED * T::EPSILON.to_f64();
        let of_r = r.host_view()?;
        let left = |i: usize| match of_r[i].to_f64().abs() <= most * self.squares[i].sqrt() {
            true => T::ZERO,
            false => of_r[i],
        };
        Ok(Buffer::from_vec(r.device(), parallel::map(of_r.len(), ROWS, left))?)
    }

    /// Returns a residual as rounding may leave it of the exact solution: $\varepsilon\, t_i$ with random signs.
    pub(super) fn rounding<T: Scalar, D: VectorKernels<T>>(
        &self,
        device: &D,
    ) -> Result<Buffer<T, D>, LinalgError> {
        let entry = |i: usize| {
            let sign = start_of_lanczos::<T>(SAMPLES * self.squares.len() as u64 + i as u64);
            T::from_f64(T::EPSILON.to_f64() * self.squares[i].sqrt()) * sign
        };
        Ok(Buffer::from_vec(device, parallel::map(self.squares.len(), ROWS, entry))?)
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::Reference;

    use super::*;
    use crate::LinearOperator;
    use crate::comm::SingleRank;
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
        let system = PreconditionedSystem { a: &a, m: &m, b: &b, comm: &SingleRank };
        let r = buffer([1e-7, -1e-7, 1e-3, 0.0, 1e-7, 1e-16, -1e-16, 1.0]);
        let terms = RowTerms::of(&x, system).unwrap();
        let rest = terms.unexplained(&r).unwrap();
        assert_eq!(rest.as_slice(), [0.0, 0.0, 1e-3, 0.0, 1e-7, 0.0, 0.0, 1.0]);
        let rounding: Buffer<f64, _> = terms.rounding(&device).unwrap();
        let (large, small) = rounding.as_slice().split_at(4);
        assert!(large.iter().all(|r| (1e-8..1e-5).contains(&r.abs())), "{large:?}");
        assert!(small.iter().all(|r| (1e-17..1e-14).contains(&r.abs())), "{small:?}");
    }
}
