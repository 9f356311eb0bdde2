//! Gathers a distributed mesh and its solution on the first rank.
//!
//! Files, pictures and recovered gradients need the whole solution. The first rank makes them after the solve:
//! `Solution::collect` puts nodes, cells, boundary and values together by their numbers, and the problem is stated
//! once more on the whole mesh.

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_linalg::LinalgError;
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::partition::{DistributedMesh, GatheredMesh, OwnedMesh};
use femtile_mesh::{Curved, Facets, Mesh};
use femtile_space::TensorSpace;

use super::cell_dofs::CellDofs;
use super::wire::{From, To, truncated};
use crate::SolveError;

/// Values of a solution by node, or by cell in the axes of the mesh.
pub(crate) enum Values<'a> {
    /// At the owned nodes.
    AtNodes(&'a [f64]),
    /// Of each component in a space on the cells of the rank.
    InCells(&'a TensorSpace<'a>, &'a [Vec<f64>]),
}

/// The global mesh, its boundary facets and the components of a solution.
pub(crate) type AllOfMesh = (Mesh, Arc<BoundaryFacets>, Vec<Vec<f64>>);

/// Gathers a mesh and values on the first rank; returns none on the others. Collective.
///
/// # Cost
/// The first rank holds the whole mesh and the message of one rank at a time.
/// # Errors
/// [`SolveError::Mesh`] if the messages do not form one mesh, [`SolveError::Linalg`] if another rank failed.
pub(crate) fn collect(
    comm: &Comm,
    mesh: &DistributedMesh,
    values: &Values<'_>,
) -> Result<Option<AllOfMesh>, SolveError> {
    if comm.rank() > 0 {
        let to = To { comm, rank: 0 };
        send(to, &mesh.owned_mesh())?;
        to.array(&values.of_rank(mesh))?;
        return Ok(None);
    }
    let mut collection = GatheredMesh::new(mesh);
    let mut places = Vec::with_capacity(comm.n_ranks());
    for rank in 0..comm.n_ranks() {
        let share = if rank == 0 { mesh.owned_mesh() } else { received(From { comm, rank })? };
        collection.add(&share)?;
        places.push(match values {
            Values::AtNodes(_) => share.nodes,
            Values::InCells(..) => share.cells,
        });
    }
    let (whole, boundary) = collection.finish()?;
    let of_rank = |rank: usize| match rank {
        0 => Ok(values.of_rank(mesh)),
        _ => From { comm, rank }.array(),
    };
    let components = match values {
        Values::AtNodes(_) => vec![at_nodes(whole.n_nodes(), &places, of_rank)?],
        Values::InCells(space, components) => {
            let space = TensorSpace::new(&whole, space.degree())?;
            in_space(&space, components.len(), &places, of_rank)?
        }
    };
    Ok(Some((whole, Arc::new(boundary), components)))
}

impl Values<'_> {
    /// The values of a rank by node, or cell after cell of each component.
    fn of_rank(&self, mesh: &DistributedMesh) -> Vec<f64> {
        let (space, components) = match self {
            Values::AtNodes(values) => return values.to_vec(),
            Values::InCells(space, components) => (space, components),
        };
        let n_values = space.dofs_per_cell() * mesh.own().cells.len();
        let mut all = Vec::with_capacity(n_values * components.len());
        let mut cells = CellDofs::new(space);
        for u in *components {
            for cell in 0..space.n_cells() {
                all.extend(cells.of(cell).iter().map(|&dof| u[dof as usize]));
            }
        }
        all
    }
}

/// Values at `n` global nodes from those of the owners.
fn at_nodes(
    n: usize,
    places: &[Vec<u32>],
    of_rank: impl Fn(usize) -> Result<Vec<f64>, LinalgError>,
) -> Result<Vec<f64>, LinalgError> {
    let mut all = vec![0.0; n];
    for (rank, nodes) in places.iter().enumerate() {
        let values = of_rank(rank)?;
        if nodes.len() != values.len() {
            return Err(truncated(rank));
        }
        nodes.iter().zip(values).for_each(|(&node, value)| all[node as usize] = value);
    }
    Ok(all)
}

/// Values of `n` components in the global space from those of the cells of each rank.
fn in_space(
    space: &TensorSpace<'_>,
    n: usize,
    places: &[Vec<u32>],
    of_rank: impl Fn(usize) -> Result<Vec<f64>, LinalgError>,
) -> Result<Vec<Vec<f64>>, LinalgError> {
    let mut components = vec![vec![0.0; space.n_dofs()]; n];
    let mut of_cells = CellDofs::new(space);
    for (rank, cells) in places.iter().enumerate() {
        let values = of_rank(rank)?;
        if cells.len() * space.dofs_per_cell() * n != values.len() {
            return Err(truncated(rank));
        }
        let mut values = values.chunks_exact(space.dofs_per_cell());
        for all in &mut components {
            for (&cell, values) in cells.iter().zip(&mut values) {
                let dofs = of_cells.of(cell as usize);
                dofs.iter().zip(values).for_each(|(&dof, &value)| all[dof as usize] = value);
            }
        }
    }
    Ok(components)
}

/// Sends the share of a rank to the first one.
fn send(to: To<'_>, share: &OwnedMesh) -> Result<(), LinalgError> {
    to.array(&share.nodes)?;
    to.array(&share.points)?;
    to.array(&share.cells)?;
    to.array(&share.corners)?;
    to.array(&[share.curved.as_ref().map_or(0, |curved| curved.order as u64)])?;
    if let Some(curved) = &share.curved {
        to.array(&curved.points)?;
        to.array(&curved.cells)?;
    }
    to.array(&share.cell_tags)?;
    to.array(&share.side_cells)?;
    to.array(&share.side_numbers)?;
    to.array(&share.facets.nodes)?;
    to.array(&share.facets.tags)?;
    to.fields(&share.cell_fields)?;
    to.fields(&share.node_fields)
}

/// Receives the share of a rank, in the order of [`send`].
fn received(from: From<'_>) -> Result<OwnedMesh, LinalgError> {
    let (nodes, points, cells, corners) = (from.array()?, from.array()?, from.array()?, from.array()?);
    let [order]: [u64; 1] = from.array()?.try_into().map_err(|_| truncated(from.rank))?;
    let curved = match order {
        0 => None,
        order => Some(Curved { order: order as usize, points: from.array()?, cells: from.array()? }),
    };
    Ok(OwnedMesh {
        nodes,
        points,
        cells,
        corners,
        curved,
        cell_tags: from.array()?,
        side_cells: from.array()?,
        side_numbers: from.array()?,
        facets: Facets { nodes: from.array()?, tags: from.array()? },
        cell_fields: from.fields()?,
        node_fields: from.fields()?,
    })
}
