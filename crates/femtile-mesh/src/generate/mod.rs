//! Meshes made by formula: boxes, rectangles, balls, cylinders, the idealised left ventricle.

mod box_mesh;
mod grid;
mod square;

pub use box_mesh::{BoxConfig, BoxSplit, box_mesh};
pub use square::{SquareConfig, SquareSplit, square};
