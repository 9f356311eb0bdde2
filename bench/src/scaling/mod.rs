//! A model of the time of an iteration on many ranks.
//!
//! A [`Machine`] says how fast a rank moves bytes and what a message costs, a [`HaloGraph`] who sends how many values to whom,
//! and an [`Iteration`] lists the work and the messages of a [`Method`] in order. [`simulate`] runs that list with a clock for
//! each rank; [`estimate`] is the same in closed form for the rank that has most to do. [`recorded`] compares both with the
//! runs of `bench/results`. The page is docs/scaling.md.

mod estimate;
mod graph;
mod iteration;
mod machine;
mod method;
pub mod recorded;
mod simulation;
#[cfg(test)]
mod tests;

pub use estimate::{Busiest, crossover, estimate};
pub use graph::HaloGraph;
pub use iteration::{Iteration, Level, Step, Work};
pub use machine::{Link, Machine, Reduction};
pub use method::{Method, Problem};
pub use simulation::{Noise, Prediction, Settings, simulate};
