//! Whether each rank has the whole mesh or only its part.

use femtile_comm::{Comm, Halo};
use femtile_device::Cpu;
use femtile_mesh::partition::MeshPart;

use super::cells::{self, Spaces};
use super::mesh_on_ranks::{MeshOnRanks, WholeSpace};
use super::rows::{Fixed, of_simplices};
use super::system::DistributedSystem;
use super::{Keepers, RankDevice, RanksUsed, ReplicatedPartition};
use crate::discretization::Discretization;
use crate::tensor::{Boxes, degrees};
use crate::{SolveError, SolverConfig, Stages};

/// Whether each rank has the whole mesh or only its part.
#[derive(Clone, Copy)]
pub(crate) enum Layout<'a, 'm> {
    /// Each rank has the whole mesh, with this partition.
    Replicated(&'a ReplicatedPartition<'m>),
    /// Each rank has only its part. The boxes are those of geometric multigrid, if the parts are layers of
    /// one.
    Distributed(&'a MeshOnRanks<'m>, Option<&'a Boxes>),
}

/// The part of a rank.
pub(crate) enum PartOf<'a> {
    /// Extracted from the whole mesh; none if the rank owns no node.
    Taken(Option<Box<MeshPart>>),
    /// The only mesh that the rank has.
    Given(&'a MeshPart),
}

impl PartOf<'_> {
    /// Returns the part; none if the rank owns no node.
    pub fn get(&self) -> Option<&MeshPart> {
        match self {
            Self::Taken(part) => part.as_deref(),
            Self::Given(part) => Some(part),
        }
    }
}

impl<'a> Layout<'a, '_> {
    /// Returns this rank's part of the mesh.
    pub fn part(self, problem: &Discretization<'_>, comm: &Comm) -> PartOf<'a> {
        match self {
            Self::Replicated(division) => PartOf::Taken(division.part(problem, comm).map(Box::new)),
            Self::Distributed(divided, _) => PartOf::Given(&divided.mesh.part),
        }
    }

    /// Returns the ranks that keep global results; if ranks have only their parts, the first one.
    pub fn keepers(self, keepers: Keepers) -> Keepers {
        match self {
            Self::Replicated(_) => keepers,
            Self::Distributed(..) => Keepers::First,
        }
    }

    /// Returns the boxes of geometric multigrid.
    pub fn boxes(self) -> Option<&'a Boxes> {
        match self {
            Self::Replicated(division) => division.boxes.as_ref(),
            Self::Distributed(_, boxes) => boxes,
        }
    }

    /// Makes the system of a rank with its preconditioner. Collective.
    pub fn system<D: RankDevice>(
        self,
        (cpu, device, comm): (&Cpu, &D, &Comm),
        problem: (&Discretization<'_>, &Fixed),
        part: Option<&MeshPart>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<DistributedSystem<D>, SolveError> {
        let Some(space) = problem.0.space() else {
            return of_simplices((device, comm), problem, part, config, stages);
        };
        let (whole, below) = match self {
            Self::Replicated(division) => {
                (WholeSpace::Kept(space), division.below.iter().map(WholeSpace::Kept).collect())
            }
            Self::Distributed(divided, _) => {
                let of_degree = |degree: usize| WholeSpace::Divided(divided.mesh, degree);
                let below = degrees::below(space.degree()).into_iter().map(of_degree).collect();
                (of_degree(space.degree()), below)
            }
        };
        let spaces = Spaces { whole, below, boxes: self.boxes() };
        cells::system((cpu, device, comm), problem, &spaces, part, config, stages)
    }

    /// Returns the partition and its sizes, for reports. Collective.
    pub fn used(self, halo: &Halo) -> Result<RanksUsed, SolveError> {
        match self {
            Self::Replicated(division) => RanksUsed::of(halo, (division.way, division.quality)),
            Self::Distributed(divided, _) => RanksUsed::of(halo, (divided.mesh.way, divided.quality()?)),
        }
    }
}
