//! Conjugate gradients whose vector work happens inside the loop of the operator.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
#[allow(unsafe_code)]
mod products;
mod reference;
mod scalars;

use femtile_device::{Buffer, Scalar};

use super::Monitor;
use super::acceptance::{self, Run, RunEnd, System};
use super::cg::{CgOutcome, KrylovConfig};
use super::residual::norm;
use super::watch::Watch;
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner, error::need};
pub use kernels::{MergedCgKernels, MergedVectors};
pub use scalars::MergedScalars;

/// Conjugate gradients with a diagonal preconditioner and one pass over all vectors per iteration.
///
/// $$ r \mathrel{-}= \alpha v, \quad p = D^{-1} r + \beta p, \quad v = A p $$
///
/// and, from seven sums $\gamma = r^\mathsf{T} r$, $a = p^\mathsf{T} v$, $b = r^\mathsf{T} v$, $c = v^\mathsf{T} v$,
/// $d = r^\mathsf{T} D^{-1} r$, $e = r^\mathsf{T} D^{-1} v$, $f = v^\mathsf{T} D^{-1} v$,
///
/// $$ \alpha = \frac{d}{a}, \quad \beta = \frac{d - 2 \alpha e + \alpha^2 f}{d}, \quad
///    \|r_+\|^2 = \gamma - 2 \alpha b + \alpha^2 c. $$
///
/// x takes two steps at once in every other iteration; the previous direction is $(p - D^{-1} r) / \beta$. If
/// the operator has a loop that others may join ([`LinearOperator::merged`]), updates are done just before it
/// first reads a range, and sums just after it last writes one.
///
/// The predicted $\|r_+\|$ ends the method only if rounding cannot have caused it; else the next iteration
/// computes r itself. A step that shrinks the residual a lot leaves no $\beta$ to divide by: x then takes it
/// alone.
///
/// # Cost
/// At best 3.5 reads and 3.5 writes of a vector, and one read of the diagonal, including the product; one sum
/// over ranks.
/// # Source
/// `[kronbichler2022]`, Algorithms 4 and 5.
#[derive(Debug, Clone, Default)]
pub struct MergedCg {
    config: KrylovConfig,
}

impl MergedCg {
    /// Creates the method with the given settings.
    pub fn new(config: KrylovConfig) -> Self {
        Self { config }
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// # Errors
    /// As [`super::cg::ConjugateGradient::solve`], and [`LinalgError::Setting`] if `m` is not diagonal.
    pub fn solve<T: Scalar, D: MergedCgKernels<T>, C: Communicator>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        m: &dyn Preconditioner<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        let diagonal = m.shared_diagonal().ok_or_else(not_diagonal)?;
        need("diagonal", a.n_rows(), diagonal.0.len() * diagonal.1)?;
        let system = System { a, m, b, comm };
        acceptance::solve(x, system, &self.config, monitor, &mut run)
    }
}

/// Runs from `x` until the recurrence meets the tolerance.
fn run<T: Scalar, D: MergedCgKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    System { a, m, b, comm }: System<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
) -> Result<RunEnd, LinalgError> {
    let diagonal = m.shared_diagonal().ok_or_else(not_diagonal)?;
    let device = b.device().clone();
    let threshold = (config.tolerance * b_norm).powi(2);
    let scalars = MergedScalars::new(&device, threshold, config.max_iterations, b.len())?;
    let vectors = MergedVectors::new(x, a, b)?;
    let r_norm = norm(&vectors.r, comm)?;
    let (mut watch, stop) = Watch::begin(&config, b_norm, r_norm * r_norm, monitor);
    let mut state = (vectors, scalars);
    let iteration = |(vectors, scalars): &mut (MergedVectors<T, D>, MergedScalars<D>)| {
        device.merged_cg_pass(x, vectors, a, diagonal, scalars)?;
        comm.sum(&mut scalars.sums)?;
        device.merged_cg_step(scalars)
    };
    let on_device = (&device, device.cg_stride(), comm.n_ranks() == 1);
    let stop = watch.iterate((stop, monitor), on_device, &mut state, |state| &mut state.1.base, iteration)?;
    let (vectors, scalars) = state;
    device.merged_cg_finish(x, &vectors, diagonal, &scalars)?;
    Ok(watch.end(stop, None))
}

fn not_diagonal() -> LinalgError {
    let message =
        "merged conjugate gradients take a diagonal preconditioner; with another one use plain ones";
    LinalgError::Setting { field: "preconditioner", message: message.to_owned() }
}
