//! Distributed time-dependent runs: each rank advances the unknowns of its part.
//!
//! Mass, stiffness and stages are distributed systems; for linear elements, those of all shifts are combined
//! from two matrices (`rank_terms`). The integrator does not know about ranks, because norms are sums over
//! all ranks. Whether ranks communicate must not depend on data of one part, such as whether they depend on
//! time.
//!
//! `Watch` gathers frames and checkpoints for the observer of the first rank, and all ranks agree on the end.
//! If ranks have only their parts and a run is recorded, the first rank also keeps the whole mesh and states
//! the problem there. Each rank learns once the global numbers of its owned unknowns (`global_numbers`): it
//! names a cell and a place in it, and the first rank answers. Values are gathered and checkpoints scattered
//! by these numbers (`GlobalUnknowns`), so checkpoints do not depend on the number of ranks.

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_linalg::LinalgError;
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;
use femtile_time::implicit::{Checkpoint, Outcome};

use super::distributed_equation::{DistributedEquation, RankContext};
use super::nonlinear::is_refilled;
use super::operators::held;
use super::run::{linear_outcome, warnings_of};
use super::{Observer, Transient, TransientSolution};
use crate::auto::Solves;
use crate::discretization::Discretization;
use crate::ranks::rows::{Fixed, agreed};
use crate::ranks::system::RankUnknowns;
use crate::ranks::{
    self, GlobalUnknowns, Keepers, Layout, MeshOnRanks, RankDevice, Ranks, ReplicatedPartition, device,
    global_numbers,
};
use crate::solution::Finished;
use crate::{
    CheckpointInterval, DeviceChoice, GmgOptions, MassMatrix, Solution, SolveError, SolverConfig, Stages,
};

