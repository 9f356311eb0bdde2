//! Solves on several ranks, each of which assembles and keeps the rows of its degrees of freedom.
//!
//! Every rank has the whole mesh, the numbering, the Dirichlet values and u; matrix, multigrid and the vectors of the iterations
//! are divided.

use std::sync::Arc;

use femtile_comm::{Comm, OwnedRows};
use femtile_device::cuda::Opening;
use femtile_device::{Buffer, Cpu};
use femtile_fem::Constraints;
use femtile_form::{Domain, Form};
use femtile_mesh::partition::{MeshPart, PartitionQuality};
use femtile_space::{LinearConstraints, Space};

use super::FormProblem;
use super::approximation::Approximation;
use super::evaluation::on_host;
use super::kernel::Motions;
use super::part::{FormPart, PartUnknowns};
use super::rank_form::{Part, RankForm};
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
struct Division {
    /// The owner of each node.
    owners: Vec<u32>,
    /// The name of the partitioner.
    way: &'static str,
    quality: PartitionQuality,
}

impl Known<'_, '_> {
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
        self.check(&config)?;
        let wants_gpu = matches!(config.device, DeviceChoice::Cuda(_));
        // With an automatic choice of the device, ranks compute on CPUs.
        let opened = opening.filter(|_| wants_gpu).map(Opening::wait).transpose()?;
        stages.begin(Stage::Assemble)?;
        let mesh = self.problem.mesh;
        let partition = config.partitioner.divide(mesh, config.ranks.n());
        let owners = partition.owners(mesh);
        let quality = partition.quality(mesh, &owners);
        let division = Division { owners, way: config.partitioner.name(), quality };
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
    fn check(&self, config: &SolverConfig) -> Result<(), SolveError> {
        check_preconditioner(config)?;
        if self.problem.has_several_degrees() {
            let message = "unknowns of several degrees are computed by one rank: take ranks = 1";
            return Err(SolveError::solver("ranks", message));
        }
        if let Some(path) = self.problem.first_relation() {
            let message = "unknowns that follow others are computed by one rank: take ranks = 1";
            return Err(SolveError::setting(path, message));
        }
        let has_two_sides = |domain: &Domain| matches!(domain, Domain::Interior | Domain::Interface(_));
        if self.form.integrals().iter().any(|integral| has_two_sides(&integral.domain)) {
            let message =
                "integrals over interior facets and interfaces are computed by one rank: take ranks = 1";
            return Err(SolveError::solver("ranks", message));
        }
        if self.approximation.is_needed(config) {
            let message = "the matrix is not symmetric positive definite, as multigrid on ranks needs it: take \"jacobi\"";
            return Err(SolveError::solver("preconditioner", message));
        }
        Ok(())
    }

    /// Solves on one rank, on its device. Collective.
    fn on_rank<D: RankDevice>(
        &self,
        RankDevices { cpu, device, comm }: RankDevices<'_, D>,
        (config, division, keepers): (&SolverConfig, &Division, Keepers),
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let Self { problem, space, form, time, constraints, motions, .. } = *self;
        let part = MeshPart::new(problem.mesh, &problem.facets, &division.owners, comm.rank());
        check_unknowns::<D>(comm, part.as_ref().map_or(0, |part| part.n_owned))?;
        let own = part.as_ref().map(|part| FormPart::new(problem, space, part, comm.rank())).transpose();
        let own = agreed(comm, own)?;
        let PartUnknowns { local, owned } = PartUnknowns::new(comm, own.as_ref(), form.n_components())?;
        let near_nullspace =
            takes_motions(config, form, motions).then(|| motions.rows_of(&owned, constraints));
        let (halo, n) = (Arc::clone(local.halo()), constraints.n_dofs());
        let unknowns = RankUnknowns { owned, local, n };
        let loads = problem.loads(space);
        let global = GlobalUnknowns { comm, n, unknowns: &unknowns.owned };
        let by = |parts: SystemSummary, config: &SolverConfig| -> Result<SolvedBy, SolveError> {
            Ok(SolvedBy {
                device: devices(comm, device)?,
                ranks: Some(RanksUsed::of(&halo, (division.way, division.quality))?),
                ..SolvedBy::new((device, D::REASON), parts, config)
            })
        };
        if !form.is_linear() {
            let operator = own.as_ref().map(|own| own.operator(cpu)).transpose();
            let part = Part { own: own.as_ref(), unknowns: unknowns.clone() };
            let on_rank = RankForm {
                device,
                comm: comm.clone(),
                cpu,
                operator: agreed(comm, operator)?,
                part: Some(part),
                near_nullspace,
                loads: own.as_ref().map_or(Loads::new(), |own| own.loads(&loads)),
            };
            let found = self.converge(&on_rank, (config, on_host), stages)?;
            let (u, by) = (global.gather(&found.u, keepers)?, by(found.parts.clone(), &found.config)?);
            return Ok(found.into_solved(u, by));
        }
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
            constraints: vec![Constraints::none(unknowns.owned.len())],
            is_pure_neumann: false,
            imbalance: 0.0,
            space: None,
        };
        let system = LinearSystem::of_matrix(config, device.rows(rows)?, &of_rank, right)?;
        let (w, outcome) = system.solve(config, stages)?;
        let Prepared { summary, warnings, .. } = system.prepared;
        let u = self.changed_by(&global.gather(&w.to_host()?, keepers)?);
        let by = by(summary, config)?;
        Ok(Solved { u, time, outcome, by, warnings, nonlinear: None, load_steps: Vec::new() })
    }
}

/// The rows of a rank without a part.
fn nothing(cpu: &Cpu) -> Result<(OwnedRows<f64>, Vec<f64>), SolveError> {
    Ok((OwnedRows::new(cpu, [0, 0], |_| std::iter::empty())?, Vec::new()))
}
