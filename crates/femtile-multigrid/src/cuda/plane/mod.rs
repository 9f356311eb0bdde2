//! Kernels for boxes of quadrilaterals.

pub(super) mod corrections;
pub(super) mod operator;
pub(super) mod patches;
pub(super) mod transfer;

use femtile_device::cuda::{Header, Specialisation};

use super::shape::PatchShape;
pub use patches::PlanePatches;

const TILE_HEADER: Header = Header { name: "tile.cuh", text: include_str!("tile.cuh") };

/// Returns the launch shape of teams with a thread per line.
fn teams_of(lines: usize) -> PatchShape {
    PatchShape { team: lines, teams: 128 / lines, blocks: 1 }
}

/// Returns the programs of this folder.
pub(super) fn specialisations() -> Vec<Specialisation> {
    [
        operator::specialisations(),
        transfer::specialisations(),
        patches::specialisations(),
        corrections::specialisations(),
    ]
    .concat()
}
