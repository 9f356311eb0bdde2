//! The iterative solve on a rank.

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::CgOutcome;

use super::device::RankDevice;
use super::system::{DistributedSystem, RankUnknowns};
use crate::method::iterate;
use crate::system::SystemSummary;
use crate::{SolveError, SolverConfig, Stage, Stages};

/// The solution of the distributed system on one rank.
pub(crate) struct Iterated {
    /// Values at the owned unknowns, Dirichlet values included.
    pub w: Vec<f64>,
    pub outcome: CgOutcome,
    pub unknowns: RankUnknowns,
    pub parts: SystemSummary,
    pub warnings: Vec<String>,
}

impl Iterated {
    /// Solves the system. Collective.
    pub fn of<D: RankDevice>(
        (device, comm): (&D, &Comm),
        system: DistributedSystem<D>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<Self, SolveError> {
        let DistributedSystem { operator, preconditioner, rhs, parts, warnings, unknowns } = system;
        stages.begin(Stage::Solve)?;
        let b = Buffer::from_vec(device, rhs).map_err(LinalgError::from)?;
        let mut w = Buffer::zeros(device, b.len()).map_err(LinalgError::from)?;
        let outcome =
            iterate(config, comm, &mut w, (operator.as_ref(), preconditioner.as_ref()), &b, stages)?;
        let mut w = w.to_host().map_err(LinalgError::from)?;
        unknowns.given.iter().for_each(|&(row, value)| w[row as usize] = value);
        Ok(Self { w, outcome, unknowns, parts, warnings })
    }
}
