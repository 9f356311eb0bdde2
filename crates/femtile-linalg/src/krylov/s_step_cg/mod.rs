//! Conjugate gradients, several steps at once.
//!
//! A block is one Gram matrix: the previous directions and the basis, each with the basis (`gram`).
//! Directions, W and steps follow from it on the host, so ranks sum once per block. With several ranks, r·r
//! of the previous block is summed together with it. Convergence is therefore seen one basis later, from sums
//! with the same bits on all ranks.

mod config;
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod gram;
mod kernels;
mod reference;
mod small;

use std::ops::ControlFlow;

use femtile_device::{Buffer, Scalar};

use super::acceptance::{self, PreconditionedSystem, Run, RunEnd};
use super::cg::CgOutcome;
use super::residual::{fits, over_ranks};
use super::watch::Watch;
use super::{Monitor, Preconditioning, Stop};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use config::{MAX_STEPS, SStepCgConfig};
pub use cuda::programs as cuda_programs;
use gram::Conjugated;
pub use gram::{GramRows, SStepGram};
pub use kernels::SStepCgKernels;
use small::Factor;
pub use small::SmallMatrix;

/// s-step conjugate gradients: s steps are taken at once, in a block of directions made from a monomial basis.
///
/// $$ T = [t, D^{-1}A t, \dots, (D^{-1}A)^s t], \quad t = D^{-1} r, \quad B = -W_-^{-1} C, \quad
///    C = P_-^\mathsf{T} A R, \quad P = R + P_- B, $$
/// $$ W = P^\mathsf{T} A P = R^\mathsf{T} A R - C^\mathsf{T} W_-^{-1} C, \quad
///    W a = P^\mathsf{T} r = R^\mathsf{T} r + B^\mathsf{T} P_-^\mathsf{T} r, $$
/// $$ W_- a_- = P_-^\mathsf{T} r, \quad x \mathrel{+}= P a + P_- a_-, \quad r = b - A x, $$
///
/// with $R$ the first s columns of $T$ and $A R$ its last s times $D$. All sums are inner products of $P_-$
/// and $T$ with $D T$, so one pass and one reduction give them before $P$ exists. $P_-^\mathsf{T} r$ is
/// rounding. In exact arithmetic the method finds every s-th iterate of
/// [`ConjugateGradient`](super::cg::ConjugateGradient). In floating point the columns of $T$ turn towards one
/// eigenvector and $W$ loses its definiteness, the sooner the larger s and the condition number: above s = 3
/// the method is for well-conditioned systems.
///
/// The residual is always computed from x, not by a recurrence. If a pivot of $W$ is no larger than rounding
/// of its diagonal entry, the block is computed without $P_-$ if that allows more steps; the same sums show
/// this. If the block is still cut, the recurrence ends: the next one restarts without $P$. If the residual
/// has not halved since the last such restart, the method has [broken down](Stop::Breakdown). Iterations are
/// counted in steps; within a block the residual is not computed, and NaN in [`CgOutcome::residuals`].
///
/// The preconditioner is diagonal or the identity. The host learns the sums of a pass before it starts the
/// next one.
///
/// # Cost
/// s + 1 products and 1 reduction per s steps, and one reduction at the start. On several ranks
/// $r^\mathsf{T} r$ is summed with the next block, so convergence is seen after s more products; on one rank
/// it is seen at once. Besides the products 4 + 4/s values are read and 1 + 2/s written per unknown and step;
/// with a diagonal, 2 + 2/s and 1 more.
/// # Source
/// `[chronopoulos1989]`; `[kronbichler2022]`, Alg. 3 and Table 1. Differs: Jacobi's preconditioner by the
/// inner product of $D$; $W$ and $P^\mathsf{T} r$ from sums of the basis, not of $P$, so that one reduction
/// suffices; steps along $P_-$ again, which undo rounding; blocks are cut as said above; the last block is
/// shorter if it would exceed the limit of iterations.
#[derive(Debug, Clone, Default)]
pub struct SStepCg {
    config: SStepCgConfig,
}

/// A block may be cut if r·r has fallen by this factor since the last start.
const GAIN: f64 = 0.25;

/// Multiple of the machine epsilon, relative to the diagonal entry, below which a pivot counts as rounding.
const ROUNDINGS: f64 = 64.0;

impl SStepCg {
    /// Creates the method with the given settings.
    pub fn new(config: SStepCgConfig) -> Self {
        Self { config }
    }

