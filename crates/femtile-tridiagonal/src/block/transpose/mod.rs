//! Runs of entries of several systems into the lanes of vectors, and back.

#[allow(unsafe_code)]
mod cpu;

pub(super) use cpu::{gather, scatter};

/// Lanes of the widest vectors.
pub(super) const MAX_LANES: usize = 16;
