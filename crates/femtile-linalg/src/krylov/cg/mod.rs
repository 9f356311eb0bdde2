//! Conjugate gradients for symmetric positive definite operators.
//!
//! [`ConjugateGradient`] solves once with borrowed operators and vectors, [`CgSolver`] many times with its own. Both run
//! `device_run`: blocks of a `plan`, which end on the device or by the host's `watch`. [`CgSolver`] adds what only
//! pays when it is kept: recordings of whole solves, the number of iterations to expect, first guesses from earlier
//! solutions (`extrapolation`) and acceptance by sums that the device has left (`attempt`).

mod attempt;
mod config;
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod device_run;
mod extrapolation;
mod kernels;
mod plan;
mod recordings;
mod reference;
mod scalars;
mod solver;
mod start;
mod sums;
mod target;
mod vectors;
mod workspace;

use femtile_device::{Buffer, Scalar};

use super::Monitor;
use super::acceptance::{self, PreconditionedSystem};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use config::{CgOutcome, KrylovConfig};
pub use cuda::{product_hook, programs as cuda_programs};
pub use kernels::CgKernels;
pub(super) use plan::{Block, Plan};
pub use scalars::{CgHistory, CgProgress, CgScalars, CgStep};
pub(super) use scalars::{is_positive, keep};
pub use solver::CgSolver;
pub use sums::CgSums;
pub use target::Target;
pub use vectors::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish};
use workspace::Workspace;
pub use workspace::vector_bytes;

/// Preconditioned conjugate gradients, with all vector updates of an iteration in two passes.
///
/// $$ q = A p, \quad \alpha = \frac{r^\mathsf{T} z}{p^\mathsf{T} q}, \quad x \mathrel{+}= \alpha p, \quad
///    r \mathrel{-}= \alpha q, \quad z = M^{-1} r, \quad \beta = \frac{r_+^\mathsf{T} z_+}{r^\mathsf{T} z}, \quad
///    p = z + \beta p $$
///
/// With a preconditioner that is not fixed ([`Preconditioner::is_fixed`]), $\beta = -\alpha q^\mathsf{T} z_+ / r^\mathsf{T} z$,
/// which makes $p$ conjugate to the direction before whatever $z_+$ is.
///
/// # Cost
/// One product, and 10n values moved besides it with a diagonal preconditioner: the update of x waits
/// for the pass that reads p anyway, and z is never stored. The flexible $\beta$ reads 2n values more. A run
/// allocates r, p, q and, with a preconditioner that is not diagonal, z; [`CgSolver`] keeps them.
/// # Source
/// `[hestenes1952]`; flexible: `[notay2000]`, section 2, with one direction kept; fusing `[kronbichler2022]`, section 2.
/// Differs: x is updated together with p.
#[derive(Debug, Clone, Default)]
pub struct ConjugateGradient {
    config: KrylovConfig,
}

impl ConjugateGradient {
    /// Creates the method with the given settings.
    pub fn new(config: KrylovConfig) -> Self {
        Self { config }
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// The method ends in the first iteration whose residual is below the tolerance, and `x` is the iterate
    /// of that iteration, however rarely the host checks. It continues if the error may be larger than the
    /// residual suggests (docs/krylov-methods.md). A right side of zeros gives `x = 0` at once.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the vectors do not fit, [`LinalgError::Setting`] when the tolerance
    /// is not positive. Not converging is no error: see [`CgOutcome::stop`].
    pub fn solve<T: Scalar, D: CgKernels<T>, C: Communicator>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        m: &dyn Preconditioner<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        let system = PreconditionedSystem { a, m, b, comm };
        // The workspace of a run is freed before its iterate is judged, which needs vectors as well.
        acceptance::solve(x, system, &self.config, monitor, &mut |x, system, asked| {
            Workspace::new(b.device(), b.len(), m)?.run(x, system, asked)
        })
    }
}
