//! Mesh files, one folder a format.
//!
//! Readers never trust a count in a file: memory grows with bytes read. All threads read files and decode binary
//! blocks of Gmsh and arrays of VTU. A block of Gmsh with a fault is read again number by number, which names the
//! place. Data that a reader leaves out are listed in `Mesh::notes`, which the check repeats as warnings.

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
