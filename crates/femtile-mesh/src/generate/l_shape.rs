use super::Counts;
use super::box_mesh::{BoxConfig, BoxSplit, SIDES, box_mesh};
use super::grid::tag_boundary;
use super::square::{SquareConfig, SquareSplit, square};
use crate::{Mesh, MeshError};

/// The missing part of a box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LShape {
    /// The square from −1 to 1 without its quadrant x > 0, y < 0, of quadrilaterals.
    #[default]
    Plane,
    /// The same times 0 < z < 1, of hexahedra.
    Extruded,
    /// The cube from −1 to 1 without its octant x > 0, y < 0, z > 0, of hexahedra: Fichera's corner.
    Corner,
}

/// A domain with a re-entrant corner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LShapeConfig {
    /// The missing part of the box.
    pub shape: LShape,
    /// Number of cells along each side of length one.
    pub cells: usize,
}

impl Default for LShapeConfig {
    fn default() -> Self {
        Self { shape: LShape::Plane, cells: 8 }
    }
}

/// The square or box that a part is cut out of.
enum Whole {
    Plane(SquareConfig),
    Solid(BoxConfig),
}

impl LShapeConfig {
    /// Corners of the whole.
    fn corners(&self) -> ([f64; 3], [f64; 3]) {
        match self.shape {
            LShape::Plane => ([-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]),
            LShape::Extruded => ([-1.0, -1.0, 0.0], [1.0; 3]),
            LShape::Corner => ([-1.0; 3], [1.0; 3]),
        }
    }

    fn whole(&self) -> Whole {
        let (n, two) = (self.cells, self.cells.saturating_mul(2));
        let (lower, upper) = self.corners();
        let solid = |cells| Whole::Solid(BoxConfig { lower, upper, cells, split: BoxSplit::Hexahedron });
        match self.shape {
            LShape::Plane => {
                let (lower, upper) = ([lower[0], lower[1]], [upper[0], upper[1]]);
                let split = SquareSplit::Quadrilateral;
                Whole::Plane(SquareConfig { lower, upper, cells: [two; 2], split })
            }
            LShape::Extruded => solid([two, two, n]),
            LShape::Corner => solid([two; 3]),
        }
    }

    /// Returns the size of the mesh before the part is cut out.
    ///
    /// # Errors
    /// Those of [`l_shape`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        match self.whole() {
            Whole::Plane(whole) => whole.counts(),
            Whole::Solid(whole) => whole.counts(),
        }
    }
}

/// An L of quadrilaterals or hexahedra.
///
/// Its outer sides are tagged `xmin`, `xmax`, `ymin`, `ymax` and, in space, `zmin`, `zmax`, numbers from 1.
/// The sides that meet in the re-entrant corner are tagged `notch`, the next number.
///
/// # Errors
/// [`MeshError::Invalid`] when there are no cells and, before anything is allocated, when nodes or cells are too many to
/// number.
pub fn l_shape(config: &LShapeConfig) -> Result<Mesh, MeshError> {
    let (lower, upper) = config.corners();
    let mut mesh = match config.whole() {
        Whole::Plane(whole) => square(&whole)?,
        Whole::Solid(whole) => box_mesh(&whole)?,
    };
    cut(&mut mesh, |[x, y, z]| x > 0.0 && y < 0.0 && (config.shape != LShape::Corner || z > 0.0));
    let dimension = mesh.dimension();
    let names: Vec<&str> = SIDES[..2 * dimension].iter().copied().chain(["notch"]).collect();
    tag_boundary(&mut mesh, &names, |at| {
        let is_at = |side: usize| at[side / 2] == [lower, upper][side % 2][side / 2];
        (0..2 * dimension).find(|&side| is_at(side)).unwrap_or(2 * dimension)
    });
    Ok(mesh)
}

/// Removes the cells whose middle is in some part, and the nodes that no other cell has.
fn cut(mesh: &mut Mesh, is_away: impl Fn([f64; 3]) -> bool) {
    let n = mesh.kind.n_nodes();
    let middle = |nodes: &[u32]| -> [f64; 3] {
        std::array::from_fn(|d| {
            nodes.iter().map(|&node| mesh.points[node as usize][d]).sum::<f64>() / n as f64
        })
    };
    let kept = mesh.cells.chunks_exact(n).filter(|nodes| !is_away(middle(nodes)));
    mesh.cells = kept.flatten().copied().collect();
    mesh.facets = Default::default();
    mesh.tag_names.clear();
    let mut new_number = vec![u32::MAX; mesh.points.len()];
    mesh.cells.iter().for_each(|&node| new_number[node as usize] = 0);
    let mut points = Vec::new();
    for (number, &point) in new_number.iter_mut().zip(&mesh.points).filter(|(number, _)| **number == 0) {
        *number = points.len() as u32;
        points.push(point);
    }
    mesh.cells.iter_mut().for_each(|node| *node = new_number[*node as usize]);
    mesh.points = points;
}
