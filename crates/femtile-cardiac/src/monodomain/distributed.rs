//! Runs on several ranks, each of which advances the nodes of its part of the mesh.
//!
//! Vectors have the nodes that a rank owns. `Nodes` translates between these and the nodes of the mesh, and `Site`
//! is the device with them; a single rank is the case that has all nodes. Operators come from `LocalProblem`, which
//! gives a crate that uses only the facade the rows of its part, sums and collected vectors.

use std::sync::{Arc, Mutex, PoisonError};

use femtile::comm::Comm;
use femtile::device::{Cpu, Cuda};
use femtile::mesh::partition::DistributedMesh;
use femtile::solve::{LocalProblem, Stage, Stages};
use femtile::{Mesh, PreconditionerConfig, SolveError, SolverConfig};

use super::site::Site;
use super::{Checkpoint, CheckpointInterval, Monodomain, MonodomainSolution, Nodes, Observer};
use crate::{CardiacDevice, CardiacError};

/// A mesh of which each rank has its part.
#[derive(Debug, Clone)]
pub(crate) struct MeshOnRanks<'m> {
    pub mesh: &'m DistributedMesh,
    pub comm: Comm,
    /// The whole mesh, on the first rank.
    pub whole: Option<&'m Mesh>,
}

impl Monodomain<'_> {
    /// Runs on the ranks of the settings; all that are processes get the solution, and the first one observes.
    pub(super) fn run_on_ranks(
        &self,
        (cpu, opened): (&Cpu, Option<Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        let of_state = |Checkpoint { counts, time, length, arrays, .. }: &Checkpoint| {
            [counts[0], counts[1], time.to_bits(), length.to_bits(), arrays.len() as u64]
        };
        match &self.parts {
            None => config.ranks.check_state(&self.resume.as_deref().map_or([0; 5], of_state))?,
            Some(parts) => {
                let times = self.frames.iter().map(|time| time.to_bits());
                let checkpoints = self.checkpoints.map_or([0; 2], CheckpointInterval::to_bits);
                let numbers: Vec<u64> = times.chain(checkpoints).collect();
                let message = "ranks have other frames or checkpoints: set the same on all of them";
                config.ranks.check_alike(&numbers, message)?;
                parts.check(!self.frames.is_empty())?;
                let all = Self { resume: parts.resumed(self.resume.as_ref())?, ..self.clone() };
                return all.run_divided((cpu, opened), config, observer, stages);
            }
        }
        self.run_divided((cpu, opened), config, observer, stages)
    }

    /// Runs on ranks that continue from one state.
    fn run_divided(
        &self,
        (cpu, opened): (&Cpu, Option<Cuda>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        stages.begin(Stage::Space)?;
        let config = &of_ranks(config);
        let diffusion = self.diffusion()?;
        let divided = diffusion.distributed(config)?;
        // The first rank alone has something to tell.
        let observer = Mutex::new(Some(observer));
        let take = || observer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = |rank: &LocalProblem<'_>, stages: &mut Stages<'_>| {
            let mut none = ();
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
        (device, opened, rank): (&D, Option<&Cuda>, &LocalProblem<'_>),
        config: &SolverConfig,
        observer: &mut dyn Observer,
        stages: &mut Stages<'_>,
    ) -> Result<MonodomainSolution, CardiacError> {
        let nodes = Nodes::owned_by(rank);
        let site = Site { cpu: rank.cpu(), device, opened, rank: Some(rank), nodes };
        self.run_at(&site, (config, rank.reason(device)), observer, stages)
    }
}

impl MeshOnRanks<'_> {
    /// Refuses frames without the whole mesh. Collective.
    fn check(&self, wants_frames: bool) -> Result<(), CardiacError> {
        match self.comm.any([wants_frames, self.whole.is_some() && self.comm.rank() == 0])? {
            [true, false] => {
                let message =
                    "frames need the whole mesh on the first rank: give it to `Monodomain::distributed`";
                Err(SolveError::setting(&["solver".into(), "ranks".into()], message).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the state of the first rank, on the others without its arrays. Collective.
    fn resumed(&self, own: Option<&Arc<Checkpoint>>) -> Result<Option<Arc<Checkpoint>>, CardiacError> {
        let own = own.filter(|_| self.comm.rank() == 0);
        let mut bytes = Vec::new();
        if let Some(state) = own {
            // Nothing fails to be written into memory.
            let _ = state.without_arrays().write(&mut bytes);
        }
        let of_first = self.comm.all_gather(&bytes)?.swap_remove(0);
        if self.comm.rank() == 0 || of_first.is_empty() {
            return Ok(own.cloned());
        }
        let message = |error| format!("the state of the first rank cannot be read: {error}");
        let state = Checkpoint::read(&mut of_first.as_slice());
        state
            .map(|state| Some(Arc::new(state)))
            .map_err(|error| CardiacError::setting("restart", message(error)))
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
