//! Where a run takes place.

use femtile::device::{Cpu, Cuda};
use femtile::solve::RankPart;

use super::Nodes;
use crate::CardiacDevice;

/// The devices of a run, and the nodes that it has there: all of them, or those of one of several ranks.
pub(super) struct Site<'a, D: CardiacDevice> {
    pub cpu: &'a Cpu,
    pub device: &'a D,
    /// The GPU, where it is the device.
    pub opened: Option<&'a Cuda>,
    /// This rank, where there are several.
    pub rank: Option<&'a RankPart<'a>>,
    pub nodes: Nodes<'a>,
}