    /// Returns the settings.
    pub fn config(&self) -> &SStepCgConfig {
        &self.config
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// A right side of zeros gives `x = 0` at once.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the vectors do not fit, [`LinalgError::Setting`] when a setting is out of its range
    /// or the preconditioner is not diagonal. Not converging is no error: see [`CgOutcome::stop`].
    pub fn solve<T: Scalar, D: SStepCgKernels<T>, C: Communicator>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        m: &dyn Preconditioner<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        self.config.check()?;
        fits(a, x, b)?;
        let d = match Preconditioning::of(m)? {
            Preconditioning::Identity => None,
            Preconditioning::Diagonal(d) => Some(d),
            Preconditioning::General => {
                let message = "s-step conjugate gradients take a diagonal or none; use plain ones".into();
                return Err(LinalgError::Setting { field: "preconditioner", message });
            }
        };
        let steps = self.config.steps;
        let system = PreconditionedSystem { a, m, b, comm };
        acceptance::solve(x, system, &self.config.cg, monitor, &mut |x, system, asked| {
            run(x, system, asked, d, steps)
        })
    }
}

/// Runs from `x` until the residual meets the tolerance.
fn run<T: Scalar, D: SStepCgKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    PreconditionedSystem { a, b, comm, .. }: PreconditionedSystem<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
    inverse_diagonal: Option<&Buffer<T, D>>,
    steps: usize,
) -> Result<RunEnd, LinalgError> {
    let mut blocks = Blocks::new(a, inverse_diagonal, b, comm, steps)?;
    let r_dot_r = blocks.residual(x)?;
    let r_dot_r = over_ranks(b.device(), &[r_dot_r], comm)?[0];
    blocks.r_dot_r_begun = r_dot_r;
    let (mut watch, mut stop) = Watch::begin(&config, b_norm, r_dot_r, monitor);
    let mut unknown: Option<Taken> = None;
    while stop.is_continue() {
        let n_done = watch.iteration() + unknown.map_or(0, |taken| taken.n_steps);
        let n_left = config.max_iterations - n_done;
        let (gram, r_dot_r) = blocks.gram(steps.min(n_left), unknown.map(|taken| taken.r_dot_r))?;
        if let Some(taken) = unknown.take() {
            stop = blocks.judge(taken, r_dot_r, &mut watch, monitor);
            if stop.is_break() {
                break;
            }
        }
        match blocks.take(x, &gram, steps.min(n_left))? {
            Err(breakdown) => {
                stop = watch.end_if(Some(breakdown), monitor);
            }
            // The verdict comes at once if it costs no further reduction, or no block follows.
            Ok(taken) if comm.n_ranks() == 1 || taken.n_steps == n_left => {
                let r_dot_r = over_ranks(b.device(), &[taken.r_dot_r], comm)?[0];
                stop = blocks.judge(taken, r_dot_r, &mut watch, monitor);
            }
            Ok(taken) => unknown = Some(taken),
        }
    }
    Ok(watch.end(stop, None))
}

/// A block of steps that x has taken.
#[derive(Debug, Clone, Copy)]
struct Taken {
    n_steps: usize,
    /// r·r after it, of this rank.
    r_dot_r: f64,
    /// The pivot that it was cut at, if it was.
    bad_pivot: Option<f64>,
}

/// The blocks of a run.
struct Blocks<'a, T: Scalar, D: SStepCgKernels<T>, C> {
    a: &'a dyn LinearOperator<T, D>,
    inverse_diagonal: Option<&'a Buffer<T, D>>,
    b: &'a Buffer<T, D>,
    comm: &'a C,
    t: Vec<Buffer<T, D>>,
    p: Vec<Buffer<T, D>>,
    /// A product before D⁻¹ is applied, or A x.
    v: Buffer<T, D>,
    /// W of the directions before; of rank 0 if there are none.
    before: Factor,
    /// r·r at the start of the directions.
    r_dot_r_begun: f64,
}

impl<'a, T: Scalar, D: SStepCgKernels<T>, C: Communicator> Blocks<'a, T, D, C> {
    fn new(
        a: &'a dyn LinearOperator<T, D>,
        inverse_diagonal: Option<&'a Buffer<T, D>>,
        b: &'a Buffer<T, D>,
        comm: &'a C,
        steps: usize,
    ) -> Result<Self, LinalgError> {
        let zeros = |count: usize| -> Result<Vec<_>, LinalgError> {
            (0..count).map(|_| Ok(Buffer::zeros(b.device(), b.len())?)).collect()
        };
        let (t, p, v) = (zeros(steps + 1)?, zeros(steps)?, Buffer::zeros(b.device(), b.len())?);
        Ok(Self { a, inverse_diagonal, b, comm, t, p, v, before: Factor::default(), r_dot_r_begun: 0.0 })
    }