impl<'m> Transient<'m> {
    /// Runs on the ranks of the settings. All of them get the solution at the end; the first one calls the
    /// observer.
    pub(super) fn run_on_ranks(
        &self,
        problem: Discretization<'m>,
        (cpu, opened): (&Cpu, Option<&Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<TransientSolution<'m>, SolveError> {
        self.check_on_ranks(&problem)?;
        config.ranks.check_state(&self.resume.as_deref().map_or([0; 4], numbers_of))?;
        let now = problem.at_time(self.start);
        let n_threads = ranks::n_threads(cpu, &config.ranks)?;
        let boxed = |options: &GmgOptions| ranks::boxes(&now, options, config.ranks.n()).map(Some);
        let held = held(&problem, self.first_shift());
        let first = ranks::chosen(&held, config, n_threads, Solves::Many, &boxed)?;
        let division = ReplicatedPartition::new(&problem, first.boxes, config)?;
        let run = Run {
            transient: self,
            problem: &problem,
            whole: Some(&problem),
            is_whole: true,
            layout: Layout::Replicated(&division),
            fixed: &Fixed::new(&now)?,
            initial: &self.initial_values(&problem)?,
            config,
            of_stages: &of_stages(config),
            n_threads,
        };
        let (mut finished, end) = run.on_all((cpu, opened), observer, stages)?;
        finished.components = vec![end.global];
        finished.partition = Some(division.partition);
        let solution = Solution::new(problem.at_time(end.outcome.time), finished);
        Ok(TransientSolution { solution, whole: None, outcome: end.outcome })
    }

    /// Runs on a distributed mesh. The first rank calls the observer, with the problem on the whole mesh if
    /// it has that.
    pub(super) fn divided_run(
        &self,
        (problem, divided): (Discretization<'m>, &MeshOnRanks<'m>),
        whole: Option<Discretization<'m>>,
        (cpu, opened): (&Cpu, Option<&Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<TransientSolution<'m>, SolveError> {
        agreed(&divided.comm, self.check_on_ranks(&problem))?;
        if config.ranks != Ranks::Of(divided.comm.clone()) {
            return Err(ranks::other_ranks());
        }
        let whole = whole.filter(|_| divided.comm.rank() == 0);
        let is_whole = self.check_whole(divided, (whole.as_ref(), problem.n_global_dofs()))?;
        let transient = &Self { resume: self.resumed_by_all(divided)?, ..self.clone() };
        let now = problem.at_time(self.start);
        let n_threads = ranks::n_threads(cpu, &config.ranks)?;
        let boxed = |options: &GmgOptions| ranks::boxes_of_parts(&now, divided, options).map(Some);
        let held = held(&problem, transient.first_shift());
        let first = ranks::chosen(&held, config, n_threads, Solves::Many, &boxed)?;
        let run = Run {
            transient,
            problem: &problem,
            whole: whole.as_ref(),
            is_whole,
            layout: Layout::Distributed(divided, first.boxes.as_ref()),
            fixed: &Fixed::new(&now)?,
            initial: &agreed(&divided.comm, self.initial_values(&problem))?,
            config,
            of_stages: &of_stages(config),
            n_threads,
        };
        let (finished, end) = run.on_all((cpu, opened), observer, stages)?;
        let End { own, global, unknowns, outcome } = end;
        let at_end = |of: &Discretization<'m>| of.at_time(outcome.time);
        let of_first = whole.as_ref().filter(|_| is_whole).map(|whole| {
            let mut of_first = finished.clone();
            of_first.components = vec![global];
            Solution::new(at_end(whole), of_first)
        });
        let u = ranks::with_ghosts(&unknowns, own)?;
        let solution = ranks::results((at_end(&problem), divided.clone()), finished, (u, &unknowns))?;
        Ok(TransientSolution { solution, whole: of_first, outcome })
    }

    /// Refuses what is not supported on several ranks.
    fn check_on_ranks(&self, problem: &Discretization<'_>) -> Result<(), SolveError> {
        ranks::check(problem)?;
        let wrong = |message: &str| Err(SolveError::solver("ranks", message));
        if is_refilled(problem) {
            return wrong(
                "several ranks advance equations whose sigma, lambda and capacity do not change: take one rank",
            );
        }
        if self.mass == MassMatrix::Lumped {
            return wrong("several ranks have the consistent mass matrix: leave mass out, or take one rank");
        }
        Ok(())
    }

    /// Returns whether the first rank has the whole mesh, which frames and checkpoints need. Collective.
    fn check_whole(
        &self,
        divided: &MeshOnRanks<'_>,
        (whole, n): (Option<&Discretization<'_>>, usize),
    ) -> Result<bool, SolveError> {
        let times = self.frames.iter().map(|time| time.to_bits());
        let numbers: Vec<u64> =
            times.chain(self.checkpoints.map_or([0; 2], CheckpointInterval::to_bits)).collect();
        Ranks::Of(divided.comm.clone())
            .check_alike(&numbers, "ranks have other frames or checkpoints: set the same on all of them")?;
        let n_cells = divided.mesh.counts.n_cells as usize;
        let is_other = whole.is_some_and(|whole| {
            whole.divided.is_some() || (whole.mesh.n_cells(), whole.n_dofs()) != (n_cells, n)
        });
        let wants = !self.frames.is_empty() || self.checkpoints.is_some() || self.resume.is_some();
        let [is_whole, is_other, wants] = divided.comm.any([whole.is_some(), is_other, wants])?;
        let wrong = |message: &str| Err(SolveError::solver("ranks", message));
        if is_other {
            return wrong(
                "the problem on the whole mesh has other degrees of freedom than that of the parts",
            );
        }
        if wants && !is_whole {
            return wrong(
                "frames, checkpoints and restarts need the problem on the whole mesh on the first rank: give it to \
                 `Transient::run_on_parts`",
            );
        }
        Ok(is_whole)
    }

    /// Returns the checkpoint of the first rank; the other ranks get it without values. Collective.
    fn resumed_by_all(&self, divided: &MeshOnRanks<'_>) -> Result<Option<Arc<Checkpoint>>, SolveError> {
        let comm = &divided.comm;
        let mut bytes = Vec::new();
        if let Some(state) = self.resume.as_ref().filter(|_| comm.rank() == 0) {
            // Writing into memory does not fail.
            let _ = state.without_values().write(&mut bytes);
        }
        let of_first = comm.all_gather(&bytes)?.swap_remove(0);
        if comm.rank() == 0 || of_first.is_empty() {
            return Ok(self.resume.clone().filter(|_| comm.rank() == 0));
        }
        let message = |error| format!("the state of the first rank cannot be read: {error}");
        let state = Checkpoint::read(&mut of_first.as_slice());
        state.map(|state| Some(Arc::new(state))).map_err(|error| SolveError::solver("ranks", message(error)))
    }
}

/// Numbers that identify a checkpoint.
fn numbers_of(state: &Checkpoint) -> [u64; 4] {
    let time = state.history.first().map_or(f64::NAN, |(time, _)| *time);
    [state.step, time.to_bits(), state.length.to_bits(), state.history.len() as u64]
}

/// The settings of stages, without the time limit: ranks check it between steps only, and agree on it.
fn of_stages(config: &SolverConfig) -> SolverConfig {
    SolverConfig { time_limit: None, ..config.clone() }
}

/// A run on the whole mesh or on parts.
pub(super) struct Run<'r, 'm> {
    transient: &'r Transient<'m>,
    /// The problem on the mesh of this rank, which may be its part.
    pub problem: &'r Discretization<'m>,
    /// The problem on the whole mesh, if this rank has it.
    whole: Option<&'r Discretization<'m>>,
    /// Whether any rank has the whole mesh.
    is_whole: bool,
    pub layout: Layout<'r, 'm>,
    pub fixed: &'r Fixed,
    /// The initial values at the degrees of freedom of the problem.
    initial: &'r [f64],
    /// The settings of the caller.
    config: &'r SolverConfig,
    /// The same without the time limit.
    pub of_stages: &'r SolverConfig,
    /// The number of threads of all ranks.
    pub n_threads: usize,
}

/// The result of a run on one rank.
struct End {
    /// The values at the owned unknowns.
    own: Vec<f64>,
    /// The values at all unknowns; empty on ranks that do not keep them.
    global: Vec<f64>,
    unknowns: RankUnknowns,
    outcome: Outcome,
}

impl<'m> Run<'_, 'm> {
    /// Runs on all ranks; returns the result of the first one.
    fn on_all(
        &self,
        (cpu, opened): (&Cpu, Option<&Cuda>),
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, End), SolveError> {
        let Self { config, .. } = *self;
        // With an automatic choice of the device, ranks compute on CPUs.
        let opened = opened.filter(|_| matches!(config.device, DeviceChoice::Cuda(_)));
        // Only the first rank reports.
        let observer = std::sync::Mutex::new(Some(observer));
        let take = || observer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let work = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| {
            let mut none = ();
            let observer = if comm.rank() == 0 { take() } else { None }.unwrap_or(&mut none);
            match device::joined(comm, opened, config)? {
                (Some(gpu), comm) => self.on_rank((cpu, &gpu, &comm), keepers, observer, stages),
                (None, comm) => self.on_rank((cpu, cpu, &comm), keepers, observer, stages),
            }
        };
        ranks::on_all(cpu, &config.ranks, work, stages)
    }

    /// Runs on one rank.
    fn on_rank<D: RankDevice>(
        &self,
        (cpu, device, comm): (&Cpu, &D, &Comm),
        keepers: Keepers,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, End), SolveError> {
        let Self { transient, problem, config, layout, .. } = *self;
        let of_rank = layout.part(problem, comm);
        let part = of_rank.get();
        device::check_unknowns::<D>(comm, part.map_or(0, |part| part.n_owned))?;
        let own_space = self.space_of(comm, part)?;
        let space = match layout {
            Layout::Replicated(_) => own_space.as_ref(),
            Layout::Distributed(..) => problem.space(),
        };
        let of = RankContext { run: self, cpu, device, comm, part, space };
        let memory = transient.resume.as_ref().map_or(&[][..], |state| &state.memory);
        let first = (transient.start, transient.first_shift());
        let (mut equation, described) = DistributedEquation::new(of, first, memory, stages)?;
        let numbers = self.global_numbers(comm, part, &equation.unknowns)?;
        let global = GlobalUnknowns { comm, n: problem.n_global_dofs(), unknowns: &numbers };
        let unknowns = &equation.unknowns.owned;
        let initial = unknowns.iter().map(|&unknown| self.initial[unknown as usize]).collect();
        let mut u = Buffer::from_vec(device, initial).map_err(LinalgError::from)?;
        equation.impose(transient.start, &mut u)?;
        let resume = self.resumed(&global)?;
        let shown = (self.whole.unwrap_or(problem), config, Some(&global));
        let from = (u, resume.as_ref());
        let (own, outcome) = transient.integrate_from(from, &mut equation, shown, observer, stages)?;
        let all = match self.is_whole {
            true => global.gather(&own, layout.keepers(keepers))?,
            false => Vec::new(),
        };
        let mut warnings = self.whole.unwrap_or(problem).warnings.clone();
        warnings.extend(described.warnings);
        warnings.extend(warnings_of(&outcome));
        let reasons = [D::REASON, &described.reason];
        let done = (Vec::new(), linear_outcome(&outcome));
        let mut finished =
            Finished::of_parts(device, &described.config, done, described.parts, reasons, warnings);
        finished.ranks = Some(layout.used(&equation.unknowns.halo)?);
        finished.set_devices(device::devices(comm, device)?);
        finished.cite(transient.scheme.citations());
        Ok((finished, End { own, global: all, unknowns: equation.unknowns, outcome }))
    }

    /// The space on the part of a rank that has the whole mesh; none for linear elements.
    fn space_of<'p>(
        &self,
        comm: &Comm,
        part: Option<&'p MeshPart>,
    ) -> Result<Option<TensorSpace<'p>>, SolveError> {
        let space = match (self.layout, self.problem.space(), part) {
            (Layout::Replicated(_), Some(whole), Some(part)) => {
                Some(TensorSpace::new(&part.mesh, whole.degree())).transpose()
            }
            _ => Ok(None),
        };
        agreed(comm, space.map_err(SolveError::from))
    }

