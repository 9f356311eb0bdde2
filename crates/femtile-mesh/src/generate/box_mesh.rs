use super::Counts;
use super::grid::{cells_are_positive, corners_are_ordered, cube, ticks};
use super::tabulate::tabulate;
use crate::interrupt::Interrupt;
use crate::{CellKind, Facets, IsInterrupted, Mesh, MeshError};

/// Names of the sides of a box; side `i` carries tag `i + 1`.
pub(super) const SIDES: [&str; 6] = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"];

/// Subdivision of each cube of a box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoxSplit {
    /// Six tetrahedra around the same diagonal of every cube.
    #[default]
    Kuhn,
    /// Five tetrahedra, mirrored from cube to cube so that their faces match.
    Five,
    /// The cube itself, as a hexahedron.
    Hexahedron,
}

impl BoxSplit {
    /// Cells that one cube of the given parity becomes, by its corners `x + 2y + 4z`.
    fn cells(self, parity: usize) -> &'static [usize] {
        match self {
            Self::Kuhn => cube::KUHN.as_flattened(),
            Self::Five => cube::FIVE[parity].as_flattened(),
            Self::Hexahedron => &cube::HEXAHEDRON,
        }
    }

    fn kind(self) -> CellKind {
        match self {
            Self::Kuhn | Self::Five => CellKind::Tetrahedron,
            Self::Hexahedron => CellKind::Hexahedron,
        }
    }
}

/// A box of cubes; by default the unit cube with eight cells a side.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxConfig {
    /// Corner with the smallest coordinates.
    pub lower: [f64; 3],
    /// Corner with the largest coordinates.
    pub upper: [f64; 3],
    /// Number of cubes in each direction.
    pub cells: [usize; 3],
    /// Subdivision of each cube.
    pub split: BoxSplit,
}

impl Default for BoxConfig {
    fn default() -> Self {
        Self { lower: [0.0; 3], upper: [1.0; 3], cells: [8; 3], split: BoxSplit::Kuhn }
    }
}

impl BoxConfig {
    /// Returns the size of the mesh.
    ///
    /// # Errors
    /// Those of [`box_mesh`].
    pub fn counts(&self) -> Result<Counts, MeshError> {
        cells_are_positive(&self.cells)?;
        corners_are_ordered(&self.lower, &self.upper)?;
        let n_cubes: f64 = self.cells.iter().map(|&n| n as f64).product();
        let n_nodes: f64 = self.cells.iter().map(|&n| n as f64 + 1.0).product();
        let kind = self.split.kind();
        let per_cube = self.split.cells(0).len() / kind.n_nodes();
        Counts::of("cells", kind, n_nodes, n_cubes * per_cube as f64)
    }
}

/// A box of tetrahedra or hexahedra; node (i, j, k) is number `i + (nx + 1)(j + (ny + 1)k)`.
///
/// Its sides are tagged `xmin`, `xmax`, `ymin`, `ymax`, `zmin`, `zmax`, numbers 1 to 6.
///
/// # Errors
/// [`MeshError::Invalid`] when a direction has no cells, when the corners are not finite or not in
/// order, and, before anything is allocated, when nodes or cells are too many to number.
pub fn box_mesh(config: &BoxConfig) -> Result<Mesh, MeshError> {
    box_mesh_interruptible(config, None)
}

/// Generates as [`box_mesh`] does, and asks `is_interrupted` again and again whether to end.
///
/// # Errors
/// Those of [`box_mesh`]; [`MeshError::Interrupted`].
pub fn box_mesh_interruptible(
    config: &BoxConfig,
    is_interrupted: IsInterrupted<'_>,
) -> Result<Mesh, MeshError> {
    let interrupt = Interrupt(is_interrupted);
    let kind = config.counts()?.kind;
    let mut mesh = Mesh::new(points(config, interrupt)?, kind, cells(config, interrupt)?)?;
    interrupt.go_on()?;
    mesh.facets = sides(config);
    for (side, name) in SIDES.iter().enumerate() {
        mesh.tag_names.insert((2, side as i32 + 1), (*name).to_owned());
    }
    Ok(mesh)
}

