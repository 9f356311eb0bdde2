//! A survey of sparse formats on this machine: products in each format are checked, timed and compared with a measured
//! bandwidth, with the cost model and with vendor libraries. [`Tuned`] keeps the fastest format of each matrix.

mod bound;
mod histogram;
mod lengths;
mod library;
mod product;
pub mod profiles;
mod survey;
mod timed;
mod tuned;

pub use bound::{Bound, Compared};
pub use histogram::histogram_svg;
pub use lengths::{Bin, RowLengths};
pub use library::{Peer, PeerTimes, ask_peers};
pub use product::ReferenceProduct;
pub use survey::{Entry, Skipped, Survey, SurveyConfig, survey};
pub use timed::{Timed, nominal_bytes, right_vector, time_format, time_operator};
pub use tuned::Tuned;
