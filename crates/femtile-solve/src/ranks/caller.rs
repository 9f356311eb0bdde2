//! Problems whose operators ranks share, for methods in time of the caller.

use std::fmt::{self, Debug, Display};
use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_comm::{Comm, DistributedMatrix, GhostedMatrix, Halo};
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::assembly::assemble_rows;
use femtile_fem::{Coefficient, Constraints, FemError, Form};
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_mesh::partition::Part;
use femtile_sparse::{Csr, ProductMatrix};

use super::data::PartData;
use super::device::{self, RankDevice};
use super::rows::{Fixed, agreed, nothing};
use super::system::{RankUnknowns, preconditioning};
use super::{Division, Keepers, RanksUsed, Whole, check, need_whole, on_all};
use crate::auto::Solves;
use crate::check::check_cells;
use crate::discretization::Discretization;
use crate::format::product_matrix;
use crate::nonlinear::lump_within;
use crate::system::Operators;
use crate::{MassMatrix, SolveError, SolverConfig, Stage, Stages};

/// A problem with linear elements whose mesh is divided among ranks, for methods in time of the caller.
///
/// Its coefficients depend neither on u nor on t, and it has no conditions on its boundary.
pub struct DividedProblem<'p, 'm> {
    problem: &'p Discretization<'m>,
    division: Division<'m>,
    fixed: Fixed,
    config: SolverConfig,
}

impl Debug for DividedProblem<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DividedProblem").field("n_ranks", &self.config.ranks.n()).finish_non_exhaustive()
    }
}

impl<'m> Discretization<'m> {
    /// Divides the mesh among the ranks of the settings.
    ///
    /// # Errors
    /// [`SolveError::Setting`] where several ranks cannot solve the problem.
    pub fn divided(&self, config: &SolverConfig) -> Result<DividedProblem<'_, 'm>, SolveError> {
        config.check()?;
        need_whole(self)?;
        check(self)?;
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
        let division = Division::new(self, None, config)?;
        Ok(DividedProblem { problem: self, division, fixed: Fixed::new(self)?, config: config.clone() })
    }
}

impl DividedProblem<'_, '_> {
    /// Runs the work of every rank, each with its share of the threads of `cpu`, and returns what the first one returns.
    ///
    /// Ranks share a GPU that is given where the settings ask for one, and else open those of the settings.
    ///
    /// # Errors
    /// Those of the work of any rank, of which all end; errors of devices.
    pub fn on_all<R: Send, E: From<SolveError> + Display + Send>(
        &self,
        (cpu, opened): (&Cpu, Option<&Cuda>),
        work: impl Fn(&RankPart<'_>, &mut Stages<'_>) -> Result<R, E> + Sync,
        stages: &mut Stages<'_>,
    ) -> Result<R, E> {
        let opened = opened.filter(|_| matches!(self.config.device, crate::DeviceChoice::Cuda(_)));
        let on_rank = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| {
            let part = RankPart::new(self, (cpu, comm), opened, keepers)?;
            work(&part, stages)
        };
        on_all(cpu, &self.config.ranks, on_rank, stages)
    }
}

/// One of the ranks of a [`DividedProblem`], with its part of the mesh.
///
/// Its vectors have an entry for each node that it owns. What is said to be called by all ranks waits for the others.
pub struct RankPart<'a> {
    cpu: &'a Cpu,
    comm: Comm,
    gpu: Option<Cuda>,
    whole: Whole<'a, 'a>,
    config: &'a SolverConfig,
    /// None where the rank owns no node.
    part: Option<(Part, PartData<'a>)>,
    owned: Vec<u32>,
    halo: Arc<Halo>,
    keepers: Keepers,
}

impl Debug for RankPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, n_owned) = (self.comm.rank(), self.owned.len());
        f.debug_struct("RankPart").field("rank", &rank).field("n_owned", &n_owned).finish_non_exhaustive()
    }
}

