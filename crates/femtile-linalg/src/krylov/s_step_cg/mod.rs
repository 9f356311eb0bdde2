//! Conjugate gradients, several steps at once.

mod config;
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;
mod small;

use femtile_device::{Buffer, Scalar};

use super::acceptance::{self, Run, RunEnd, System};
use super::cg::{CgOutcome, CgProgress};
use super::residual::{fits, over_ranks};
use super::watch::Watch;
use super::{Monitor, Preconditioning, Stop};
use crate::comm::Communicator;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use config::{MAX_STEPS, SStepCgConfig};
pub use kernels::{SStepCgKernels, SStepSums};
use small::Factor;
pub use small::{SmallMatrix, SmallVector};

/// s-step conjugate gradients: s steps are taken at once, in a block of directions made from a monomial basis.
///
/// $$ T = [t, D^{-1}A t, \dots, (D^{-1}A)^s t], \quad t = D^{-1} r, \quad B = -W_-^{-1} P_-^\mathsf{T} A R, \quad
///    P = R + P_- B, $$
/// $$ W = P^\mathsf{T} A P, \quad W a = P^\mathsf{T} r, \quad x \mathrel{+}= P a, \quad r = b - A x, $$
///
/// with $R$ the first s columns of $T$ and $A R$ its last s times $D$. In exact arithmetic every s-th iterate of
/// [`ConjugateGradient`](super::cg::ConjugateGradient) is found. In floating point the columns of $T$ turn towards one
/// eigenvector and $W$ loses its definiteness, the sooner the larger s and the condition number: above s = 3 the method
/// is for well-conditioned systems.
///
/// The residual is always computed from x, not by a recurrence. Where a pivot of $W$ is no larger than rounding, the block is
/// cut before it and the next one restarts without $P$; where the residual has not halved since the last restart, the method
/// has [broken down](Stop::Breakdown). Iterations are counted in steps; within a block the residual is not computed, and NaN
/// in [`CgOutcome::residuals`].
///
/// The preconditioner is a diagonal or none. The host learns the sums of a pass before it starts the next one.
///
/// # Cost
/// s + 1 products and 3 reductions for s steps. Besides them 5 + 4/s values are read and 1 + 2/s written for each
/// unknown and step; with a diagonal, 3 + 4/s and 1 + 1/s more.
/// # Source
/// `[chronopoulos1989]`; `[kronbichler2022]`, Alg. 3 and Table 1. Differs: Jacobi's preconditioner by the inner product
/// of $D$; blocks are cut as said above; the last block is shorter where it would exceed the limit of iterations.
#[derive(Debug, Clone, Default)]
pub struct SStepCg {
    config: SStepCgConfig,
}

/// A block may be cut where r·r has fallen by this factor since the last beginning.
const GAIN: f64 = 0.25;

/// Multiple of the machine epsilon, relative to the diagonal entry, below which a pivot counts as rounding.
const ROUNDINGS: f64 = 64.0;

impl SStepCg {
    /// Creates the method with the given settings.
    pub fn new(config: SStepCgConfig) -> Self {
        Self { config }
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
        let system = System { a, m, b, comm };
        acceptance::solve(x, system, &self.config.cg, monitor, &mut |x, system, asked| {
            run(x, system, asked, d, steps)
        })
    }
}

