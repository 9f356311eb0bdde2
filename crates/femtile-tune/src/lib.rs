//! A survey of sparse formats on this machine: products in each format are checked, timed and compared with a measured
//! bandwidth, with the cost model and with vendor libraries. [`Tuned`] keeps the fastest format of each matrix.
#![forbid(unsafe_code)]

mod bound;
mod error;
mod format;
mod histogram;
mod lengths;
mod library;
mod processor;
mod product;
pub mod profiles;
pub mod python;
mod stopwatch;
mod survey;
mod timed;
mod timing;
mod tuned;

pub use bound::{Bound, Compared};
pub use error::TuneError;
pub use format::{Stored, SurveyFormat};
pub use histogram::histogram_svg;
pub use lengths::{Bin, RowLengths};
pub use library::{Peer, PeerTimes, ask_peers};
pub use processor::processor;
pub use product::ReferenceProduct;
pub use stopwatch::Stopwatch;
pub use survey::{Entry, Skipped, Survey, SurveyConfig, survey};
pub use timed::{Timed, nominal_bytes, right_vector, time_format, time_operator};
pub use timing::Samples;
pub use tuned::Tuned;