impl<'a> RankPart<'a> {
    fn new(
        of: &'a DividedProblem<'_, '_>,
        (cpu, comm): (&'a Cpu, &Comm),
        opened: Option<&Cuda>,
        keepers: Keepers,
    ) -> Result<Self, SolveError> {
        let DividedProblem { problem, division, fixed, config } = of;
        let (gpu, comm) = device::joined(comm, opened, config)?;
        let part = division.part(problem, &comm);
        let n_owned = part.as_ref().map_or(0, |part| part.n_owned);
        match &gpu {
            Some(_) => device::check_unknowns::<Cuda>(&comm, n_owned)?,
            None => device::check_unknowns::<Cpu>(&comm, n_owned)?,
        }
        let nodes = part.as_ref().map_or(&[][..], |part| &part.nodes);
        let (owned, ghosts) = nodes.split_at(n_owned);
        let owners = part.iter().flat_map(|part| &part.owners);
        let ghosts: Vec<_> = owners.zip(ghosts).map(|(&owner, &node)| (owner, u64::from(node))).collect();
        let ids: Vec<u64> = owned.iter().map(|&node| u64::from(node)).collect();
        let (halo, owned) = (Arc::new(Halo::new(&comm, &ids, &ghosts)?), owned.to_vec());
        let whole = Whole { problem, fixed: fixed.clone(), division };
        let part = part.map(|part| {
            let data = PartData::new(problem, &fixed.winners, &part);
            (part, data)
        });
        Ok(Self { cpu, comm, gpu, whole, config, part, owned, halo, keepers })
    }

    /// Returns the problem of all ranks.
    pub fn problem(&self) -> &Discretization<'a> {
        self.whole.problem
    }

    /// Returns the processor of the rank.
    pub fn cpu(&self) -> &Cpu {
        self.cpu
    }

    /// Returns the GPU of the rank; none where ranks compute on processors.
    pub fn gpu(&self) -> Option<&Cuda> {
        self.gpu.as_ref()
    }

    /// Returns the way to the other ranks.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Returns the nodes that the rank owns, in the order of its vectors, by their numbers in the whole mesh.
    pub fn owned(&self) -> &[u32] {
        &self.owned
    }