/// Runs from `x` until the residual meets the tolerance.
fn run<T: Scalar, D: SStepCgKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    System { a, b, comm, .. }: System<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
    inverse_diagonal: Option<&Buffer<T, D>>,
    steps: usize,
) -> Result<RunEnd, LinalgError> {
    let mut blocks = Blocks::new(a, inverse_diagonal, b, comm, steps)?;
    blocks.residual(x)?;
    blocks.r_dot_r_begun = blocks.r_dot_r;
    let (mut watch, mut stop) = Watch::begin(&config, b_norm, blocks.r_dot_r, monitor);
    while stop.is_continue() {
        let n_left = config.max_iterations - watch.iteration();
        let ended = blocks.take_block(x, steps.min(n_left), &mut watch)?;
        stop = watch.look(CgProgress { iteration: watch.iteration(), stop: ended }, monitor);
    }
    Ok(watch.end(stop, None))
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
    /// W of the directions before; of rank 0 where there are none.
    before: Factor,
    r_dot_r: f64,
    /// r·r where the directions began.
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
        let before = Factor::default();
        Ok(Self { a, inverse_diagonal, b, comm, t, p, v, before, r_dot_r: 0.0, r_dot_r_begun: 0.0 })
    }

    /// t₀ = D⁻¹(b − A x) and r·r.
    fn residual(&mut self, x: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.a.apply(&mut self.v, x)?;
        let device = self.b.device();
        let r_dot_r = device.s_step_residual(&mut self.t[0], self.b, &self.v, self.inverse_diagonal)?;
        self.r_dot_r = over_ranks(device, &[r_dot_r], self.comm)?[0];
        Ok(())
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

    /// B of the next directions.
    fn conjugation(&self, n_steps: usize) -> Result<SmallMatrix, LinalgError> {
        let mut conjugation = SmallMatrix::default();
        let n_before = self.before.rank;
        if n_before == 0 {
            return Ok(conjugation);
        }
        let (device, t) = (self.b.device(), &self.t[..=n_steps]);
        let couplings = device.s_step_couplings(&self.p[..n_before], t, self.inverse_diagonal)?;
        let couplings = SmallMatrix::from_values(&over_ranks(device, couplings.values(), self.comm)?);
        for j in 0..n_steps {
            let mut column = SmallVector::default();
            (0..n_before).for_each(|i| column[i] = -couplings[(i, j)]);
            self.before.solve(&mut column);
            (0..n_before).for_each(|i| conjugation[(i, j)] = column[i]);
        }
        Ok(conjugation)
    }

    /// P, W and g.
    fn directions(&mut self, n_steps: usize) -> Result<SStepSums, LinalgError> {
        let conjugation = self.conjugation(n_steps)?;
        let (device, t, n_before) = (self.b.device(), &self.t[..=n_steps], self.before.rank);
        let sums = device.s_step_directions(&mut self.p, t, &conjugation, n_before, self.inverse_diagonal)?;
        let values = over_ranks(device, &[sums.w.values(), &sums.g].concat(), self.comm)?;
        let mut sums = SStepSums { w: SmallMatrix::from_values(&values), ..sums };
        sums.g.copy_from_slice(&values[MAX_STEPS * MAX_STEPS..]);
        Ok(sums)
    }

    /// Takes up to `n_steps` steps at once; returns why they end the method, if they do.
    fn take_block(
        &mut self,
        x: &mut Buffer<T, D>,
        n_steps: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Stop>, LinalgError> {
        self.expand(n_steps)?;
        let tolerance = ROUNDINGS * T::EPSILON.to_f64();
        let mut sums = self.directions(n_steps)?;
        let (mut factor, mut bad_pivot) = Factor::new(&sums.w, n_steps, tolerance);
        if factor.rank == 0 && self.before.rank > 0 {
            self.before = Factor::default();
            sums = self.directions(n_steps)?;
            (factor, bad_pivot) = Factor::new(&sums.w, n_steps, tolerance);
        }
        if factor.rank == 0 {
            return Ok(Some(Stop::Breakdown { quantity: "p·Ap", value: sums.w[(0, 0)] }));
        }
        factor.solve(&mut sums.g);
        self.b.device().s_step_solution(x, &self.p[..factor.rank], &sums.g[..factor.rank])?;
        self.residual(x)?;
        if !self.r_dot_r.is_finite() {
            return Ok(Some(Stop::Breakdown { quantity: "r·r", value: self.r_dot_r }));
        }
        watch.history.r_dot_r.extend(std::iter::repeat_n(f64::NAN, factor.rank - 1));
        watch.history.r_dot_r.push(self.r_dot_r);
        self.before = factor;
        let verdict = watch.verdict();
        match bad_pivot {
            Some(value) if verdict != Some(Stop::Converged) => Ok(self.restart(value).or(verdict)),
            _ => Ok(verdict),
        }
    }

    /// Restarts after a block that was cut at this pivot; breaks down where the residual has hardly fallen since the
    /// last restart.
    fn restart(&mut self, pivot: f64) -> Option<Stop> {
        if self.r_dot_r > GAIN * self.r_dot_r_begun {
            return Some(Stop::Breakdown { quantity: Stop::BLOCK_PIVOT, value: pivot });
        }
        (self.before, self.r_dot_r_begun) = (Factor::default(), self.r_dot_r);
        None
    }
}