fn points(config: &BoxConfig, interrupt: Interrupt<'_>) -> Result<Vec<[f64; 3]>, MeshError> {
    let [x, y, z] = std::array::from_fn(|d| ticks(config.lower[d], config.upper[d], config.cells[d]));
    tabulate((y.len() * z.len(), x.len()), interrupt, |row, points: &mut [[f64; 3]]| {
        let (y, z) = (y[row % y.len()], z[row / y.len()]);
        points.iter_mut().zip(&x).for_each(|(point, &x)| *point = [x, y, z]);
    })
}

fn cells(config: &BoxConfig, interrupt: Interrupt<'_>) -> Result<Vec<u32>, MeshError> {
    let [nx, ny, nz] = config.cells;
    let first = corners(config, [0; 3]);
    let of_first: [Vec<u32>; 2] =
        [0, 1].map(|parity| config.split.cells(parity).iter().map(|&corner| first[corner]).collect());
    let per_cube = of_first[0].len();
    tabulate((ny * nz, nx * per_cube), interrupt, |row, cells: &mut [u32]| {
        let (j, k) = (row % ny, row / ny);
        let begin = corners(config, [0, j, k])[0];
        for ((i, cells), begin) in cells.chunks_exact_mut(per_cube).enumerate().zip(begin..) {
            // Cubes of the same parity differ by a translation.
            let of_first = &of_first[(i + j + k) % 2];
            cells.iter_mut().zip(of_first).for_each(|(node, of_first)| *node = begin + of_first);
        }
    })
}

fn corners(config: &BoxConfig, [i, j, k]: [usize; 3]) -> [u32; 8] {
    let (row, layer) = (config.cells[0] + 1, (config.cells[0] + 1) * (config.cells[1] + 1));
    let first = i + row * j + layer * k;
    std::array::from_fn(|corner| {
        (first + (corner & 1) + row * (corner >> 1 & 1) + layer * (corner >> 2)) as u32
    })
}

/// The tagged facets, side after side.
fn sides(config: &BoxConfig) -> Facets {
    let mut facets = Facets::default();
    for side in 0..SIDES.len() {
        let (axis, at_upper) = (side / 2, side % 2);
        let patterns: [Vec<Vec<usize>>; 2] =
            std::array::from_fn(|parity| facets_on_side(config.split, parity, axis, at_upper));
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        let n_facets = config.cells[u] * config.cells[v] * patterns[0].len();
        facets.nodes.reserve(n_facets * patterns[0].first().map_or(0, Vec::len));
        facets.tags.resize(facets.tags.len() + n_facets, side as i32 + 1);
        let mut at = [0; 3];
        at[axis] = at_upper * (config.cells[axis] - 1);
        for b in 0..config.cells[v] {
            for a in 0..config.cells[u] {
                (at[u], at[v]) = (a, b);
                let corners = corners(config, at);
                let pattern = patterns[(at[0] + at[1] + at[2]) % 2].iter().flatten();
                facets.nodes.extend(pattern.map(|&corner| corners[corner]));
            }
        }
    }
    facets
}

/// Facets of one cube's cells whose corners all lie on a side of the cube.
fn facets_on_side(split: BoxSplit, parity: usize, axis: usize, at_upper: usize) -> Vec<Vec<usize>> {
    let kind = split.kind();
    let cells = split.cells(parity).chunks_exact(kind.n_nodes());
    cells
        .flat_map(|cell| kind.facets().iter().map(move |facet| facet.iter().map(|&i| cell[i]).collect()))
        .filter(|facet: &Vec<usize>| facet.iter().all(|corner| corner >> axis & 1 == at_upper))
        .collect()
}
