//! The matrices of linear elements on a rank, from which those of all shifts are combined.

use std::sync::Arc;

use femtile_sparse::Csr;

use super::distributed_equation::RankContext;
use super::operators::{held, held_mass};
use crate::discretization::Discretization;
use crate::ranks::RankDevice;
use crate::ranks::rows::{assembled, nothing};
use crate::ranks::system::{DistributedSystem, RankUnknowns};
use crate::{SolveError, SolverConfig, Stages};

/// $K$ and $M$ on the part of a rank, of one pattern, both with unit rows and columns at Dirichlet unknowns.
///
/// So $K + a M$ has 1 + a on the diagonal there, which residuals drop.
pub(super) struct RankTerms<D: RankDevice> {
    stiffness: Csr<f64, D>,
    mass: Csr<f64, D>,
}

impl<D: RankDevice> RankTerms<D> {
    /// Assembles both matrices; none if assembly fails on a rank, for instance with a negative reaction, or
    /// the elements are not linear. Collective.
    pub fn new(of: &RankContext<'_, '_, D>, stages: &mut Stages<'_>) -> Result<Option<Self>, SolveError> {
        let problem = of.run.problem;
        if problem.space().is_some() {
            return Ok(None);
        }
        let stiffness = matrix(of, &held(problem, 0.0), stages);
        let mass = matrix(of, &held_mass(problem), stages);
        let here = stiffness.and_then(|stiffness| {
            let mass = stiffness.with_values(mass?.into_values())?;
            Ok(Self { stiffness, mass })
        });
        let [is_missing] = of.comm.any([here.is_err()])?;
        Ok(here.ok().filter(|_| !is_missing))
    }

    /// Makes the system of stages with a shift. Collective.
    pub fn system(
        &self,
        of: &RankContext<'_, '_, D>,
        (shift, unknowns): (f64, &RankUnknowns),
        config: &SolverConfig,
    ) -> Result<DistributedSystem<D>, SolveError> {
        let n_owned = unknowns.owned.len();
        let matrix = of.device.divide(self.stiffness.combined(1.0, &self.mass, shift)?, n_owned)?;
        let unknowns = RankUnknowns::new(unknowns.owned.clone(), Arc::clone(&unknowns.local));
        DistributedSystem::of_matrix(
            of.device,
            config,
            (matrix, Vec::new()),
            unknowns,
            of.run.problem.n_global_dofs(),
        )
    }
}

/// Assembles the matrix of a problem on the part of a rank. Collective.
fn matrix<D: RankDevice>(
    of: &RankContext<'_, '_, D>,
    problem: &Discretization<'_>,
    stages: &mut Stages<'_>,
) -> Result<Csr<f64, D>, SolveError> {
    let fixed = of.run.fixed.of(problem)?;
    match of.part {
        Some(part) => Ok(assembled(of.device, (problem, &fixed), part, stages)?.matrix),
        None => Ok(nothing(of.device)?),
    }
}
