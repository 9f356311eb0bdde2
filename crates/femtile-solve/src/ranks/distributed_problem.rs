//! Distributed problems for time integrators that the caller writes.

use std::fmt::{self, Debug, Display};
use std::sync::Arc;

use femtile_comm::{Comm, Halo, OwnedRows};
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::assembly::assemble_matrix;
use femtile_fem::{Coefficient, FemError, Form};
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::{Csr, SparseDevice};

use super::device::{self, RankDevice};
use super::global_unknowns::GlobalUnknowns;
use super::layout::{Layout, PartOf};
use super::mesh_on_ranks::ids_of_nodes;
use super::rows::{Fixed, agreed, nothing};
use super::{Keepers, MeshOfRanks, RanksUsed, on_all};
use crate::auto::Solves;
use crate::check::check_cells;
use crate::discretization::Discretization;
use crate::format::product_matrix;
use crate::nonlinear::lump_within;
use crate::preconditioner::RowsOfProblem;
use crate::system::{PreconditionedOperator, over_ranks};
use crate::{MassMatrix, SolveError, SolverConfig, Stage, Stages};

/// A problem of linear elements on a mesh that is divided among ranks, for the caller's own time integrator.
///
/// Its coefficients depend neither on u nor on t. It has no boundary conditions.
pub struct DistributedProblem<'p, 'm> {
    problem: &'p Discretization<'m>,
    mesh: MeshOfRanks<'m>,
    fixed: Fixed,
    config: SolverConfig,
}

impl Debug for DistributedProblem<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedProblem").field("n_ranks", &self.config.ranks.n()).finish_non_exhaustive()
    }
}

impl<'m> Discretization<'m> {
    /// Divides the mesh among the ranks of the settings, unless it is distributed already.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the problem cannot be solved on several ranks.
    pub fn distributed(&self, config: &SolverConfig) -> Result<DistributedProblem<'_, 'm>, SolveError> {
        config.check()?;
        if self.is_nonlinear() {
            let message =
                "methods in time of callers are for linear equations, and a coefficient depends on u";
            return Err(SolveError::solver("ranks", message));
        }
        check_cells(config, &self.config, self.mesh.kind)?;
        if self.space().is_some() {
            return Err(SolveError::solver(
                "ranks",
                "methods in time of callers have triangles or tetrahedra",
            ));
        }
        let form = self.form(0);
        if !form.conditions.is_empty() {
            let message = "methods in time of callers have natural boundary conditions: give none";
            return Err(SolveError::solver("ranks", message));
        }
        if form.sigma.uses_time() || form.lambda.uses_time() {
            let message = "methods in time of callers have coefficients that do not depend on t";
            return Err(SolveError::solver("ranks", message));
        }
        let mesh = MeshOfRanks::new(self, None, config)?;
        Ok(DistributedProblem { problem: self, mesh, fixed: Fixed::new(self)?, config: config.clone() })
    }
}

impl DistributedProblem<'_, '_> {
    /// Runs `work` on every rank and returns the result of rank 0. Each rank gets its share of the threads of
    /// `cpu`.
    ///
    /// If the settings ask for a GPU, ranks share the one of the caller, or open those of the settings.
    ///
    /// # Errors
    /// Those of `work` on any rank, which end all ranks; errors of devices.
    pub fn on_all<R: Send, E: From<SolveError> + From<LinalgError> + Display + Send>(
        &self,
        (cpu, opened): (&Cpu, Option<&Cuda>),
        work: impl Fn(&LocalProblem<'_>, &mut Stages<'_>) -> Result<R, E> + Sync,
        stages: &mut Stages<'_>,
    ) -> Result<R, E> {
        let opened = opened.filter(|_| matches!(self.config.device, crate::DeviceChoice::Cuda(_)));
        let on_rank = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| {
            let part = LocalProblem::new(self, (cpu, comm), opened, keepers)?;
            work(&part, stages)
        };
        on_all(cpu, &self.config.ranks, on_rank, stages)
    }
}

