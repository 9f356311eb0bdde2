//! The owned rows of the linear system of linear elements.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_comm::{Comm, Halo, LocalUnknowns, OwnedRows};
use femtile_device::{Device, Scalar};
use femtile_fem::assembly::{BALANCE_TOLERANCE, PartRows, assemble_rows, has_floating};
use femtile_fem::{Conditions, Constraints, FemError};
use femtile_linalg::LinalgError;
use femtile_mesh::Mesh;
use femtile_mesh::check::{Components, components};
use femtile_mesh::partition::MeshPart;
use femtile_space::Space;
use femtile_sparse::csr::{Csr, HostOffsets};

use super::device::RankDevice;
use super::mesh_on_ranks::ids_of_nodes;
use super::system::{DistributedSystem, RankUnknowns};
use crate::discretization::Discretization;
use crate::{SolveError, SolverConfig, Stage, Stages};

/// The conditions that hold on facets and the connected components of a problem, found before its parts are
/// assembled.
pub(crate) struct Fixed {
    /// The Dirichlet values of linear elements.
    pub constraints: Constraints,
    /// The condition that holds on each boundary facet of the mesh of the problem.
    pub winners: Vec<Option<u32>>,
    /// None if the mesh is distributed: it is connected then.
    components: Option<Arc<Components>>,
}

impl Fixed {
    /// Finds conditions and components of a problem. Collective if each rank has only its part, as is
    /// [`Fixed::of`].
    pub fn new(problem: &Discretization<'_>) -> Result<Self, SolveError> {
        if problem.divided.is_some() {
            return Self::with(problem, None);
        }
        let components = components(problem.mesh);
        let is_unused = |&component: &u32| component == u32::MAX;
        // In spaces of any degree, a node without cells has no unknown.
        if problem.space().is_none()
            && let Some(node) = components.of_node.iter().position(is_unused)
        {
            return Err(FemError::OrphanNode { node, point: problem.mesh.points[node] }.into());
        }
        Self::with(problem, Some(Arc::new(components)))
    }

    /// As [`Fixed::new`] for another problem on the same mesh, with the same components.
    pub fn of(&self, problem: &Discretization<'_>) -> Result<Self, SolveError> {
        Self::with(problem, self.components.clone())
    }

    fn with(problem: &Discretization<'_>, components: Option<Arc<Components>>) -> Result<Self, SolveError> {
        let form = problem.form(0);
        let constraints = match (problem.space(), &problem.divided) {
            // Each rank evaluates those of its part.
            (Some(_), _) => Constraints::none(0),
            (None, Some(divided)) => divided.constraints(problem)?,
            (None, None) => Constraints::of_form(&Space::new(form.mesh, 1)?, &form)?,
        };
        let winners = form.holding_conditions().map(Conditions::into_holding).map_err(SolveError::from);
        let winners = match &problem.divided {
            Some(divided) => agreed(&divided.comm, winners)?,
            None => winners?,
        };
        Ok(Self { constraints, winners, components })
    }

    /// Returns whether the global solution is unique only up to a constant. `nodes` are the owned nodes, each
    /// with whether a condition or reaction fixes the constant there. Collective.
    pub fn leaves_a_constant(
        &self,
        comm: &Comm,
        mesh: &Mesh,
        nodes: impl Iterator<Item = (u32, bool)>,
    ) -> Result<bool, SolveError> {
        let mut held = nodes.filter(|(_, is_held)| *is_held);
        let Some(components) = &self.components else {
            let [is_held] = comm.any([held.next().is_some()])?;
            return Ok(!is_held);
        };
        let mut counts = vec![0.0; components.count];
        held.filter_map(|(node, _)| usize::try_from(components.of_node[node as usize]).ok())
            .for_each(|component| counts[component] += 1.0);
        comm.sum_values(&mut counts)?;
        let is_held: Vec<bool> = counts.into_iter().map(|count| count > 0.0).collect();
        Ok(has_floating(mesh, components, &is_held)?)
    }
}

/// The owned rows of a linear system of linear elements.
pub(super) struct RankRows<D: RankDevice> {
    /// The owned rows, with Dirichlet values eliminated.
    pub matrix: OwnedRows<f64, D>,
    /// The right side, with Dirichlet values lifted.
    pub rhs: Vec<f64>,
    /// The node of each row in the mesh of the problem.
    pub owned: Vec<u32>,
    /// The global number of each row.
    pub ids: Vec<u64>,
    /// Owner and node of each ghost.
    pub ghosts: Vec<(u32, u64)>,
    /// Whether the global solution is unique only up to a constant.
    pub is_pure_neumann: bool,
    /// As in `femtile_fem::AssembledSystem`.
    pub imbalance: f64,
}

