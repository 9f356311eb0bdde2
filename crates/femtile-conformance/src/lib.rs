//! What tests of several crates share: mesh files in every encoding, counted memory.

pub mod allocation;
pub mod mesh_files;
