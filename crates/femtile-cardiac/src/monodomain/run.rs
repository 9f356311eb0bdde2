//! The loop over steps.

use std::time::Instant;

use femtile::SolverConfig;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::solve::{Stage, Stages};

use super::diffusion::{Diffusion, DiffusionConfig};
use super::ecg::lead_field;
use super::membrane::Membrane;
use super::watch::{Agenda, CheckpointClock, Deadline};
use super::{Checkpoint, Frame, Monodomain, MonodomainSolution, Observer, Outcome, Splitting, Stop};
use crate::activation::{ActivationConfig, ActivationMap, Interval};
use crate::stimulus::Stimuli;
use crate::{CardiacDevice, CardiacError};

/// Steps between two looks at whether the potential is finite.
const STEPS_OF_A_LOOK: usize = 50;
/// Potentials beyond this many amplitudes are those of an unstable step.
const MOST_AMPLITUDES: f64 = 20.0;

/// The state of a run on a device.
struct State<D: CardiacDevice> {
    v: Buffer<f64, D>,
    membrane: Membrane<D>,
    diffusion: Diffusion<D>,
    stimuli: Stimuli<D>,
    activation: ActivationMap<D>,
    leads: Vec<Buffer<f64, D>>,
    steps: usize,
    iterations: usize,
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
        let mut state = self.state(on, config, stages)?;
        stages.begin(Stage::Solve)?;
        let begun = Instant::now();
        let stop = self.steps_of(&mut state, config, observer, stages)?;
        let (_, length) = self.steps();
        let potential = state.v.to_host()?;
        let outcome = Outcome {
            stop,
            steps: state.steps,
            step: length,
            time: self.start + state.steps as f64 * length,
            iterations: state.iterations,
            seconds: begun.elapsed().as_secs_f64(),
        };
        let device = on.1;
        Ok(MonodomainSolution {
            potential,
            activation: state.activation.times()?,
            outcome,
            device: device.description(),
            device_reason: reason.to_owned(),
            memory: device.memory_use(),
            kernel_launches: device.kernel_launches(),
            format: state.diffusion.format,
            preconditioner: state.diffusion.preconditioner_name,
        })
    }

    /// Makes the state at the start, or that of a checkpoint.
    fn state<D: CardiacDevice>(
        &self,
        on: (&Cpu, &D, Option<&Cuda>),
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<State<D>, CardiacError> {
        let (device, (_, length)) = (on.1, self.steps());
        stages.begin(Stage::Space)?;
        let (membrane, v) = Membrane::new(device, self.mesh, &self.tissues, self.local)?;
        let storage = self.surface_to_volume * self.capacitance;
        let stimuli = Stimuli::new(device, self.mesh, &self.stimuli, 1.0 / storage)?;
        let of = DiffusionConfig {
            conductivity: &self.conductivity,
            storage,
            theta: self.theta,
            length,
            error: self.error.unwrap_or(1e-5 * self.amplitude()),
        };
        let diffusion = Diffusion::new(on, (self.mesh, &of), config, stages)?;
        let lead = |electrode| lead_field(self.mesh, diffusion.stiffness(), electrode, self.bath);
        let leads = self.electrodes.iter().map(lead).collect::<Result<_, _>>()?;
        let activation_config =
            self.activation.unwrap_or_else(|| ActivationConfig::of_model(&self.tissues[0].model));
        let activation = ActivationMap::new(&activation_config, &v)?;
        let mut state = State { v, membrane, diffusion, stimuli, activation, leads, steps: 0, iterations: 0 };
        if let Some(checkpoint) = &self.resume {
            state.restore(checkpoint, length)?;
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
        let (count, length) = self.steps();
        let time_of = |steps: usize| self.start + steps as f64 * length;
        let resumed = self.resume.is_some().then(|| time_of(state.steps));
        let mut agenda = Agenda::new(&self.frames, resumed, length);
        let mut clock = CheckpointClock::new(self.checkpoints);
        let deadline = Deadline::new(config.time_limit);
        if resumed.is_none() {
            self.pass_on(state, &mut agenda, (self.start, length), observer)?;
        }
        while state.steps < count {
            let has_converged = self.step(state, (time_of(state.steps), length))?;
            state.steps += 1;
            let time = time_of(state.steps);
            self.pass_on(state, &mut agenda, (time, length), observer)?;
            stages.progress().fraction(state.steps as f64 / count as f64);
            stages.progress().time(time, self.end);
            let is_last = state.steps == count;
            let stop = match () {
                () if !has_converged => Some(Stop::SolverFailed),
                () if is_last || state.steps.is_multiple_of(STEPS_OF_A_LOOK) => self.instability(state)?,
                () => None,
            };
            let stop = stop.or_else(|| stages.progress().is_interrupted().then_some(Stop::Interrupted));
            let stop = stop.or_else(|| deadline.is_over().then_some(Stop::TimeLimit));
            // A state that is unstable is nothing to go on from.
            let is_sound = !matches!(stop, Some(Stop::Unstable { .. }));
            if is_sound && clock.is_due(state.steps, stop.is_some()) {
                observer.checkpoint(&state.checkpoint(self.fingerprint, (time, length))?)?;
            }
            if let Some(stop) = stop
                && !(is_last && matches!(stop, Stop::Interrupted | Stop::TimeLimit))
            {
                return Ok(stop);
            }
        }
        Ok(Stop::Finished)
    }

    /// Carries out one step; returns whether the linear solve met its tolerance.
    fn step<D: CardiacDevice>(
        &self,
        state: &mut State<D>,
        (begin, length): (f64, f64),
    ) -> Result<bool, CardiacError> {
        let State { v, membrane, diffusion, stimuli, activation, .. } = state;
        let (iterations, has_converged) = match self.splitting {
            Splitting::Godunov => {
                membrane.advance(v, stimuli.rate(begin, length)?, length)?;
                diffusion.step(v)?
            }
            Splitting::Strang => {
                let half = 0.5 * length;
                membrane.advance(v, stimuli.rate(begin, half)?, half)?;
                let done = diffusion.step(v)?;
                membrane.advance(v, stimuli.rate(begin + half, half)?, half)?;
                done
            }
        };
        activation.record(v, Interval { begin, length })?;
        state.iterations += iterations;
        Ok(has_converged)
    }

    /// Passes on frames that are due.
    fn pass_on<D: CardiacDevice>(
        &self,
        state: &mut State<D>,
        agenda: &mut Agenda,
        (time, length): (f64, f64),
        observer: &mut dyn Observer,
    ) -> Result<(), CardiacError> {
        for number in agenda.due(time, length) {
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
    /// Returns the potential of each electrode.
    fn electrodes(&self) -> Result<Vec<f64>, CardiacError> {
        let device = self.v.device();
        Ok(self.leads.iter().map(|lead| device.dot(lead, &self.v)).collect::<Result<_, _>>()?)
    }

    /// Returns the state on the host.
    fn checkpoint(
        &self,
        fingerprint: [u8; 32],
        (time, length): (f64, f64),
    ) -> Result<Checkpoint, CardiacError> {
        let mut arrays = vec![self.v.to_host()?];
        for array in self.activation.arrays() {
            arrays.push(array.to_host()?);
        }
        arrays.extend(self.membrane.states()?);
        let (step, iterations) = (self.steps as u64, self.iterations as u64);
        Ok(Checkpoint { fingerprint, step, iterations, time, length, arrays })
    }

    /// Takes the state over from a checkpoint.
    fn restore(&mut self, checkpoint: &Checkpoint, length: f64) -> Result<(), CardiacError> {
        let wrong = || {
            let message = "the checkpoint belongs to another mesh, model or length of step";
            CardiacError::setting("restart", message)
        };
        if checkpoint.length != length {
            return Err(wrong());
        }
        let mut arrays = checkpoint.arrays.iter();
        let own = [&mut self.v].into_iter().chain(self.activation.arrays_mut());
        for array in own {
            let values = arrays.next().filter(|values| values.len() == array.len()).ok_or_else(wrong)?;
            array.assign(values)?;
        }
        if !self.membrane.restore(arrays.as_slice())? {
            return Err(wrong());
        }
        self.steps = checkpoint.step as usize;
        self.iterations = checkpoint.iterations as usize;
        Ok(())
    }
}