/// One rank of a [`DistributedProblem`], with its part of the mesh.
///
/// Its vectors have one entry per owned node. Collective methods block until every rank has called them.
pub struct LocalProblem<'a> {
    cpu: &'a Cpu,
    comm: Comm,
    gpu: Option<Cuda>,
    problem: &'a Discretization<'a>,
    layout: Layout<'a, 'a>,
    config: &'a SolverConfig,
    part: PartOf<'a>,
    fixed: &'a Fixed,
    owned: Vec<u32>,
    halo: Arc<Halo>,
    keepers: Keepers,
}

impl Debug for LocalProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, n_owned) = (self.comm.rank(), self.owned.len());
        f.debug_struct("LocalProblem").field("rank", &rank).field("n_owned", &n_owned).finish_non_exhaustive()
    }
}

impl<'a> LocalProblem<'a> {
    fn new(
        of: &'a DistributedProblem<'_, '_>,
        (cpu, comm): (&'a Cpu, &Comm),
        opened: Option<&Cuda>,
        keepers: Keepers,
    ) -> Result<Self, SolveError> {
        let DistributedProblem { problem, mesh, fixed, config } = of;
        let (layout, (gpu, comm)) = (mesh.layout(), device::joined(comm, opened, config)?);
        let part = layout.part(problem, &comm);
        let n_owned = part.get().map_or(0, |part| part.n_owned);
        match &gpu {
            Some(_) => device::check_unknowns::<Cuda>(&comm, n_owned)?,
            None => device::check_unknowns::<Cpu>(&comm, n_owned)?,
        }
        let (ids, ghosts) = part.get().map(ids_of_nodes).unwrap_or_default();
        let halo = Arc::new(Halo::new(&comm, &ids, &ghosts)?);
        let owned = part.get().map_or(&[][..], |part| &part.nodes[..n_owned]).to_vec();
        let keepers = layout.keepers(keepers);
        Ok(Self { cpu, comm, gpu, problem, layout, config, part, fixed, owned, halo, keepers })
    }

    /// Returns the problem on the mesh of this rank: the whole mesh, or its part.
    pub fn problem(&self) -> &Discretization<'a> {
        self.problem
    }

    /// Returns the processor of the rank.
    pub fn cpu(&self) -> &Cpu {
        self.cpu
    }

    /// Returns the GPU of the rank; none if ranks compute on CPUs.
    pub fn gpu(&self) -> Option<&Cuda> {
        self.gpu.as_ref()
    }

    /// Returns the communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Returns the owned nodes in the order of the vectors, by their global numbers.
    pub fn owned(&self) -> &[u32] {
        &self.owned
    }