    /// Makes the operator $K + \lambda M$ of the problem and its preconditioner, for many right sides; a preconditioner that the
    /// settings leave open is the diagonal. The rounded operator has values of 32 bits on ranks whose matrix is in slices, the
    /// same values on others. All ranks call it.
    ///
    /// # Errors
    /// Errors of assembly, the preconditioner and the device.
    pub fn operators<D: RankDevice>(
        &self,
        device: &D,
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<Operators<D>, SolveError> {
        stages.begin(Stage::Assemble)?;
        let matrix = self.divided_rows(device, |form| {
            let mut matrix = rows(device, form)?;
            if mass == MassMatrix::Lumped {
                let mut reaction = rows(device, &Form { sigma: &ZERO, ..*form })?;
                lump_within(&mut matrix, &mut reaction)?;
            }
            Ok(matrix)
        })?;
        stages.begin(Stage::Setup)?;
        let unknowns = RankUnknowns {
            owned: self.owned.clone(),
            halo: Arc::clone(&self.halo),
            given: Vec::new(),
            part: None,
            is_pure_neumann: false,
            imbalance: 0.0,
        };
        let n = self.whole.problem.n_dofs();
        let (preconditioner, _) = preconditioning(device, self.config, &matrix, (&unknowns, n))?;
        let own = product_matrix(matrix.own, self.config, Solves::Many)?.0;
        let format = own.format().name();
        let mut n_rounded = [f64::from(u8::from(matches!(own, ProductMatrix::Slices(_))))];
        self.comm.sum_values(&mut n_rounded)?;
        let rounded: Option<Arc<dyn LinearOperator<f64, D>>> = match n_rounded[0] > 0.0 {
            true => Some(Arc::new(self.over_all(rounded(&own)?, matrix.border.copy_to(device)?)?)),
            false => None,
        };
        let operator = Arc::new(self.over_all(Box::new(own), matrix.border)?);
        Ok(Operators { operator, rounded, preconditioner: Arc::from(preconditioner), format })
    }

    /// Makes the operator $K$ of the problem, without its reaction. All ranks call it.
    ///
    /// # Errors
    /// Errors of assembly and the device.
    pub fn stiffness<D: RankDevice>(
        &self,
        device: &D,
    ) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError> {
        let matrix = self.divided_rows(device, |form| rows(device, &Form { lambda: &ZERO, ..*form }))?;
        let own = product_matrix(matrix.own, self.config, Solves::Many)?.0;
        Ok(Box::new(self.over_all(Box::new(own), matrix.border)?))
    }

    /// The rows of the rank of a matrix that `assembled` makes for its part.
    fn divided_rows<D: RankDevice>(
        &self,
        device: &D,
        assembled: impl FnOnce(&Form<'_>) -> Result<Csr<f64, D>, FemError>,
    ) -> Result<GhostedMatrix<f64, D>, SolveError> {
        let made = match &self.part {
            Some((part, data)) => {
                let of_whole = |error: FemError| error.in_whole_mesh(&part.cells, &part.nodes);
                assembled(&data.form(part)).map_err(|error| SolveError::from(of_whole(error)))
            }
            None => nothing(device).map_err(SolveError::from),
        };
        Ok(device.divide(agreed(&self.comm, made)?, self.owned.len())?)
    }

    /// The product over all ranks with the rank's own columns and those of ghosts.
    fn over_all<D: RankDevice>(
        &self,
        own: Box<dyn LinearOperator<f64, D>>,
        border: Csr<f64, D>,
    ) -> Result<DistributedMatrix<f64, D>, LinalgError> {
        DistributedMatrix::new(own, border, Arc::clone(&self.halo))
    }

    /// Returns a number for each node of the whole mesh from those of the nodes that each rank names, on the first rank, zero where
    /// none does; nothing on the others. All ranks call it.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where there are more or fewer values than nodes, a node is none of the mesh, or another rank ended.
    pub fn gathered(&self, nodes: &[u32], values: &[f64]) -> Result<Option<Vec<f64>>, SolveError> {
        need("values", nodes.len(), values.len())?;
        let n = self.whole.problem.n_dofs();
        if let Some(&node) = nodes.iter().find(|&&node| node as usize >= n) {
            return Err(LinalgError::Length { field: "nodes", expected: n, found: node as usize }.into());
        }
        let all = self.whole.collected(&self.comm, (nodes, values), Keepers::First)?;
        Ok((self.comm.rank() == 0).then_some(all))
    }

    /// Returns the result of all ranks at the nodes of the whole mesh from that of each at the nodes that it owns: on all ranks that
    /// are processes, and on the first where they are threads; nothing elsewhere. All ranks call it.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where the rank owns more or fewer nodes, or another rank ended; errors of the device.
    pub fn result<D: RankDevice>(&self, own: &Buffer<f64, D>) -> Result<Vec<f64>, SolveError> {
        need("own", self.owned.len(), own.len())?;
        let own = own.to_host().map_err(LinalgError::from)?;
        self.whole.collected(&self.comm, (&self.owned, &own), self.keepers)
    }

    /// Returns how the mesh is divided. All ranks call it.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where another rank ended.
    pub fn used(&self) -> Result<RanksUsed, SolveError> {
        self.whole.used(&self.halo)
    }

    /// Returns the devices of all ranks, each once. All ranks call it.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where another rank ended.
    pub fn devices<D: RankDevice>(&self, device: &D) -> Result<String, SolveError> {
        device::devices(&self.comm, device)
    }

    /// Returns why ranks compute on devices of this kind.
    pub fn reason<D: RankDevice>(&self, _: &D) -> &'static str {
        D::REASON
    }
}

/// The matrix in slices with values of 32 bits, or else as it is.
fn rounded<D: RankDevice>(
    matrix: &ProductMatrix<f64, D>,
) -> Result<Box<dyn LinearOperator<f64, D>>, LinalgError> {
    Ok(match matrix {
        ProductMatrix::Rows(rows) => Box::new(rows.copy_to(rows.values().device())?),
        ProductMatrix::Slices(slices) => Box::new(slices.rounded::<f32>()?),
    })
}

/// The coefficient 0.
static ZERO: Coefficient = Coefficient::Constant(0.0);

/// The matrix of all nodes of a part.
fn rows<D: RankDevice>(device: &D, form: &Form<'_>) -> Result<Csr<f64, D>, FemError> {
    let none = Constraints::none(form.mesh.n_nodes());
    Ok(assemble_rows::<f64, D>(device, form, none, &|_| ControlFlow::Continue(()))?.matrix)
}
