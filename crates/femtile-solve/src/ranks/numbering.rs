//! The unknowns of a part of a mesh of quadrilaterals or hexahedra.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use femtile_comm::{Comm, Halo, PartUnknowns};
use femtile_device::parallel;
use femtile_fem::dofs::TensorSpace;
use femtile_linalg::LinalgError;
use femtile_mesh::partition::Part;
use rayon::prelude::*;

/// Unknowns, and cells, of a parallel task.
const DOFS: usize = 1 << 14;
const CELLS: usize = 64;

/// The unknowns of a part, with their numbers in the whole space.
///
/// The owner of an unknown is the highest of those of the corners of its vertex, edge, face or cell. So all cells that touch
/// an unknown of a rank touch a node of it, and are in its part; and both ranks of a cell know the owners of all of it.
pub(super) struct Numbering {
    /// The unknown of the part of each one that the rank owns: those that no other rank copies first.
    owned: Vec<u32>,
    /// The unknown of the part of each ghost, sorted by owner.
    ghosts: Vec<u32>,
    /// The number in the whole space of each unknown of the part.
    whole: Vec<u32>,
    /// The owner of each unknown of the part.
    owners: Vec<u32>,
}

impl Numbering {
    /// Numbers the unknowns of the part of `rank` in `space`, of one degree with the `whole` space.
    pub fn new(part: &Part, space: &TensorSpace<'_>, whole: &TensorSpace<'_>, rank: usize) -> Self {
        let (n, d, n_dofs) = (space.degree() + 1, space.dimension(), space.n_dofs());
        let rank = rank as u32;
        let owner_of = |node: u32| match (node as usize).checked_sub(part.n_owned) {
            Some(ghost) => part.owners[ghost],
            None => rank,
        };
        let positions = positions(part, whole);
        let corners_of: Vec<Vec<usize>> = (0..n.pow(d as u32)).map(|at| corners_around(at, n, d)).collect();
        // Cells that share an unknown find the same number and owner.
        let atomics = |value: u32| parallel::map(n_dofs, DOFS, move |_| AtomicU32::new(value));
        let (numbers, owners, is_copied) = (atomics(0), atomics(rank), atomics(0));
        let zeros = || [(); 3].map(|()| vec![0; space.dofs_per_cell()]);
        parallel::map_with(space.n_cells(), CELLS, zeros, |[own, of_whole, turned], position| {
            let in_whole = positions[space.order()[position] as usize] as usize;
            space.cell_dofs(position, own);
            whole.cell_dofs(in_whole, of_whole);
            let places = |at: usize| [at % n, at / n % n, at / (n * n)];
            let (here, there) = (space.orientation(position), whole.orientation(in_whole));
            for (at, &dof) in of_whole.iter().enumerate() {
                turned[there.given(places(at), n)] = dof;
            }
            let of_corners: Vec<u32> = space.corners(position).iter().map(|&node| owner_of(node)).collect();
            let has_others = of_corners.iter().any(|&owner| owner != rank);
            for (at, &dof) in own.iter().enumerate() {
                let dof = dof as usize;
                numbers[dof].store(turned[here.given(places(at), n)], Relaxed);
                if has_others {
                    let around = corners_of[at].iter().map(|&corner| of_corners[corner]);
                    owners[dof].store(around.max().unwrap_or(rank), Relaxed);
                    is_copied[dof].store(1, Relaxed);
                }
            }
        });
        let plain = |of: Vec<AtomicU32>| of.into_iter().map(AtomicU32::into_inner).collect::<Vec<u32>>();
        let [numbers, owners, is_copied] = [numbers, owners, is_copied].map(plain);
        let those = |of: &(dyn Fn(usize) -> bool + Sync)| -> Vec<u32> {
            let all = (0..n_dofs as u32).into_par_iter().with_min_len(DOFS);
            all.filter(|&dof| of(dof as usize)).collect()
        };
        let mut owned = those(&|dof| owners[dof] == rank && is_copied[dof] == 0);
        owned.extend(those(&|dof| owners[dof] == rank && is_copied[dof] == 1));
        let mut ghosts = those(&|dof| owners[dof] != rank);
        // Of an owner in the order of the part, in which the unknowns of an entity follow each other.
        ghosts.sort_by_key(|&dof| owners[dof as usize]);
        Self { owned, ghosts, whole: numbers, owners }
    }

    /// The numbering of no unknown.
    pub fn none() -> Self {
        Self { owned: vec![], ghosts: vec![], whole: vec![], owners: vec![] }
    }

    /// Returns the number in the whole space of each unknown that the rank owns.
    pub fn owned_of_whole(&self) -> Vec<u32> {
        parallel::map(self.owned.len(), DOFS, |at| self.whole[self.owned[at] as usize])
    }

    /// Tells the other ranks which unknowns this one copies. All ranks call it.
    pub fn joined(self, comm: &Comm) -> Result<PartUnknowns, LinalgError> {
        let id = |at: usize| u64::from(self.whole[self.owned[at] as usize]);
        let ids: Vec<u64> = parallel::map(self.owned.len(), DOFS, id);
        let ghost = |&dof: &u32| (self.owners[dof as usize], u64::from(self.whole[dof as usize]));
        let ghosts: Vec<(u32, u64)> = self.ghosts.iter().map(ghost).collect();
        PartUnknowns::new(Arc::new(Halo::new(comm, &ids, &ghosts)?), self.owned, self.ghosts)
    }
}

/// The position in the whole space of each cell of a part.
fn positions(part: &Part, whole: &TensorSpace<'_>) -> Vec<u32> {
    let mut of_cell = vec![0; whole.n_cells()];
    whole.order().iter().zip(0..).for_each(|(&cell, position)| of_cell[cell as usize] = position);
    part.cells.iter().map(|&cell| of_cell[cell as usize]).collect()
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
