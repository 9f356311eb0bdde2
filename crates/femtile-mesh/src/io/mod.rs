//! Mesh files, one folder a format.

mod atomic;
mod collect;
pub mod vtu;

pub use atomic::write_atomically;
