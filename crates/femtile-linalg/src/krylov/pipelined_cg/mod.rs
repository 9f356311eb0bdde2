//! Conjugate gradients with one reduction and one pass over memory per iteration.

mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;

use femtile_device::{Buffer, Scalar};

use super::acceptance::{self, PreconditionedSystem, Run, RunEnd};
use super::cg::{CgOutcome, CgStep, KrylovConfig, is_positive};
use super::residual::{norm, over_ranks_during, residual};
use super::watch::Watch;
use super::{Monitor, Preconditioning, Stop};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use cuda::program as cuda_program;
pub use kernels::{PipelinedCgKernels, PipelinedCgStep, PipelinedCgSums, PipelinedCgVectors};

/// Pipelined conjugate gradients, preconditioned: all updates and all sums of an iteration in one pass.
///
/// $$ m = M^{-1} w, \quad n = A m, \quad \beta = \frac{r^\mathsf{T} u}{(r^\mathsf{T} u)_-}, \quad
///    \alpha = \frac{r^\mathsf{T} u}{w^\mathsf{T} u - \beta\, r^\mathsf{T} u / \alpha_-}, $$
///
/// then the updates of [`PipelinedCgKernels::pipelined_cg_update`]. In exact arithmetic $u = M^{-1} r$, $w = A u$ and
/// the iterates are those of [`ConjugateGradient`](super::cg::ConjugateGradient). In floating point the
/// recurrences of r, w, s and z drift away from the vectors that they define: the method reaches a lower accuracy than
/// plain conjugate gradients.
///
/// The recurrences are therefore restarted (residual replacement). If the recurred residual is below the
/// tolerance, or the method breaks down after the first step, $b - A x$ is computed. Within twice the
/// tolerance the method has converged. Else all recurrences restart from it, if the residual has at least
/// halved since the last restart. Else the method has [stagnated](Stop::Stagnated) or [broken
/// down](Stop::Breakdown). At a restart the history has the computed residual.
///
/// With several ranks, the sums of an iteration overlap with the preconditioner and the product of the next
/// one. On one rank the host learns the sums first, which saves a product at the end.
///
/// # Cost
/// One product, one application of $M^{-1}$ and one reduction of three sums per iteration. In addition, 7n
/// values are read and 6n written without a preconditioner, 8n and 7n with a diagonal, 10n and 8n with any
/// other.
/// # Source
/// `[ghysels2014]`, Alg. 4; `[kronbichler2022]`, Alg. 2 and Table 1. Differs: u and q are not kept if M is
/// diagonal; the recurrences restart as said above. Line 4 of the latter prints $\beta_k \alpha_{k-1}$
/// instead of $\beta_k \gamma_{k-1} / \alpha_{k-1}$.
#[derive(Debug, Clone, Default)]
pub struct PipelinedCg {
    config: KrylovConfig,
}

/// The square of the factor by which the computed residual may exceed the tolerance if the recurred residual
/// does not.
const SLACK: f64 = 4.0;

/// Factor by which r·r must have fallen since the last restart for another one.
const GAIN: f64 = 0.25;

impl PipelinedCg {
    /// Creates the method with the given settings; [`KrylovConfig::look_every`] has no meaning for it.
    pub fn new(config: KrylovConfig) -> Self {
        Self { config }
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// A right side of zeros gives `x = 0` at once.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the vectors do not fit, [`LinalgError::Setting`] when the tolerance is not positive
    /// or the preconditioner is no [fixed](Preconditioner::is_fixed) map. Not converging is no error: see
    /// [`CgOutcome::stop`].
    pub fn solve<T: Scalar, D: PipelinedCgKernels<T>, C: Communicator>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        m: &dyn Preconditioner<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        if !m.is_fixed() {
            let message =
                "pipelined conjugate gradients need the same map in every iteration; use plain ones".into();
            return Err(LinalgError::Setting { field: "preconditioner", message });
        }
        let system = PreconditionedSystem { a, m, b, comm };
        acceptance::solve(x, system, &self.config, monitor, &mut run)
    }
}

