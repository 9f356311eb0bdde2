//! The iterative solve on a rank.

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::{LinalgError, LinearOperator};

use super::device::RankDevice;
use super::system::{DistributedSystem, RankUnknowns};
use super::watch::Agreed;
use crate::method::by_method;
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
        let mut agreed = Agreed::new(comm, config, stages.progress());
        let config_of_method = agreed.without_time_limit(config);
        let pair = (operator.as_ref() as &dyn LinearOperator<f64, D>, preconditioner.as_ref());
        let outcome = by_method(&config_of_method, comm, &mut w, pair, &b, &mut agreed)?;
        agreed.ended()?;
        let mut w = w.to_host().map_err(LinalgError::from)?;
        unknowns.given.iter().for_each(|&(row, value)| w[row as usize] = value);
        Ok(Self { w, outcome, unknowns, parts, warnings })
    }
}
