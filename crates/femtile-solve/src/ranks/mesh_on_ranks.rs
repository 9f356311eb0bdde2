//! Problems on a distributed mesh: each rank has only its part.
//!
//! The problem is stated on the part of the rank (`Poisson::distributed`). Names and comparisons are looked up
//! there. A lookup fails only if it fails on all ranks (`OnMesh::found`). All tags of cells have names, which
//! identify them between ranks. Dirichlet values and unknowns of ghosts come from their owners.
//!
//! The solution is that on the rank's own cells: cells of which no node has a higher owner. Integrals are
//! therefore sums over ranks. Fluxes are sums over owned unknowns (`facet_shares`), because a rank has all
//! cells and facets around its own unknowns.

use std::sync::Arc;

use femtile_comm::{Comm, Halo, LocalUnknowns};
use femtile_fem::{Coefficient, Constraints, FemError};
use femtile_linalg::LinalgError;
use femtile_mesh::partition::{DistributedMesh, MeshPart, PartitionQuality};
use femtile_mesh::{CellKind, Mesh};
use femtile_space::{Space, TensorSpace};

use super::unknowns::given_on_part;
use crate::discretization::Discretization;
use crate::{SolveError, tensor};

/// A distributed mesh with its communicator.
#[derive(Debug, Clone)]
pub(crate) struct MeshOnRanks<'m> {
    pub mesh: &'m DistributedMesh,
    pub comm: Comm,
}

/// The mesh on which names and comparisons are looked up: the whole mesh, or the part of this rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnMesh<'a> {
    pub mesh: &'a Mesh,
    /// Present if the mesh is distributed.
    pub divided: Option<&'a MeshOnRanks<'a>>,
}

impl<'a> OnMesh<'a> {
    /// A mesh that is not distributed.
    pub fn whole(mesh: &'a Mesh) -> Self {
        Self { mesh, divided: None }
    }

    /// Returns what a name or comparison found on this rank. It may be nothing on some ranks, but not on all.
    /// Collective.
    ///
    /// # Errors
    /// The error of this rank if the lookup failed on all of them; another rank failed.
    pub fn found(&self, here: Result<Vec<u32>, SolveError>) -> Result<Vec<u32>, SolveError> {
        let Some(divided) = self.divided else { return here };
        match divided.comm.any([here.is_ok()])? {
            [true] => Ok(here.unwrap_or_default()),
            [false] => here,
        }
    }

    /// Returns the sum of a count over all ranks. Collective.
    ///
    /// # Errors
    /// Another rank failed.
    pub fn sum(&self, n: usize) -> Result<usize, LinalgError> {
        match self.divided {
            Some(divided) => Ok(divided.sum([n as f64])?[0] as usize),
            None => Ok(n),
        }
    }

    /// Returns whether this rank counts a facet or a cell: it does if it owns the node with the smallest
    /// global number.
    pub fn owns(&self, nodes: impl Iterator<Item = u32>) -> bool {
        let Some(divided) = self.divided else { return true };
        let number = |node: &u32| divided.mesh.part.nodes[*node as usize];
        nodes.min_by_key(number).is_some_and(|node| divided.has_node(node))
    }

    /// Returns the extents of the whole mesh, such as `x from 0 to 1, y from 0 to 2`.
    pub fn extents(&self) -> String {
        let points = || self.mesh.points.iter();
        let along = |axis: usize| match self.divided {
            Some(divided) => divided.mesh.extents.map(|corner| corner[axis]),
            None => [
                points().map(|point| point[axis]).fold(f64::INFINITY, f64::min),
                points().map(|point| point[axis]).fold(f64::NEG_INFINITY, f64::max),
            ],
        };
        let range = |axis: usize| {
            let [lower, upper] = along(axis);
            format!("{} from {lower} to {upper}", ["x", "y", "z"][axis])
        };
        (0..self.mesh.space_dimension()).map(range).collect::<Vec<_>>().join(", ")
    }
}

impl<'m> Discretization<'m> {
    /// Returns the mesh on which names and comparisons are looked up.
    pub(crate) fn on_mesh(&self) -> OnMesh<'_> {
        OnMesh { mesh: self.mesh, divided: self.divided.as_ref() }
    }

    /// Returns an error on every rank of a distributed mesh if one rank has one. Collective.
    pub(crate) fn agreed<R>(&self, result: Result<R, SolveError>) -> Result<R, SolveError> {
        match &self.divided {
            Some(divided) => super::rows::agreed(&divided.comm, result),
            None => result,
        }
    }

    /// Returns whether something is so on any rank of a distributed mesh: a part may lack the cells concerned. Collective.
    pub(crate) fn is_anywhere(&self, is_here: bool) -> Result<bool, LinalgError> {
        match &self.divided {
            Some(divided) => Ok(divided.comm.any([is_here])?[0]),
            None => Ok(is_here),
        }
    }

    /// Returns the problem on the rank's own cells, with `space` on them.
    pub(crate) fn on_own_cells(
        &self,
        divided: &MeshOnRanks<'m>,
        space: Option<Arc<TensorSpace<'m>>>,
    ) -> Self {
        let own = divided.mesh.own();
        let of_cells = |given: &Coefficient| given.on_cells(&own.cells);
        Self {
            mesh: &own.mesh,
            boundary: Arc::new(own.boundary.clone()),
            sigma: of_cells(&self.sigma),
            lambda: of_cells(&self.lambda),
            capacity: of_cells(&self.capacity),
            sources: self.sources.iter().map(of_cells).collect(),
            // Functionals of cells do not use them.
            conditions: vec![Vec::new(); self.conditions.len()],
            config: self.config,
            space,
            initial: self.initial.clone(),
            overlaps: self.overlaps.clone(),
            inner_facets: self.inner_facets.clone(),
            node_overlaps: self.node_overlaps.clone(),
            warnings: self.warnings.clone(),
            divided: self.divided.clone(),
        }
    }

    /// Returns the global number of degrees of freedom of one component.
    pub(crate) fn n_global_dofs(&self) -> usize {
        let of_part = |divided: &MeshOnRanks<'_>| divided.n_dofs(self.config.degree, self.mesh.kind);
        self.divided.as_ref().map_or_else(|| self.n_dofs(), of_part)
    }
}

