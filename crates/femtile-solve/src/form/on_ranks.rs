//! Solves on several ranks, each of which assembles and keeps the rows of its degrees of freedom.
//!
//! Every rank has the whole mesh, the numbering, the Dirichlet values and u; matrix, multigrid and the vectors of the iterations
//! are divided.

use std::sync::Arc;

use femtile_comm::{Comm, Halo, OwnedRows};
use femtile_device::cuda::Opening;
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::Constraints;
use femtile_form::Form;
use femtile_mesh::partition::{MeshPart, PartitionQuality};
use femtile_space::{LinearConstraints, Space};

use super::FormProblem;
use super::approximation::Approximation;
use super::evaluation::on_host;
use super::kernel::Motions;
use super::part::{FormPart, PartUnknowns};
use super::rank_form::{Part, RankForm};
use super::reach::Reach;
use super::solution::SolvedBy;
use super::solve::{Conditions, Solved, takes_motions};
use super::totals::Loads;
use crate::matrix::{check_preconditioner, resolved};
use crate::preconditioner::RowsOfProblem;
use crate::ranks::device::{RankDevices, check_unknowns, devices, joined};
use crate::ranks::rows::agreed;
use crate::ranks::unknowns::RankUnknowns;
use crate::ranks::{GlobalUnknowns, Keepers, RankDevice, on_all};
use crate::right_side::RightSide;
use crate::system::{LinearSystem, Prepared, SystemSummary};
use crate::{DeviceChoice, RanksUsed, SolveError, SolverConfig, Stage, Stages};

/// The parts of a problem that all ranks have.
pub(super) struct Known<'k, 'm> {
    pub problem: &'k FormProblem<'m>,
    pub space: &'k Space<'m>,
    pub form: &'k Form,
    pub approximation: &'k Approximation,
    /// The time of the solution.
    pub time: f64,
    /// The Dirichlet values at that time.
    pub constraints: &'k LinearConstraints,
    pub motions: &'k Motions,
}

/// The partition of the mesh.
pub(super) struct Division<'d, 'm> {
    /// The owner of each node.
    owners: Vec<u32>,
    /// None if the cells at the nodes of a rank are all that its rows need.
    reach: Option<Reach<'d, 'm>>,
    /// The name of the partitioner.
    way: &'static str,
    quality: PartitionQuality,
}

impl Division<'_, '_> {
    /// Extracts the part of a rank.
    pub fn part(&self, problem: &FormProblem<'_>, rank: usize) -> Option<MeshPart> {
        let further = self.reach.as_ref().map(|reach| reach.cells(rank));
        let is_added = |cell: u32| further.as_ref().is_some_and(|cells| cells[cell as usize]);
        MeshPart::and_cells(problem.mesh, &problem.facets, &self.owners, rank, is_added)
    }

    /// Describes a solve by the devices of all ranks, its parts and settings. Collective.
    pub fn solved_by<D: RankDevice>(
        &self,
        (device, halo): (&D, &Halo),
        parts: SystemSummary,
        config: &SolverConfig,
    ) -> Result<SolvedBy, SolveError> {
        Ok(SolvedBy {
            device: devices(halo.comm(), device)?,
            ranks: Some(RanksUsed::of(halo, (self.way, self.quality))?),
            ..SolvedBy::new((device, D::REASON), parts, config)
        })
    }
}

