//! One step of each scheme.

use femtile_device::Buffer;
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;

use super::integrator::{Integrator, StageRate};
use super::scheme::GAMMA;
use super::{Scheme, SemiDiscrete, StageEquation, StageOutcome};

/// A [`StageEquation`] whose $b$ is still to be summed.
struct Stage<'a, D: VectorKernels<f64>> {
    shift: f64,
    time: f64,
    summands: &'a [(f64, &'a Buffer<f64, D>)],
    defect: Option<&'a Buffer<f64, D>>,
    is_estimated: bool,
}

impl<D: VectorKernels<f64>> Stage<'_, D> {
    /// Solves the stage for `u`, which holds a first guess; $b$ is left in `history`.
    fn solve<S: SemiDiscrete<D>>(
        self,
        system: &mut S,
        history: &mut Buffer<f64, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, S::Error> {
        let Self { shift, time, summands, defect, is_estimated } = self;
        u.device().combine(history, summands)?;
        system.solve(&StageEquation { shift, time, history, summands, defect, is_estimated }, u)
    }
}

impl<D: VectorKernels<f64>> Integrator<D> {
    /// Computes the step to `time` into `next`.
    pub(super) fn advance<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<StageOutcome, S::Error> {
        let (outcome, rate) = match (self.scheme, self.state.history.len()) {
            (Scheme::ImplicitEuler, _) => self.implicit_euler(length, time, system),
            (Scheme::Bdf2, 2..) => self.bdf2(length, time, system),
            (Scheme::Sdirk2 | Scheme::Bdf2, _) => self.sdirk2(length, time, system),
            (Scheme::CrankNicolson, _) => {
                self.crank_nicolson(length, time, system).map(|outcome| (outcome, None))
            }
        }?;
        self.state.last_rate = outcome.has_converged.then_some(rate).flatten();
        self.state.iterations += outcome.iterations;
        let [now, most] = self.state.idle;
        let now = if outcome.iterations == 0 && outcome.has_converged { now + 1 } else { 0 };
        self.state.idle = [now, most.max(now)];
        Ok(outcome)
    }

    /// Extrapolates the last values to `time`, as the first guess of a solve.
    fn guess(&mut self, time: f64) -> Result<(), LinalgError> {
        self.state.history.polynomial(time, 2, &mut self.next)
    }

    fn implicit_euler<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<(StageOutcome, Option<StageRate>), S::Error> {
        self.guess(time)?;
        let shift = 1.0 / length;
        let summands = [(shift, self.state.history.value(0))];
        let is_estimated = self.is_adaptive();
        let stage = Stage { shift, time, summands: &summands, defect: None, is_estimated };
        let outcome = stage.solve(system, &mut self.terms, &mut self.next)?;
        Ok((outcome, Some(StageRate { shift, of_history: [shift, 0.0], of_stage: 0.0 })))
    }

    /// $\dot u(t_{n+1}) = (1/h + 1/(h + h'))\, u_{n+1} - \frac{h + h'}{h h'} u_n + \frac{h}{h' (h + h')} u_{n-1}$.
    fn bdf2<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<(StageOutcome, Option<StageRate>), S::Error> {
        self.guess(time)?;
        let before = self.state.history.time(0) - self.state.history.time(1);
        // Equal steps have one shift to the last bit, so that one matrix serves all.
        let before = if (before - length).abs() < 1e-9 * length { length } else { before };
        let both = length + before;
        let shift = 1.0 / length + 1.0 / both;
        let (newest, oldest) = (both / (length * before), -length / (before * both));
        let history = &self.state.history;
        let summands = [(newest, history.value(0)), (oldest, history.value(1))];
        let is_estimated = self.is_adaptive();
        let stage = Stage { shift, time, summands: &summands, defect: None, is_estimated };
        let outcome = stage.solve(system, &mut self.terms, &mut self.next)?;
        Ok((outcome, Some(StageRate { shift, of_history: [newest, oldest], of_stage: 0.0 })))
    }

    fn crank_nicolson<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<StageOutcome, S::Error> {
        self.guess(time)?;
        let (before, shift) = (self.state.history.time(0), 2.0 / length);
        system.defect((before, shift), self.state.history.value(0), &mut self.other)?;
        let summands = [(shift, self.state.history.value(0))];
        let is_estimated = self.is_adaptive();
        let stage = Stage { shift, time, summands: &summands, defect: Some(&self.other), is_estimated };
        stage.solve(system, &mut self.terms, &mut self.next)
    }

    fn sdirk2<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<(StageOutcome, Option<StageRate>), S::Error> {
        let begun = self.state.history.time(0);
        let shift = Scheme::sdirk2_shift(length);
        let between = begun + GAMMA * length;
        self.state.history.polynomial(between, 2, &mut self.other)?;
        let summands = [(shift, self.state.history.value(0))];
        let is_estimated = self.is_adaptive();
        let stage = Stage { shift, time: between, summands: &summands, defect: None, is_estimated };
        let first = stage.solve(system, &mut self.terms, &mut self.other)?;
        if !first.has_converged {
            return Ok((first, None));
        }
        // u_n + (1 − γ) h k with k = (U − u_n) / (γ h).
        let ratio = (1.0 - GAMMA) / GAMMA;
        self.guess(time)?;
        let (of_history, of_stage) = (shift * (1.0 - ratio), shift * ratio);
        let summands = [(of_history, self.state.history.value(0)), (of_stage, &self.other)];
        let stage = Stage { shift, time, summands: &summands, defect: None, is_estimated };
        let second = stage.solve(system, &mut self.terms, &mut self.next)?;
        let iterations = first.iterations + second.iterations;
        let outcome = StageOutcome { iterations, has_converged: second.has_converged };
        Ok((outcome, Some(StageRate { shift, of_history: [of_history, 0.0], of_stage })))
    }
}
