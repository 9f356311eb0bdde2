//! The devices and nodes of a run.

use femtile::device::{Cpu, Cuda};
use femtile::solve::LocalProblem;

use super::Nodes;
use crate::CardiacDevice;

/// The devices of a run, and its nodes there: all of them, or those of one rank.
pub(super) struct Site<'a, D: CardiacDevice> {
    pub cpu: &'a Cpu,
    pub device: &'a D,
    /// The GPU, if the run uses one.
    pub opened: Option<&'a Cuda>,
    /// This rank, if there are several.
    pub rank: Option<&'a LocalProblem<'a>>,
    pub nodes: Nodes<'a>,
}
