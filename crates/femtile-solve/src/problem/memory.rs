//! The memory that a problem needs.

use femtile_mesh::generate::Counts;

use super::Poisson;
use crate::coefficient::Value;
use crate::memory::{Estimate, refuse_excess};
use crate::{OperatorKind, SolveError, SolverConfig};

impl Poisson<'_> {
    /// Refuses a solve that needs more memory than this machine has. Collective.
    pub(crate) fn check_memory(&self, config: &SolverConfig, has_gpu: bool) -> Result<(), SolveError> {
        let of_host = config.ranks.share_of_host()?;
        let estimate = |on_gpu| match &self.divided {
            None => self.estimate(config, Counts::from(self.mesh), on_gpu).replicated_on_host(of_host),
            Some(divided) => self.estimate(config, divided.mesh.counts, on_gpu).distributed_on_host(of_host),
        };
        let advice = "take a coarser mesh or a lighter preconditioner, or raise the limit";
        let place = (&["solver".into(), "memory_limit".into()][..], advice);
        let has_gpu = has_gpu || crate::has_gpus_of_ranks(config, self.mesh.kind);
        refuse_excess(estimate, config.memory_limit, (config.device, has_gpu), place)
    }

    /// Estimates the memory of a solve.
    pub(crate) fn estimate(&self, config: &SolverConfig, counts: Counts, on_gpu: bool) -> Estimate {
        let is_refilled = self.parsed(true).is_ok_and(|own| {
            own.source.uses_unknown() || [&own.sigma, &own.lambda].into_iter().any(Value::uses_state)
        });
        // Linearizations are matrices.
        let assembled = SolverConfig { operator: OperatorKind::Assembled, ..config.clone() };
        let config = if is_refilled { &assembled } else { config };
        Estimate::of_solve(config, &self.space, counts, on_gpu).with_conductivity(&self.sigma, counts)
    }
}
