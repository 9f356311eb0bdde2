//! Runs on several ranks, each of which advances the nodes of its part of the mesh.

use std::sync::{Mutex, PoisonError};

use femtile::device::{Cpu, Cuda};
use femtile::solve::{RankPart, Stage, Stages};
use femtile::{PreconditionerConfig, SolveError, SolverConfig};

use super::site::Site;
use super::{Checkpoint, Monodomain, MonodomainSolution, Nodes, Observer, Scheme, Unobserved};
use crate::{CardiacDevice, CardiacError};

impl Monodomain<'_> {
    /// Runs on the ranks of the settings; all that are processes get the solution, and the first one observes.
    pub(super) fn run_on_ranks(
        &self,
        (cpu, opened): (&Cpu, Option<Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        if self.scheme == Scheme::Implicit {
            let message =
                "several ranks advance hearts by splitting: use \"godunov\" or \"strang\", or one rank";
            return Err(SolveError::setting(&["solver".into(), "ranks".into()], message).into());
        }
        let of_state = |Checkpoint { counts, time, length, arrays, .. }: &Checkpoint| {
            [counts[0], counts[1], time.to_bits(), length.to_bits(), arrays.len() as u64]
        };
        config.ranks.check_state(&self.resume.as_ref().map_or([0; 5], of_state))?;
        stages.begin(Stage::Space)?;
        let config = &of_ranks(config);
        let diffusion = self.diffusion()?;
        let divided = diffusion.divided(config)?;
        // The first rank alone has something to tell.
        let observer = Mutex::new(Some(observer));
        let take = || observer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = |rank: &RankPart<'_>, stages: &mut Stages<'_>| {
            let mut none = Unobserved;
            let observer = if rank.comm().rank() == 0 { take() } else { None }.unwrap_or(&mut none);
            match rank.gpu() {
                Some(gpu) => self.on_rank((gpu, Some(gpu), rank), config, observer, stages),
                None => self.on_rank((rank.cpu(), None, rank), config, observer, stages),
            }
        };
        divided.on_all((cpu, opened.as_ref()), work, stages)
    }

    /// The work of one rank.
    fn on_rank<D: CardiacDevice>(
        &self,
        (device, opened, rank): (&D, Option<&Cuda>, &RankPart<'_>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        let nodes = Nodes::of_rank(self.mesh.n_nodes(), rank);
        let site = Site { cpu: rank.cpu(), device, opened, rank: Some(rank), nodes };
        self.run_at(&site, (config, rank.reason(device)), observer, stages)
    }
}

/// The settings of ranks: the few iterations of a step pay for no set-up, so Jacobi replaces a choice.
fn of_ranks(config: &SolverConfig) -> SolverConfig {
    let preconditioner = match &config.preconditioner {
        PreconditionerConfig::Auto => PreconditionerConfig::Jacobi,
        other => other.clone(),
    };
    SolverConfig { preconditioner, ..config.clone() }
}
