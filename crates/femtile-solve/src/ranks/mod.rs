//! Distributed solves: each rank owns the unknowns of its part of the mesh.
//!
//! A rank assembles, stores and iterates on its part. Depending on the [`Layout`], it knows the whole mesh
//! and receives the global solution, or it knows only its part. Collective functions block until every rank
//! has called them.
//!
//! All ranks take the same decisions, because these depend on sums with the same bits on all ranks. A local
//! event, such as a signal or a timeout, is summed before it counts (`watch`). Errors that may occur on only
//! one rank are agreed on (`agreed`) before the next message.
//!
//! A rank assembles the rows of its owned nodes from all cells that touch them (`MeshPart`), so assembly needs no
//! communication. Threads share the whole mesh, which gives the conditions that hold on facets and the
//! connected components. Threads generate parts only of hexahedral boxes. MPI ranks have only their parts.

mod cell_dofs;
mod cells;
mod collect;
pub(crate) mod data;
mod degrees;
pub(crate) mod device;
mod distributed_problem;
mod distributed_solve;
mod global_unknowns;
mod host;
mod layout;
mod mesh_on_ranks;
mod numbering;
pub(crate) mod rows;
mod scatter;
#[cfg(test)]
mod tests;
pub(crate) mod unknowns;
mod used;
mod watch;
mod wire;

use std::fmt::Display;

use femtile_comm::{Comm, threads};
use femtile_device::{Cpu, Cuda};
use femtile_fem::Constraints;
use femtile_fem::functionals;
use femtile_linalg::LinalgError;
use femtile_mesh::partition::{MeshPart, Partition, PartitionQuality};
use femtile_space::{Space, TensorSpace};
use femtile_time::implicit::Checkpoint;

use crate::auto::{Boxed, Circumstances, Solves};
use crate::discretization::Discretization;
use crate::nonlinear;
use crate::plan::Plan;
use crate::solution::{Finished, Solution};
use crate::tensor::{self, Boxes};
use crate::{
    DeviceChoice, GmgOptions, PreconditionerConfig, Silent, SolveError, SolverConfig, Stage, Stages,
};
pub(crate) use cells::owned_rows;
pub(crate) use collect::{AllOfMesh, Values, collect};
pub use device::RankDevice;
use device::RankDevices;
pub use distributed_problem::{DistributedProblem, LocalProblem};
pub(crate) use distributed_solve::{SolvedOnRank, boxes as boxes_of_parts, results};
pub(crate) use global_unknowns::{GlobalUnknowns, global_numbers};
pub use host::has_gpus_of_ranks;
pub(crate) use layout::{Layout, MeshOfRanks};
pub(crate) use mesh_on_ranks::{MeshOnRanks, OnMesh};
pub(crate) use numbering::{Numbering, numbers_in, owners_of_dofs};
use rows::{Fixed, RankProblem};
pub use scatter::scatter;
use unknowns::{RankSystem, RankUnknowns};
pub use used::RanksUsed;
pub(crate) use watch::Agreed;

/// The most ranks that are threads of one process.
const MOST_THREADS: usize = 1024;

/// The ranks of a solve.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Ranks {
    /// One rank.
    #[default]
    One,
    /// That many threads of this process, which divide its cores.
    Threads(usize),
    /// Existing ranks, each of which calls the same functions.
    Of(Comm),
}

