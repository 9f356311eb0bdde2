//! The loop over steps.

use std::time::Instant;

use femtile::SolverConfig;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::solve::{Stage, Stages};

use super::clock::Clock;
use super::diffusion::DiffusionConfig;
use super::ecg::lead_field;
use super::stepper::{Advance, Stepper};
use super::watch::{Agenda, CheckpointClock, Deadline};
use super::{Checkpoint, Frame, Monodomain, MonodomainSolution, Observer, Outcome, Stop};
use crate::activation::{ActivationConfig, ActivationMap, Interval};
use crate::stimulus::Stimuli;
use crate::{CardiacDevice, CardiacError};

/// Steps between two looks at whether the potential is finite.
const STEPS_OF_A_LOOK: usize = 50;
/// Potentials beyond this many amplitudes are those of an unstable step.
const MOST_AMPLITUDES: f64 = 20.0;
/// The most times that a step of a fixed length is halved where Newton's method fails.
const MOST_HALVINGS: usize = 6;

/// The state of a run on a device.
struct State<D: CardiacDevice> {
    v: Buffer<f64, D>,
    stepper: Stepper<D>,
    stimuli: Stimuli<D>,
    activation: ActivationMap<D>,
    leads: Vec<Buffer<f64, D>>,
    clock: Clock,
    iterations: usize,
    newton: usize,
    rejected: usize,
}

