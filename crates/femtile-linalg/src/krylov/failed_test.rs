//! The acceptance test that an iterate failed, in words.

use std::fmt;

/// A test that an iterate must pass before a method reports convergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptanceTest {
    /// $\|b - A x\|_2 / \|b\|_2$.
    Residual,
    /// The residual over the right side, both as the preconditioner sees them.
    PreconditionedResidual,
    /// The same with the diagonal of A instead of the preconditioner.
    ScaledResidual,
    /// The estimate of the energy error over the energy norm of x.
    EnergyError,
}

/// The test that an iterate failed by the largest factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailedTest {
    /// The test.
    pub test: AcceptanceTest,
    /// The value found.
    pub value: f64,
    /// The largest value allowed, a multiple of the tolerance.
    pub bound: f64,
    /// The tolerance of the solve.
    pub tolerance: f64,
}

/// A smaller tolerance than this is worth asking for; at a larger one nothing of a solution is known.
const USELESS: f64 = 1e-2;

impl FailedTest {
    /// Returns the factor by which the value is too large.
    pub(super) fn ratio(&self) -> f64 {
        self.value / self.bound
    }

    /// Returns whether the value is too large.
    pub(super) fn is_failed(&self) -> bool {
        self.ratio() > 1.0
    }

    /// Returns the smallest tolerance at which the iterate passes the test.
    pub fn floor(&self) -> f64 {
        self.tolerance * self.ratio()
    }

    /// Returns what to do where rounding keeps the test from being passed.
    pub(super) fn advice(&self) -> String {
        let reason = match self.test {
            AcceptanceTest::Residual => "rounding allows no smaller residual",
            AcceptanceTest::PreconditionedResidual | AcceptanceTest::ScaledResidual => {
                "rows of large entries hide it from the plain residual, and rounding allows no less"
            }
            AcceptanceTest::EnergyError => {
                "an eigenvalue near zero makes a large error of a small residual, and rounding allows no smaller one"
            }
        };
        match self.floor() {
            floor if floor < USELESS => format!("{reason}: loosen the tolerance to {}", rounded_up(floor)),
            _ => format!("{reason}: to double precision the matrix is singular"),
        }
    }
}

/// Returns a number with one digit that is not smaller.
fn rounded_up(number: f64) -> String {
    let unit = 10f64.powf(number.log10().floor());
    format!("{:.0e}", (number / unit).ceil() * unit)
}

impl fmt::Display for FailedTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test, value, bound, .. } = self;
        let what = match test {
            AcceptanceTest::Residual => "‖b − Ax‖/‖b‖",
            AcceptanceTest::PreconditionedResidual => {
                "the preconditioned residual, over b preconditioned as well,"
            }
            AcceptanceTest::ScaledResidual => "the residual over the diagonal of A, relative to b over it,",
            AcceptanceTest::EnergyError => "the estimate of the error in the energy norm, relative to x,",
        };
        write!(f, "{what} is {value:.1e}, above {bound:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_a_tolerance_that_the_iterate_meets() {
        let mut failed =
            FailedTest { test: AcceptanceTest::Residual, value: 6.2e-9, bound: 2e-12, tolerance: 1e-12 };
        assert!(failed.advice().ends_with("loosen the tolerance to 4e-9"), "{}", failed.advice());
        assert_eq!(failed.to_string(), "‖b − Ax‖/‖b‖ is 6.2e-9, above 2.0e-12");
        failed.value = 1.0;
        assert!(failed.advice().ends_with("the matrix is singular"), "{}", failed.advice());
    }

    #[test]
    fn each_test_has_words_of_its_own() {
        let of = |test| FailedTest { test, value: 3e-5, bound: 5e-6, tolerance: 1e-6 };
        let tests = [
            (AcceptanceTest::Residual, "‖b − Ax‖/‖b‖", "rounding"),
            (AcceptanceTest::PreconditionedResidual, "preconditioned", "rows of large entries"),
            (AcceptanceTest::ScaledResidual, "diagonal", "rows of large entries"),
            (AcceptanceTest::EnergyError, "energy norm", "eigenvalue near zero"),
        ];
        for (test, what, advice) in tests {
            let (said, advised) = (of(test).to_string(), of(test).advice());
            assert!(said.contains(what) && said.ends_with("is 3.0e-5, above 5.0e-6"), "{said}");
            assert!(advised.contains(advice) && advised.ends_with("to 6e-6"), "{advised}");
        }
    }
}