impl Ranks {
    /// Checks the number of ranks.
    ///
    /// # Errors
    /// [`SolveError::Setting`].
    pub(crate) fn check(&self) -> Result<(), SolveError> {
        match self {
            Self::Threads(0) => Err(SolveError::solver(
                "ranks",
                "0 ranks solve nothing: take 1, or as many as there are cores",
            )),
            Self::Threads(n) if *n > MOST_THREADS => {
                let message =
                    format!("{n} ranks are more than the {MOST_THREADS} that a process may have: use MPI");
                Err(SolveError::solver("ranks", message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to go on from checkpoints that differ between ranks. Collective.
    pub(crate) fn check_resumed(&self, own: Option<&Checkpoint>) -> Result<(), SolveError> {
        self.check_state(&own.map_or([0; 4], |state| {
            let time = state.history.first().map_or(f64::NAN, |(time, _)| *time);
            [state.step, time.to_bits(), state.length.to_bits(), state.history.len() as u64]
        }))
    }

    /// Refuses a restart from checkpoints that differ between ranks; `own` identifies that of this rank.
    /// Collective.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if numbers differ.
    pub fn check_state(&self, own: &[u64]) -> Result<(), SolveError> {
        self.check_alike(
            own,
            "ranks go on from other states: let all of them read the output folder of the run",
        )
    }

    /// Refuses settings that differ between ranks, with `message`; `own` identifies those of this rank.
    /// Collective.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if numbers differ.
    pub fn check_alike(&self, own: &[u64], message: &str) -> Result<(), SolveError> {
        let Self::Of(comm) = self else { return Ok(()) };
        match comm.all_gather(own)?.iter().all(|other| other == own) {
            true => Ok(()),
            false => Err(SolveError::solver("ranks", message)),
        }
    }

    /// Returns the number of ranks.
    pub fn n(&self) -> usize {
        match self {
            Self::One => 1,
            Self::Threads(n) => *n,
            Self::Of(comm) => comm.n_ranks(),
        }
    }
}

/// Refuses a distributed problem, for computations that need the whole mesh.
pub(crate) fn need_whole(problem: &Discretization<'_>) -> Result<(), SolveError> {
    match problem.divided {
        None => Ok(()),
        Some(_) => Err(SolveError::solver(
            "ranks",
            "each rank has its part of the mesh alone, which serves `Discretization::solve`, `Transient` and \
             `Discretization::divided` on these ranks (`Ranks::Of`): take a mesh that every rank has",
        )),
    }
}

/// The error about a mesh that is not distributed.
pub(crate) fn no_parts() -> SolveError {
    SolveError::solver(
        "ranks",
        "ranks have no parts of the mesh: state the problem by `Poisson::distributed`",
    )
}

/// The error about a communicator other than that of the distributed mesh.
pub(crate) fn other_ranks() -> SolveError {
    SolveError::solver("ranks", "the mesh is divided among other ranks: solve with those of the problem")
}

/// Refuses several ranks, for solves that support only one.
pub(crate) fn refuse(config: &SolverConfig) -> Result<(), SolveError> {
    match config.ranks.n() {
        1 => Ok(()),
        _ => Err(SolveError::solver(
            "ranks",
            "several ranks solve problems on meshes, stationary or in time: take one rank",
        )),
    }
}

/// Solves a problem on the ranks of the settings; all of them get the solution. They share the caller's GPU,
/// if there is one.
pub(crate) fn solve<'m>(
    problem: Discretization<'m>,
    cpu: &Cpu,
    config: &SolverConfig,
    opened: Option<&Cuda>,
    stages: &mut Stages<'_>,
) -> Result<Solution<'m>, SolveError> {
    config.check()?;
    let wants_gpu = matches!(config.device, DeviceChoice::Cuda(_));
    if wants_gpu && config.ranks.n() == 1 {
        return Err(SolveError::solver("ranks", "a rank alone on a GPU is `Ranks::One`"));
    }
    // With an automatic choice of the device, ranks compute on CPUs.
    let opened = opened.filter(|_| wants_gpu);
    let n_threads = n_threads(cpu, &config.ranks)?;
    if problem.is_anywhere(problem.is_nonlinear())? {
        let (config, reason, initial) =
            nonlinear::prepared(&problem, config, Circumstances::new(false, n_threads, Solves::One))?;
        stages.begin(Stage::Assemble)?;
        let mesh = MeshOfRanks::new(&problem, None, &config)?;
        return solve_divided((problem, Some(initial)), mesh, (cpu, opened), (&config, &reason), stages);
    }
    let boxed = |options: &GmgOptions| match &problem.divided {
        Some(divided) => boxes_of_parts(&problem, divided, options).map(Some),
        None => boxes(&problem, options, config.ranks.n()).map(Some),
    };
    let Plan { config, reason, boxes, .. } = chosen(&problem, config, n_threads, Solves::One, &boxed)?;
    stages.begin(Stage::Assemble)?;
    let mesh = MeshOfRanks::new(&problem, boxes, &config)?;
    solve_divided((problem, None), mesh, (cpu, opened), (&config, &reason), stages)
}

/// The box of a problem; its layers of cells are distributed among ranks.
pub(crate) fn boxes(
    problem: &Discretization<'_>,
    options: &GmgOptions,
    n_ranks: usize,
) -> Result<Boxes, SolveError> {
    let Some(space) = problem.space() else {
        return Err(SolveError::solver("preconditioner", "geometric multigrid is for cells in rows"));
    };
    let form = problem.form(0);
    let given = Constraints::of_form(&Space::from(space), &form)?;
    Boxes::of_ranks(options, (space, form.sigma), given.dofs(), n_ranks)
}

/// Solves a problem on a mesh that is divided; `initial` is the first iterate on the mesh of a rank if a coefficient depends
/// on u.
fn solve_divided<'m>(
    (problem, initial): (Discretization<'m>, Option<Vec<f64>>),
    mesh: MeshOfRanks<'m>,
    (cpu, opened): (&Cpu, Option<&Cuda>),
    (config, reason): (&SolverConfig, &str),
    stages: &mut Stages<'_>,
) -> Result<Solution<'m>, SolveError> {
    let (fixed, layout) = (Fixed::new(&problem)?, mesh.layout());
    let of = RankSolve { problem: &problem, initial: initial.as_deref(), fixed, layout, config, reason };
    let work = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| match device::joined(
        comm, opened, config,
    )? {
        (Some(gpu), comm) => of.solve(RankDevices { cpu, device: &gpu, comm: &comm }, keepers, stages),
        (None, comm) => of.solve(RankDevices { cpu, device: cpu, comm: &comm }, keepers, stages),
    };
    let mut solved = on_all(cpu, &config.ranks, work, stages)?;
    drop(of);
    match mesh {
        MeshOfRanks::Replicated(division) => {
            solved.finished.partition = Some(division.partition);
            Ok(Solution::new(problem, solved.finished))
        }
        MeshOfRanks::Distributed(divided, _) => results((problem, divided), solved),
    }
}

/// The ranks that keep global results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keepers {
    /// Each rank: processes write their own reports.
    All,
    /// The first rank, whose memory threads share.
    First,
}

impl Keepers {
    /// Returns whether this rank keeps global results.
    pub fn has(self, comm: &Comm) -> bool {
        self == Self::All || comm.rank() == 0
    }
}

/// Runs `work` on each rank; its last argument says which ranks keep global results.
pub(crate) fn on_all<R: Send, E: From<SolveError> + From<LinalgError> + Display + Send>(
    cpu: &Cpu,
    ranks: &Ranks,
    work: impl Fn(&Cpu, &Comm, &mut Stages<'_>, Keepers) -> Result<R, E> + Sync,
    stages: &mut Stages<'_>,
) -> Result<R, E> {
    match ranks {
        Ranks::Threads(n) => {
            let on_rank = |comm: Comm, stages: &mut Stages<'_>| -> Result<R, E> {
                let cpu = Cpu::with_simd((cpu.threads() / n).max(1), cpu.simd()).map_err(SolveError::from)?;
                cpu.install(|| work(&cpu, &comm, stages, Keepers::First))
            };
            let first = |comm: Comm| on_rank(comm, stages);
            threads::run(*n, first, |comm| on_rank(comm, &mut Stages::new(&mut Silent)).map(drop))
        }
        Ranks::Of(comm) => work(cpu, comm, stages, Keepers::All),
        Ranks::One => work(cpu, &Comm::alone(), stages, Keepers::All),
    }
}

/// Fewest layers of cells per rank for an automatic choice of geometric multigrid: each rank also works on
/// some layers of its neighbours.
pub const FEWEST_LAYERS: usize = 8;

/// Decides what the solve of a problem is made of; `boxed` finds the boxes of geometric multigrid.
pub(crate) fn chosen(
    problem: &Discretization<'_>,
    config: &SolverConfig,
    n_threads: usize,
    solves: Solves,
    boxed: &Boxed<'_>,
) -> Result<Plan, SolveError> {
    let (device, n) = (config.device, config.ranks.n());
    let on_gpu = matches!(device, DeviceChoice::Cuda(_));
    let is_chosen = config.preconditioner == PreconditionerConfig::Auto;
    let fitting = |options: &GmgOptions| {
        let boxes = boxed(options)?;
        let few = |boxes: &Boxes| {
            let layers = boxes.fewest_layers(n);
            (is_chosen && layers < FEWEST_LAYERS).then(|| format!("a rank has {layers} layers of cells"))
        };
        let of_gpus = |boxes: &Boxes| boxes.lack_of_gpus().filter(|_| on_gpu);
        let lack = boxes.as_ref().and_then(|boxes| of_gpus(boxes).or_else(|| few(boxes)));
        lack.map_or(Ok(boxes), |lack| Err(SolveError::solver("preconditioner", lack)))
    };
    // The rules for one GPU do not hold for several.
    let on_cpu = SolverConfig { device: DeviceChoice::Cpu, ..config.clone() };
    let circumstances = Circumstances::new(false, n_threads, solves);
    let mut plan = Plan::of(&on_cpu, problem, Some(&fitting), circumstances)?;
    plan.config.device = device;
    Ok(plan)
}

/// The number of threads of all ranks together. Every rank must know it, because choices that depend on it
/// must be the same.
pub(crate) fn n_threads(cpu: &Cpu, ranks: &Ranks) -> Result<usize, SolveError> {
    match ranks {
        Ranks::Of(comm) => {
            let all = comm.all_gather(&[cpu.threads() as u64])?;
            Ok(all.into_iter().flatten().sum::<u64>() as usize)
        }
        Ranks::One | Ranks::Threads(_) => Ok(cpu.threads()),
    }
}

/// The partition of a mesh, known to every rank.
pub(crate) struct ReplicatedPartition<'m> {
    /// The rank of each cell.
    pub partition: Partition,
    /// The owner of each node.
    owners: Vec<u32>,
    quality: PartitionQuality,
    /// The name of the partitioner.
    way: &'static str,
    /// The spaces of lower degree for p-multigrid.
    below: Vec<TensorSpace<'m>>,
    /// The boxes of geometric multigrid.
    boxes: Option<Boxes>,
}