/// Runs from `x` until the recurrence meets the tolerance.
fn run<T: Scalar, D: PipelinedCgKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    PreconditionedSystem { a, m, b, comm }: PreconditionedSystem<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
) -> Result<RunEnd, LinalgError> {
    let mut recurrences = Recurrences::new(a, m, b, comm)?;
    let r_norm = recurrences.residual(x)?;
    let (mut watch, mut stop) = Watch::begin(&config, b_norm, r_norm * r_norm, monitor);
    m.set_residual_norm(r_norm);
    if stop.is_continue() {
        recurrences.begin(r_norm * r_norm)?;
    }
    while stop.is_continue() {
        let ended = recurrences.iterate(x, &mut watch)?;
        stop = watch.end_if(ended, monitor);
    }
    Ok(watch.end(stop, None))
}

/// The recurrences of a run.
struct Recurrences<'a, T: Scalar, D: PipelinedCgKernels<T>, C> {
    a: &'a dyn LinearOperator<T, D>,
    m: &'a dyn Preconditioner<T, D>,
    b: &'a Buffer<T, D>,
    comm: &'a C,
    by: Preconditioning<'a, T, D>,
    v: PipelinedCgVectors<T, D>,
    sums: PipelinedCgSums,
    /// α and r·u of the iteration before, unless the recurrences have just begun.
    before: Option<(f64, f64)>,
    /// r·r at the start of the recurrences.
    r_dot_r_begun: f64,
}

impl<'a, T: Scalar, D: PipelinedCgKernels<T>, C: Communicator> Recurrences<'a, T, D, C> {
    fn new(
        a: &'a dyn LinearOperator<T, D>,
        m: &'a dyn Preconditioner<T, D>,
        b: &'a Buffer<T, D>,
        comm: &'a C,
    ) -> Result<Self, LinalgError> {
        let by = Preconditioning::of(m)?;
        let v = PipelinedCgVectors::zeros(b.device(), b.len(), by)?;
        let sums = PipelinedCgSums::default();
        Ok(Self { a, m, b, comm, by, v, sums, before: None, r_dot_r_begun: 0.0 })
    }

    /// r = b − A x and its norm.
    fn residual(&mut self, x: &Buffer<T, D>) -> Result<f64, LinalgError> {
        residual(&mut self.v.r, self.a, x, self.b)?;
        norm(&self.v.r, self.comm)
    }

    /// Begins all recurrences from r.
    fn begin(&mut self, r_dot_r: f64) -> Result<(), LinalgError> {
        let (v, device) = (&mut self.v, self.b.device());
        for direction in [&mut v.p, &mut v.s, &mut v.z, &mut v.q] {
            device.fill(direction, T::ZERO)?;
        }
        let u = match self.by {
            Preconditioning::Identity => &v.r,
            Preconditioning::Diagonal(_) => {
                self.m.apply(&mut v.m, &v.r)?;
                &v.m
            }
            Preconditioning::General => {
                self.m.apply(&mut v.u, &v.r)?;
                &v.u
            }
        };
        self.a.apply(&mut v.w, u)?;
        let (r_dot_u, w_dot_u) = (device.dot(&v.r, u)?, device.dot(&v.w, u)?);
        let sums = PipelinedCgSums { r_dot_r: 0.0, r_dot_u, w_dot_u };
        let has_m = matches!(self.by, Preconditioning::Identity);
        self.sums = PipelinedCgSums { r_dot_r, ..self.total(sums, has_m)? };
        (self.before, self.r_dot_r_begun) = (None, r_dot_r);
        Ok(())
    }

    /// Returns whether the product of an iteration is computed before its sums are known.
    fn is_ahead(&self) -> bool {
        self.comm.n_ranks() > 1
    }

    /// n = A m.
    fn product(&mut self) -> Result<(), LinalgError> {
        let v = &mut self.v;
        let m = if matches!(self.by, Preconditioning::Identity) { &v.w } else { &v.m };
        self.a.apply(&mut v.n, m)
    }