    /// The global numbers of the owned unknowns. Empty if ranks have only their parts and none has the whole
    /// mesh. Collective.
    fn global_numbers(
        &self,
        comm: &Comm,
        part: Option<&MeshPart>,
        unknowns: &RankUnknowns,
    ) -> Result<Vec<u32>, SolveError> {
        let Self { problem, whole, is_whole, layout, .. } = *self;
        let (Layout::Distributed(..), Some(part)) = (layout, part) else { return Ok(unknowns.owned.clone()) };
        match is_whole {
            true => {
                let space = whole.and_then(Discretization::space);
                Ok(global_numbers(comm, (part, problem.space()), &unknowns.owned, space)?)
            }
            false => Ok(Vec::new()),
        }
    }

    /// The checkpoint to continue from, with the values at owned unknowns. Collective.
    fn resumed(&self, global: &GlobalUnknowns<'_>) -> Result<Option<Checkpoint>, SolveError> {
        let Some(state) = &self.transient.resume else { return Ok(None) };
        let has_all = self.whole.is_some();
        let other = state.history.iter().find(|(_, all)| has_all && all.len() != global.n);
        let other = other.map(|(_, all)| LinalgError::Length {
            field: "checkpoint",
            expected: global.n,
            found: all.len(),
        });
        agreed(global.comm, other.map_or(Ok(()), |error| Err(error.into())))?;
        let of_rank =
            |(time, all): &(f64, Vec<f64>)| Ok((*time, global.scatter(has_all.then_some(all.as_slice()))?));
        let history = state.history.iter().map(of_rank).collect::<Result<_, LinalgError>>()?;
        Ok(Some(Checkpoint { history, ..state.without_values() }))
    }
}
