//! Meshes made by formula: boxes, rectangles, balls, shells, spheres, cylinders, L-shapes, the idealised left ventricle.

mod ball;
mod bend;
mod box_mesh;
mod box_partition;
mod counts;
mod cubed_sphere;
mod cylinder;
mod deform;
mod disc;
mod grid;
mod hexahedral_ball;
mod l_shape;
mod layers;
mod shell;
mod sphere;
mod square;
mod tabulate;
mod ventricle;

pub use ball::{BallConfig, ball, ball_interruptible};
pub use box_mesh::{BoxConfig, BoxSplit, box_mesh, box_mesh_interruptible};
pub use box_partition::{BoxPartition, part_of_box};
pub use counts::Counts;
pub use cylinder::{CylinderConfig, cylinder, cylinder_interruptible};
pub(crate) use deform::deformation;
pub use deform::{DeformConfig, deform};
pub use hexahedral_ball::{HexahedralBallConfig, hexahedral_ball};
pub use l_shape::{LShape, LShapeConfig, l_shape};
pub use shell::{ShellConfig, shell};
pub use sphere::{SphereConfig, sphere};
pub use square::{SquareConfig, SquareSplit, square};
pub use ventricle::{VentricleConfig, ventricle, ventricle_interruptible};
