//! `.node`, `.ele`, `.face` and `.edge` files of TetGen and Triangle, and Chaste's binary form of them.

mod index_base;
mod read;
mod table;
mod write;

pub use read::{parse, read};
pub use write::write;
