use super::disc::{disc, n_disc_nodes};
use super::grid::{counts_fit, even_count, length_is_positive};
use super::layers::Layers;
use crate::{CellKind, Mesh, MeshError};

/// An upright cylinder on the plane z = 0, its axis the z axis.
#[derive(Debug, Clone, PartialEq)]
pub struct CylinderConfig {
    /// Radius.
    pub radius: f64,
    /// Height.
    pub height: f64,
    /// Length of an edge, about.
    pub h: f64,
}

impl Default for CylinderConfig {
    fn default() -> Self {
        Self { radius: 1.0, height: 1.0, h: 0.125 }
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
    let CylinderConfig { radius, height, h } = *config;
    for (field, length) in [("radius", radius), ("height", height), ("h", h)] {
        length_is_positive(field, length)?;
    }
    let (n, n_layers) = (even_count(2.0 * radius / h), (height / h).ceil().max(1.0));
    counts_fit("h", n_disc_nodes(n, 0.0) * (n_layers + 1.0), 6.0 * n * n * n_layers)?;
    let (n, n_layers) = (n as usize, n_layers as usize);
    let disc = disc(n, 0);
    let mut points = Vec::with_capacity(disc.nodes.len() * (n_layers + 1));
    for z in super::grid::ticks(0.0, height, n_layers) {
        points.extend(disc.nodes.iter().map(|node| {
            let r = radius * (node.radius / (0.5 * n as f64));
            [r * node.angle.cos(), r * node.angle.sin(), z]
        }));
    }
    let layers = Layers { triangles: &disc.triangles, n_surface: disc.nodes.len(), n_layers };
    let mut mesh = Mesh::new(points, CellKind::Tetrahedron, layers.tetrahedra())?;
    let [bottom, top] = layers.lids();
    super::grid::tag_facets(&mut mesh, [("side", layers.walls(&disc.rim)), ("bottom", bottom), ("top", top)]);
    Ok(mesh)
}
