//! VTU, the XML format of VTK for unstructured grids, which ParaView opens.

mod array;
mod begun;
mod document;
mod encode;
mod index;
mod merge;
mod options;
mod pieces;
mod read;
mod selected_cells;
mod spread;
mod write;

pub use begun::BegunFile;
pub use index::{read_pieces, read_pieces_tagged};
pub use options::{Compression, Extent, Piece, Pieces, WriteOptions};
pub use read::{parse, parse_tagged, read};
pub use write::{LagrangeCells, lattice, write, write_lagrange, write_with};
