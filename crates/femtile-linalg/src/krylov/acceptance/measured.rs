//! The tests of an iterate from numbers that the device has summed.

use super::verdict::{ENERGY_SLACK, PRECONDITIONED_SLACK};
use super::{RESIDUAL_SLACK, Size};
use crate::krylov::cg::CgStep;
use crate::krylov::energy::energy_error;

/// The numbers of an iterate whose computed residual is not far from the recurred one.
pub(in crate::krylov) struct Measured<'a> {
    /// The tolerance, relative to $\|b\|_2$.
    pub tolerance: f64,
    pub b_norm: f64,
    /// $\|b - A x\|_2$, computed.
    pub r_norm: f64,
    /// The same by the recurrence.
    pub recurred: f64,
    /// The residual and the right side, as each of the preconditioners sees them that test 2 asks.
    pub sizes: [Option<[Size; 2]>; 2],
    /// $r^\mathsf{T} M^{-1} r$.
    pub rho: f64,
    pub steps: &'a [CgStep],
    /// At most the smallest Ritz value that is known of $M^{-1} A$.
    pub smallest_ritz: f64,
    /// $\|x\|_A$.
    pub energy_norm: f64,
}

impl Measured<'_> {
    /// Returns the bound of the energy error if all tests of [`super::solve`] are passed without allowance
    /// for rounding.
    pub fn accepted(&self) -> Option<f64> {
        let tolerance = self.tolerance;
        let is_rounded = self.r_norm > RESIDUAL_SLACK * self.recurred.max(tolerance * self.b_norm);
        let of_residual = self.r_norm / (RESIDUAL_SLACK * tolerance * self.b_norm);
        let of_sizes = self.sizes.iter().flatten().map(|[of_r, of_b]| of_r.over(*of_b)).fold(0.0, f64::max);
        let error = energy_error(self.steps, self.rho, self.smallest_ritz);
        let passes = !is_rounded
            && of_residual <= 1.0
            && of_sizes <= PRECONDITIONED_SLACK * tolerance
            && error <= ENERGY_SLACK[0] * tolerance * self.energy_norm;
        passes.then_some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(r: f64, b: f64) -> Option<[Size; 2]> {
        Some([r, b].map(|norm| Size { rho: norm * norm, z_norm: norm }))
    }

    fn accepted(change: impl FnOnce(&mut Measured<'_>)) -> bool {
        let mut measured = Measured {
            tolerance: 1e-6,
            b_norm: 1.0,
            r_norm: 1e-6,
            recurred: 0.9e-6,
            sizes: [sized(1e-6, 1.0), None],
            rho: 1e-12,
            steps: &[],
            smallest_ritz: 0.1,
            energy_norm: 1.0,
        };
        change(&mut measured);
        measured.accepted().is_some()
    }

    #[test]
    fn each_test_refuses_alone() {
        assert!(accepted(|_| ()));
        assert!(!accepted(|m| m.r_norm = 2.1e-6), "the residual");
        assert!(!accepted(|m| m.sizes[0] = sized(6e-6, 1.0)), "the preconditioned residual");
        assert!(!accepted(|m| m.sizes[1] = sized(6e-6, 1.0)), "the residual by the diagonal");
        assert!(!accepted(|m| m.smallest_ritz = 1e-4), "the energy error");
        let numbers = |m: &mut Measured<'_>, which: usize| match which {
            0 => m.r_norm = f64::NAN,
            1 => m.rho = f64::NAN,
            _ => m.energy_norm = f64::NAN,
        };
        for which in 0..3 {
            assert!(!accepted(|m| numbers(m, which)), "a NaN");
        }
    }
}
