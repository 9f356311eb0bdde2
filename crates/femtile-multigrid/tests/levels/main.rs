//! Multigrid on boxes, part by part against dense algebra, and whole against the tables of `[cui2024]`.

mod convergence;
mod dense;
mod mapped;
mod parts;
mod refusals;
mod tables;
