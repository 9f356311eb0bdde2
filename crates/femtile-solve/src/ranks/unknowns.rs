//! The unknowns of a rank, and the Dirichlet values there.

use std::sync::Arc;

use femtile_comm::{Comm, Halo, LocalUnknowns};
use femtile_fem::Constraints;
use femtile_linalg::LinalgError;
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;

use super::mesh_on_ranks::{WholeSpace, ids_of_nodes};
use super::numbering::{Numbering, owned_of_problem};
use super::rows::node_of;
use crate::SolveError;
use crate::discretization::Discretization;
use crate::method::SolveDevice;
use crate::preconditioner::RowsOfProblem;
use crate::system::LinearSystem;

/// The unknowns on a rank.
#[derive(Clone)]
pub(crate) struct RankUnknowns {
    /// The node of each owned unknown, or for elements of any degree its number in the space, in the mesh of the
    /// problem: the whole mesh or the part.
    pub owned: Vec<u32>,
    /// Owned unknowns and ghosts among those of the part.
    pub local: Arc<LocalUnknowns>,
    /// The number of unknowns of all ranks.
    pub n: usize,
}

impl RankUnknowns {
    /// Those of linear elements: the nodes of the part, if the rank has one. Collective.
    pub(super) fn of_nodes(
        comm: &Comm,
        problem: &Discretization<'_>,
        part: Option<&MeshPart>,
    ) -> Result<Self, LinalgError> {
        let (ids, ghosts) = part.map(ids_of_nodes).unwrap_or_default();
        let local = LocalUnknowns::in_order(Arc::new(Halo::new(comm, &ids, &ghosts)?))?;
        let owned = part.map_or_else(Vec::new, |part| {
            (0..part.n_owned).map(|local| node_of(problem, part, local)).collect()
        });
        Ok(Self { owned, local: Arc::new(local), n: problem.n_global_dofs() })
    }

    /// Those of a space of any degree on the part, if the rank has one, which has the same degree as `whole`. Collective.
    pub(super) fn in_space(
        comm: &Comm,
        whole: WholeSpace<'_>,
        own: Option<(&MeshPart, &TensorSpace<'_>)>,
    ) -> Result<Self, SolveError> {
        let numbering =
            own.map_or_else(Numbering::none, |(part, space)| Numbering::new(part, space, comm.rank()));
        let owned = owned_of_problem(&numbering, whole, own);
        Ok(Self { owned, local: Arc::new(numbering.joined(comm, own)?), n: whole.n_dofs() })
    }

    /// Returns the place of the rows of the owned unknowns among those of all ranks.
    pub fn rows(&self) -> RowsOfProblem<'_> {
        RowsOfProblem::of_rank(self.halo(), &self.owned, self.n)
    }

    /// Returns the halo of the unknowns.
    pub fn halo(&self) -> &Arc<Halo> {
        self.local.halo()
    }

    /// Returns the entries at the owned unknowns of a vector in the numbers of the problem.
    pub fn of_problem(&self, values: &[f64]) -> Vec<f64> {
        self.owned.iter().map(|&unknown| values[unknown as usize]).collect()
    }
}

/// The system of a rank's rows, with its unknowns.
pub(crate) struct RankSystem<D: SolveDevice> {
    pub system: LinearSystem<'static, D>,
    pub unknowns: RankUnknowns,
}

/// Returns the Dirichlet values at owned unknowns, which have these numbers in the mesh of `given`.
pub(crate) fn given_at_owned(owned: &[u32], given: &Constraints) -> Constraints {
    Constraints::of_values(owned.len(), |row| given.value(owned[row] as usize))
}

/// Returns the Dirichlet values on a part from those evaluated on it. A rank evaluates those of its owned unknowns, because its
/// part has all facets around them; ghosts get theirs from their owners. Collective.
pub(crate) fn given_on_part(
    local: &LocalUnknowns,
    evaluated: &Constraints,
) -> Result<Constraints, LinalgError> {
    let given = given_at_owned(local.owned(), evaluated);
    let (mut values, mut flags) = (vec![0.0; given.n_dofs()], vec![0.0_f32; given.n_dofs()]);
    given.impose(&mut values);
    given.dofs().iter().for_each(|&row| flags[row as usize] = 1.0);
    let (values, flags) = (local.with_ghosts(&values)?, local.with_ghosts(&flags)?);
    Ok(Constraints::of_values(local.n(), |unknown| (flags[unknown] != 0.0).then(|| values[unknown])))
}

#[cfg(test)]
mod tests {
    use femtile_comm::threads;

    use super::*;

    #[test]
    fn ghosts_have_the_dirichlet_values_of_their_owners() {
        let work = |comm: Comm| -> Result<(), LinalgError> {
            // Rank r owns unknowns 2r and 2r + 1, and has those of the other rank as ghosts.
            let (own, other) = (comm.rank() as u64, 1 - comm.rank() as u64);
            let ghosts = [2 * other, 2 * other + 1].map(|id| (other as u32, id));
            let halo = Arc::new(Halo::new(&comm, &[2 * own, 2 * own + 1], &ghosts)?);
            // The order of the part is not that of the rank.
            let local = LocalUnknowns::new(halo, vec![3, 1], vec![0, 2])?;
            // An owner has a value at its first unknown; the rank with ghosts has one at another.
            let evaluated =
                Constraints::of_values(4, |unknown| [None, None, Some(-7.0), Some(own as f64)][unknown]);
            let given = given_on_part(&local, &evaluated)?;
            let values: Vec<_> = (0..4).map(|unknown| given.value(unknown)).collect();
            assert_eq!(values, [Some(other as f64), None, None, Some(own as f64)]);
            Ok(())
        };
        threads::run(2, work, work).unwrap();
    }
}
