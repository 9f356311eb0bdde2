//! Meshes made by formula: boxes, rectangles, balls, cylinders, the idealised left ventricle.

mod ball;
mod box_mesh;
mod cylinder;
mod disc;
mod grid;
mod layers;
mod square;
mod ventricle;

pub use ball::{BallConfig, ball};
pub use box_mesh::{BoxConfig, BoxSplit, box_mesh};
pub use cylinder::{CylinderConfig, cylinder};
pub use square::{SquareConfig, SquareSplit, square};
pub use ventricle::{VentricleConfig, ventricle};
