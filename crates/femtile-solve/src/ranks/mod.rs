//! One problem solved by several ranks, each with the unknowns of its part of the mesh.
//!
//! A rank assembles, keeps and iterates on its part. It knows the whole mesh and the whole problem, and has the solution of all, or
//! else its parts of these alone: see [`Layout`].
//!
//! All ranks decide alike because they decide on sums with the same bits. What is not such a number, such as a
//! signal or a clock, is summed before it counts (`watch`). Errors that only one rank may meet are agreed on
//! (`agreed`) before the next message.
//!
//! A rank assembles the rows of its nodes from all cells that touch them (`Part`), so nothing is added up between
//! ranks. Threads share the whole mesh, which gives the conditions that win on facets and the components of the mesh;
//! of generated hexahedral boxes they make parts. Ranks of MPI have their parts of the mesh.

mod caller;
mod cell_dofs;
mod cells;
mod collect;
pub(crate) mod data;
mod degrees;
pub(crate) mod device;
mod divided;
mod host;
mod iterated;
mod layout;
mod mean_free;
mod numbering;
mod of_whole;
mod parts;
pub(crate) mod rows;
mod scatter;
pub(crate) mod system;
#[cfg(test)]
mod tests;
mod used;
pub(crate) mod watch;
mod wire;

use std::fmt::Display;

use femtile_comm::{Comm, threads};
use femtile_device::{Cpu, Cuda};
use femtile_fem::Constraints;
use femtile_fem::assembly::completed;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::functionals;
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_mesh::partition::{Part, Partition, PartitionQuality};
use femtile_multigrid::Smoother;

use crate::auto::{Boxed, Circumstances, Solves};
use crate::discretization::{Discretization, warning_of_imbalance};
use crate::solution::{Finished, Solution, warning_of_outcome};
use crate::tensor::{self, Boxes};
use crate::{
    DeviceChoice, GmgOptions, PreconditionerConfig, Silent, SolveError, SolverConfig, Stage, Stages, auto,
};
pub use caller::{DividedProblem, RankPart};
pub(crate) use collect::{AllOfMesh, Values, collect};
pub use device::RankDevice;
pub(crate) use divided::{Divided, OnMesh};
pub use host::has_gpus_of_ranks;
use iterated::Iterated;
pub(crate) use layout::Layout;
pub(crate) use of_whole::{OfWhole, numbers_in_whole};
pub(crate) use parts::{boxes as boxes_of_parts, of_part, results};
use rows::Fixed;
pub use scatter::scatter;
pub use used::RanksUsed;

/// The most ranks that are threads of one process.
const MOST_THREADS: usize = 1024;

/// The ranks that solve a problem together.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Ranks {
    /// This one alone.
    #[default]
    One,
    /// Threads of this process, among which its cores are divided.
    Threads(usize),
    /// Ranks that run already, each of which calls the same functions.
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

    /// Refuses states to go on from that are not those of all ranks, by numbers that tell them apart.
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

    /// Refuses settings that differ between ranks, by numbers that tell them apart, with a message that says
    /// so. Collective.
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

/// Refuses what several ranks cannot do.
pub(crate) fn check(problem: &Discretization<'_>) -> Result<(), SolveError> {
    let wrong = |message: &str| Err(SolveError::solver("ranks", message));
    if problem.config.components != 1 {
        return wrong(
            "several ranks solve for one component of u: take one rank, whose threads share the work",
        );
    }
    if problem.is_nonlinear() {
        return wrong("several ranks solve linear equations, and a coefficient depends on u: take one rank");
    }
    Ok(())
}

/// Refuses a problem of which each rank has its part alone, for what needs the whole mesh.
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

/// The error of ranks that have no parts.
pub(crate) fn no_parts() -> SolveError {
    SolveError::solver("ranks", "ranks have no parts of the mesh: state the problem by `Poisson::divided`")
}

/// The error of ranks other than those that have the parts.
pub(crate) fn other_ranks() -> SolveError {
    SolveError::solver("ranks", "the mesh is divided among other ranks: solve with those of the problem")
}

/// Refuses several ranks if a solve knows one alone.
pub(crate) fn refuse(config: &SolverConfig) -> Result<(), SolveError> {
    match config.ranks.n() {
        1 => Ok(()),
        _ => Err(SolveError::solver(
            "ranks",
            "several ranks solve problems on meshes, stationary or in time: take one rank",
        )),
    }
}

