//! One step of each scheme.

use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;

use super::integrator::Integrator;
use super::scheme::GAMMA;
use super::{Scheme, SemiDiscrete, StageEquation, StageOutcome};

impl<D: VectorKernels<f64>> Integrator<D> {
    /// Computes the step to `time` into `next`.
    pub(super) fn advance<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<StageOutcome, S::Error> {
        let outcome = match (self.scheme, self.state.history.len()) {
            (Scheme::ImplicitEuler, _) => self.implicit_euler(length, time, system),
            (Scheme::Bdf2, 2..) => self.bdf2(length, time, system),
            (Scheme::Sdirk2 | Scheme::Bdf2, _) => self.sdirk2(length, time, system),
            (Scheme::CrankNicolson, _) => self.crank_nicolson(length, time, system),
        }?;
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
    ) -> Result<StageOutcome, S::Error> {
        self.guess(time)?;
        let shift = 1.0 / length;
        let summands = [(shift, self.state.history.value(0))];
        self.device.combine(&mut self.terms, &summands)?;
        let is_estimated = self.is_adaptive();
        let equation = StageEquation {
            shift,
            time,
            history: &self.terms,
            summands: &summands,
            defect: None,
            is_estimated,
        };
        system.solve(&equation, &mut self.next)
    }

    /// $\dot u(t_{n+1}) = (1/h + 1/(h + h'))\, u_{n+1} - \frac{h + h'}{h h'} u_n + \frac{h}{h' (h + h')} u_{n-1}$.
    fn bdf2<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<StageOutcome, S::Error> {
        self.guess(time)?;
        let before = self.state.history.time(0) - self.state.history.time(1);
        // Equal steps have one shift to the last bit, so that one matrix serves all.
        let before = if (before - length).abs() < 1e-9 * length { length } else { before };
        let both = length + before;
        let shift = 1.0 / length + 1.0 / both;
        let (newest, oldest) = (both / (length * before), -length / (before * both));
        let history = &self.state.history;
        let summands = [(newest, history.value(0)), (oldest, history.value(1))];
        self.device.combine(&mut self.terms, &summands)?;
        let is_estimated = self.is_adaptive();
        let equation = StageEquation {
            shift,
            time,
            history: &self.terms,
            summands: &summands,
            defect: None,
            is_estimated,
        };
        system.solve(&equation, &mut self.next)
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
        self.device.combine(&mut self.terms, &summands)?;
        let is_estimated = self.is_adaptive();
        let equation = StageEquation {
            shift,
            time,
            history: &self.terms,
            summands: &summands,
            defect: Some(&self.other),
            is_estimated,
        };
        system.solve(&equation, &mut self.next)
    }

    fn sdirk2<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<StageOutcome, S::Error> {
        let begun = self.state.history.time(0);
        let shift = Scheme::sdirk2_shift(length);
        let between = begun + GAMMA * length;
        self.state.history.polynomial(between, 2, &mut self.other)?;
        let summands = [(shift, self.state.history.value(0))];
        self.device.combine(&mut self.terms, &summands)?;
        let is_estimated = self.is_adaptive();
        let equation = StageEquation {
            shift,
            time: between,
            history: &self.terms,
            summands: &summands,
            defect: None,
            is_estimated,
        };
        let first = system.solve(&equation, &mut self.other)?;
        if !first.has_converged {
            return Ok(first);
        }
        // u_n + (1 − γ) h k with k = (U − u_n) / (γ h).
        let ratio = (1.0 - GAMMA) / GAMMA;
        self.guess(time)?;
        let summands = [(shift * (1.0 - ratio), self.state.history.value(0)), (shift * ratio, &self.other)];
        self.device.combine(&mut self.terms, &summands)?;
        let equation = StageEquation {
            shift,
            time,
            history: &self.terms,
            summands: &summands,
            defect: None,
            is_estimated,
        };
        let second = system.solve(&equation, &mut self.next)?;
        let iterations = first.iterations + second.iterations;
        Ok(StageOutcome { iterations, has_converged: second.has_converged })
    }
}
