use super::Counts;
use super::bend::bend;
use super::cubed_sphere::{CubedSphere, level, on_sphere};
use super::grid::{cells_are_positive, length_is_positive, tag_boundary};
use crate::{CellKind, Mesh, MeshError};

/// Half the side of the cube in the middle, in radii: its corners stay well inside the sphere.
const CUBE: f64 = 0.4;

/// A ball of hexahedra around the origin.
#[derive(Debug, Clone, PartialEq)]
pub struct HexahedralBallConfig {
    /// Radius.
    pub radius: f64,
    /// Number of cells along an edge of each of the seven blocks.
    pub cells: usize,
    /// Number of cells from the cube in the middle to the sphere.
    pub layers: usize,
    /// Degree of the polynomials of each cell, 1 to 9; 1 leaves cells straight.
    pub order: usize,
}

impl Default for HexahedralBallConfig {
    fn default() -> Self {
        Self { radius: 1.0, cells: 4, layers: 3, order: 2 }
    }
}

impl HexahedralBallConfig {
    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`hexahedral_ball`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        let Self { radius, cells, layers, order } = *self;
        length_is_positive("radius", radius)?;
        cells_are_positive(&[cells, layers])?;
        Ok(CubedSphere::counts(cells, layers, true)?.with_order(order))
    }
}

/// A ball of hexahedra, its boundary tagged `surface` (1): a cube inside and six blocks between it and the sphere.
///
/// The points of boundary faces lie on the sphere, so that the volume converges with $O(h^{g+1})$ or better for cells of
/// order $g$.
///
/// # Errors
/// [`MeshError::Invalid`] when the radius is not positive and finite, when there are no cells, when the order is out of
/// range and, before anything is allocated, when nodes or cells are too many to number.
pub fn hexahedral_ball(config: &HexahedralBallConfig) -> Result<Mesh, MeshError> {
    config.counts()?;
    let HexahedralBallConfig { radius, cells, layers, order } = *config;
    let blocks = CubedSphere::new(cells, layers, true);
    let mut mesh = Mesh::new(blocks.points(), CellKind::Hexahedron, blocks.hexahedra())?;
    tag_boundary(&mut mesh, &["surface"], |_| 0);
    bend(&mut mesh, order, |point| {
        let (level, on_cube) = level(point);
        if level <= 1.0 {
            return point.map(|x| radius * CUBE * x);
        }
        let on_sphere = on_sphere(on_cube);
        let out = level - 1.0;
        std::array::from_fn(|d| radius * ((1.0 - out) * CUBE * on_cube[d] + out * on_sphere[d]))
    })?;
    Ok(mesh)
}
