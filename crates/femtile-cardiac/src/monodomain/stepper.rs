//! One step of the equation, by splitting or implicitly.

use femtile::SolverConfig;
use femtile::device::Buffer;
use femtile::solve::{LocalProblem, Stages};

use super::clock::Clock;
use super::diffusion::{Diffusion, DiffusionConfig};
use super::membrane::Membrane;
use super::run::wrong;
use super::site::Site;
use super::{Monodomain, Nodes, Scheme, Splitting, Stop};
use crate::activation::{ActivationMap, Interval};
use crate::implicit::{Implicit, StepSeconds};
use crate::stimulus::Stimuli;
use crate::{CardiacDevice, CardiacError};

/// The state of a run that all steppers advance.
pub(crate) struct Course<D: CardiacDevice> {
    pub v: Buffer<f64, D>,
    pub stimuli: Stimuli<D>,
    pub activation: ActivationMap<D>,
    pub clock: Clock,
    /// Iterations of linear solvers.
    pub iterations: usize,
    /// Iterations of Newton's method.
    pub newton: usize,
    /// Rejected steps.
    pub rejected: usize,
}

impl<D: CardiacDevice> Course<D> {
    /// Records the crossings of a step that ends with the present potential.
    pub fn record(&mut self, step: Interval) -> Result<(), CardiacError> {
        Ok(self.activation.record(&self.v, step)?)
    }
}

