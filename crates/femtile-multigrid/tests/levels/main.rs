//! Geometric multigrid on boxes: parts against dense algebra, and the whole against the tables of `[cui2024]`.

mod convergence;
mod dense;
mod mapped;
mod parts;
mod refusals;
mod tables;
