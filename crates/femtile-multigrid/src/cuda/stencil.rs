//! Degree 1 on equal cells: a 27-point stencil.

use femtile_device::Scalar;
use femtile_device::cuda::{Launch, Program, RECIPROCAL_HEADER, Specialisation};

use super::smoother::COLOUR_HEADER;

static STENCIL: Program = Program {
    name: "box_stencil",
    source: include_str!("stencil.cu"),
    headers: &[RECIPROCAL_HEADER, COLOUR_HEADER],
};

const MAX_THREADS: usize = 256;
/// Shared memory that every supported GPU offers a block.
const MAX_BYTES: usize = 96 << 10;

fn threads(n_nodes: usize) -> usize {
    n_nodes.next_multiple_of(32).min(MAX_THREADS)
}

/// Returns whether rows of `n_nodes` nodes fit in shared memory.
pub(super) fn fits<T>(n_nodes: usize) -> bool {
    bytes::<T>(n_nodes) <= MAX_BYTES
}

fn bytes<T>(n_nodes: usize) -> usize {
    3 * n_nodes * size_of::<T>()
}

/// Returns the launch for `n_rows` rows of `n_nodes` nodes.
pub(super) fn launch<T>(n_rows: usize, n_nodes: usize) -> Launch {
    Launch::line(n_rows, threads(n_nodes) as u32).shared(bytes::<T>(n_nodes))
}

/// Returns the program for rows of `n_nodes` nodes.
pub(super) fn program<T: Scalar>(n_nodes: usize) -> Specialisation {
    STENCIL.of::<T>().define("FEMTILE_DEGREE", 1).define("FEMTILE_THREADS", threads(n_nodes))
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f64>(MAX_THREADS), program::<f32>(MAX_THREADS)]
}