impl<'m> ReplicatedPartition<'m> {
    /// Partitions the mesh of a problem by the layers of geometric multigrid, else as the settings say.
    pub fn new(
        problem: &Discretization<'m>,
        boxes: Option<Boxes>,
        config: &SolverConfig,
    ) -> Result<Self, SolveError> {
        if let Some(partition) = boxes.as_ref().and_then(Boxes::partition).cloned() {
            let division = Self::of(problem, partition, config)?;
            return Ok(Self { way: "layers", boxes, ..division });
        }
        let partition = config.partitioner.divide(problem.mesh, config.ranks.n());
        Self::of(problem, partition, config)
    }

    /// Takes a partition of the mesh of a problem.
    pub fn of(
        problem: &Discretization<'m>,
        partition: Partition,
        config: &SolverConfig,
    ) -> Result<Self, SolveError> {
        let below = match (problem.space(), &config.preconditioner) {
            (Some(space), PreconditionerConfig::Pmg(_) | PreconditionerConfig::Auto) => {
                tensor::degrees::spaces_below(space)?
            }
            _ => Vec::new(),
        };
        let owners = partition.owners(problem.mesh);
        let quality = partition.quality(problem.mesh, &owners);
        Ok(Self { partition, owners, quality, way: config.partitioner.name(), below, boxes: None })
    }

