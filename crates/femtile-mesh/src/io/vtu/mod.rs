//! VTU, the XML format of VTK for unstructured grids, which ParaView opens.

mod array;
mod document;
mod read;
mod write;

pub use read::{parse, read};
pub use write::{WriteOptions, write, write_with};
