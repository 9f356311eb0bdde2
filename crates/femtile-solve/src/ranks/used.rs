//! The partition of a problem, for reports.

use femtile_comm::Halo;
use femtile_mesh::partition::PartitionQuality;

use crate::SolveError;

/// The partition of a problem among ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RanksUsed {
    /// Number of ranks.
    pub n_ranks: usize,
    /// The partitioner: the name of a [`crate::Partitioner`], `layers` of cells for geometric multigrid, or
    /// `boxes` if each rank has generated its part.
    pub partition: &'static str,
    /// Balance and cut of the partition.
    pub quality: PartitionQuality,
    /// Fewest and most unknowns of a rank.
    pub unknowns: [usize; 2],
    /// Most ghosts of a rank.
    pub most_ghosts: usize,
}

impl RanksUsed {
    /// Describes a partition by the named method. Collective.
    pub(crate) fn of(
        halo: &Halo,
        (partition, quality): (&'static str, PartitionQuality),
    ) -> Result<Self, SolveError> {
        let comm = halo.comm();
        let sizes = comm.all_gather(&[[halo.n_owned() as u64, halo.n_ghosts() as u64]])?;
        let of = |which: usize| sizes.iter().flatten().map(move |size| size[which] as usize);
        let unknowns = [of(0).min().unwrap_or(0), of(0).max().unwrap_or(0)];
        let most_ghosts = of(1).max().unwrap_or(0);
        Ok(Self { n_ranks: comm.n_ranks(), partition, quality, unknowns, most_ghosts })
    }

    /// Counts the unknowns of a field of several components, whose halo has those of one.
    pub(crate) fn of_components(self, n_components: usize) -> Self {
        let unknowns = self.unknowns.map(|n| n * n_components);
        Self { unknowns, most_ghosts: self.most_ghosts * n_components, ..self }
    }
}
