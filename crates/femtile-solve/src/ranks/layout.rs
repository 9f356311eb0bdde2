//! Whether each rank has the whole mesh or only its part.

use femtile_comm::{Comm, Halo};
use femtile_linalg::LinalgError;
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;

use super::cells::{self, Spaces};
use super::data::on_part;
use super::device::RankDevices;
use super::mesh_on_ranks::{MeshOnRanks, WholeSpace};
use super::rows::{RankProblem, agreed, of_simplices};
use super::unknowns::{RankSystem, RankUnknowns};
use super::{Keepers, RankDevice, Ranks, RanksUsed, ReplicatedPartition, other_ranks};
use crate::discretization::Discretization;
use crate::nonlinear::Domain;
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

/// The mesh of a problem on each rank: the whole mesh with its partition, or a part.
pub(crate) enum MeshOfRanks<'m> {
    Replicated(Box<ReplicatedPartition<'m>>),
    /// With the boxes of geometric multigrid, if the parts are layers of one.
    Distributed(MeshOnRanks<'m>, Option<Boxes>),
}

impl<'m> MeshOfRanks<'m> {
    /// Partitions the mesh of a problem, by `boxes` if there are any, unless it is distributed already.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if it is distributed among other ranks.
    pub fn new(
        problem: &Discretization<'m>,
        boxes: Option<Boxes>,
        config: &SolverConfig,
    ) -> Result<Self, SolveError> {
        match &problem.divided {
            None => Ok(Self::Replicated(Box::new(ReplicatedPartition::new(problem, boxes, config)?))),
            Some(divided) if config.ranks == Ranks::Of(divided.comm.clone()) => {
                Ok(Self::Distributed(divided.clone(), boxes))
            }
            Some(_) => Err(other_ranks()),
        }
    }

    /// Returns which of both it is.
    pub fn layout(&self) -> Layout<'_, 'm> {
        match self {
            Self::Replicated(division) => Layout::Replicated(division),
            Self::Distributed(divided, boxes) => Layout::Distributed(divided, boxes.as_ref()),
        }
    }
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

/// A problem on the part of a rank.
pub(crate) struct OnPart<'p> {
    problem: Discretization<'p>,
    part: &'p MeshPart,
    pub unknowns: RankUnknowns,
}

impl OnPart<'_> {
    /// Returns the domain of an equation.
    pub fn domain<'d, D: RankDevice>(&'d self, on: RankDevices<'d, D>) -> Result<Domain<'d, D>, LinalgError> {
        Domain::on_part(on, &self.problem, self.part, &self.unknowns)
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
        on: RankDevices<'_, D>,
        of: RankProblem<'_, '_>,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<RankSystem<D>, SolveError> {
        let Some(space) = of.problem.space() else {
            return of_simplices(on, of, config, stages);
        };
        let below = match self {
            Self::Replicated(division) => division.below.iter().map(WholeSpace::Kept).collect(),
            Self::Distributed(divided, _) => {
                let of_degree = |degree: usize| WholeSpace::Divided(divided.mesh, degree);
                degrees::below(space.degree()).into_iter().map(of_degree).collect()
            }
        };
        let spaces = Spaces { whole: self.whole_space(space), below, boxes: self.boxes() };
        cells::system(on, of, &spaces, config, stages)
    }

    /// The global space of a problem, from its space on the mesh of a rank.
    fn whole_space<'s>(self, space: &'s TensorSpace<'s>) -> WholeSpace<'s>
    where
        'a: 's,
    {
        match self {
            Self::Replicated(_) => WholeSpace::Kept(space),
            Self::Distributed(divided, _) => WholeSpace::Divided(divided.mesh, space.degree()),
        }
    }

    /// Returns a problem on the part of a rank, with its unknowns. Collective.
    ///
    /// # Errors
    /// [`SolveError::Setting`] on all ranks if one of them owns nothing.
    pub fn on_part<'p>(
        self,
        comm: &Comm,
        RankProblem { problem, fixed, part }: RankProblem<'p, '_>,
    ) -> Result<OnPart<'p>, SolveError> {
        let lacking = || {
            let rank = comm.rank();
            let message = format!(
                "rank {rank} has no part of the mesh, and matrices are reassembled: take fewer ranks"
            );
            SolveError::solver("ranks", message)
        };
        let part = agreed(comm, part.ok_or_else(lacking))?;
        let on_part =
            agreed(comm, on_part(comm, (problem, &fixed.winners), Some(part))?.ok_or_else(lacking))?;
        let unknowns = self.unknowns(comm, problem, (part, on_part.space()))?;
        Ok(OnPart { problem: on_part, part, unknowns })
    }

    /// Returns the unknowns of a rank on its part, with a space of any degree or linear elements. Collective.
    fn unknowns(
        self,
        comm: &Comm,
        problem: &Discretization<'_>,
        (part, space): (&MeshPart, Option<&TensorSpace<'_>>),
    ) -> Result<RankUnknowns, SolveError> {
        let (Some(space), Some(of_problem)) = (space, problem.space()) else {
            return Ok(RankUnknowns::of_nodes(comm, problem, Some(part))?);
        };
        RankUnknowns::in_space(comm, self.whole_space(of_problem), Some((part, space)))
    }

    /// Returns the partition and its sizes, for reports. Collective.
    pub fn used(self, halo: &Halo) -> Result<RanksUsed, SolveError> {
        match self {
            Self::Replicated(division) => RanksUsed::of(halo, (division.way, division.quality)),
            Self::Distributed(divided, _) => RanksUsed::of(halo, (divided.mesh.way, divided.quality()?)),
        }
    }
}
