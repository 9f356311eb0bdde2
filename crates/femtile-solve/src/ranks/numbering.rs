//! The unknowns of a part of a mesh of quadrilaterals or hexahedra.
//!
//! An unknown belongs to the highest owner of the corners of its vertex, edge, face or cell. Both ranks of a cell
//! can tell this owner, and all cells of an unknown are in the part of its owner. A rank asks for unknowns of
//! others by a cell that has them and their place in it (`Numbering::joined`), so no numbering of the whole mesh is
//! needed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use femtile_comm::{Comm, Halo, PartUnknowns};
use femtile_device::parallel;
use femtile_fem::dofs::TensorSpace;
use femtile_linalg::LinalgError;
use femtile_mesh::partition::{BoxCubes, Part};
use rayon::prelude::*;

use super::cell_dofs::{CellDofs, in_given_axes, positions};
use super::divided::WholeSpace;

/// Unknowns, and cells, of a parallel task.
const DOFS: usize = 1 << 14;
const CELLS: usize = 64;

/// The unknowns of a part.
///
/// The owner of an unknown is the highest of those of the corners of its vertex, edge, face or cell. So all cells that touch
/// an unknown of a rank touch a node of it, and are in its part; and both ranks of a cell know the owners of all of it.
pub(super) struct Numbering {
    /// The unknown of the part of each one that the rank owns: those that no other rank copies first.
    pub owned: Vec<u32>,
    /// The unknown of the part of each ghost, sorted by owner.
    ghosts: Vec<u32>,
    /// The owner of each ghost.
    owners: Vec<u32>,
}

impl Numbering {
    /// Numbers the unknowns of the part of `rank` in its space.
    pub fn new(part: &Part, space: &TensorSpace<'_>, rank: usize) -> Self {
        let (n, d, n_dofs) = (space.degree() + 1, space.dimension(), space.n_dofs());
        let rank = rank as u32;
        let corners_of: Vec<Vec<usize>> = (0..n.pow(d as u32)).map(|at| corners_around(at, n, d)).collect();
        // Cells that share an unknown find the same owner.
        let atomics = |value: u32| parallel::map(n_dofs, DOFS, move |_| AtomicU32::new(value));
        let (owners, is_copied) = (atomics(rank), atomics(0));
        let zeros = || vec![0; space.dofs_per_cell()];
        parallel::map_with(space.n_cells(), CELLS, zeros, |own, position| {
            let of_corners: Vec<u32> =
                space.corners(position).iter().map(|&node| part.owner(node, rank)).collect();
            if of_corners.iter().all(|&owner| owner == rank) {
                return;
            }
            space.cell_dofs(position, own);
            for (at, &dof) in own.iter().enumerate() {
                let around = corners_of[at].iter().map(|&corner| of_corners[corner]);
                owners[dof as usize].store(around.max().unwrap_or(rank), Relaxed);
                is_copied[dof as usize].store(1, Relaxed);
            }
        });
        let plain = |of: Vec<AtomicU32>| of.into_iter().map(AtomicU32::into_inner).collect::<Vec<u32>>();
        let [owners, is_copied] = [owners, is_copied].map(plain);
        let those = |of: &(dyn Fn(usize) -> bool + Sync)| -> Vec<u32> {
            let all = (0..n_dofs as u32).into_par_iter().with_min_len(DOFS);
            all.filter(|&dof| of(dof as usize)).collect()
        };
        let mut owned = those(&|dof| owners[dof] == rank && is_copied[dof] == 0);
        owned.extend(those(&|dof| owners[dof] == rank && is_copied[dof] == 1));
        let mut ghosts = those(&|dof| owners[dof] != rank);
        // Of an owner in the order of the part, in which the unknowns of an entity follow each other.
        ghosts.sort_by_key(|&dof| owners[dof as usize]);
        let owners = ghosts.iter().map(|&dof| owners[dof as usize]).collect();
        Self { owned, ghosts, owners }
    }

    /// The numbering of no unknown.
    pub fn none() -> Self {
        Self { owned: vec![], ghosts: vec![], owners: vec![] }
    }

    /// Tells the other ranks which unknowns this one copies, each by a cell that has it and its place there:
    /// owners have all cells around their unknowns. Collective; `own` is none where the rank has no part.
    pub fn joined(
        self,
        comm: &Comm,
        own: Option<(&Part, &TensorSpace<'_>)>,
    ) -> Result<PartUnknowns, LinalgError> {
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
        PartUnknowns::new(Arc::new(halo), self.owned, self.ghosts)
    }

    /// The places among the owned unknowns of those that each other rank wants.
    fn exports(
        &self,
        (part, space): (&Part, &TensorSpace<'_>),
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

/// Returns a cell that has each of some unknowns of a part, times the unknowns of a cell, plus the place of it there: by the number of
/// the cell in the whole mesh and in its axes there, so that all ranks understand it. Cells for which `may_have` is false have none.
pub(super) fn places_in_cells(
    (part, space): (&Part, &TensorSpace<'_>),
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

/// Returns the number of each unknown that the rank owns in the space of the problem: that of the part where no rank has another
/// one.
pub(super) fn owned_of_problem(
    numbering: &Numbering,
    whole: WholeSpace<'_>,
    own: Option<(&Part, &TensorSpace<'_>)>,
) -> Vec<u32> {
    match (whole, own) {
        (WholeSpace::Kept(whole), Some((part, space))) => {
            let numbers = numbers_in(whole, space, &part.cells);
            parallel::map(numbering.owned.len(), DOFS, |at| numbers[numbering.owned[at] as usize] as u32)
        }
        _ => numbering.owned.clone(),
    }
}

/// The number of each unknown of a space in another one, of the same degree, in whose mesh its cells have these numbers.
pub(super) fn numbers_in(whole: &TensorSpace<'_>, space: &TensorSpace<'_>, cells: &[u32]) -> Vec<u64> {
    let position_of = positions(whole);
    let zeros = || vec![0; whole.dofs_per_cell()];
    numbers(space, zeros, |of_whole, position, given| {
        let in_whole = position_of[cells[space.order()[position] as usize] as usize] as usize;
        in_given_axes(whole, in_whole, of_whole, |at, dof| given[at] = u64::from(dof));
    })
}

/// The number of each unknown of the part of a box in rows of nodes of the whole box.
pub(super) fn numbers_in_box(cubes: &BoxCubes, part: &Part, space: &TensorSpace<'_>) -> Vec<u64> {
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

/// Numbers of the unknowns of a space, of which `of_cell` writes those of the cell at a position in its given axes.
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

/// The place along each axis of an entry of a cell with `n` nodes along each.
pub(super) fn places(at: usize, n: usize) -> [usize; 3] {
    [at % n, at / n % n, at / (n * n)]
}

/// The corners of the vertex, edge, face or cell that has a node of a cell with `n` nodes along each axis.
fn corners_around(at: usize, n: usize, d: usize) -> Vec<usize> {
    let is_around = |corner: &usize| {
        (0..d).all(|axis| {
            let (index, bit) = (at / n.pow(axis as u32) % n, corner >> axis & 1);
            index == bit * (n - 1) || (index != 0 && index != n - 1)
        })
    };
    (0..1 << d).filter(is_around).collect()
}
