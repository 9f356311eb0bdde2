//! `.pts`, `.elem` and `.lon` files of openCARP, with its surfaces in `.surf` files.

mod files;
mod read;
mod solids;
mod surface;
mod write;

pub use files::{Files, find};
pub use read::{parse, read};
pub use write::write;
