//! The solution on a distributed mesh.

use std::fmt::Debug;

use femtile_fem::{FemError, functionals};
use femtile_linalg::LinalgError;
use femtile_matrix_free::CellRule;
use femtile_space::{Space, TensorSpace};

use crate::SolveError;
use crate::discretization::Discretization;
use crate::ranks::{self, AllOfMesh, MeshOnRanks, Values};

/// The solution on the part of a rank, for global functionals; the [`crate::Solution`] has only that on the
/// rank's own cells. All functions that compute are collective.
#[derive(Debug)]
pub(crate) struct DistributedSolution<'m> {
    /// The problem on the part, with all cells around the owned unknowns.
    problem: Discretization<'m>,
    divided: MeshOnRanks<'m>,
    /// The values of each component on the part.
    components: Vec<Vec<f64>>,
    /// Whether the rank owns each unknown of the part.
    is_owned: Vec<bool>,
    /// The global minimum and maximum of each component.
    ranges: Vec<[f64; 2]>,
}

impl<'m> DistributedSolution<'m> {
    /// Takes the components of u on the part. Collective.
    pub fn new(
        (problem, divided): (Discretization<'m>, MeshOnRanks<'m>),
        components: Vec<Vec<f64>>,
        is_owned: Vec<bool>,
    ) -> Result<Self, LinalgError> {
        let range = |u: &Vec<f64>| -> Result<[f64; 2], LinalgError> {
            let own = [functionals::min(u), functionals::max(u)];
            let all = divided.comm.all_gather(&own)?.concat();
            let least = all.iter().step_by(2).copied().fold(f64::NAN, f64::min);
            let most = all.iter().skip(1).step_by(2).copied().fold(f64::NAN, f64::max);
            Ok([least, most])
        };
        let ranges = components.iter().map(range).collect::<Result<_, _>>()?;
        Ok(Self { problem, divided, components, is_owned, ranges })
    }

    /// Returns the problem on the part.
    pub fn problem(&self) -> &Discretization<'m> {
        &self.problem
    }

    /// Returns nodes, cells and degrees of freedom of all ranks.
    pub fn counts(&self) -> [usize; 3] {
        let counts = self.divided.mesh.counts;
        [counts.n_nodes as usize, counts.n_cells as usize, self.problem.n_global_dofs()]
    }

    /// Gathers the whole mesh and the solution on the first rank; `own` and `components` are the space and the
    /// values on the own cells.
    pub fn collect(
        &self,
        own: Option<&TensorSpace<'_>>,
        components: &[Vec<f64>],
    ) -> Result<Option<AllOfMesh>, SolveError> {
        let MeshOnRanks { mesh, comm } = &self.divided;
        let values = match own {
            Some(space) => Values::InCells(space, components),
            None => Values::AtNodes(&self.components[0][..mesh.part.n_owned]),
        };
        ranks::collect(comm, mesh, &values)
    }

    /// Returns the least and the largest value of a component.
    pub fn range(&self, component: usize) -> [f64; 2] {
        self.ranges[component]
    }

    /// Returns the sum of a number of each rank.
    pub fn sum(&self, own: f64) -> Result<f64, FemError> {
        Ok(self.divided.sum([own])?[0])
    }

    /// Returns the values that the lowest rank has which has any.
    pub fn first_of(&self, found: &[Option<f64>]) -> Result<Vec<Option<f64>>, FemError> {
        Ok(self.divided.first_of(found)?)
    }

    /// Returns the shares of the rank of the flux of a component through each facet of its part.
    pub fn facet_fluxes(&self, component: usize, rule: CellRule) -> Result<Vec<f64>, FemError> {
        let (form, counts) = (self.problem.form(component), |dof: u32| self.is_owned[dof as usize]);
        let space = Space::of(self.problem.mesh(), self.problem.space())?;
        functionals::facet_shares(&space, &form, rule, &self.components[component], &counts)
    }
}