impl MeshOnRanks<'_> {
    /// Returns whether this rank owns a node of the part.
    pub fn has_node(&self, node: u32) -> bool {
        (node as usize) < self.mesh.part.n_owned
    }

    /// Returns whether a facet of the part belongs to an own cell.
    pub fn has_facet(&self, facet: u32) -> bool {
        self.mesh.owns_cell(self.mesh.part.boundary.cells[facet as usize])
    }

    /// Returns the global number of degrees of freedom.
    pub fn n_dofs(&self, degree: usize, kind: CellKind) -> usize {
        self.mesh.n_dofs(if tensor::is_for(kind) { degree } else { 1 })
    }

    /// Returns the sum of each value over all ranks. Collective.
    pub fn sum<const N: usize>(&self, mut values: [f64; N]) -> Result<[f64; N], LinalgError> {
        self.comm.sum_values(&mut values)?;
        Ok(values)
    }

    /// Returns each value from the lowest rank that has it. Collective.
    pub fn first_of(&self, found: &[Option<f64>]) -> Result<Vec<Option<f64>>, LinalgError> {
        let own: Vec<[f64; 2]> =
            found.iter().map(|value| value.map_or([0.0; 2], |value| [1.0, value])).collect();
        let all = self.comm.all_gather(&own)?;
        let first = |i: usize| all.iter().map(|of_rank| of_rank[i]).find(|[has, _]| *has != 0.0);
        Ok((0..found.len()).map(|i| first(i).map(|[_, value]| value)).collect())
    }

    /// Returns the balance and the cut of the partition. Collective.
    pub fn quality(&self) -> Result<PartitionQuality, LinalgError> {
        let n_own = (0..self.mesh.part.cells.len() as u32).filter(|&cell| self.mesh.owns_cell(cell)).count();
        let own = [n_own as u64, self.mesh.n_shared_nodes as u64];
        let all: Vec<u64> = self.comm.all_gather(&own)?.concat();
        let cells = || all.iter().step_by(2).map(|&n| n as usize);
        Ok(PartitionQuality {
            fewest_cells: cells().min().unwrap_or(0),
            most_cells: cells().max().unwrap_or(0),
            n_shared_nodes: all.iter().skip(1).step_by(2).sum::<u64>() as usize,
        })
    }

    /// Returns the halo of the nodes of the part. Collective.
    pub fn halo_of_nodes(&self) -> Result<Halo, LinalgError> {
        let (ids, ghosts) = ids_of_nodes(&self.mesh.part);
        Halo::new(&self.comm, &ids, &ghosts)
    }

    /// Returns the Dirichlet values of linear elements on this part. Collective.
    pub fn constraints(&self, problem: &Discretization<'_>) -> Result<Constraints, SolveError> {
        let form = problem.form(0);
        let given = Space::new(form.mesh, 1).map_err(FemError::from);
        let given = given.and_then(|space| Constraints::of_form(&space, &form));
        let part = &self.mesh.part;
        let given = given.map_err(|error| error.in_global_numbers(&part.cells, &part.nodes));
        let given = super::rows::agreed(&self.comm, given)?;
        let nodes = LocalUnknowns::in_order(Arc::new(self.halo_of_nodes()?))?;
        Ok(given_on_part(&nodes, &given)?)
    }
}

/// The global numbers of the owned nodes, and owner and global number of each ghost.
pub(super) fn ids_of_nodes(part: &MeshPart) -> (Vec<u64>, Vec<(u32, u64)>) {
    let (owned, ghosts) = part.nodes.split_at(part.n_owned);
    let ids = owned.iter().map(|&node| u64::from(node)).collect();
    let ghosts = part.owners.iter().zip(ghosts).map(|(&owner, &node)| (owner, u64::from(node)));
    (ids, ghosts.collect())
}

/// The global space, from which the numbers of unknowns follow.
#[derive(Clone, Copy)]
pub(super) enum WholeSpace<'a> {
    /// Every rank has the whole space.
    Kept(&'a TensorSpace<'a>),
    /// The space of a degree on a distributed mesh.
    Divided(&'a DistributedMesh, usize),
}

impl WholeSpace<'_> {
    /// Returns the global number of degrees of freedom.
    pub fn n_dofs(&self) -> usize {
        match self {
            Self::Kept(space) => space.n_dofs(),
            Self::Divided(mesh, degree) => mesh.n_dofs(*degree),
        }
    }
}