    /// Makes the operator $K + \lambda M$ and its preconditioner, for many right sides. The preconditioner is
    /// the diagonal unless the settings name one. If a rank has its matrix in sliced storage, there is also a
    /// rounded operator: sliced values are stored in 32 bits, others unchanged. Collective.
    ///
    /// # Errors
    /// Errors of assembly, the preconditioner and the device.
    pub fn operators<D: RankDevice>(
        &self,
        device: &D,
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<PreconditionedOperator<D>, SolveError> {
        device.operators_of_part(self, mass, stages)
    }

    pub(super) fn operators_on<D: RankDevice>(
        &self,
        device: &D,
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<PreconditionedOperator<D>, SolveError> {
        stages.begin(Stage::Assemble)?;
        let matrix = self.divided_rows(device, |form| {
            let mut matrix = assemble_matrix(device, form)?;
            if mass == MassMatrix::Lumped {
                let mut reaction = assemble_matrix(device, &Form { sigma: &Coefficient::ZERO, ..*form })?;
                lump_within(&mut matrix, &mut reaction)?;
            }
            Ok(matrix)
        })?;
        stages.begin(Stage::Setup)?;
        let rows = RowsOfProblem::of_rank(&self.halo, &self.owned, self.n_nodes());
        PreconditionedOperator::of_matrix(self.config, matrix, &rows)
    }

    /// Makes the operator $K$, without the reaction term. Collective.
    ///
    /// # Errors
    /// Errors of assembly and the device.
    pub fn stiffness<D: RankDevice>(
        &self,
        device: &D,
    ) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError> {
        device.stiffness_of_part(self)
    }

    pub(super) fn stiffness_on<D: RankDevice>(
        &self,
        device: &D,
    ) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError> {
        let matrix = self.divided_rows(device, |form| {
            assemble_matrix(device, &Form { lambda: &Coefficient::ZERO, ..*form })
        })?;
        let own = product_matrix(matrix.own, self.config, Solves::Many)?.0;
        Ok(over_ranks(<D as SparseDevice>::into_operator(own), matrix.border, &self.halo)?)
    }

    /// The owned rows of the matrix that `assembled` makes for the part of this rank.
    fn divided_rows<D: RankDevice>(
        &self,
        device: &D,
        assembled: impl FnOnce(&Form<'_>) -> Result<Csr<f64, D>, FemError>,
    ) -> Result<OwnedRows<f64, D>, SolveError> {
        let made = match self.part.get() {
            Some(part) => {
                let on_part = self.problem.on_part(part, &self.fixed.winners, None);
                let in_global = |error: FemError| error.in_global_numbers(&part.cells, &part.nodes);
                assembled(&on_part.form(0)).map_err(|error| SolveError::from(in_global(error)))
            }
            None => nothing(device).map_err(SolveError::from),
        };
        Ok(device.divide(agreed(&self.comm, made)?, self.owned.len())?)
    }

    /// Gathers values of nodes on the first rank, in the order of global nodes; zero at nodes that no rank
    /// names. Returns none on the other ranks. Collective.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if `nodes` and `values` differ in length, a node does not exist, or another
    /// rank failed.
    pub fn gather(&self, nodes: &[u32], values: &[f64]) -> Result<Option<Vec<f64>>, SolveError> {
        need("values", nodes.len(), values.len())?;
        let all = self.global(nodes)?.gather(values, Keepers::First)?;
        Ok((self.comm.rank() == 0).then_some(all))
    }

    /// Scatters values of all global nodes from the first rank; returns those at `nodes`. Collective.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if a node does not exist, `all` of the first rank has another length, or
    /// another rank failed.
    pub fn scatter(&self, nodes: &[u32], all: Option<&[f64]>) -> Result<Vec<f64>, SolveError> {
        let all = all.filter(|_| self.comm.rank() == 0);
        let expected = if self.comm.rank() == 0 { self.n_nodes() } else { 0 };
        need("all", expected, all.map_or(0, <[f64]>::len))?;
        Ok(self.global(nodes)?.scatter(all)?)
    }

    /// Returns the number of nodes of the whole mesh.
    pub fn n_nodes(&self) -> usize {
        self.problem.n_global_dofs()
    }

    /// Returns whether the rank has only its part of the mesh.
    pub fn has_local_mesh(&self) -> bool {
        matches!(self.layout, Layout::Distributed(..))
    }

    fn global<'n>(&'n self, unknowns: &'n [u32]) -> Result<GlobalUnknowns<'n>, LinalgError> {
        let n = self.n_nodes();
        match unknowns.iter().find(|&&node| node as usize >= n) {
            Some(&node) => Err(LinalgError::Length { field: "nodes", expected: n, found: node as usize }),
            None => Ok(GlobalUnknowns { comm: &self.comm, n, unknowns }),
        }
    }

    /// Gathers a solution from the owned nodes of all ranks, in the order of global nodes. Ranks that are
    /// processes all receive it; if ranks are threads or have only their parts, the first one does. The
    /// others get an empty vector. Collective.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if `own` does not have one value per owned node, or another rank failed; errors
    /// of the device.
    pub fn gather_solution<D: RankDevice>(&self, own: &Buffer<f64, D>) -> Result<Vec<f64>, SolveError> {
        need("own", self.owned.len(), own.len())?;
        let own = own.to_host().map_err(LinalgError::from)?;
        Ok(self.global(&self.owned)?.gather(&own, self.keepers)?)
    }

    /// Returns how the mesh is divided. Collective.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if another rank failed.
    pub fn used(&self) -> Result<RanksUsed, SolveError> {
        self.layout.used(&self.halo)
    }

    /// Returns the names of the devices of all ranks, without repetition. Collective.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if another rank failed.
    pub fn devices<D: RankDevice>(&self, device: &D) -> Result<String, SolveError> {
        device::devices(&self.comm, device)
    }

    /// Returns why ranks compute on devices of this kind.
    pub fn reason<D: RankDevice>(&self, _: &D) -> &'static str {
        D::REASON
    }
}
