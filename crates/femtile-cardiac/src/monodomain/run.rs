//! The loop over steps.

use std::time::Instant;

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::solve::{Discretization, LocalProblem, Stage, Stages};
use femtile::{Poisson, SolverConfig};

use super::clock::Clock;
use super::diffusion::{DiffusionConfig, check_conductivity};
use super::ecg::lead_field;
use super::site::Site;
use super::stepper::{self, Course, Stepper};
use super::watch::{Agenda, CheckpointClock, Deadline};
use super::{Checkpoint, Frame, Monodomain, MonodomainSolution, Nodes, Observer, Outcome, Stop};
use crate::activation::{ActivationConfig, ActivationMap};
use crate::stimulus::Stimuli;
use crate::{CardiacDevice, CardiacError};

/// Steps between two looks at whether the potential is finite.
const STEPS_OF_A_LOOK: usize = 50;
/// Potentials beyond this many amplitudes are those of an unstable step.
const MOST_AMPLITUDES: f64 = 20.0;

/// The state of a run on a device.
struct State<D: CardiacDevice> {
    course: Course<D>,
    stepper: Box<dyn Stepper<D>>,
    leads: Vec<Buffer<f64, D>>,
}

impl Monodomain<'_> {
    pub(super) fn run_on<D: CardiacDevice>(
        &self,
        (cpu, device, opened): (&Cpu, &D, Option<&Cuda>),
        config: &SolverConfig,
        reason: &str,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        let site = Site { cpu, device, opened, rank: None, nodes: Nodes::all(self.mesh.n_nodes()) };
        self.run_at(&site, (config, reason), observer, stages)
    }

    /// Discretizes diffusion with the reaction that the first step has.
    pub(super) fn diffusion(&self) -> Result<Discretization<'_>, CardiacError> {
        let of = self.of_diffusion();
        let shift = of.storage / (of.theta * of.length);
        let begun = match &self.parts {
            None => Poisson::new(self.mesh),
            Some(parts) => Poisson::distributed(parts.mesh, &parts.comm)?,
        };
        let problem = begun.sigma(of.conductivity.clone()).lambda(shift).discretize()?;
        check_conductivity(&problem.form(0))?;
        Ok(problem)
    }

    fn of_diffusion(&self) -> DiffusionConfig<'_> {
        let amplitude = self.amplitude();
        let error = self.error.unwrap_or(1e-5 * amplitude);
        // Solves leave less than the error of a step in time that is accepted.
        let error = self.adaptive.map_or(error, |steps| error.min(0.1 * steps.tolerance * amplitude));
        DiffusionConfig {
            conductivity: &self.conductivity,
            storage: self.surface_to_volume * self.capacitance,
            theta: self.theta,
            length: self.steps().1,
            mass: self.mass,
            error,
        }
    }

    /// Runs on the nodes of one rank, or on all nodes.
    pub(super) fn run_at<D: CardiacDevice>(
        &self,
        site: &Site<'_, D>,
        (config, reason): (&SolverConfig, &str),
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        let device = site.device;
        let mut state = self.state(site, config, stages)?;
        stages.begin(Stage::Solve)?;
        let begun = Instant::now();
        let stop = self.steps_of(&mut state, site, config, (observer, stages))?;
        // A step that was not looked at may be under way.
        site.opened.map_or(Ok(()), Cuda::synchronize)?;
        let seconds = begun.elapsed().as_secs_f64();
        let to_host = |own: &Buffer<f64, D>| match site.rank {
            Some(rank) => Ok(rank.gather_solution(own)?),
            None => Ok(own.to_host()?),
        };
        let course = &state.course;
        let potential = to_host(&course.v)?;
        let outcome = Outcome {
            stop,
            steps: course.clock.steps,
            step: course.clock.length,
            time: course.clock.time,
            iterations: course.iterations,
            newton: course.newton,
            rejected: course.rejected,
            seconds,
            parts: state.stepper.seconds(),
        };
        let (format, preconditioner) = state.stepper.description();
        Ok(MonodomainSolution {
            potential,
            activation: course.activation.times_by(&to_host)?,
            outcome,
            device: site.rank.map_or_else(|| Ok(device.description()), |rank| rank.devices(device))?,
            device_reason: reason.to_owned(),
            memory: device.memory_use(),
            kernel_launches: device.kernel_launches(),
            format,
            preconditioner,
            ranks: site.rank.map(LocalProblem::used).transpose()?,
        })
    }

    /// Makes the state at the start, or that of a checkpoint.
    fn state<D: CardiacDevice>(
        &self,
        site: &Site<'_, D>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<State<D>, CardiacError> {
        let (device, steps, here, of) = (site.device, self.steps(), &site.nodes, self.of_diffusion());
        stages.begin(Stage::Space)?;
        let stimuli = Stimuli::new(device, (self.mesh, here), &self.stimuli, 1.0 / of.storage)?;
        let (stepper, v) = stepper::new(site, self, &of, config, stages)?;
        let lead = |electrode| lead_field((device, self.mesh, here), stepper.as_ref(), electrode, self.bath);
        let leads = self.electrodes.iter().map(lead).collect::<Result<_, _>>()?;
        let levels = self.activation.unwrap_or_else(|| ActivationConfig::of_model(&self.tissues[0].model));
        let activation = ActivationMap::new(&levels, &v)?;
        let clock = Clock::new((self.start, self.end), steps, self.adaptive);
        let course = Course { v, stimuli, activation, clock, iterations: 0, newton: 0, rejected: 0 };
        let mut state = State { course, stepper, leads };
        if let Some(checkpoint) = &self.resume {
            state.restore_own(site, checkpoint)?;
        }
        Ok(state)
    }

    /// Performs the remaining steps.
    fn steps_of<D: CardiacDevice>(
        &self,
        state: &mut State<D>,
        site: &Site<'_, D>,
        config: &SolverConfig,
        (observer, stages): (&mut dyn Observer, &mut Stages<'_>),
    ) -> Result<Stop, CardiacError> {
        let resumed = self.resume.as_ref().map(|checkpoint| self.frames_until(checkpoint));
        let mut agenda = Agenda::new(&self.frames, resumed);
        let mut checkpoints = CheckpointClock::new(self.checkpoints);
        let deadline = Deadline::new(config.time_limit);
        if resumed.is_none() {
            self.pass_on((state, site), &mut agenda, state.course.clock.length, observer)?;
        }
        while !state.course.clock.is_over() {
            let step = state.course.clock.next(agenda.next());
            let failed = state.stepper.advance(&mut state.course, step)?;
            if failed.is_none() {
                self.pass_on((state, site), &mut agenda, step.1, observer)?;
            }
            let Clock { steps, time, .. } = state.course.clock;
            stages.progress().fraction((time - self.start) / (self.end - self.start));
            stages.progress().time(time, self.end);
            let is_last = state.course.clock.is_over();
            // A linear solve fails if the potential is no number any more.
            let looks = is_last || failed.is_some() || steps.is_multiple_of(STEPS_OF_A_LOOK);
            let unstable = if looks { self.instability(state, &site.nodes)? } else { None };
            // Ranks have clocks and signals of their own, and do the same all the same.
            let asked = [stages.progress().is_interrupted(), deadline.is_over(), checkpoints.is_due(steps)];
            let [is_interrupted, is_late, is_due] = site.nodes.comm().any(asked)?;
            let stop = unstable.or(failed);
            let stop = stop.or_else(|| is_interrupted.then_some(Stop::Interrupted));
            let stop = stop.or_else(|| is_late.then_some(Stop::TimeLimit));
            // A state that is unstable is nothing to continue from.
            let is_sound = !matches!(stop, Some(Stop::Unstable { .. }));
            if is_sound && (is_due || stop.is_some() && checkpoints.is_wanted()) {
                let all = state.checkpoint_of_all(site, self.fingerprint)?;
                all.map_or(Ok(()), |all| observer.checkpoint(&all))?;
                checkpoints.begin_anew();
            }
            if let Some(stop) = stop
                && !(is_last && matches!(stop, Stop::Interrupted | Stop::TimeLimit))
            {
                return Ok(stop);
            }
        }
        Ok(Stop::Finished)
    }

    /// Passes on frames that are due.
    fn pass_on<D: CardiacDevice>(
        &self,
        (state, site): (&State<D>, &Site<'_, D>),
        agenda: &mut Agenda,
        length: f64,
        observer: &mut dyn Observer,
    ) -> Result<(), CardiacError> {
        let time = state.course.clock.time;
        for number in agenda.due(self.reach(time, length)) {
            let electrodes = state.electrodes(&site.nodes)?;
            let Some(potential) = all_of(&state.course.v, site.rank)? else { continue };
            let mesh = self.parts.as_ref().and_then(|parts| parts.whole).unwrap_or(self.mesh);
            observer.frame(&Frame { mesh, number, time, potential, electrodes })?;
        }
        Ok(())
    }

    /// Looks for a potential that is not a number or out of bounds.
    fn instability<D: CardiacDevice>(
        &self,
        state: &State<D>,
        here: &Nodes<'_>,
    ) -> Result<Option<Stop>, CardiacError> {
        let v = &state.course.v;
        let bound = MOST_AMPLITUDES * self.amplitude();
        let square = here.sum(v.device().dot(v, v)?)?;
        if square <= bound.powi(2) {
            return Ok(None);
        }
        let values = v.to_host()?;
        let wrong = values.iter().zip(0..).filter(|(value, _)| value.is_nan() || value.abs() > bound);
        let first = wrong.map(|(value, node)| [u64::from(here.to_global(node)), value.to_bits()]).min();
        let of_ranks = here.comm().all_gather(first.as_slice())?.into_iter().flatten().min();
        let stop =
            |[node, bits]: [u64; 2]| Stop::Unstable { node: node as usize, potential: f64::from_bits(bits) };
        Ok(of_ranks.map(stop))
    }
}

impl<D: CardiacDevice> State<D> {
    /// Returns the potential of each electrode.
    fn electrodes(&self, here: &Nodes<'_>) -> Result<Vec<f64>, CardiacError> {
        let v = &self.course.v;
        let sum = |lead| here.sum(v.device().dot(lead, v)?);
        Ok(self.leads.iter().map(sum).collect::<Result<_, _>>()?)
    }

    /// Returns the global state on the first rank. Collective.
    fn checkpoint_of_all(
        &self,
        site: &Site<'_, D>,
        fingerprint: [u8; 32],
    ) -> Result<Option<Checkpoint>, CardiacError> {
        let own = self.checkpoint(fingerprint)?;
        let Some(rank) = site.rank else { return Ok(Some(own)) };
        let stepper = self.stepper.on_ranks().ok_or_else(wrong)?;
        let (at_nodes, of_stepper) = own.arrays.split_at(1 + self.course.activation.arrays().len());
        let mut arrays = Vec::new();
        for array in at_nodes {
            arrays.extend(rank.gather(rank.owned(), array)?);
        }
        arrays.extend(stepper.gather(rank, &site.nodes, of_stepper)?);
        Ok(site.nodes.is_first().then_some(Checkpoint { arrays, ..own }))
    }

    /// Restores the state; on several ranks each gets its entries from the first rank. Collective.
    fn restore_own(&mut self, site: &Site<'_, D>, all: &Checkpoint) -> Result<(), CardiacError> {
        let Some(rank) = site.rank else { return self.restore(all) };
        let stepper = self.stepper.on_ranks().ok_or_else(wrong)?;
        let n_at_nodes = 1 + self.course.activation.arrays().len();
        let of_first = match site.nodes.is_first() {
            false => None,
            true => {
                let (at_nodes, of_stepper) = all.arrays.split_at_checked(n_at_nodes).ok_or_else(wrong)?;
                if at_nodes.iter().any(|array| array.len() != rank.n_nodes()) {
                    return Err(wrong());
                }
                Some((at_nodes, of_stepper))
            }
        };
        let at_node = |i: usize| of_first.map(|(at_nodes, _)| at_nodes[i].as_slice());
        let mut arrays = Vec::new();
        for i in 0..n_at_nodes {
            arrays.push(rank.scatter(rank.owned(), at_node(i))?);
        }
        arrays.extend(stepper.scatter(rank, of_first.map(|(_, of_stepper)| of_stepper))?);
        self.restore(&Checkpoint { arrays, ..all.without_arrays() })
    }

    /// Returns the state of this rank on the host.
    fn checkpoint(&self, fingerprint: [u8; 32]) -> Result<Checkpoint, CardiacError> {
        let mut arrays = vec![self.course.v.to_host()?];
        for array in self.course.activation.arrays() {
            arrays.push(array.to_host()?);
        }
        arrays.extend(self.stepper.states()?);
        let Course { clock, iterations, newton, rejected, .. } = &self.course;
        let counts = [clock.steps, *iterations, *newton, *rejected].map(|n| n as u64);
        Ok(Checkpoint { fingerprint, counts, time: clock.time, length: clock.length, arrays })
    }

    /// Takes the state over from a checkpoint.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), CardiacError> {
        let course = &mut self.course;
        if course.clock.adaptive.is_none() && checkpoint.length != course.clock.length {
            return Err(wrong());
        }
        let mut arrays = checkpoint.arrays.iter();
        let own = [&mut course.v].into_iter().chain(course.activation.arrays_mut());
        for array in own {
            let values = arrays.next().filter(|values| values.len() == array.len()).ok_or_else(wrong)?;
            array.assign(values)?;
        }
        if !self.stepper.restore(arrays.as_slice())? {
            return Err(wrong());
        }
        let [steps, iterations, newton, rejected] = checkpoint.counts.map(|n| n as usize);
        (course.iterations, course.newton, course.rejected) = (iterations, newton, rejected);
        let clock = &mut course.clock;
        (clock.steps, clock.time, clock.length) = (steps, checkpoint.time, checkpoint.length);
        Ok(())
    }
}

/// The error of a state that does not fit.
pub(super) fn wrong() -> CardiacError {
    CardiacError::setting("restart", "the checkpoint belongs to another mesh, model or length of step")
}

/// Returns the global values on the first rank, nothing on others.
fn all_of<D: CardiacDevice>(
    own: &Buffer<f64, D>,
    rank: Option<&LocalProblem<'_>>,
) -> Result<Option<Vec<f64>>, CardiacError> {
    let values = own.to_host()?;
    Ok(match rank {
        Some(rank) => rank.gather(rank.owned(), &values)?,
        None => Some(values),
    })
}