    /// Extracts the part of this rank; none if it owns no node.
    pub fn part(&self, problem: &Discretization<'_>, comm: &Comm) -> Option<MeshPart> {
        MeshPart::new(problem.mesh, &problem.boundary, &self.owners, comm.rank())
    }
}

/// A steady problem on a mesh that is divided.
struct RankSolve<'p, 'm> {
    problem: &'p Discretization<'m>,
    /// The first iterate on the mesh of a rank, if a coefficient depends on u.
    initial: Option<&'p [f64]>,
    fixed: Fixed,
    layout: Layout<'p, 'm>,
    config: &'p SolverConfig,
    /// The reason for the preconditioner.
    reason: &'p str,
}

impl RankSolve<'_, '_> {
    /// Solves on one rank, on its device. If ranks have only their parts, u is that on the part, up to a constant if that is
    /// free. Collective.
    fn solve<D: RankDevice>(
        &self,
        on: RankDevices<'_, D>,
        keepers: Keepers,
        stages: &mut Stages<'_>,
    ) -> Result<SolvedOnRank, SolveError> {
        let Self { problem, ref fixed, layout, config, reason, .. } = *self;
        let RankDevices { device, comm, .. } = on;
        let part = layout.part(problem, comm);
        let part = part.get();
        device::check_unknowns::<D>(comm, part.map_or(0, |part| part.n_owned))?;
        let of = RankProblem { problem, fixed, part };
        let (mut found, unknowns, is_pure_neumann) = match self.initial {
            None => {
                let RankSystem { system, unknowns } = layout.system(on, of, config, stages)?;
                let (w, outcome) = system.solve(config, stages)?;
                (system.found(&w, outcome, config)?, unknowns, system.is_pure_neumann())
            }
            Some(initial) => {
                let on_part = layout.on_part(comm, of)?;
                let initial = on_part.unknowns.of_problem(initial);
                let found = nonlinear::newton(&on_part.domain(on)?, initial, config, stages)?;
                (found, on_part.unknowns, false)
            }
        };
        stages.begin(Stage::Write)?;
        let n_components = found.components.len();
        let completed = |own| self.completed(own, &unknowns, is_pure_neumann, (comm, keepers));
        found.components = found.components.into_iter().map(completed).collect::<Result<_, _>>()?;
        let mut finished = Finished::new(device, found.after(&problem.warnings), [D::REASON, reason]);
        finished.ranks = Some(layout.used(unknowns.halo())?.of_components(n_components));
        finished.set_devices(device::devices(comm, device)?);
        Ok(SolvedOnRank { finished, unknowns, is_pure_neumann })
    }

    /// Completes a component of u from its owned values: gathers it on the ranks that keep it, with mean zero if a constant is
    /// free; if ranks have only their parts, adds ghosts. Collective.
    fn completed(
        &self,
        own: Vec<f64>,
        unknowns: &RankUnknowns,
        is_pure_neumann: bool,
        (comm, keepers): (&Comm, Keepers),
    ) -> Result<Vec<f64>, SolveError> {
        if let Layout::Distributed(..) = self.layout {
            return Ok(unknowns.local.with_ghosts(&own)?);
        }
        let problem = self.problem;
        let mut u =
            GlobalUnknowns { comm, n: problem.n_dofs(), unknowns: &unknowns.owned }.gather(&own, keepers)?;
        if is_pure_neumann && keepers.has(comm) {
            let mean = functionals::mean(&Space::of(problem.mesh, problem.space())?, &u)?;
            u.iter_mut().for_each(|u| *u -= mean);
        }
        Ok(u)
    }
}