impl<D: RankDevice> RankRows<D> {
    /// Assembles the owned rows of a part on the device; none if the rank owns no node.
    pub fn new(
        device: &D,
        comm: &Comm,
        (problem, fixed): (&Discretization<'_>, &Fixed),
        part: Option<&MeshPart>,
        stages: &mut Stages<'_>,
    ) -> Result<Self, SolveError> {
        let made = match part {
            Some(part) => Self::of_part(device, (problem, fixed), part, stages),
            None => Self::empty(device).map(|rows| (rows, Vec::new())).map_err(SolveError::from),
        };
        let (mut rows, is_held) = agreed(comm, made)?;
        let held = (rows.owned.iter().zip(&is_held))
            .map(|(&node, &is_held)| (node, is_held || fixed.constraints.contains(node as usize)));
        rows.is_pure_neumann = fixed.leaves_a_constant(comm, problem.mesh, held)?;
        if rows.is_pure_neumann {
            rows.imbalance = balance(comm, &mut rows.rhs, problem.n_global_dofs())?;
        }
        Ok(rows)
    }

    /// The rows of a rank without nodes.
    fn empty(device: &D) -> Result<Self, LinalgError> {
        Ok(Self {
            matrix: device.divide(nothing::<f64, D>(device)?, 0)?,
            rhs: vec![],
            owned: vec![],
            ids: vec![],
            ghosts: vec![],
            is_pure_neumann: false,
            imbalance: 0.0,
        })
    }

    /// The owned rows, and whether a reaction or a Robin condition fixes the constant at each node.
    fn of_part(
        device: &D,
        (problem, fixed): (&Discretization<'_>, &Fixed),
        part: &MeshPart,
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Vec<bool>), SolveError> {
        let PartRows { matrix, mut rhs, is_held } = assembled(device, (problem, fixed), part, stages)?;
        rhs.truncate(part.n_owned);
        let (ids, ghosts) = ids_of_nodes(part);
        let owned = (0..part.n_owned).map(|local| node_of(problem, part, local)).collect();
        let matrix = device.divide(matrix, part.n_owned)?;
        Ok((Self { matrix, rhs, owned, ids, ghosts, is_pure_neumann: false, imbalance: 0.0 }, is_held))
    }
}

/// Returns an error on every rank if one rank has one. If several have, the lowest rank's error counts.
pub(crate) fn agreed<R, E: From<LinalgError> + Display>(comm: &Comm, result: Result<R, E>) -> Result<R, E> {
    let message = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let messages = comm.all_gather(message.as_bytes())?;
    match messages.iter().position(|message| !message.is_empty()) {
        Some(rank) if rank != comm.rank() => {
            // That rank reports its error, and this one waits for it; a process does not return from here.
            comm.sum_values(&mut [0.0])?;
            let message = String::from_utf8_lossy(&messages[rank]).into_owned();
            Err(LinalgError::Rank { rank, message }.into())
        }
        _ => result,
    }
}

/// The number of a local node in the mesh of the problem.
pub(super) fn node_of(problem: &Discretization<'_>, part: &MeshPart, local: usize) -> u32 {
    if problem.divided.is_some() { local as u32 } else { part.nodes[local] }
}

/// Assembles the matrix of all nodes of a part, with Dirichlet values of u eliminated.
pub(crate) fn assembled<D: RankDevice>(
    device: &D,
    (problem, fixed): (&Discretization<'_>, &Fixed),
    part: &MeshPart,
    stages: &mut Stages<'_>,
) -> Result<PartRows<f64, D>, FemError> {
    let on_part = problem.on_part(part, &fixed.winners, None);
    let given = |local: usize| fixed.constraints.value(node_of(problem, part, local) as usize);
    let constraints = Constraints::of_values(part.nodes.len(), given);
    let made = stages.with_fractions(|progress| {
        assemble_rows(device, &on_part.form(0), constraints, &|fraction| {
            progress(fraction);
            ControlFlow::Continue(())
        })
    });
    made.map_err(|error| error.in_global_numbers(&part.cells, &part.nodes))
}

/// A matrix without rows.
pub(crate) fn nothing<T: Scalar, D: Device>(device: &D) -> Result<Csr<T, D>, LinalgError> {
    Csr::from_parts(device, 0, HostOffsets::from_row_lengths(std::iter::empty()), Vec::new(), Vec::new())
}

/// Checks that the right side sums to zero up to [`BALANCE_TOLERANCE`] and subtracts its mean, as assembly on
/// one rank does.
pub(super) fn balance(comm: &Comm, rhs: &mut [f64], n: usize) -> Result<f64, SolveError> {
    let mut sums = [rhs.iter().sum::<f64>(), rhs.iter().map(|b| b.abs()).sum()];
    comm.sum_values(&mut sums)?;
    let [total, size] = sums;
    if total.abs() > BALANCE_TOLERANCE * size {
        return Err(FemError::Incompatible { source_integral: total, flux_integral: 0.0 }.into());
    }
    // The second pass removes rounding errors of the first.
    for _ in 0..2 {
        let mut sum = [rhs.iter().sum::<f64>()];
        comm.sum_values(&mut sum)?;
        rhs.iter_mut().for_each(|b| *b -= sum[0] / n as f64);
    }
    Ok(if size > 0.0 { total.abs() / size } else { 0.0 })
}

/// Makes a rank's rows of the system of linear elements. Collective.
pub(super) fn of_simplices<D: RankDevice>(
    (device, comm): (&D, &Comm),
    problem: (&Discretization<'_>, &Fixed),
    part: Option<&MeshPart>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<DistributedSystem<D>, SolveError> {
    let rows = RankRows::new(device, comm, problem, part, stages)?;
    stages.begin(Stage::Setup)?;
    let RankRows { matrix, rhs, owned, ids, ghosts, is_pure_neumann, imbalance } = rows;
    let local = LocalUnknowns::in_order(Arc::new(Halo::new(comm, &ids, &ghosts)?))?;
    let unknowns = RankUnknowns { is_pure_neumann, imbalance, ..RankUnknowns::new(owned, Arc::new(local)) };
    DistributedSystem::of_matrix(device, config, (matrix, rhs), unknowns, problem.0.n_global_dofs())
}
