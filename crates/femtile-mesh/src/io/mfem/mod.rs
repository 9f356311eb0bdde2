//! `.mesh`, the text format of MFEM: versions 1.0, 1.2 and 1.3, straight or with curved nodes.

mod nodes;
mod read;
mod space;

pub(super) use read::is_mfem;
pub use read::{parse, read};
