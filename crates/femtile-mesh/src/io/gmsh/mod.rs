//! `.msh`, the format of Gmsh: versions 1, 2 and 4, ASCII and binary of either byte order.

mod element_type;
mod elements;
mod entities;
mod nodes;
mod read;
mod sink;
mod source;
mod write;

pub use read::{parse, read};
pub use write::{write, write_binary};