    /// t₀ = D⁻¹(b − A x); returns r·r of this rank.
    fn residual(&mut self, x: &Buffer<T, D>) -> Result<f64, LinalgError> {
        self.a.apply(&mut self.v, x)?;
        self.b.device().s_step_residual(&mut self.t[0], self.b, &self.v, self.inverse_diagonal)
    }

    /// The basis behind t₀.
    fn expand(&mut self, n_steps: usize) -> Result<(), LinalgError> {
        let device = self.b.device();
        for j in 0..n_steps {
            let (known, next) = self.t.split_at_mut(j + 1);
            match self.inverse_diagonal {
                None => self.a.apply(&mut next[0], &known[j])?,
                Some(d) => {
                    self.a.apply(&mut self.v, &known[j])?;
                    device.scale_by(&mut next[0], d, &self.v)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the sums of the next block and, if the local r·r is given, its global sum, in one reduction.
    fn gram(&mut self, n_steps: usize, r_dot_r: Option<f64>) -> Result<(SStepGram, f64), LinalgError> {
        self.expand(n_steps)?;
        let (device, n_before) = (self.b.device(), self.before.rank);
        let (p, t) = (&self.p[..n_before], &self.t[..=n_steps]);
        let mut sums = device.s_step_gram(p, t, self.inverse_diagonal)?.values(n_before, n_steps);
        let n_sums = sums.len();
        sums.extend(r_dot_r);
        let sums = over_ranks(device, &sums, self.comm)?;
        let r_dot_r = sums.get(n_sums).copied().unwrap_or(f64::NAN);
        Ok((SStepGram::from_values(&sums, n_before, n_steps), r_dot_r))
    }

    /// Takes up to `n_steps` steps at once, or says why that is not possible.
    fn take(
        &mut self,
        x: &mut Buffer<T, D>,
        gram: &SStepGram,
        n_steps: usize,
    ) -> Result<Result<Taken, Stop>, LinalgError> {
        let tolerance = ROUNDINGS * T::EPSILON.to_f64();
        let (mut block, mut bad_pivot) = Conjugated::new(gram, &self.before, n_steps, tolerance);
        if bad_pivot.is_some() && self.before.rank > 0 {
            let (other, other_pivot) = Conjugated::new(gram, &Factor::default(), n_steps, tolerance);
            if other.factor.rank > block.factor.rank {
                (block, bad_pivot, self.before) = (other, other_pivot, Factor::default());
            }
        }
        let n_steps = block.factor.rank;
        if n_steps == 0 {
            return Ok(Err(Stop::Breakdown { quantity: "p·Ap", value: gram.basis[0][1] }));
        }
        let (device, r) = (self.b.device(), &self.t[..n_steps]);
        let (a, a_before) = (&block.a[..n_steps], &block.a_before[..self.before.rank]);
        device.s_step_update(x, &mut self.p, r, &block.b, a, a_before)?;
        // After a block that was cut the method restarts.
        self.before = if bad_pivot.is_some() { Factor::default() } else { block.factor };
        Ok(Ok(Taken { n_steps, r_dot_r: self.residual(x)?, bad_pivot }))
    }

    /// Notes the residual after a block, and decides whether the method continues.
    fn judge(
        &mut self,
        taken: Taken,
        r_dot_r: f64,
        watch: &mut Watch<'_>,
        monitor: &mut dyn Monitor,
    ) -> ControlFlow<Stop> {
        let ended = if r_dot_r.is_finite() {
            watch.history.r_dot_r.extend(std::iter::repeat_n(f64::NAN, taken.n_steps - 1));
            watch.history.r_dot_r.push(r_dot_r);
            let verdict = watch.verdict();
            match taken.bad_pivot {
                Some(pivot) if verdict != Some(Stop::Converged) => self.restart(pivot, r_dot_r).or(verdict),
                _ => verdict,
            }
        } else {
            Some(Stop::Breakdown { quantity: "r·r", value: r_dot_r })
        };
        watch.end_if(ended, monitor)
    }

    /// Restarts after a block that was cut at this pivot; breaks down if the residual has hardly fallen since
    /// the last restart.
    fn restart(&mut self, pivot: f64, r_dot_r: f64) -> Option<Stop> {
        if r_dot_r > GAIN * self.r_dot_r_begun {
            return Some(Stop::Breakdown { quantity: Stop::BLOCK_PIVOT, value: pivot });
        }
        self.r_dot_r_begun = r_dot_r;
        None
    }
}
