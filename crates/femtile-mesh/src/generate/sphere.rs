use super::Counts;
use super::bend::bend;
use super::cubed_sphere::{CubedSphere, on_sphere};
use super::grid::{cells_are_positive, length_is_positive};
use super::square::SquareSplit;
use crate::{CellKind, Mesh, MeshError};

/// The surface of a ball around the origin.
#[derive(Debug, Clone, PartialEq)]
pub struct SphereConfig {
    /// Radius.
    pub radius: f64,
    /// Number of squares along an edge of each of the six sides of the cube that is blown up.
    pub cells: usize,
    /// Division of each square.
    pub split: SquareSplit,
    /// Degree of the polynomials of each quadrilateral, 1 to 9; 1 leaves cells straight.
    pub order: usize,
}

impl Default for SphereConfig {
    fn default() -> Self {
        Self { radius: 1.0, cells: 4, split: SquareSplit::Quadrilateral, order: 2 }
    }
}

impl SphereConfig {
    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`sphere`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        let Self { radius, cells, split, order } = *self;
        length_is_positive("radius", radius)?;
        cells_are_positive(&[cells])?;
        let n = 6.0 * (cells as f64).powi(2);
        Ok(match split {
            SquareSplit::Triangles => Counts::of("cells", CellKind::Triangle, n + 2.0, 2.0 * n)?,
            SquareSplit::Quadrilateral => {
                Counts::of("cells", CellKind::Quadrilateral, n + 2.0, n)?.with_order(order)
            }
        })
    }
}

/// The surface of a ball, without a boundary: the six sides of a cube with evenly spaced angles.
///
/// The points of cells lie on the sphere.
///
/// # Errors
/// [`MeshError::Invalid`] when the radius is not positive and finite, when there are no cells, when the order is out of
/// range and, before anything is allocated, when nodes or cells are too many to number.
pub fn sphere(config: &SphereConfig) -> Result<Mesh, MeshError> {
    config.counts()?;
    let SphereConfig { radius, cells, split, order } = *config;
    let blocks = CubedSphere::new(cells, 0, false);
    let (kind, cells) = match split {
        SquareSplit::Quadrilateral => (CellKind::Quadrilateral, blocks.sides()),
        SquareSplit::Triangles => {
            let halves = |square: &[u32]| [square[0], square[1], square[2], square[0], square[2], square[3]];
            (CellKind::Triangle, blocks.sides().chunks_exact(4).flat_map(halves).collect())
        }
    };
    let mut mesh = Mesh::new(blocks.points(), kind, cells)?;
    bend(&mut mesh, order, |on_cube| on_sphere(on_cube).map(|x| radius * x))?;
    Ok(mesh)
}
