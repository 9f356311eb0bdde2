//! `.inp`, the input files of Abaqus and CalculiX: nodes, elements, sets and surfaces.
//!
//! Nested sets are expanded up to a bound set by the size of the file (`sets`).

mod element_type;
mod faces;
mod include;
mod line_origins;
mod lines;
mod model;
mod node_facets;
mod read;
mod sets;

pub(super) use read::parse_with_included;
pub use read::{parse, read};
