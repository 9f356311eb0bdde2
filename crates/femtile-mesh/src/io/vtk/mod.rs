//! `.vtk`, the legacy format of VTK for unstructured grids.

mod array;
mod attributes;
mod cells;
mod read;

pub use read::{parse, parse_tagged, read};