/// Solves a problem on the ranks of the settings, which share a GPU that is given; all of them get the solution.
pub(crate) fn solve<'m>(
    problem: Discretization<'m>,
    cpu: &Cpu,
    config: &SolverConfig,
    opened: Option<&Cuda>,
    stages: &mut Stages<'_>,
) -> Result<Solution<'m>, SolveError> {
    config.check()?;
    check(&problem)?;
    let wants_gpu = matches!(config.device, DeviceChoice::Cuda(_));
    if wants_gpu && config.ranks.n() == 1 {
        return Err(SolveError::solver("ranks", "a rank alone on a GPU is `Ranks::One`"));
    }
    // Ranks that choose for themselves compute on processors.
    let opened = opened.filter(|_| wants_gpu);
    let boxed = |options: &GmgOptions| match &problem.divided {
        Some(divided) => boxes_of_parts(&problem, divided, options).map(Some),
        None => boxes(&problem, options, config.ranks.n()).map(Some),
    };
    let chosen = chosen(&problem, config, n_threads(cpu, &config.ranks)?, Solves::One, &boxed)?;
    stages.begin(Stage::Assemble)?;
    if let Some(divided) = problem.divided.clone() {
        return parts::solve((problem, divided), chosen, (cpu, opened), stages);
    }
    let division = Division::new(&problem, chosen.boxes, &chosen.config)?;
    solve_divided(problem, division, (cpu, opened), (&chosen.config, &chosen.reason), stages)
}

/// The box of a problem, whose layers are dealt out to ranks.
pub(crate) fn boxes(
    problem: &Discretization<'_>,
    options: &GmgOptions,
    n_ranks: usize,
) -> Result<Boxes, SolveError> {
    let Some(space) = problem.space() else {
        return Err(SolveError::solver("preconditioner", "geometric multigrid is for cells in rows"));
    };
    let form = problem.form(0);
    let given = Constraints::of_space(space, &form)?;
    Boxes::of_ranks(options, (space, form.sigma), given.dofs(), n_ranks)
}

/// Solves a problem whose mesh is divided like this.
fn solve_divided<'m>(
    problem: Discretization<'m>,
    division: Division<'m>,
    (cpu, opened): (&Cpu, Option<&Cuda>),
    (config, reason): (&SolverConfig, &str),
    stages: &mut Stages<'_>,
) -> Result<Solution<'m>, SolveError> {
    let whole = Whole { problem: &problem, fixed: Fixed::new(&problem)?, division: &division };
    let work = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| match device::joined(
        comm, opened, config,
    )? {
        (Some(gpu), comm) => whole.solve((cpu, &gpu, &comm), (config, reason), keepers, stages),
        (None, comm) => whole.solve((cpu, cpu, &comm), (config, reason), keepers, stages),
    };
    let mut finished = on_all(cpu, &config.ranks, work, stages)?;
    drop(whole);
    finished.partition = Some(division.partition);
    Ok(Solution::new(problem, finished))
}

/// The ranks that keep the results of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keepers {
    /// Each of them: processes report on their own.
    All,
    /// The first: threads have its memory.
    First,
}

impl Keepers {
    /// Returns whether a rank is one of them.
    pub fn has(self, comm: &Comm) -> bool {
        self == Self::All || comm.rank() == 0
    }
}

/// Runs the work of each rank; the last argument is who keeps the results of all.
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

/// The settings with a preconditioner.
pub(crate) struct ChosenForRanks {
    pub config: SolverConfig,
    pub reason: String,
    /// For geometric multigrid, if these are not known yet.
    pub boxes: Option<Boxes>,
}

/// The fewest layers of cells of a rank with which geometric multigrid is chosen: beside some of others that it works on as well.
pub const FEWEST_LAYERS: usize = 8;

/// Chooses the preconditioner of the settings; `boxed` finds the boxes of geometric multigrid.
pub(crate) fn chosen(
    problem: &Discretization<'_>,
    config: &SolverConfig,
    n_threads: usize,
    solves: Solves,
    boxed: &Boxed<'_>,
) -> Result<ChosenForRanks, SolveError> {
    let on_gpu = matches!(config.device, DeviceChoice::Cuda(_));
    let lack_of = |boxes: &Boxes, smoother| {
        let of_gpus = || boxes.lack_of_gpus().filter(|_| on_gpu);
        boxes.lack_of_ranks(smoother, on_gpu).or_else(of_gpus)
    };
    let (mut config, mut reason, mut boxes) = (config.clone(), String::from("asked for"), None);
    match &mut config.preconditioner {
        PreconditionerConfig::Auto => {
            let on_cpu = SolverConfig { device: DeviceChoice::Cpu, ..config.clone() };
            let n = config.ranks.n();
            let fitting = |options: &GmgOptions| {
                let boxes = boxed(options)?;
                let few = |boxes: &Boxes| {
                    let layers = boxes.fewest_layers(n);
                    (layers < FEWEST_LAYERS).then(|| format!("a rank has {layers} layers of cells"))
                };
                let lack =
                    boxes.as_ref().and_then(|boxes| lack_of(boxes, options.smoother).or_else(|| few(boxes)));
                lack.map_or(Ok(boxes), |lack| Err(SolveError::solver("preconditioner", lack)))
            };
            let circumstances = Circumstances::new(false, n_threads, solves);
            let chosen = auto::choose(&on_cpu, problem, Some(&fitting), circumstances)?;
            (config.preconditioner, reason, boxes) = (chosen.preconditioner, chosen.reason, chosen.boxes);
        }
        PreconditionerConfig::Gmg(options) => {
            boxes = boxed(options)?;
            let has_lack = |smoother| boxes.as_ref().and_then(|boxes| lack_of(boxes, smoother));
            if options.smoother == Smoother::Auto && has_lack(Smoother::Auto).is_some() {
                options.smoother = Smoother::VertexPatch;
            }
            if let Some(lack) = has_lack(options.smoother) {
                return Err(SolveError::solver("preconditioner", lack));
            }
        }
        _ => {}
    }
    config.preconditioner.take_format(config.format);
    Ok(ChosenForRanks { config, reason, boxes })
}