impl<'m> Known<'_, 'm> {
    /// Solves on several ranks.
    pub fn solve_on_ranks(
        &self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let config = resolved(config);
        config.check()?;
        self.check_ranks(&config)?;
        let opened = opened_for_ranks(&config, opening)?;
        stages.begin(Stage::Assemble)?;
        let division = self.divide(&config)?;
        let work = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| {
            let with = (&config, &division, keepers);
            match joined(comm, opened.as_ref(), &config)? {
                (Some(gpu), comm) => {
                    self.on_rank(RankDevices { cpu, device: &gpu, comm: &comm }, with, stages)
                }
                (None, comm) => self.on_rank(RankDevices { cpu, device: cpu, comm: &comm }, with, stages),
            }
        };
        on_all(cpu, &config.ranks, work, stages)
    }

    /// Refuses what ranks do not have.
    pub fn check_ranks(&self, config: &SolverConfig) -> Result<(), SolveError> {
        check_preconditioner(config)?;
        if self.approximation.is_needed(config) {
            let message = "the matrix is not symmetric positive definite, as multigrid on ranks needs it: take \"jacobi\"";
            return Err(SolveError::solver("preconditioner", message));
        }
        Ok(())
    }

    /// Divides the mesh among the ranks of the settings.
    pub fn divide(&self, config: &SolverConfig) -> Result<Division<'_, 'm>, SolveError> {
        let mesh = self.problem.mesh;
        let partition = config.partitioner.divide(mesh, config.ranks.n());
        let owners = partition.owners(mesh);
        let quality = partition.quality(mesh, &owners);
        let reach = Reach::new(self.problem, (self.space, self.form), self.constraints, &owners)?;
        Ok(Division { owners, reach, way: config.partitioner.name(), quality })
    }

    /// Prepares the part of a rank, if it has one, and its unknowns. Collective.
    pub fn on_part<'p, D: RankDevice>(
        &self,
        comm: &Comm,
        part: Option<&'p MeshPart>,
    ) -> Result<(Option<FormPart<'p>>, RankUnknowns), SolveError> {
        check_unknowns::<D>(comm, part.map_or(0, |part| part.n_owned))?;
        let own = part.map(|part| FormPart::new(self.problem, self.space, part, comm.rank())).transpose();
        let own = agreed(comm, own)?;
        let PartUnknowns { local, owned } = PartUnknowns::new(comm, own.as_ref(), self.form.n_components())?;
        Ok((own, RankUnknowns { owned, local, n: self.constraints.n_dofs() }))
    }

    /// Prepares the form on the part of a rank. Collective.
    pub fn rank_form<'a, D: RankDevice>(
        &self,
        RankDevices { cpu, device, comm }: RankDevices<'a, D>,
        (own, unknowns): (Option<&'a FormPart<'a>>, RankUnknowns),
        near_nullspace: Option<Vec<f64>>,
    ) -> Result<RankForm<'a, D>, SolveError> {
        let operator = agreed(comm, own.map(|own| own.operator(cpu)).transpose())?;
        let loads = own.map_or(Loads::new(), |own| own.loads(&self.problem.loads(self.space)));
        let part = Some(Part { own, unknowns });
        Ok(RankForm { device, comm: comm.clone(), cpu, operator, part, near_nullspace, loads })
    }

    /// Solves on one rank, on its device. Collective.
    fn on_rank<D: RankDevice>(
        &self,
        on: RankDevices<'_, D>,
        (config, division, keepers): (&SolverConfig, &Division<'_, '_>, Keepers),
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let Self { problem, space, form, time, constraints, motions, .. } = *self;
        let RankDevices { cpu, device, comm } = on;
        let part = division.part(problem, comm.rank());
        let (own, unknowns) = self.on_part::<D>(comm, part.as_ref())?;
        let near_nullspace =
            takes_motions(config, form, motions).then(|| motions.rows_of(&unknowns.owned, constraints));
        let (halo, owned) = (Arc::clone(unknowns.halo()), unknowns.owned.clone());
        let global = GlobalUnknowns { comm, n: unknowns.n, unknowns: &owned };
        if !form.is_linear() {
            let on_rank = self.rank_form(on, (own.as_ref(), unknowns), near_nullspace)?;
            let found = self.converge(&on_rank, (config, on_host), stages)?;
            let by = division.solved_by((device, &halo), found.parts.clone(), &found.config)?;
            let u = global.gather(&found.u, keepers)?;
            return Ok(found.into_solved(u, by));
        }
        let loads = problem.loads(space);
        let rows = match &own {
            Some(own) => own.rows(cpu, Conditions { constraints, time, loads: &loads }, &unknowns.local),
            None => nothing(cpu),
        };
        let (rows, b) = agreed(comm, rows)?;
        drop(own);
        drop(part);

        stages.begin(Stage::Setup)?;
        let of_rank = RowsOfProblem { near_nullspace: near_nullspace.as_deref(), ..unknowns.rows() };
        let right = RightSide {
            values: Buffer::from_vec(device, b)?,
            constraints: vec![Constraints::none(owned.len())],
            is_pure_neumann: false,
            imbalance: 0.0,
            space: None,
        };
        let system = LinearSystem::of_matrix(config, device.rows(rows)?, &of_rank, right)?;
        let (w, outcome) = system.solve(config, stages)?;
        let Prepared { summary, warnings, .. } = system.prepared;
        let u = self.changed_by(&global.gather(&w.to_host()?, keepers)?);
        let by = division.solved_by((device, &halo), summary, config)?;
        Ok(Solved { u, time, outcome, by, warnings, nonlinear: None, load_steps: Vec::new() })
    }
}

/// Waits for the GPU that ranks share; with an automatic choice of the device they compute on processors.
pub(super) fn opened_for_ranks(
    config: &SolverConfig,
    opening: Option<Opening>,
) -> Result<Option<Cuda>, SolveError> {
    let wants_gpu = matches!(config.device, DeviceChoice::Cuda(_));
    Ok(opening.filter(|_| wants_gpu).map(Opening::wait).transpose()?)
}

/// The rows of a rank without a part.
fn nothing(cpu: &Cpu) -> Result<(OwnedRows<f64>, Vec<f64>), SolveError> {
    Ok((OwnedRows::new(cpu, [0, 0], |_| std::iter::empty())?, Vec::new()))
}
