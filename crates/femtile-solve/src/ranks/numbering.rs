//! Owned and ghost unknowns on a part of a mesh.
//!
//! The owner of an unknown is the highest owner among the corners of its vertex, edge, face or cell. Both
//! ranks of a cell know this owner, and the part of the owner contains all cells around the unknown. A rank
//! requests ghosts by a cell and the place in it (`Numbering::joined`), so no global numbering is needed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use femtile_comm::{Comm, Halo, LocalUnknowns};
use femtile_device::parallel;
use femtile_linalg::LinalgError;
use femtile_mesh::partition::{BoxCubes, MeshPart};
use femtile_space::{Element, Space, SpaceError, TensorSpace};

use super::cell_dofs::{CellDofs, in_given_axes, positions};
use super::mesh_on_ranks::WholeSpace;

/// Unknowns, and cells, per parallel task.
const DOFS: usize = 1 << 14;
const CELLS: usize = 64;

/// Values of linear shape functions above rounding.
const NOT_ZERO: f64 = 1e-9;

/// Owned and ghost unknowns of a part.
///
/// The owner of an unknown is the highest owner among the corners of its vertex, edge, face or cell. So the
/// part of the owner contains all cells around the unknown, and both ranks of a cell know the owners of all
/// its unknowns.
pub(crate) struct Numbering {
    /// Local numbers of the owned unknowns; those that no other rank copies come first.
    pub owned: Vec<u32>,
    /// Local numbers of the ghosts, sorted by owner.
    ghosts: Vec<u32>,
    /// The owner of each ghost.
    owners: Vec<u32>,
}

impl Numbering {
    /// Numbers the unknowns of the part of `rank`.
    pub fn new(part: &MeshPart, space: &TensorSpace<'_>, rank: usize) -> Self {
        let (n, d) = (space.degree() + 1, space.dimension());
        let around: Vec<Vec<usize>> = (0..n.pow(d as u32)).map(|at| corners_around(at, n, d)).collect();
        let corners = |position: usize| space.corners(position);
        let dofs = |position: usize, own: &mut [u32]| space.cell_dofs(position, own);
        Self::of_cells((part, rank), [space.n_dofs(), space.n_cells()], &around, corners, dofs)
    }

    /// As [`Numbering::new`], for a space on any cells.
    pub fn of_space(part: &MeshPart, space: &Space<'_>, rank: usize) -> Result<Self, SpaceError> {
        let around = corners_around_nodes(space)?;
        let corners = |position: usize| space.corners(position);
        let dofs = |position: usize, own: &mut [u32]| space.cell_dofs(position, own);
        Ok(Self::of_cells((part, rank), [space.n_dofs(), space.n_cells()], &around, corners, dofs))
    }

