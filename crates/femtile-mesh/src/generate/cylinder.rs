use super::Counts;
use super::disc::{disc, n_disc_nodes};
use super::grid::{even_count, length_is_positive};
use super::layers::Layers;
use crate::interrupt::Interrupt;
use crate::{CellKind, IsInterrupted, Mesh, MeshError};

/// An upright cylinder on the plane z = 0, its axis the z axis.
#[derive(Debug, Clone, PartialEq)]
pub struct CylinderConfig {
    /// Radius.
    pub radius: f64,
    /// Height.
    pub height: f64,
    /// Approximate length of an edge.
    pub h: f64,
}

impl Default for CylinderConfig {
    fn default() -> Self {
        Self { radius: 1.0, height: 1.0, h: 0.125 }
    }
}

impl CylinderConfig {
    /// Squares across a disc, and layers.
    fn divisions(&self) -> (f64, f64) {
        (even_count(2.0 * self.radius / self.h), (self.height / self.h).ceil().max(1.0))
    }

    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`cylinder`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        for (field, length) in [("radius", self.radius), ("height", self.height), ("h", self.h)] {
            length_is_positive(field, length)?;
        }
        let (n, n_layers) = self.divisions();
        let n_nodes = n_disc_nodes(n, 0.0) * (n_layers + 1.0);
        Counts::of("h", CellKind::Tetrahedron, n_nodes, 6.0 * n * n * n_layers)
    }
}

/// A cylinder of tetrahedra, tagged `side` (1), `bottom` (2) and `top` (3).
///
/// Discs of squares bent round lie on top of each other; the boundary's nodes lie on the cylinder
/// exactly, so that the volume converges with $O(h^2)$.
///
/// # Errors
/// [`MeshError::Invalid`] when a length is not positive and finite and, before anything is
/// allocated, when nodes or cells are too many to number.
pub fn cylinder(config: &CylinderConfig) -> Result<Mesh, MeshError> {
    cylinder_interruptible(config, None)
}

/// Generates as [`cylinder`] does, and asks `is_interrupted` after each layer whether to end.
///
/// # Errors
/// Those of [`cylinder`]; [`MeshError::Interrupted`].
pub fn cylinder_interruptible(
    config: &CylinderConfig,
    is_interrupted: IsInterrupted<'_>,
) -> Result<Mesh, MeshError> {
    let interrupt = Interrupt(is_interrupted);
    config.counts()?;
    let CylinderConfig { radius, height, .. } = *config;
    let (n, n_layers) = config.divisions();
    let (n, n_layers) = (n as usize, n_layers as usize);
    let disc = disc(n, 0);
    let mut points = Vec::with_capacity(disc.nodes.len() * (n_layers + 1));
    for z in super::grid::ticks(0.0, height, n_layers) {
        interrupt.go_on()?;
        points.extend(disc.nodes.iter().map(|node| {
            let r = radius * (node.radius / (0.5 * n as f64));
            [r * node.angle.cos(), r * node.angle.sin(), z]
        }));
    }
    let layers = Layers { triangles: &disc.triangles, n_surface: disc.nodes.len(), n_layers };
    let mut mesh = Mesh::new(points, CellKind::Tetrahedron, layers.tetrahedra(interrupt)?)?;
    interrupt.go_on()?;
    let [bottom, top] = layers.lids();
    super::grid::tag_facets(&mut mesh, [("side", layers.walls(&disc.rim)), ("bottom", bottom), ("top", top)]);
    Ok(mesh)
}
