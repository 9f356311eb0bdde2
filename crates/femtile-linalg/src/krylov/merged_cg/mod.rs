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

use std::collections::VecDeque;

use femtile_device::{Buffer, Scalar};

use super::Monitor;
use super::acceptance::{self, PreconditionedSystem, Run, RunEnd};
use super::cg::{Block, CgHistory, CgOutcome, CgProgress, KrylovConfig, Plan};
use super::residual::norm;
use super::watch::{Rounds, Watch};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner, error::need};
pub use cuda::program as cuda_program;
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
        let system = PreconditionedSystem { a, m, b, comm };
        acceptance::solve(x, system, &self.config, monitor, &mut run)
    }
}

/// Runs from `x` until the recurrence meets the tolerance.
fn run<T: Scalar, D: MergedCgKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    PreconditionedSystem { a, m, b, comm }: PreconditionedSystem<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
) -> Result<RunEnd, LinalgError> {
    let diagonal = m.shared_diagonal().ok_or_else(not_diagonal)?;
    let device = b.device().clone();
    let threshold = (config.tolerance * b_norm).powi(2);
    let scalars = MergedScalars::new(&device, threshold, config.max_iterations, b.len())?;
    let vectors = MergedVectors::new(x, a, b)?;
    let r_norm = norm(&vectors.r, comm)?;
    let (mut watch, stop) = Watch::begin(&config, b_norm, r_norm * r_norm, monitor);
    let mut plan = Plan::alone(&config, device.cg_stride(), false);
    let recording = D::Recording::default();
    let mut passes = Passes { x, vectors, a, diagonal, scalars, comm, recording };
    let stop = watch.iterate((stop, monitor), (&mut plan, VecDeque::new()), &mut passes)?;
    let Passes { x, vectors, scalars, .. } = passes;
    device.merged_cg_finish(x, &vectors, diagonal, &scalars)?;
    Ok(watch.end(stop, None))
}

/// The iterations of a run.
struct Passes<'a, T: Scalar, D: MergedCgKernels<T>, C> {
    x: &'a mut Buffer<T, D>,
    vectors: MergedVectors<T, D>,
    a: &'a dyn LinearOperator<T, D>,
    diagonal: (&'a Buffer<T, D>, usize),
    scalars: MergedScalars<D>,
    comm: &'a C,
    recording: D::Recording,
}

impl<T: Scalar, D: MergedCgKernels<T>, C: Communicator> Rounds for Passes<'_, T, D, C> {
    type Poll = D::Readback;

    /// Records the iterations, unless the host takes part in sums over ranks.
    fn launch(&mut self, block: Block) -> Result<D::Readback, LinalgError> {
        let Self { x, vectors, a, diagonal, scalars, comm, recording } = self;
        let device = x.device().clone();
        let mut pass = || {
            device.merged_cg_pass(x, vectors, *a, *diagonal, scalars)?;
            comm.sum(&mut scalars.sums)?;
            device.merged_cg_step(scalars)
        };
        match comm.n_ranks() {
            1 => device.repeat(recording, block.iterations, &mut pass)?,
            _ => (0..block.iterations).try_for_each(|_| pass())?,
        }
        Ok(scalars.base.state.begin_read()?)
    }

    fn read(&mut self, poll: D::Readback, history: &mut CgHistory) -> Result<CgProgress, LinalgError> {
        let state = self.x.device().end_read(poll)?;
        Ok(self.scalars.base.progress(&state, history)?)
    }
}

fn not_diagonal() -> LinalgError {
    let message =
        "merged conjugate gradients take a diagonal preconditioner; with another one use plain ones";
    LinalgError::Setting { field: "preconditioner", message: message.to_owned() }
}
