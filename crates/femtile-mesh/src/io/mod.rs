//! Mesh files, one folder a format.

pub mod abaqus;
mod atomic;
pub mod carp;
mod collect;
mod file;
mod format;
pub mod freefem;
pub mod gmsh;
mod lagrange;
pub mod medit;
pub mod mfem;
mod name;
mod node_numbers;
mod number;
pub mod pvd;
mod scanner;
mod staging;
mod sum;
pub mod tetgen;
pub mod ucd;
mod unfinished;
pub mod vti;
pub mod vtk;
mod vtk_arrays;
mod vtk_cell;
pub mod vtu;

pub use atomic::write_atomically;
pub use format::{read, read_tagged, write, write_binary, write_compressed};
pub use staging::Staging;
pub use sum::FileSum;
