use super::Counts;
use super::grid::{cells_are_positive, corners_are_ordered, ticks};
use crate::{CellKind, Facets, Mesh, MeshError};

/// Names of the sides of a rectangle; side `i` carries tag `i + 1`.
const SIDES: [&str; 4] = ["xmin", "xmax", "ymin", "ymax"];

/// Subdivision of each square of a rectangle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SquareSplit {
    /// Two triangles, cut from the lower left to the upper right corner.
    #[default]
    Triangles,
    /// The square itself, as a quadrilateral.
    Quadrilateral,
}

impl SquareSplit {
    /// Kind of the cells.
    fn kind(self) -> CellKind {
        match self {
            Self::Triangles => CellKind::Triangle,
            Self::Quadrilateral => CellKind::Quadrilateral,
        }
    }

    /// Cells that a square becomes, by its corners `x + 2y`.
    fn corners(self) -> &'static [usize] {
        match self {
            Self::Triangles => &[0, 1, 3, 0, 3, 2],
            Self::Quadrilateral => &[0, 1, 3, 2],
        }
    }
}

/// A rectangle of squares; the unit square in eight cells a side unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct SquareConfig {
    /// Corner with the smallest coordinates.
    pub lower: [f64; 2],
    /// Corner with the largest coordinates.
    pub upper: [f64; 2],
    /// Number of squares in each direction.
    pub cells: [usize; 2],
    /// Subdivision of each square.
    pub split: SquareSplit,
}

impl Default for SquareConfig {
    fn default() -> Self {
        Self { lower: [0.0; 2], upper: [1.0; 2], cells: [8; 2], split: SquareSplit::Triangles }
    }
}

impl SquareConfig {
    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`square`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        cells_are_positive(&self.cells)?;
        corners_are_ordered(&self.lower, &self.upper)?;
        let [nx, ny] = self.cells.map(|n| n as f64);
        let kind = self.split.kind();
        let per_square = self.split.corners().len() / kind.n_nodes();
        Counts::of("cells", kind, (nx + 1.0) * (ny + 1.0), nx * ny * per_square as f64)
    }
}

/// A rectangle of triangles or quadrilaterals; node (i, j) is number `i + (nx + 1) j`.
///
/// Its sides are tagged `xmin`, `xmax`, `ymin`, `ymax`, numbers 1 to 4.
///
/// # Errors
/// [`MeshError::Invalid`] when a direction has no cells, when the corners are not finite or not in
/// order, and, before anything is allocated, when nodes or cells are too many to number.
pub fn square(config: &SquareConfig) -> Result<Mesh, MeshError> {
    let kind = config.counts()?.kind;
    let ([nx, ny], corners) = (config.cells, config.split.corners());
    let [x, y] = std::array::from_fn(|d| ticks(config.lower[d], config.upper[d], config.cells[d]));
    let mut points = Vec::with_capacity(x.len() * y.len());
    let mut cells = Vec::with_capacity(nx * ny * corners.len());
    for (j, &y) in y.iter().enumerate() {
        points.extend(x.iter().map(|&x| [x, y, 0.0]));
        if j < ny {
            for first in (0..nx).map(|i| i + (nx + 1) * j) {
                let node = |&corner| (first + (corner & 1) + (nx + 1) * (corner >> 1)) as u32;
                cells.extend(corners.iter().map(node));
            }
        }
    }
    let mut mesh = Mesh::new(points, kind, cells)?;
    mesh.facets = sides(nx, ny);
    for (side, name) in SIDES.iter().enumerate() {
        mesh.tag_names.insert((1, side as i32 + 1), (*name).to_owned());
    }
    Ok(mesh)
}

/// The tagged facets, side after side, each with the rectangle on its left.
fn sides(nx: usize, ny: usize) -> Facets {
    let node = |i: usize, j: usize| (i + (nx + 1) * j) as u32;
    let mut facets = Facets::default();
    facets.nodes.extend((0..ny).flat_map(|j| [node(0, j + 1), node(0, j)]));
    facets.nodes.extend((0..ny).flat_map(|j| [node(nx, j), node(nx, j + 1)]));
    facets.nodes.extend((0..nx).flat_map(|i| [node(i, 0), node(i + 1, 0)]));
    facets.nodes.extend((0..nx).flat_map(|i| [node(i + 1, ny), node(i, ny)]));
    for (tag, n) in [(1, ny), (2, ny), (3, nx), (4, nx)] {
        facets.tags.resize(facets.tags.len() + n, tag);
    }
    facets
}
