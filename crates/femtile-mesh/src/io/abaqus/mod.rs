//! `.inp`, the input files of Abaqus and CalculiX: nodes, elements, sets and surfaces.

mod element_type;
mod faces;
mod lines;
mod model;
mod node_facets;
mod read;
mod sets;

pub use read::{parse, read};
