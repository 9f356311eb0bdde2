//! Detects whether a file numbers nodes from 0 or from 1.

/// The number of the first node in a file that uses nodes `indices` out of `n_nodes`.
///
/// Files of one mesh need not agree, so each is examined alone: an index 0 means 0, an index `n_nodes`
/// means 1, and `otherwise` decides when a file has neither. With both, indices are out of range.
pub(super) fn index_base(indices: impl Iterator<Item = i64>, n_nodes: usize, otherwise: i64) -> i64 {
    let (mut zero, mut last) = (false, false);
    for index in indices {
        zero |= index == 0;
        last |= index == n_nodes as i64;
    }
    match (zero, last) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => otherwise,
    }
}
