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
use femtile_time::implicit::{Checkpoint, Outcome};

use super::distributed_equation::RankContext;
use super::nonlinear::is_refilled;
use super::operators::held;
use super::semidiscrete::Semidiscrete;
use super::watch::Shown;
use super::{Beginning, Observer, TimeStepping, Transient, TransientSolution};
use crate::auto::{Circumstances, Solves};
use crate::discretization::Discretization;
use crate::ranks::data::on_part;
use crate::ranks::device::RankDevices;
use crate::ranks::rows::{Fixed, RankProblem, agreed};
use crate::ranks::unknowns::RankUnknowns;
use crate::ranks::{
    self, GlobalUnknowns, Keepers, Layout, MeshOfRanks, MeshOnRanks, RankDevice, Ranks, SolvedOnRank, device,
    global_numbers,
};
use crate::solution::{Finished, Found};
use crate::{DeviceChoice, GmgOptions, MassMatrix, Solution, SolveError, SolverConfig, Stage, Stages};

impl<'m> Transient<'m> {
    /// Runs on ranks that have the whole mesh each, or only their parts. All of them get the solution at the end, the first one
    /// on the whole mesh if it has that, and calls the observer. `whole` is the problem on the whole mesh of a first rank that
    /// has its part as well.
    pub(super) fn run_on_ranks(
        &self,
        problem: Discretization<'m>,
        whole: Option<Discretization<'m>>,
        (cpu, opened): (&Cpu, Option<&Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<TransientSolution<'m>, SolveError> {
        problem.agreed(self.check_mass(&problem))?;
        let (transient, whole, is_whole) = match &problem.divided {
            None => {
                config.ranks.check_resumed(self.stepping.resume.as_deref())?;
                (self.clone(), None, true)
            }
            Some(divided) => {
                if config.ranks != Ranks::Of(divided.comm.clone()) {
                    return Err(ranks::other_ranks());
                }
                let whole = whole.filter(|_| divided.comm.rank() == 0);
                let is_whole = self.check_whole(divided, (whole.as_ref(), problem.n_global_dofs()))?;
                let stepping =
                    TimeStepping { resume: self.resumed_by_all(divided)?, ..self.stepping.clone() };
                (Self { stepping, ..self.clone() }, whole, is_whole)
            }
        };
        let now = problem.at_time(self.stepping.start);
        let n_threads = ranks::n_threads(cpu, &config.ranks)?;
        let initial = problem.agreed(self.initial_values(&problem))?;
        let is_refilled = is_refilled(&problem) || self.mass == MassMatrix::Lumped;
        let (refilled, boxes) = match problem.is_anywhere(is_refilled)? {
            true => {
                let circumstances = Circumstances::new(false, n_threads, Solves::Many);
                (Some(self.resolved(config, &problem, &initial, circumstances)?), None)
            }
            false => {
                let boxed = |options: &GmgOptions| match &problem.divided {
                    Some(divided) => ranks::boxes_of_parts(&now, divided, options).map(Some),
                    None => ranks::boxes(&now, options, config.ranks.n()).map(Some),
                };
                let held = held(&problem, transient.stepping.first_shift());
                (None, ranks::chosen(&held, config, n_threads, Solves::Many, &boxed)?.boxes)
            }
        };
        let mesh = MeshOfRanks::new(&problem, boxes, config)?;
        let run = Run {
            transient: &transient,
            problem: &problem,
            whole: if problem.divided.is_some() { whole.as_ref() } else { Some(&problem) },
            is_whole,
            layout: mesh.layout(),
            fixed: &Fixed::new(&now)?,
            initial: &initial,
            refilled,
            config,
            of_stages: &of_stages(config),
            n_threads,
        };
        let (mut finished, end) = run.on_all((cpu, opened), observer, stages)?;
        drop(run);
        let End { own, global, unknowns, outcome } = end;
        let at_end = |of: &Discretization<'m>| of.at_time(outcome.time);
        match mesh {
            MeshOfRanks::Replicated(division) => {
                finished.components = vec![global];
                finished.partition = Some(division.partition);
                let solution = Solution::new(at_end(&problem), finished);
                Ok(TransientSolution { solution, whole: None, outcome })
            }
            MeshOfRanks::Distributed(divided, _) => {
                let of_first = whole.as_ref().filter(|_| is_whole).map(|whole| {
                    let mut of_first = finished.clone();
                    of_first.components = vec![global];
                    Solution::new(at_end(whole), of_first)
                });
                finished.components = vec![unknowns.local.with_ghosts(&own)?];
                let of_rank = SolvedOnRank { finished, unknowns, is_pure_neumann: false };
                let solution = ranks::results((at_end(&problem), divided), of_rank)?;
                Ok(TransientSolution { solution, whole: of_first, outcome })
            }
        }
    }

    /// Returns whether the first rank has the whole mesh, which frames and checkpoints need. Collective.
    fn check_whole(
        &self,
        divided: &MeshOnRanks<'_>,
        (whole, n): (Option<&Discretization<'_>>, usize),
    ) -> Result<bool, SolveError> {
        let times = self.stepping.frames.iter().map(|time| time.to_bits());
        let numbers: Vec<u64> = times
            .chain(self.stepping.checkpoints.map_or([0; 2], |(interval, _)| interval.to_bits()))
            .collect();
        Ranks::Of(divided.comm.clone())
            .check_alike(&numbers, "ranks have other frames or checkpoints: set the same on all of them")?;
        let n_cells = divided.mesh.counts.n_cells as usize;
        let is_other = whole.is_some_and(|whole| {
            whole.divided.is_some() || (whole.mesh.n_cells(), whole.n_dofs()) != (n_cells, n)
        });
        let wants = !self.stepping.frames.is_empty()
            || self.stepping.checkpoints.is_some()
            || self.stepping.resume.is_some();
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
        if let Some(state) = self.stepping.resume.as_ref().filter(|_| comm.rank() == 0) {
            // Writing into memory does not fail.
            let _ = state.without_values().write(&mut bytes);
        }
        let of_first = comm.all_gather(&bytes)?.swap_remove(0);
        if comm.rank() == 0 || of_first.is_empty() {
            return Ok(self.stepping.resume.clone().filter(|_| comm.rank() == 0));
        }
        let message = |error| format!("the state of the first rank cannot be read: {error}");
        let state = Checkpoint::read(&mut of_first.as_slice());
        state.map(|state| Some(Arc::new(state))).map_err(|error| SolveError::solver("ranks", message(error)))
    }
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
    /// The settings with the preconditioner and its reason, if matrices are reassembled in time.
    refilled: Option<(SolverConfig, String)>,
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
                (Some(gpu), comm) => {
                    self.on_rank(RankDevices { cpu, device: &gpu, comm: &comm }, keepers, observer, stages)
                }
                (None, comm) => {
                    self.on_rank(RankDevices { cpu, device: cpu, comm: &comm }, keepers, observer, stages)
                }
            }
        };
        ranks::on_all(cpu, &config.ranks, work, stages)
    }

    /// Runs on one rank.
    fn on_rank<D: RankDevice>(
        &self,
        on: RankDevices<'_, D>,
        keepers: Keepers,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, End), SolveError> {
        let Self { problem, layout, .. } = *self;
        let of_rank = layout.part(problem, on.comm);
        let part = of_rank.get();
        device::check_unknowns::<D>(on.comm, part.map_or(0, |part| part.n_owned))?;
        match &self.refilled {
            Some(refilled) => self.refilled(on, part, refilled, (keepers, observer), stages),
            None => self.kept(on, part, (keepers, observer), stages),
        }
    }

    /// Runs with matrices that are reassembled in time.
    fn refilled<D: RankDevice>(
        &self,
        on: RankDevices<'_, D>,
        part: Option<&MeshPart>,
        (config, reason): &(SolverConfig, String),
        (keepers, observer): (Keepers, &mut dyn Observer),
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, End), SolveError> {
        let Self { transient, problem, layout, .. } = *self;
        stages.begin(Stage::Assemble)?;
        let RankDevices { device, comm, .. } = on;
        let on_part = layout.on_part(comm, RankProblem { problem, fixed: self.fixed, part })?;
        let numbers = self.global_numbers(comm, part, &on_part.unknowns)?;
        let global = GlobalUnknowns { comm, n: problem.n_global_dofs(), unknowns: &numbers };
        let resume = self.resumed(&global)?;
        let domain = on_part.domain(on)?;
        let from = (on_part.unknowns.of_problem(self.initial), resume.as_ref());
        let shown = Shown { problem: self.whole.unwrap_or(problem), global: Some(&global) };
        let (found, outcome) = transient.refilled(&domain, from, config, shown, observer, stages)?;
        drop(domain);
        self.ended((device, &global), (found, reason), (outcome, on_part.unknowns), keepers)
    }

    /// Runs with operators that are kept for each shift.
    fn kept<D: RankDevice>(
        &self,
        on: RankDevices<'_, D>,
        part: Option<&MeshPart>,
        (keepers, observer): (Keepers, &mut dyn Observer),
        stages: &mut Stages<'_>,
    ) -> Result<(Finished, End), SolveError> {
        let Self { transient, problem, config, .. } = *self;
        let RankDevices { device, comm, .. } = on;
        let on_part = on_part(comm, (problem, &self.fixed.winners), part)?;
        let of = RankContext { run: self, on, part, on_part: on_part.as_ref() };
        let memory = transient.stepping.resume.as_ref().map_or(&[][..], |state| &state.memory);
        let first = (transient.stepping.start, transient.stepping.first_shift());
        let (mut equation, described) = Semidiscrete::on_rank(of, first, memory, stages)?;
        let unknowns = &equation.operators.unknowns;
        let numbers = self.global_numbers(comm, part, unknowns)?;
        let global = GlobalUnknowns { comm, n: problem.n_global_dofs(), unknowns: &numbers };
        let mut u = Buffer::from_vec(device, unknowns.of_problem(self.initial)).map_err(LinalgError::from)?;
        equation.impose(transient.stepping.start, &mut u)?;
        let resume = self.resumed(&global)?;
        let shown = Shown { problem: self.whole.unwrap_or(problem), global: Some(&global) };
        let from = Beginning { initial: u, resume: resume.as_ref(), time_limit: config.time_limit };
        let (own, outcome) = transient.integrate(from, &mut equation, shown, observer, stages)?;
        let reason = described.preconditioner_reason.clone();
        let found = described.found(own, &outcome);
        self.ended((device, &global), (found, &reason), (outcome, equation.operators.unknowns), keepers)
    }

    /// Gathers the result of a run.
    fn ended<D: RankDevice>(
        &self,
        (device, global): (&D, &GlobalUnknowns<'_>),
        (mut found, reason): (Found, &str),
        (outcome, unknowns): (Outcome, RankUnknowns),
        keepers: Keepers,
    ) -> Result<(Finished, End), SolveError> {
        let own = found.components.pop().unwrap_or_default();
        let all = match self.is_whole {
            true => global.gather(&own, self.layout.keepers(keepers))?,
            false => Vec::new(),
        };
        let found = found.after(&self.whole.unwrap_or(self.problem).warnings);
        let mut finished = Finished::new(device, found, [D::REASON, reason]);
        finished.ranks = Some(self.layout.used(unknowns.halo())?);
        finished.set_devices(device::devices(global.comm, device)?);
        finished.cite(self.transient.stepping.scheme.citations());
        Ok((finished, End { own, global: all, unknowns, outcome }))
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
        let Some(state) = &self.transient.stepping.resume else { return Ok(None) };
        let has_all = self.whole.is_some();
        let other = state.history.iter().find(|(_, all)| has_all && all.len() != global.n);
        let other = other.map(|(_, all)| LinalgError::Length {
            field: "checkpoint",
            expected: global.n,
            found: all.len(),
        });
        agreed(global.comm, other.map_or(Ok(()), Err))?;
        let of_rank =
            |(time, all): &(f64, Vec<f64>)| Ok((*time, global.scatter(has_all.then_some(all.as_slice()))?));
        let history = state.history.iter().map(of_rank).collect::<Result<_, LinalgError>>()?;
        Ok(Some(Checkpoint { history, ..state.without_values() }))
    }
}
