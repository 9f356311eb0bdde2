use super::Counts;
use super::disc::tangent;
use super::grid::{cube, even_count, length_is_positive, tag_facets};
use crate::check::facets_until;
use crate::interrupt::Interrupt;
use crate::{CellKind, IsInterrupted, Mesh, MeshError};

/// A ball around the origin.
#[derive(Debug, Clone, PartialEq)]
pub struct BallConfig {
    /// Radius.
    pub radius: f64,
    /// Approximate length of an edge.
    pub h: f64,
}

impl Default for BallConfig {
    fn default() -> Self {
        Self { radius: 1.0, h: 0.25 }
    }
}

impl BallConfig {
    fn cubes_across(&self) -> f64 {
        even_count(2.0 * self.radius / self.h)
    }

    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`ball`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        length_is_positive("radius", self.radius)?;
        length_is_positive("h", self.h)?;
        let n = self.cubes_across();
        Counts::of("h", CellKind::Tetrahedron, (n + 1.0).powi(3), 6.0 * n.powi(3))
    }
}

/// A ball of tetrahedra, its boundary tagged `surface` (1).
///
/// The mesh is a cube of cubes, mapped: a shell of the cube is blended between a cube (inside) and a sphere
/// (surface). Cubes are split towards the middle, so that no cell is flat at the edges of three sides of the
/// cube, which become one sphere. Nodes of the boundary lie on the sphere, so that the volume converges with
/// $O(h^2)$.
///
/// # Errors
/// [`MeshError::Invalid`] when a length is not positive and finite and, before anything is
/// allocated, when nodes or cells are too many to number.
pub fn ball(config: &BallConfig) -> Result<Mesh, MeshError> {
    ball_interruptible(config, None)
}

/// Generates as [`ball`] does, and asks `is_interrupted` after each layer whether to end.
///
/// # Errors
/// Those of [`ball`]; [`MeshError::Interrupted`].
pub fn ball_interruptible(config: &BallConfig, is_interrupted: IsInterrupted<'_>) -> Result<Mesh, MeshError> {
    let interrupt = Interrupt(is_interrupted);
    config.counts()?;
    let (radius, n) = (config.radius, config.cubes_across() as usize);
    let row = n + 1;
    let mut points = Vec::with_capacity(row * row * row);
    for i in 0..row * row * row {
        if i % (row * row) == 0 {
            interrupt.go_on()?;
        }
        let on_axis = |i: usize| 2.0 * i as f64 / n as f64 - 1.0;
        points.push(bend([i % row, i / row % row, i / (row * row)].map(on_axis)).map(|x| radius * x));
    }
    let mut mesh = Mesh::new(points, CellKind::Tetrahedron, cells(n, interrupt)?)?;
    let surface = facets_until(&mesh, interrupt).nodes;
    interrupt.go_on()?;
    tag_facets(&mut mesh, [("surface", surface)]);
    Ok(mesh)
}

/// Bends the cube from -1 to 1 to the unit ball.
fn bend(p: [f64; 3]) -> [f64; 3] {
    let level = p.iter().fold(0.0, |level: f64, x| level.max(x.abs()));
    if level == 0.0 {
        return p;
    }
    let on_cube = p.map(|x| tangent(x / level));
    let length = on_cube.iter().map(|x| x * x).sum::<f64>().sqrt();
    std::array::from_fn(|d| (1.0 - level) * p[d] / 3f64.sqrt() + level * level * on_cube[d] / length)
}

fn cells(n: usize, interrupt: Interrupt<'_>) -> Result<Vec<u32>, MeshError> {
    let row = n + 1;
    let mut cells = Vec::with_capacity(24 * n * n * n);
    for k in 0..n {
        interrupt.go_on()?;
        for j in 0..n {
            for i in 0..n {
                // Mirrored so that corner 0 of a cube is the innermost, corner 7 the outermost.
                let is_lower = |i: usize| usize::from(2 * i < n);
                let mirror = is_lower(i) + 2 * is_lower(j) + 4 * is_lower(k);
                let corner = |c: usize| {
                    let c = c ^ mirror;
                    ((i + (c & 1)) + row * ((j + (c >> 1 & 1)) + row * (k + (c >> 2)))) as u32
                };
                for [a, b, c, d] in cube::KUHN.map(|cell| cell.map(corner)) {
                    cells.extend(if mirror.count_ones() % 2 == 1 { [a, b, d, c] } else { [a, b, c, d] });
                }
            }
        }
    }
    Ok(cells)
}
