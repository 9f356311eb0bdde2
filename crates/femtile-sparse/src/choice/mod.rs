//! Which format suits a matrix: a cost model, and the formats it chooses from.
//!
//! `estimates` ranks formats by the cost model, which times nothing; `femtile tune` does.

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