/// Advances the potential, with a state of its own.
pub(crate) trait Stepper<D: CardiacDevice> {
    /// Returns the format of the operator and the preconditioner.
    fn description(&self) -> (String, &'static str);

    /// Returns the seconds of the parts of implicit steps, if they are measured.
    fn seconds(&self) -> Option<StepSeconds> {
        None
    }

    /// Computes $y = K x$.
    fn apply_stiffness(&self, y: &mut Buffer<f64, D>, x: &Buffer<f64, D>) -> Result<(), CardiacError>;

    /// Performs the step of an end and a length, or shortens the next one; returns the reason for an end of the run.
    fn advance(&mut self, course: &mut Course<D>, step: (f64, f64)) -> Result<Option<Stop>, CardiacError>;

    /// Returns its state on the host.
    fn states(&self) -> Result<Vec<Vec<f64>>, CardiacError>;

    /// Restores the result of [`Stepper::states`]; returns whether the lengths fit.
    fn restore(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError>;

    /// Returns the stepper if it has states of several ranks.
    fn on_ranks(&self) -> Option<&Split<D>> {
        None
    }
}

/// Membrane and diffusion, one after the other.
pub(crate) struct Split<D: CardiacDevice> {
    membrane: Membrane<D>,
    diffusion: Diffusion<D>,
    splitting: Splitting,
}

/// A stepper with the potentials at rest.
type Begun<D> = (Box<dyn Stepper<D>>, Buffer<f64, D>);

/// Makes the stepper of a problem and the potentials at rest.
pub(super) fn new<D: CardiacDevice>(
    site: &Site<'_, D>,
    problem: &Monodomain<'_>,
    of: &DiffusionConfig<'_>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<Begun<D>, CardiacError> {
    let (device, mesh, tissues) = (site.device, problem.mesh, &problem.tissues);
    match problem.scheme {
        Scheme::Splitting(splitting) => {
            let (local, of_mesh) = ((problem.local, problem.gates), (mesh, &site.nodes));
            let (membrane, v) = Membrane::new(device, of_mesh, tissues, local)?;
            let own;
            let discretization = match site.rank {
                Some(rank) => rank.problem(),
                None => {
                    own = problem.diffusion()?;
                    &own
                }
            };
            let diffusion = Diffusion::new(site, (discretization, of), config, stages)?;
            Ok((Box::new(Split { membrane, diffusion, splitting }), v))
        }
        Scheme::Implicit => {
            let implicit = Implicit::new(device, (problem, of), config, stages)?;
            let rest = vec![tissues[0].model.rest_voltage(); mesh.n_nodes()];
            Ok((Box::new(implicit), Buffer::from_vec(device, rest)?))
        }
    }
}

impl<D: CardiacDevice> Stepper<D> for Split<D> {
    fn description(&self) -> (String, &'static str) {
        (self.diffusion.format.clone(), self.diffusion.preconditioner_name)
    }

    fn apply_stiffness(&self, y: &mut Buffer<f64, D>, x: &Buffer<f64, D>) -> Result<(), CardiacError> {
        Ok(self.diffusion.stiffness().apply(y, x)?)
    }

    fn advance(
        &mut self,
        course: &mut Course<D>,
        (end, length): (f64, f64),
    ) -> Result<Option<Stop>, CardiacError> {
        let begin = end - length;
        let (iterations, has_converged) = self.step(&mut course.v, &mut course.stimuli, (begin, length))?;
        course.iterations += iterations;
        course.record(Interval { begin, length })?;
        course.clock.accept((end, length), None);
        Ok((!has_converged).then_some(Stop::SolverFailed))
    }

    fn states(&self) -> Result<Vec<Vec<f64>>, CardiacError> {
        let of_diffusion = self.diffusion.state()?;
        Ok(of_diffusion.into_iter().chain(self.membrane.states()?).collect())
    }

    fn restore(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError> {
        let [numbers, last, before, states @ ..] = states else { return Ok(false) };
        Ok(self.diffusion.restore([numbers, last, before])? && self.membrane.restore(states)?)
    }

    fn on_ranks(&self) -> Option<&Self> {
        Some(self)
    }
}

impl<D: CardiacDevice> Split<D> {
    /// Returns the iterations and whether the solve converged.
    fn step(
        &mut self,
        v: &mut Buffer<f64, D>,
        stimuli: &mut Stimuli<D>,
        (begin, length): (f64, f64),
    ) -> Result<(usize, bool), CardiacError> {
        let Self { membrane, diffusion, splitting } = self;
        match splitting {
            Splitting::Godunov => {
                membrane.advance(v, stimuli.rate(begin, length)?, length)?;
                diffusion.step(v)
            }
            Splitting::Strang => {
                let half = 0.5 * length;
                membrane.advance(v, stimuli.rate(begin, half)?, half)?;
                let done = diffusion.step(v)?;
                membrane.advance(v, stimuli.rate(begin + half, half)?, half)?;
                Ok(done)
            }
        }
    }

    /// Returns the global [`Stepper::states`], as a run on one rank has them, on the first rank. Collective.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] if the lengths do not fit.
    pub fn gather(
        &self,
        rank: &LocalProblem<'_>,
        here: &Nodes<'_>,
        states: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>, CardiacError> {
        let [numbers, last, before, states @ ..] = states else { return Err(wrong()) };
        // A rank without nodes has no entries of solutions either, so the number of these decides.
        let has_before = numbers.get(1).is_some_and(|&known| known >= 2.0);
        let all = |own: &[f64]| rank.gather(rank.owned(), own).map(Option::unwrap_or_default);
        let last = all(last)?;
        let before = if has_before { all(before)? } else { Vec::new() };
        let states = self.membrane.gather(rank, here, states)?;
        Ok([numbers.clone(), last, before].into_iter().chain(states).collect())
    }

    /// Returns the states of this rank from [`Split::gathered`], which the first one gives. Collective.
    ///
    /// # Errors
    /// As [`Split::gathered`].
    pub fn scatter(
        &self,
        rank: &LocalProblem<'_>,
        all: Option<&[Vec<f64>]>,
    ) -> Result<Vec<Vec<f64>>, CardiacError> {
        let (known, rows, states) = match all {
            None => (Vec::new(), [None, None], None),
            Some([numbers, last, before, states @ ..]) => {
                let n_before =
                    if numbers.get(1).is_some_and(|&known| known >= 2.0) { rank.n_nodes() } else { 0 };
                let fits = (last.len(), before.len()) == (rank.n_nodes(), n_before);
                if !fits || !self.membrane.are_of_all(states) {
                    return Err(wrong());
                }
                (numbers.clone(), [Some(last.as_slice()), Some(before.as_slice())], Some(states))
            }
            Some(_) => return Err(wrong()),
        };
        let numbers = rank.comm().all_gather(&known)?.swap_remove(0);
        let last = rank.scatter(rank.owned(), rows[0])?;
        let has_before = numbers.get(1).is_some_and(|&known| known >= 2.0);
        let before = if has_before { rank.scatter(rank.owned(), rows[1])? } else { Vec::new() };
        let states = self.membrane.scatter(rank, states)?;
        Ok([numbers, last, before].into_iter().chain(states).collect())
    }
}
