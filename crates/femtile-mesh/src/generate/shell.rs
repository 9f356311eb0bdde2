use super::Counts;
use super::bend::bend;
use super::cubed_sphere::{CubedSphere, level, on_sphere};
use super::grid::{cells_are_positive, length_is_positive, tag_boundary};
use crate::{CellKind, Mesh, MeshError};

/// The space between two spheres around the origin.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellConfig {
    /// Radius of the inner sphere.
    pub inner: f64,
    /// Radius of the outer sphere.
    pub outer: f64,
    /// Number of cells along an edge of each of the six blocks.
    pub cells: usize,
    /// Number of cells from the inner to the outer sphere.
    pub layers: usize,
    /// Degree of the polynomials of each cell, 1 to 9; 1 leaves cells straight.
    pub order: usize,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self { inner: 0.5, outer: 1.0, cells: 4, layers: 2, order: 2 }
    }
}

impl ShellConfig {
    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`shell`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        let Self { inner, outer, cells, layers, order } = *self;
        length_is_positive("inner", inner)?;
        length_is_positive("outer", outer)?;
        if outer <= inner {
            let message = format!("{outer} does not exceed the inner radius {inner}");
            return Err(MeshError::Invalid { field: "outer", message });
        }
        cells_are_positive(&[cells, layers])?;
        Ok(CubedSphere::counts(cells, layers, false)?.with_order(order))
    }
}

/// A shell of hexahedra, its boundary tagged `inner` (1) and `outer` (2).
///
/// Six blocks as on a cubed sphere with evenly spaced angles. The points of boundary faces lie on the spheres, so that the
/// volume converges with $O(h^{g+1})$ or better for cells of order $g$.
///
/// # Errors
/// [`MeshError::Invalid`] when a radius is not positive and finite, when the outer radius does not exceed the
/// inner one, when there are no cells, when the order is out of range and, before anything is allocated, when
/// nodes or cells are too many to number.
pub fn shell(config: &ShellConfig) -> Result<Mesh, MeshError> {
    config.counts()?;
    let ShellConfig { inner, outer, cells, layers, order } = *config;
    let blocks = CubedSphere::new(cells, layers, false);
    let mut mesh = Mesh::new(blocks.points(), CellKind::Hexahedron, blocks.hexahedra())?;
    tag_boundary(&mut mesh, &["inner", "outer"], |at| usize::from(level(at).0 > 1.5));
    bend(&mut mesh, order, |point| {
        let (level, on_cube) = level(point);
        let radius = (2.0 - level) * inner + (level - 1.0) * outer;
        on_sphere(on_cube).map(|x| radius * x)
    })?;
    Ok(mesh)
}
