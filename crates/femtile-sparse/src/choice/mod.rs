//! Which format suits a matrix: a cost model, and the formats it chooses from.

mod candidates;
mod machine;
mod model;
mod remembered;
mod shape;
mod sizes;
mod statistics;

pub use candidates::candidates;
pub use machine::{Described, Machine};
pub use model::{Estimate, estimates};
pub(super) use remembered::remembered;
pub use remembered::{Remembered, fingerprint};
pub(super) use sizes::Sizes;