    /// Numbers the unknowns of cells; `around` are the corners around each unknown of a cell, `corners` and `dofs` give the
    /// nodes and the unknowns of the cell at a position.
    fn of_cells<'s>(
        (part, rank): (&MeshPart, usize),
        [n_dofs, n_cells]: [usize; 2],
        around: &[Vec<usize>],
        corners: impl Fn(usize) -> &'s [u32] + Sync + Send,
        dofs: impl Fn(usize, &mut [u32]) + Sync + Send,
    ) -> Self {
        let rank = rank as u32;
        // Cells that share an unknown find the same owner.
        let atomics = |value: u32| parallel::map(n_dofs, DOFS, move |_| AtomicU32::new(value));
        let (owners, is_copied) = (atomics(rank), atomics(0));
        let zeros = || vec![0; around.len()];
        parallel::map_with(n_cells, CELLS, zeros, |own, position| {
            let of_corners: Vec<u32> = corners(position).iter().map(|&node| part.owner(node, rank)).collect();
            if of_corners.iter().all(|&owner| owner == rank) {
                return;
            }
            dofs(position, own);
            for (at, &dof) in own.iter().enumerate() {
                let around = around[at].iter().map(|&corner| of_corners[corner]);
                owners[dof as usize].store(around.max().unwrap_or(rank), Relaxed);
                is_copied[dof as usize].store(1, Relaxed);
            }
        });
        let plain = |of: Vec<AtomicU32>| of.into_iter().map(AtomicU32::into_inner).collect::<Vec<u32>>();
        let [owners, is_copied] = [owners, is_copied].map(plain);
        let mut owned = parallel::filter(n_dofs, |dof| owners[dof] == rank && is_copied[dof] == 0);
        owned.extend(parallel::filter(n_dofs, |dof| owners[dof] == rank && is_copied[dof] == 1));
        let mut ghosts = parallel::filter(n_dofs, |dof| owners[dof] != rank);
        // Within an owner, in the order of the part, in which the unknowns of an entity are consecutive.
        ghosts.sort_by_key(|&dof| owners[dof as usize]);
        let owners = ghosts.iter().map(|&dof| owners[dof as usize]).collect();
        Self { owned, ghosts, owners }
    }

    /// Returns the local numbers of owned unknowns and of ghosts, and the owner of each ghost.
    pub fn owned_and_ghosts(&self) -> (&[u32], &[u32], &[u32]) {
        (&self.owned, &self.ghosts, &self.owners)
    }

    /// The numbering of a part without unknowns.
    pub fn none() -> Self {
        Self { owned: vec![], ghosts: vec![], owners: vec![] }
    }

    /// Exchanges the lists of ghosts. A ghost is named by a cell that contains it and its place there, which
    /// its owner can find, since owners have all cells around their unknowns. Collective; `own` is none if
    /// the rank has no part.
    pub fn joined(
        self,
        comm: &Comm,
        own: Option<(&MeshPart, &TensorSpace<'_>)>,
    ) -> Result<LocalUnknowns, LinalgError> {
        let places = own.map(|(part, space)| {
            let has_ghosts =
                |position: usize| space.corners(position).iter().any(|&node| node as usize >= part.n_owned);
            places_in_cells((part, space), &self.ghosts, has_ghosts)
        });
        let places = places.unwrap_or_default();
        let mut asked = vec![Vec::new(); comm.n_ranks()];
        for (&owner, place) in self.owners.iter().zip(places) {
            let lacking = || format!("a node of the part has the owner {owner}: none of the ranks");
            let of_owner = asked.get_mut(owner as usize);
            of_owner.ok_or_else(|| LinalgError::Setting { field: "owners", message: lacking() })?.push(place);
        }
        let n_imports: Vec<(usize, usize)> = asked
            .iter()
            .enumerate()
            .filter(|(_, of)| !of.is_empty())
            .map(|(rank, of)| (rank, of.len()))
            .collect();
        let wanted = comm.all_to_all(&asked)?;
        drop(asked);
        let exports = match own {
            Some((part, space)) => self.exports((part, space), wanted)?,
            None => Vec::new(),
        };
        let halo = Halo::of_known(comm, self.owned.len(), exports, &n_imports)?;
        LocalUnknowns::new(Arc::new(halo), self.owned, self.ghosts)
    }

    /// The owned unknowns that each other rank requests.
    fn exports(
        &self,
        (part, space): (&MeshPart, &TensorSpace<'_>),
        wanted: Vec<Vec<u64>>,
    ) -> Result<Vec<(usize, Vec<u32>)>, LinalgError> {
        let per_cell = space.dofs_per_cell() as u64;
        let mut place_of = vec![u32::MAX; space.n_dofs()];
        self.owned.iter().zip(0..).for_each(|(&dof, place)| place_of[dof as usize] = place);
        let mut cells = CellDofs::new(space);
        let mut place = |wanted: u64| {
            let cell = part.cells.binary_search(&u32::try_from(wanted / per_cell).ok()?).ok()?;
            let dof = cells.of(cell)[(wanted % per_cell) as usize];
            Some(place_of[dof as usize]).filter(|&place| place != u32::MAX)
        };
        let mut exports = Vec::new();
        for (rank, wanted) in wanted.into_iter().enumerate().filter(|(_, wanted)| !wanted.is_empty()) {
            let found: Option<Vec<u32>> = wanted.into_iter().map(&mut place).collect();
            let message = "asks for unknowns that this rank does not own".into();
            exports.push((rank, found.ok_or(LinalgError::Rank { rank, message })?));
        }
        Ok(exports)
    }
}

/// Returns the owner of each degree of freedom of a space on the whole mesh from those of the nodes of the mesh.
pub(crate) fn owners_of_dofs(space: &Space<'_>, of_nodes: &[u32]) -> Result<Vec<u32>, SpaceError> {
    let around = corners_around_nodes(space)?;
    // Cells that share a degree of freedom find the same owner.
    let owners = parallel::map(space.n_dofs(), DOFS, |_| AtomicU32::new(u32::MAX));
    let zeros = || vec![0; around.len()];
    parallel::map_with(space.n_cells(), CELLS, zeros, |dofs, position| {
        let corners = space.corners(position);
        space.cell_dofs(position, dofs);
        for (&dof, around) in dofs.iter().zip(&around) {
            let owner = around.iter().map(|&corner| of_nodes[corners[corner] as usize]).max();
            owners[dof as usize].store(owner.unwrap_or(u32::MAX), Relaxed);
        }
    });
    Ok(owners.into_iter().map(AtomicU32::into_inner).collect())
}

/// Returns the corners of the vertex, edge, face or cell of each node of the element of a space.
fn corners_around_nodes(space: &Space<'_>) -> Result<Vec<Vec<usize>>, SpaceError> {
    // The linear shape functions that do not vanish at a node are those of these corners.
    let table = Element::new(space.mesh().kind, 1)?.tabulate(space.element().nodes());
    let around = |at: usize| -> Vec<usize> {
        let shapes = table.values(at).iter().enumerate();
        shapes.filter(|(_, shape)| shape.abs() > NOT_ZERO).map(|(corner, _)| corner).collect()
    };
    Ok((0..space.element().n_dofs()).map(around).collect())
}

/// Returns a global name for each of some unknowns of a part: (number of a cell in the whole mesh) ×
/// (unknowns per cell) + (place in the cell's axes there). Only cells for which `may_have` is true are used.
pub(super) fn places_in_cells(
    (part, space): (&MeshPart, &TensorSpace<'_>),
    unknowns: &[u32],
    may_have: impl Fn(usize) -> bool + Sync + Send,
) -> Vec<u64> {
    let n = space.degree() + 1;
    let mut number_of = vec![u32::MAX; space.n_dofs()];
    unknowns.iter().zip(0..).for_each(|(&dof, number)| number_of[dof as usize] = number);
    let found = parallel::map(unknowns.len(), DOFS, |_| AtomicU64::new(u64::MAX));
    let zeros = || vec![0; space.dofs_per_cell()];
    parallel::map_with(space.n_cells(), CELLS, zeros, |own, position| {
        if !may_have(position) {
            return;
        }
        space.cell_dofs(position, own);
        let here = space.orientation(position);
        let cell = u64::from(part.cells[space.order()[position] as usize]);
        for (at, &dof) in own.iter().enumerate() {
            if let Some(found) = found.get(number_of[dof as usize] as usize) {
                let given = here.given(places(at, n), n);
                found.fetch_min(cell * space.dofs_per_cell() as u64 + given as u64, Relaxed);
            }
        }
    });
    found.into_iter().map(AtomicU64::into_inner).collect()
}

/// Returns the number of each owned unknown in the space of the problem. If the mesh is distributed, that is
/// its local number.
pub(super) fn owned_of_problem(
    numbering: &Numbering,
    whole: WholeSpace<'_>,
    own: Option<(&MeshPart, &TensorSpace<'_>)>,
) -> Vec<u32> {
    match (whole, own) {
        (WholeSpace::Kept(whole), Some((part, space))) => {
            let numbers = numbers_in(whole, space, &part.cells);
            parallel::map(numbering.owned.len(), DOFS, |at| numbers[numbering.owned[at] as usize] as u32)
        }
        _ => numbering.owned.clone(),
    }
}

/// The number in `whole` of each unknown of `space`, of the same degree. `cells` has the number of each cell
/// in the mesh of `whole`.
pub(crate) fn numbers_in(whole: &TensorSpace<'_>, space: &TensorSpace<'_>, cells: &[u32]) -> Vec<u64> {
    let position_of = positions(whole);
    let zeros = || vec![0; whole.dofs_per_cell()];
    numbers(space, zeros, |global, position, given| {
        let in_whole = position_of[cells[space.order()[position] as usize] as usize] as usize;
        in_given_axes(whole, in_whole, global, |at, dof| given[at] = u64::from(dof));
    })
}

/// The number of each unknown of a part of a box, in the row-by-row numbering of the whole box.
pub(super) fn numbers_in_box(cubes: &BoxCubes, part: &MeshPart, space: &TensorSpace<'_>) -> Vec<u64> {
    let p = space.degree();
    let along = cubes.n.map(|n| (n * p + 1) as u64);
    numbers(
        space,
        || (),
        |(), position, given| {
            let cube = cubes.cube_of(part.cells[space.order()[position] as usize]);
            for (at, number) in given.iter_mut().enumerate() {
                let within = places(at, p + 1);
                let [x, y, z] = [0, 1, 2].map(|axis| (cube[axis] * p + within[axis]) as u64);
                *number = (z * along[1] + y) * along[0] + x;
            }
        },
    )
}

/// Numbers the unknowns of a space: `of_cell` writes the numbers of the cell at a position, in the cell's
/// axes in the mesh.
fn numbers<W: Send>(
    space: &TensorSpace<'_>,
    workspace: impl Fn() -> W + Sync + Send,
    of_cell: impl Fn(&mut W, usize, &mut [u64]) + Sync + Send,
) -> Vec<u64> {
    let n = space.degree() + 1;
    let numbers = parallel::map(space.n_dofs(), DOFS, |_| AtomicU64::new(0));
    let zeros = || (vec![0; space.dofs_per_cell()], vec![0; space.dofs_per_cell()], workspace());
    parallel::map_with(space.n_cells(), CELLS, zeros, |(own, given, workspace), position| {
        of_cell(workspace, position, given);
        space.cell_dofs(position, own);
        let here = space.orientation(position);
        // Cells that share an unknown find the same number.
        let dofs = own.iter().enumerate();
        dofs.for_each(|(at, &dof)| numbers[dof as usize].store(given[here.given(places(at, n), n)], Relaxed));
    });
    numbers.into_iter().map(AtomicU64::into_inner).collect()
}

/// The place along each axis of an entry of a cell with `n` nodes per axis.
pub(super) fn places(at: usize, n: usize) -> [usize; 3] {
    [at % n, at / n % n, at / (n * n)]
}

/// The corners of the vertex, edge, face or cell that contains a node of a cell with `n` nodes per axis.
fn corners_around(at: usize, n: usize, d: usize) -> Vec<usize> {
    let is_around = |corner: &usize| {
        (0..d).all(|axis| {
            let (index, bit) = (at / n.pow(axis as u32) % n, corner >> axis & 1);
            index == bit * (n - 1) || (index != 0 && index != n - 1)
        })
    };
    (0..1 << d).filter(is_around).collect()
}