    /// The sums over all ranks, in one reduction, during which m = M⁻¹w, unless it is there, and the next product are computed.
    fn total(&mut self, sums: PipelinedCgSums, has_m: bool) -> Result<PipelinedCgSums, LinalgError> {
        let (comm, device) = (self.comm, self.b.device().clone());
        let PipelinedCgSums { r_dot_r, r_dot_u, w_dot_u } = sums;
        let mut next = || {
            if !has_m {
                self.m.apply(&mut self.v.m, &self.v.w)?;
            }
            if self.is_ahead() { self.product() } else { Ok(()) }
        };
        let sums = over_ranks_during(&device, &[r_dot_r, r_dot_u, w_dot_u], comm, &mut next)?;
        Ok(PipelinedCgSums { r_dot_r: sums[0], r_dot_u: sums[1], w_dot_u: sums[2] })
    }

    /// Computes one iteration; returns why it ends the method, if it does.
    fn iterate(&mut self, x: &mut Buffer<T, D>, watch: &mut Watch<'_>) -> Result<Option<Stop>, LinalgError> {
        let step = match step(self.sums, self.before) {
            Ok(step) => step,
            Err(breakdown) if self.before.is_none() => return Ok(Some(breakdown)),
            Err(breakdown) => return self.restart(x, watch, breakdown),
        };
        if !self.is_ahead() {
            self.product()?;
        }
        self.before = Some((step.alpha, self.sums.r_dot_u));
        watch.history.steps.push(CgStep { rho: self.sums.r_dot_u, alpha: step.alpha });
        let device = self.b.device();
        let sums = device.pipelined_cg_update(x, &mut self.v, self.by, step)?;
        // Where M is diagonal the update has computed m.
        self.sums = self.total(sums, !matches!(self.by, Preconditioning::General))?;
        let r_dot_r = self.sums.r_dot_r;
        if !r_dot_r.is_finite() {
            return Ok(Some(Stop::Breakdown { quantity: "r·r", value: r_dot_r }));
        }
        watch.history.r_dot_r.push(r_dot_r);
        match watch.verdict() {
            Some(Stop::Converged) => self.restart(x, watch, Stop::Converged),
            other => Ok(other),
        }
    }

    /// Computes the true residual after the recurrences have ended; restarts them or ends the method.
    fn restart(
        &mut self,
        x: &Buffer<T, D>,
        watch: &mut Watch<'_>,
        ended: Stop,
    ) -> Result<Option<Stop>, LinalgError> {
        let r_dot_r = self.residual(x)?.powi(2);
        if ended == Stop::Converged && watch.is_met(r_dot_r / SLACK) {
            return Ok(Some(Stop::Converged));
        }
        if r_dot_r.is_finite() {
            watch.correct(r_dot_r);
        }
        if watch.is_met(r_dot_r) {
            return Ok(Some(Stop::Converged));
        }
        let has_gained = r_dot_r <= GAIN * self.r_dot_r_begun;
        match ended {
            Stop::Converged if !has_gained => Ok(Some(Stop::Stagnated)),
            breakdown if !has_gained => Ok(Some(breakdown)),
            _ => {
                watch.history.steps.clear();
                self.begin(r_dot_r)?;
                Ok(watch.verdict())
            }
        }
    }
}

/// α and β from the sums, and from α and r·u of the iteration before; or which of them is not positive.
fn step(sums: PipelinedCgSums, before: Option<(f64, f64)>) -> Result<PipelinedCgStep, Stop> {
    let PipelinedCgSums { r_dot_u, w_dot_u, .. } = sums;
    let (beta, p_dot_ap, name) = match before {
        None => (0.0, w_dot_u, "p·Ap"),
        Some((alpha, r_dot_u_before)) => {
            let beta = r_dot_u / r_dot_u_before;
            (beta, w_dot_u - beta * r_dot_u / alpha, Stop::RECURRED)
        }
    };
    for (quantity, value) in [("r·u", r_dot_u), (name, p_dot_ap)] {
        if !is_positive(value) {
            return Err(Stop::Breakdown { quantity, value });
        }
    }
    Ok(PipelinedCgStep { alpha: r_dot_u / p_dot_ap, beta })
}