/// The threads of all ranks, which all of them know: what they choose by it must be the same.
pub(crate) fn n_threads(cpu: &Cpu, ranks: &Ranks) -> Result<usize, SolveError> {
    match ranks {
        Ranks::Of(comm) => {
            let all = comm.all_gather(&[cpu.threads() as u64])?;
            Ok(all.into_iter().flatten().sum::<u64>() as usize)
        }
        Ranks::One | Ranks::Threads(_) => Ok(cpu.threads()),
    }
}

/// How a mesh is divided, which every rank knows.
pub(crate) struct Division<'m> {
    /// The rank of each cell.
    pub partition: Partition,
    /// The owner of each node.
    owners: Vec<u32>,
    quality: PartitionQuality,
    /// The way to divide the mesh.
    way: &'static str,
    /// The spaces of lower degree of p-multigrid.
    below: Vec<TensorSpace<'m>>,
    /// For geometric multigrid.
    boxes: Option<Boxes>,
}

impl<'m> Division<'m> {
    /// Divides the mesh of a problem as the boxes of geometric multigrid, or else the settings, say.
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

    /// Describes a partition of the mesh of a problem.
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

    /// Takes the part of a rank; none if it owns no node.
    pub fn part(&self, problem: &Discretization<'_>, comm: &Comm) -> Option<Part> {
        Part::new(problem.mesh, &problem.boundary, &self.owners, comm.rank())
    }
}

/// Data of the whole problem that every rank has.
pub(crate) struct Whole<'p, 'm> {
    pub problem: &'p Discretization<'m>,
    pub fixed: Fixed,
    pub division: &'p Division<'m>,
}

impl Whole<'_, '_> {
    /// The work of one rank, on its device.
    fn solve<D: RankDevice>(
        &self,
        (cpu, device, comm): (&Cpu, &D, &Comm),
        (config, reason): (&SolverConfig, &str),
        keepers: Keepers,
        stages: &mut Stages<'_>,
    ) -> Result<Finished, SolveError> {
        let part = self.division.part(self.problem, comm);
        device::check_unknowns::<D>(comm, part.as_ref().map_or(0, |part| part.n_owned))?;
        let layout = Layout::Whole(self.division);
        let problem = (self.problem, &self.fixed);
        let system = layout.system((cpu, device, comm), problem, part.as_ref(), config, stages)?;
        let Iterated { w, outcome, unknowns, parts, warnings: of_rank } =
            Iterated::of((device, comm), system, config, stages)?;
        stages.begin(Stage::Write)?;
        let of_whole = OfWhole { comm, n: self.problem.n_dofs(), unknowns: &unknowns.owned };
        let u = of_whole.collected(&w, keepers)?;
        let u = if keepers.has(comm) { self.completed(u, unknowns.is_pure_neumann)? } else { u };
        let mut warnings = self.problem.warnings.clone();
        warnings.extend(of_rank);
        warnings.extend(warning_of_imbalance(unknowns.imbalance));
        warnings.extend(warning_of_outcome(config, &outcome));
        let used = layout.used(&unknowns.halo)?;
        let result: (Vec<Vec<f64>>, CgOutcome) = (vec![u], outcome);
        let mut finished = Finished::of_parts(device, config, result, parts, [D::REASON, reason], warnings);
        finished.ranks = Some(used);
        finished.set_devices(device::devices(comm, device)?);
        Ok(finished)
    }

    /// The solution u for that of the system: with Dirichlet values, of mean zero if a constant is open.
    fn completed(&self, u: Vec<f64>, is_pure_neumann: bool) -> Result<Vec<f64>, SolveError> {
        let Some(space) = self.problem.space() else {
            return Ok(completed(self.problem.mesh, u, &self.fixed.constraints, is_pure_neumann)?);
        };
        let mut u = u;
        if is_pure_neumann {
            let mean = functionals::integral(space, &u)? / functionals::measure(space)?;
            u.iter_mut().for_each(|u| *u -= mean);
        }
        Ok(u)
    }
}
