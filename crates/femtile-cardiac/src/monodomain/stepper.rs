//! One step of the equation, by splitting or implicitly.

use femtile::SolverConfig;
use femtile::device::Buffer;
use femtile::solve::{RankPart, Stages};

use super::diffusion::{Diffusion, DiffusionConfig};
use super::membrane::Membrane;
use super::run::wrong;
use super::site::Site;
use super::{Monodomain, Nodes, Scheme, Splitting};
use crate::implicit::{Implicit, StepSeconds};
use crate::stimulus::Stimuli;
use crate::{CardiacDevice, CardiacError};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Advance {
    /// Iterations of linear solvers.
    pub iterations: usize,
    /// Iterations of Newton's method.
    pub newton: usize,
    /// Whether all solves converged. A step of the implicit scheme that did not converge has changed nothing.
    pub has_converged: bool,
    /// The node with the largest residual and its potential, if Newton's method failed.
    pub worst: Option<(usize, f64)>,
}

/// Membrane and diffusion, one after the other.
pub(super) struct Split<D: CardiacDevice> {
    membrane: Membrane<D>,
    diffusion: Diffusion<D>,
    splitting: Splitting,
}

/// The part of the state that advances the potential.
pub(super) enum Stepper<D: CardiacDevice> {
    Split(Box<Split<D>>),
    Implicit(Box<Implicit<D>>),
}

impl<D: CardiacDevice> Stepper<D> {
    /// Makes the stepper of a problem and the potentials at rest.
    pub fn new(
        site: &Site<'_, D>,
        problem: &Monodomain<'_>,
        of: &DiffusionConfig<'_>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Buffer<f64, D>), CardiacError> {
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
                Ok((Self::Split(Box::new(Split { membrane, diffusion, splitting })), v))
            }
            Scheme::Implicit => {
                let [tissue] = tissues.as_slice() else {
                    let message = "the implicit scheme has one model for all cells; use splitting";
                    return Err(CardiacError::setting("tissue", message));
                };
                let mut implicit = Implicit::new(device, (mesh, &tissue.model, of), config, stages)?;
                if problem.timed {
                    implicit.start_stopwatch()?;
                }
                let rest = vec![tissue.model.rest_voltage(); mesh.n_nodes()];
                Ok((Self::Implicit(Box::new(implicit)), Buffer::from_vec(device, rest)?))
            }
        }
    }

    /// Returns the format of the operator and the preconditioner.
    pub fn description(&self) -> (String, &'static str) {
        match self {
            Self::Split(split) => (split.diffusion.format.clone(), split.diffusion.preconditioner_name),
            Self::Implicit(implicit) => (implicit.format(), "jacobi"),
        }
    }

    /// Returns the seconds of the parts of implicit steps, if they are measured.
    pub fn seconds(&self) -> Option<StepSeconds> {
        match self {
            Self::Split(_) => None,
            Self::Implicit(implicit) => implicit.seconds(),
        }
    }

    /// Computes $y = K x$.
    pub fn apply_stiffness(
        &mut self,
        y: &mut Buffer<f64, D>,
        x: &Buffer<f64, D>,
    ) -> Result<(), CardiacError> {
        match self {
            Self::Split(split) => Ok(split.diffusion.stiffness().apply(y, x)?),
            Self::Implicit(implicit) => implicit.apply_stiffness(y, x),
        }
    }

    /// Performs a step; an implicit step is completed by [`Stepper::accept`].
    pub fn step(
        &mut self,
        v: &mut Buffer<f64, D>,
        stimuli: &mut Stimuli<D>,
        (begin, length): (f64, f64),
    ) -> Result<Advance, CardiacError> {
        match self {
            Self::Split(split) => split.step(v, stimuli, (begin, length)),
            Self::Implicit(implicit) => implicit.attempt(v, stimuli.rate(begin, length)?, length),
        }
    }

    /// Returns an estimate of the local error of an implicit step that waits, potential and states together; none for the first
    /// step and for splitting.
    pub fn local_error(&mut self, v: &Buffer<f64, D>) -> Result<Option<f64>, CardiacError> {
        match self {
            Self::Split(_) => Ok(None),
            Self::Implicit(implicit) => implicit.local_error(v),
        }
    }

    /// Accepts a pending implicit step.
    pub fn accept(&mut self, v: &mut Buffer<f64, D>) -> Result<(), CardiacError> {
        match self {
            Self::Split(_) => Ok(()),
            Self::Implicit(implicit) => implicit.accept(v),
        }
    }

    /// Returns the states on the host.
    pub fn states(&self) -> Result<Vec<Vec<f64>>, CardiacError> {
        match self {
            Self::Split(split) => {
                let of_diffusion = split.diffusion.state()?;
                Ok(of_diffusion.into_iter().chain(split.membrane.states()?).collect())
            }
            Self::Implicit(implicit) => implicit.states(),
        }
    }

    /// Restores states; returns whether the lengths fit.
    pub fn restore(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError> {
        match self {
            Self::Split(split) => {
                let [numbers, last, before, states @ ..] = states else { return Ok(false) };
                Ok(split.diffusion.restore([numbers, last, before])? && split.membrane.restore(states)?)
            }
            Self::Implicit(implicit) => implicit.restore(states),
        }
    }
}

