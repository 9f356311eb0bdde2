//! Slices made from rows where these lie, on a GPU.

#[allow(unsafe_code)]
pub(crate) mod cuda;

use super::{EllWarpConfig, Numbering};

/// The most rows that a GPU sorts together: a block keeps 8 bytes of each in shared memory.
const MAX_WINDOW: usize = 8192;

/// The window, a power of two, within which a GPU sorts rows, 1 for none; none where the layout is left to
/// the host, which sorts larger windows, shares rows among lanes and renumbers vectors.
pub(super) fn window(config: &EllWarpConfig, n_rows: usize) -> Option<usize> {
    if config.threshold.is_some() || config.numbering != Numbering::Kept {
        return None;
    }
    if config.window == 1 {
        return Some(1);
    }
    let window = config.window.min(n_rows.next_power_of_two().max(2));
    (window <= MAX_WINDOW).then_some(window)
}
