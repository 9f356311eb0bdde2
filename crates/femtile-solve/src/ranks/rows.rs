//! The owned rows of the linear system of linear elements.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_comm::{Comm, OwnedRows};
use femtile_device::{Buffer, Device, Scalar};
use femtile_fem::assembly::{BALANCE_TOLERANCE, PartRows, assemble_rows, has_floating};
use femtile_fem::{Conditions, Constraints, FemError};
use femtile_linalg::LinalgError;
use femtile_mesh::Mesh;
use femtile_mesh::check::{Components, components};
use femtile_mesh::partition::MeshPart;
use femtile_space::Space;
use femtile_sparse::csr::{Csr, HostOffsets};

use super::device::{RankDevice, RankDevices};
use super::unknowns::{RankSystem, RankUnknowns, given_at_owned};
use crate::discretization::Discretization;
use crate::preconditioner::RowsOfProblem;
use crate::right_side::RightSide;
use crate::system::LinearSystem;
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

/// A problem as a rank sees it.
#[derive(Clone, Copy)]
pub(crate) struct RankProblem<'p, 'm> {
    /// On the whole mesh, or on the part if the rank has no more.
    pub problem: &'p Discretization<'m>,
    pub fixed: &'p Fixed,
    /// The part of the rank; none if it owns no node.
    pub part: Option<&'p MeshPart>,
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
    RankProblem { problem, fixed, .. }: RankProblem<'_, '_>,
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
    RankDevices { device, comm, .. }: RankDevices<'_, D>,
    of: RankProblem<'_, '_>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<RankSystem<D>, SolveError> {
    let RankProblem { problem, fixed, part } = of;
    let rows = agreed(comm, RankRows::assembled(device, of, stages))?;
    let RankRows { matrix, mut rhs, is_held } = rows;
    let unknowns = RankUnknowns::of_nodes(comm, problem, part)?;
    let constraints = given_at_owned(&unknowns.owned, &fixed.constraints);
    let held = (unknowns.owned.iter().zip(&is_held).enumerate())
        .map(|(row, (&node, &is_held))| (node, is_held || constraints.contains(row)));
    let is_pure_neumann = fixed.leaves_a_constant(comm, problem.mesh, held)?;
    let imbalance = if is_pure_neumann { balance(comm, &mut rhs, unknowns.n)? } else { 0.0 };
    stages.begin(Stage::Setup)?;
    let values = Buffer::from_vec(device, rhs).map_err(LinalgError::from)?;
    let right = RightSide { values, constraints: vec![constraints], is_pure_neumann, imbalance, space: None };
    let rows = RowsOfProblem { is_pure_neumann, ..unknowns.rows() };
    let system = LinearSystem::of_matrix(config, matrix, &rows, right)?;
    Ok(RankSystem { system, unknowns })
}

/// The owned rows of a system of linear elements.
struct RankRows<D: RankDevice> {
    /// With Dirichlet values eliminated.
    matrix: OwnedRows<f64, D>,
    /// With Dirichlet values lifted.
    rhs: Vec<f64>,
    /// Whether a reaction or a Robin condition fixes the constant at each node.
    is_held: Vec<bool>,
}

impl<D: RankDevice> RankRows<D> {
    fn assembled(device: &D, of: RankProblem<'_, '_>, stages: &mut Stages<'_>) -> Result<Self, SolveError> {
        let Some(part) = of.part else {
            let matrix = OwnedRows::whole(nothing(device)?)?;
            return Ok(Self { matrix, rhs: Vec::new(), is_held: Vec::new() });
        };
        let PartRows { matrix, mut rhs, is_held } = assembled(device, of, part, stages)?;
        rhs.truncate(part.n_owned);
        Ok(Self { matrix: device.divide(matrix, part.n_owned)?, rhs, is_held })
    }
}