impl Monodomain<'_> {
    pub(super) fn run_on<D: CardiacDevice>(
        &self,
        on: (&Cpu, &D, Option<&Cuda>),
        config: &SolverConfig,
        reason: &str,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        let device = on.1;
        let mut state = self.state(on, config, stages)?;
        stages.begin(Stage::Solve)?;
        let begun = Instant::now();
        let stop = self.steps_of(&mut state, config, observer, stages)?;
        let potential = state.v.to_host()?;
        let outcome = Outcome {
            stop,
            steps: state.clock.steps,
            step: state.clock.length,
            time: state.clock.time,
            iterations: state.iterations,
            newton: state.newton,
            rejected: state.rejected,
            seconds: begun.elapsed().as_secs_f64(),
            parts: state.stepper.seconds(),
        };
        let (format, preconditioner) = state.stepper.description();
        Ok(MonodomainSolution {
            potential,
            activation: state.activation.times()?,
            outcome,
            device: device.description(),
            device_reason: reason.to_owned(),
            memory: device.memory_use(),
            kernel_launches: device.kernel_launches(),
            format,
            preconditioner,
        })
    }

    /// Makes the state at the start, or that of a checkpoint.
    fn state<D: CardiacDevice>(
        &self,
        on: (&Cpu, &D, Option<&Cuda>),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<State<D>, CardiacError> {
        let (device, steps) = (on.1, self.steps());
        stages.begin(Stage::Space)?;
        let storage = self.surface_to_volume * self.capacitance;
        let stimuli = Stimuli::new(device, self.mesh, &self.stimuli, 1.0 / storage)?;
        let of = DiffusionConfig {
            conductivity: &self.conductivity,
            storage,
            theta: self.theta,
            length: steps.1,
            mass: self.mass,
            error: self.error.unwrap_or(1e-5 * self.amplitude()),
        };
        let (mut stepper, v) = Stepper::new(on, self, &of, config, stages)?;
        let mut lead = |electrode| lead_field((device, self.mesh), &mut stepper, electrode, self.bath);
        let leads = self.electrodes.iter().map(&mut lead).collect::<Result<_, _>>()?;
        let levels = self.activation.unwrap_or_else(|| ActivationConfig::of_model(&self.tissues[0].model));
        let activation = ActivationMap::new(&levels, &v)?;
        let clock = Clock::new((self.start, self.end), steps, self.adaptive);
        let (iterations, newton, rejected) = (0, 0, 0);
        let mut state = State { v, stepper, stimuli, activation, leads, clock, iterations, newton, rejected };
        if let Some(checkpoint) = &self.resume {
            state.restore(checkpoint)?;
        }
        Ok(state)
    }

    /// Carries out the steps that are left.
    fn steps_of<D: CardiacDevice>(
        &self,
        state: &mut State<D>,
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<Stop, CardiacError> {
        let resumed = self.resume.as_ref().map(|checkpoint| self.frames_until(checkpoint));
        let mut agenda = Agenda::new(&self.frames, resumed);
        let mut checkpoints = CheckpointClock::new(self.checkpoints);
        let deadline = Deadline::new(config.time_limit);
        if resumed.is_none() {
            self.pass_on(state, &mut agenda, state.clock.length, observer)?;
        }
        while !state.clock.is_over() {
            let step = state.clock.next(agenda.next());
            let failed = self.carry_out(state, step)?;
            if failed.is_none() {
                self.pass_on(state, &mut agenda, step.1, observer)?;
            }
            let Clock { steps, time, .. } = state.clock;
            stages.progress().fraction((time - self.start) / (self.end - self.start));
            stages.progress().time(time, self.end);
            let is_last = state.clock.is_over();
            // A linear solve fails where the potential is no number any more.
            let looks = is_last || failed.is_some() || steps.is_multiple_of(STEPS_OF_A_LOOK);
            let unstable = if looks { self.instability(state)? } else { None };
            let stop = unstable.or(failed);
            let stop = stop.or_else(|| stages.progress().is_interrupted().then_some(Stop::Interrupted));
            let stop = stop.or_else(|| deadline.is_over().then_some(Stop::TimeLimit));
            // A state that is unstable is nothing to go on from.
            let is_sound = !matches!(stop, Some(Stop::Unstable { .. }));
            if is_sound && checkpoints.is_due(steps, stop.is_some()) {
                observer.checkpoint(&state.checkpoint(self.fingerprint)?)?;
            }
            if let Some(stop) = stop
                && !(is_last && matches!(stop, Stop::Interrupted | Stop::TimeLimit))
            {
                return Ok(stop);
            }
        }
        Ok(Stop::Finished)
    }

    /// Carries out one step, or shortens the next one; returns the reason for an end.
    fn carry_out<D: CardiacDevice>(
        &self,
        state: &mut State<D>,
        (end, length): (f64, f64),
    ) -> Result<Option<Stop>, CardiacError> {
        let begin = end - length;
        let Some(adaptive) = self.adaptive else {
            let mut before = None;
            let done = state.halving((begin, length), MOST_HALVINGS, &mut before)?;
            if let Some((node, potential)) = done.worst {
                if let Some(before) = &before {
                    state.go_back(before)?;
                }
                return Ok(Some(Stop::NewtonFailed { node, potential }));
            }
            state.clock.accept((end, length), None);
            return Ok((!done.has_converged).then_some(Stop::SolverFailed));
        };
        let done = state.attempt((begin, length))?;
        let allowed = adaptive.tolerance * self.amplitude();
        let error = match done.has_converged {
            true => state.stepper.local_error(&state.v)?.map(|error| error / allowed),
            false => None,
        };
        if done.has_converged && error.is_none_or(|error| error <= 1.0) {
            state.accept((begin, length))?;
            state.clock.accept((end, length), error);
            return Ok(None);
        }
        state.rejected += 1;
        if state.clock.reject(length, error) {
            return Ok(None);
        }
        Ok(Some(match done.worst {
            Some((node, potential)) => Stop::NewtonFailed { node, potential },
            None => Stop::StepTooShort,
        }))
    }

    /// Passes on frames that are due.
    fn pass_on<D: CardiacDevice>(
        &self,
        state: &State<D>,
        agenda: &mut Agenda,
        length: f64,
        observer: &mut dyn Observer,
    ) -> Result<(), CardiacError> {
        let time = state.clock.time;
        for number in agenda.due(self.reach(time, length)) {
            let (potential, electrodes) = (state.v.to_host()?, state.electrodes()?);
            observer.frame(&Frame { mesh: self.mesh, number, time, potential, electrodes })?;
        }
        Ok(())
    }

    /// Looks for a potential that is no number or out of bounds.
    fn instability<D: CardiacDevice>(&self, state: &State<D>) -> Result<Option<Stop>, CardiacError> {
        let v = &state.v;
        let bound = MOST_AMPLITUDES * self.amplitude();
        let square = v.device().dot(v, v)?;
        if square <= bound.powi(2) {
            return Ok(None);
        }
        let values = v.to_host()?;
        let wrong = values.iter().position(|value| value.is_nan() || value.abs() > bound);
        Ok(wrong.map(|node| Stop::Unstable { node, potential: values[node] }))
    }
}

impl<D: CardiacDevice> State<D> {
    /// Computes a step, which waits to be accepted.
    fn attempt(&mut self, step: (f64, f64)) -> Result<Advance, CardiacError> {
        let done = self.stepper.step(&mut self.v, &mut self.stimuli, step)?;
        self.iterations += done.iterations;
        self.newton += done.newton;
        Ok(done)
    }

    /// Takes over a step that waits.
    fn accept(&mut self, (begin, length): (f64, f64)) -> Result<(), CardiacError> {
        self.stepper.accept(&mut self.v)?;
        Ok(self.activation.record(&self.v, Interval { begin, length })?)
    }

    /// Carries out a step, in two halves where Newton's method fails; `before` receives the state before the first half.
    fn halving(
        &mut self,
        (begin, length): (f64, f64),
        halvings: usize,
        before: &mut Option<Checkpoint>,
    ) -> Result<Advance, CardiacError> {
        let done = self.attempt((begin, length))?;
        if done.worst.is_none() {
            self.accept((begin, length))?;
            return Ok(done);
        }
        self.rejected += 1;
        if halvings == 0 {
            return Ok(done);
        }
        if before.is_none() {
            *before = Some(self.checkpoint([0; 32])?);
        }
        let half = 0.5 * length;
        let first = self.halving((begin, half), halvings - 1, before)?;
        if first.worst.is_some() {
            return Ok(first);
        }
        self.halving((begin + half, half), halvings - 1, before)
    }

    /// Returns to the state before a step of which some parts were carried out; counts remain.
    fn go_back(&mut self, before: &Checkpoint) -> Result<(), CardiacError> {
        let counts = (self.iterations, self.newton, self.rejected);
        self.restore(before)?;
        (self.iterations, self.newton, self.rejected) = counts;
        Ok(())
    }

    /// Returns the potential of each electrode.
    fn electrodes(&self) -> Result<Vec<f64>, CardiacError> {
        let device = self.v.device();
        Ok(self.leads.iter().map(|lead| device.dot(lead, &self.v)).collect::<Result<_, _>>()?)
    }

    /// Returns the state on the host.
    fn checkpoint(&self, fingerprint: [u8; 32]) -> Result<Checkpoint, CardiacError> {
        let mut arrays = vec![self.v.to_host()?];
        for array in self.activation.arrays() {
            arrays.push(array.to_host()?);
        }
        arrays.extend(self.stepper.states()?);
        let counts = [self.clock.steps, self.iterations, self.newton, self.rejected].map(|n| n as u64);
        Ok(Checkpoint { fingerprint, counts, time: self.clock.time, length: self.clock.length, arrays })
    }

    /// Takes the state over from a checkpoint.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), CardiacError> {
        let wrong = || {
            let message = "the checkpoint belongs to another mesh, model or length of step";
            CardiacError::setting("restart", message)
        };
        if self.clock.adaptive.is_none() && checkpoint.length != self.clock.length {
            return Err(wrong());
        }
        let mut arrays = checkpoint.arrays.iter();
        let own = [&mut self.v].into_iter().chain(self.activation.arrays_mut());
        for array in own {
            let values = arrays.next().filter(|values| values.len() == array.len()).ok_or_else(wrong)?;
            array.assign(values)?;
        }
        if !self.stepper.restore(arrays.as_slice())? {
            return Err(wrong());
        }
        let [steps, iterations, newton, rejected] = checkpoint.counts.map(|n| n as usize);
        (self.iterations, self.newton, self.rejected) = (iterations, newton, rejected);
        (self.clock.steps, self.clock.time, self.clock.length) = (steps, checkpoint.time, checkpoint.length);
        Ok(())
    }
}
