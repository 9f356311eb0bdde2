//! Setup of a hierarchy on the host: strength of connection, aggregates, prolongators, Galerkin products.

pub(crate) mod aggregate;
pub(crate) mod coarse;
pub(crate) mod evolution;
pub(crate) mod galerkin;
pub(crate) mod graph;
pub(crate) mod independent_set;
pub(crate) mod local_modes;
pub(crate) mod nullspace;
pub(crate) mod prolong;
pub(crate) mod rank_matrix;
pub(crate) mod rescaling;
pub(crate) mod rows;
pub(crate) mod spectrum;
pub(crate) mod strength;
pub(crate) mod tentative;
#[cfg(test)]
pub(crate) mod tests;
