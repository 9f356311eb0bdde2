//! `.mesh`, the ASCII format of MEDIT.

mod read;
mod write;

pub use read::{parse, read};
pub use write::write;
