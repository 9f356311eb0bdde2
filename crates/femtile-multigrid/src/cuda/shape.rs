use femtile_device::cuda::{Launch, Specialisation};

use crate::MultigridError;

/// Largest number of threads of a block.
const MAX_THREADS: usize = 1024;

/// Launch shape: how threads are assigned to patches or cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchShape {
    /// Threads per patch or cell: a team.
    pub team: usize,
    /// Teams per block.
    pub teams: usize,
    /// Minimum resident blocks per multiprocessor, which limits registers.
    pub blocks: usize,
}

impl PatchShape {
    /// Checks for at least `lines` threads per team, 1 to 1024 per block, and `blocks` > 0.
    ///
    /// # Errors
    /// [`MultigridError::Gpu`] otherwise.
    pub fn check(&self, lines: usize) -> Result<(), MultigridError> {
        let refuse = |message: String| Err(MultigridError::Gpu { message });
        if self.team < lines {
            return refuse(format!("team of {} threads: choose at least {lines}", self.team));
        }
        if !(1..=MAX_THREADS / self.team).contains(&self.teams) || self.blocks == 0 {
            let most = MAX_THREADS / self.team;
            return refuse(format!(
                "{} teams in each of {} blocks: choose 1 to {most}",
                self.teams, self.blocks
            ));
        }
        Ok(())
    }

    fn threads(&self) -> usize {
        (self.team * self.teams).next_multiple_of(32)
    }

    /// Returns the launch for `n` patches or cells, with `bytes` of shared memory per team.
    pub fn launch(&self, n: usize, bytes: usize) -> Launch {
        Launch::line(n.div_ceil(self.teams), self.threads() as u32).shared(self.teams * bytes)
    }

    /// Adds the macros `FEMTILE_TEAM`, `FEMTILE_TEAMS`, `FEMTILE_THREADS` and `FEMTILE_BLOCKS`.
    pub fn define(&self, program: Specialisation) -> Specialisation {
        program
            .define("FEMTILE_TEAM", self.team)
            .define("FEMTILE_TEAMS", self.teams)
            .define("FEMTILE_THREADS", self.threads())
            .define("FEMTILE_BLOCKS", self.blocks)
    }
}
