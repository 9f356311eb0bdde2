//! The matrices of linear elements on a rank, from which those of all shifts are combined.

use femtile_sparse::Csr;

use super::distributed_equation::RankContext;
use super::operators::{held, held_mass};
use crate::auto::Solves;
use crate::discretization::Discretization;
use crate::ranks::RankDevice;
use crate::ranks::rows::{RankProblem, assembled, nothing};
use crate::ranks::unknowns::RankUnknowns;
use crate::system::Prepared;
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
        let [is_missing] = of.on.comm.any([here.is_err()])?;
        Ok(here.ok().filter(|_| !is_missing))
    }

    /// Makes the operator of stages with a shift, and its preconditioner. Collective.
    pub fn of_shift(
        &self,
        of: &RankContext<'_, '_, D>,
        (shift, unknowns): (f64, &RankUnknowns),
        config: &SolverConfig,
    ) -> Result<Prepared<D>, SolveError> {
        let n_owned = unknowns.owned.len();
        let matrix = of.on.device.divide(self.stiffness.combined(1.0, &self.mass, shift)?, n_owned)?;
        Prepared::of_matrix(config, matrix, &unknowns.rows(), Solves::Many)
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
        Some(part) => {
            let of_rank = RankProblem { problem, fixed: &fixed, part: of.part };
            Ok(assembled(of.on.device, of_rank, part, stages)?.matrix)
        }
        None => Ok(nothing(of.on.device)?),
    }
}
