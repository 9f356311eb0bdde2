//! A solve of a solver that is kept: on the device, start and acceptance tests included.

use femtile_device::Scalar;

use super::device_run::{DeviceRun, Found, Kept};
use super::plan::{Guess, Plan};
use super::recordings::Recordings;
use super::start::{Settings, Start};
use super::{CgKernels, CgOutcome, CgSolver, CgSums, KrylovConfig, Target};
use crate::LinalgError;
use crate::comm::Communicator;
use crate::krylov::acceptance::{MIN_STEPS, Measured, PreconditionedSystem, RunEnd, Size};
use crate::krylov::energy::smallest_ritz_value;
use crate::krylov::rescaled::usual_exponent;
use crate::krylov::{Monitor, Stop};

/// The first residual of a solve may differ by this factor from the one that the preconditioner knows.
const SCALE_RANGE: f64 = (1_u64 << 24) as f64;

/// The result of a solve on the device.
pub(super) enum Attempt {
    /// The iterate has passed all tests.
    Accepted(CgOutcome),
    /// The run has ended, and its iterate is to be judged.
    Ended { end: RunEnd, b_norm: f64, tolerance: f64 },
    /// The norms are unusual, and x is as it was.
    NotBegun { tolerance: f64, r_norm: f64 },
}

impl<T: Scalar, D: CgKernels<T>> CgSolver<T, D> {
    /// Solves on the device; the host looks after the iterations that are expected.
    pub(super) fn attempt<C: Communicator>(
        &mut self,
        config: &KrylovConfig,
        target: Target,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<Attempt, LinalgError> {
        let guess = self.next_guess();
        let attempt = self.run(config, (target, guess), comm, monitor)?;
        if let (Attempt::Accepted(_), Some(extrapolation)) = (&attempt, &mut self.extrapolation) {
            extrapolation.known = if guess == Guess::Given { 1 } else { 2 };
        }
        let Attempt::NotBegun { r_norm, .. } = attempt else { return Ok(attempt) };
        // The preconditioner may know a residual of another size.
        if self.m.diagonal().is_some() || !r_norm.is_normal() || self.scale == Some(r_norm) {
            return Ok(attempt);
        }
        // Recordings contain the size.
        (self.scale, self.recordings) = (Some(r_norm), Recordings::default());
        self.run(config, (target, Guess::Given), comm, monitor)
    }

    /// Returns the guess of the solve that begins now.
    fn next_guess(&mut self) -> Guess {
        let known = self.extrapolation.as_mut().map_or(0, |of| std::mem::take(&mut of.known));
        match known {
            0 => Guess::Given,
            1 => Guess::Last,
            _ => Guess::Line,
        }
    }

    fn run<C: Communicator>(
        &mut self,
        config: &KrylovConfig,
        (target, guess): (Target, Guess),
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<Attempt, LinalgError> {
        let settings = self.settings(config, target);
        if let Some(scale) = self.scale {
            self.m.set_residual_norm(scale);
        }
        let stride = CgKernels::<T>::cg_stride(self.x.device());
        let mut plan = Plan::kept((config, guess), self.past, stride, self.m.diagonal().is_none());
        let Self { a, of_iterations, m, x, b, start, w, test, recordings, extrapolation, scale, .. } = self;
        let kept = Kept {
            of_iterations: of_iterations.as_deref(),
            start,
            test: test.as_ref(),
            extrapolation: extrapolation.as_mut(),
            scale,
        };
        let system = PreconditionedSystem { a: a.as_ref(), m: m.as_ref(), b, comm };
        let mut run = DeviceRun::new(w, x, system, Some(kept), recordings);
        let (start, ahead) = run.start(&settings, &mut plan)?;
        let Start { b_norm, r_norm, tolerance, .. } = start;
        if run.has_not_begun() {
            return Ok(Attempt::NotBegun { tolerance, r_norm });
        }
        let end = run.iterate(config, start, (&mut plan, ahead), monitor)?;
        let found = run.into_found();
        let outcome = match end.stop {
            Stop::Converged => self.accepted(&end, start, &found),
            _ => None,
        };
        Ok(outcome.map_or(Attempt::Ended { end, b_norm, tolerance }, Attempt::Accepted))
    }

    /// Returns the settings of a run on the device, for norms whose squares neither overflow nor underflow.
    fn settings(&self, config: &KrylovConfig, target: Target) -> Settings {
        let usual = usual_exponent::<T>();
        let scale = self.scale.filter(|scale| scale.is_normal());
        Settings {
            tolerance: config.tolerance,
            target,
            max_iterations: config.max_iterations,
            b_range: [(-usual).exp2(), usual.exp2()],
            r_range: scale.map_or(Settings::ANY, |scale| [scale / SCALE_RANGE, scale * SCALE_RANGE]),
            rounding: self.rounding,
        }
    }

    /// Applies the acceptance tests to the numbers of the device; none if they refuse the iterate.
    fn accepted(&mut self, end: &RunEnd, start: Start, found: &Found) -> Option<CgOutcome> {
        let Start { b_norm, r_norm: first, tolerance, .. } = start;
        let (steps, sums, last) = (&end.history.steps, found.first::<D>(), found.last.as_ref()?);
        let r_norm = last[CgSums::<D>::R_DOT_R].sqrt();
        let of_diagonal = [
            Size { rho: last[CgSums::<D>::R_RHO], z_norm: last[CgSums::<D>::R_NORM].sqrt() },
            Size { rho: sums[CgSums::<D>::B_RHO], z_norm: sums[CgSums::<D>::B_NORM].sqrt() },
        ];
        let has_test = self.test.is_some() || self.m.diagonal().is_some();
        let of_first = |size: Size| {
            let ratio = b_norm / first;
            Size { rho: size.rho * ratio * ratio, z_norm: size.z_norm * ratio }
        };
        let of_preconditioner = end.preconditioned.map(|[at_start, at_end]| [at_end, of_first(at_start)]);
        let is_known = steps.len() >= MIN_STEPS[usize::from(self.w.z.is_some())];
        let own = if is_known { smallest_ritz_value(steps) } else { None };
        let ritz = [self.smallest_ritz, own].into_iter().flatten().reduce(f64::min)?;
        let rho = match (&end.preconditioned, self.is_identity) {
            (Some([_, at_end]), _) => at_end.rho,
            (None, true) => r_norm * r_norm,
            (None, false) if self.w.z.is_none() => of_diagonal[0].rho,
            // Nothing was done: the residual is the first one.
            (None, false) => sums[CgSums::<D>::R_DOT_Z],
        };
        let energy_norm = (last[CgSums::<D>::X_DOT_B] - last[CgSums::<D>::X_DOT_R]).max(0.0).sqrt();
        let recurred = end.history.r_dot_r.last()?.sqrt();
        let measured = Measured {
            tolerance,
            b_norm,
            r_norm,
            recurred,
            sizes: [has_test.then_some(of_diagonal), of_preconditioner],
            rho,
            steps,
            smallest_ritz: ritz,
            energy_norm,
        };
        let energy_error = measured.accepted()?;
        self.smallest_ritz = Some(ritz);
        Some(CgOutcome {
            stop: Stop::Converged,
            iterations: end.history.r_dot_r.len() - 1,
            relative_residual: recurred / b_norm,
            true_relative_residual: r_norm / b_norm,
            residuals: end.history.r_dot_r.iter().map(|r_dot_r| r_dot_r.sqrt() / b_norm).collect(),
            energy_error: Some(energy_error),
            energy_norm,
            failed_test: None,
        })
    }
}