/// States of all ranks; the implicit scheme has one rank.
impl<D: CardiacDevice> Stepper<D> {
    /// Returns the global [`Stepper::states`], as a run on one rank has them, on the first rank. Collective.
    pub fn gathered(
        &self,
        rank: &RankPart<'_>,
        here: &Nodes<'_>,
        states: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>, CardiacError> {
        let (Self::Split(split), [numbers, last, before, states @ ..]) = (self, states) else {
            return Ok(states.to_vec());
        };
        // A rank without nodes has no entries of solutions either, so the number of these decides.
        let has_before = numbers.get(1).is_some_and(|&known| known >= 2.0);
        let all = |own: &[f64]| rank.gathered(rank.owned(), own).map(Option::unwrap_or_default);
        let last = all(last)?;
        let before = if has_before { all(before)? } else { Vec::new() };
        let states = split.membrane.gathered(rank, here, states)?;
        Ok([numbers.clone(), last, before].into_iter().chain(states).collect())
    }

    /// Returns the states of this rank from [`Stepper::gathered`], which the first one gives. Collective.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] if the lengths do not fit.
    pub fn dealt(
        &self,
        rank: &RankPart<'_>,
        all: Option<&[Vec<f64>]>,
    ) -> Result<Vec<Vec<f64>>, CardiacError> {
        let Self::Split(split) = self else { return Err(wrong()) };
        let (known, rows, states) = match all {
            None => (Vec::new(), [None, None], None),
            Some([numbers, last, before, states @ ..]) => {
                let n_before =
                    if numbers.get(1).is_some_and(|&known| known >= 2.0) { rank.n_nodes() } else { 0 };
                let fits = (last.len(), before.len()) == (rank.n_nodes(), n_before);
                if !fits || !split.membrane.are_of_all(states) {
                    return Err(wrong());
                }
                (numbers.clone(), [Some(last.as_slice()), Some(before.as_slice())], Some(states))
            }
            Some(_) => return Err(wrong()),
        };
        let numbers = rank.comm().all_gather(&known)?.swap_remove(0);
        let last = rank.dealt(rank.owned(), rows[0])?;
        let has_before = numbers.get(1).is_some_and(|&known| known >= 2.0);
        let before = if has_before { rank.dealt(rank.owned(), rows[1])? } else { Vec::new() };
        let states = split.membrane.dealt(rank, states)?;
        Ok([numbers, last, before].into_iter().chain(states).collect())
    }
}

impl<D: CardiacDevice> Split<D> {
    fn step(
        &mut self,
        v: &mut Buffer<f64, D>,
        stimuli: &mut Stimuli<D>,
        (begin, length): (f64, f64),
    ) -> Result<Advance, CardiacError> {
        let Self { membrane, diffusion, splitting } = self;
        let (iterations, has_converged) = match splitting {
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
        Ok(Advance { iterations, newton: 0, has_converged, worst: None })
    }
}
