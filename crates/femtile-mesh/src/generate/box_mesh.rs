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
    pub(super) fn cells(self, parity: usize) -> &'static [usize] {
        match self {
            Self::Kuhn => cube::KUHN.as_flattened(),
            Self::Five => cube::FIVE[parity].as_flattened(),
            Self::Hexahedron => &cube::HEXAHEDRON,
        }
    }

    pub(super) fn kind(self) -> CellKind {
        match self {
            Self::Kuhn | Self::Five => CellKind::Tetrahedron,
            Self::Hexahedron => CellKind::Hexahedron,
        }
    }
}

/// A box of cubes; by default the unit cube with eight cells per side.
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
    config.counts()?;
    let all = Window { first: [0; 3], n: config.cells };
    let mut mesh = window_of(config, &all, interrupt)?;
    interrupt.go_on()?;
    mesh.facets = sides(config, &mesh);
    Ok(mesh)
}

/// A range of cubes of a box: the first along each axis, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub first: [usize; 3],
    pub n: [usize; 3],
}

/// The cells of some cubes, numbered as a box of their own, with the names of the sides but without tagged facets.
pub(super) fn window_of(
    config: &BoxConfig,
    window: &Window,
    interrupt: Interrupt<'_>,
) -> Result<Mesh, MeshError> {
    let kind = config.split.kind();
    let mut mesh =
        Mesh::new(points(config, window, interrupt)?, kind, cells(config.split, window, interrupt)?)?;
    for (side, name) in SIDES.iter().enumerate() {
        mesh.tag_names.insert((2, side as i32 + 1), (*name).to_owned());
    }
    Ok(mesh)
}

fn points(config: &BoxConfig, window: &Window, interrupt: Interrupt<'_>) -> Result<Vec<[f64; 3]>, MeshError> {
    let [x, y, z]: [Vec<f64>; 3] = std::array::from_fn(|d| {
        let (first, all) = (window.first[d], ticks(config.lower[d], config.upper[d], config.cells[d]));
        all[first..=first + window.n[d]].to_vec()
    });
    tabulate((y.len() * z.len(), x.len()), interrupt, |row, points: &mut [[f64; 3]]| {
        let (y, z) = (y[row % y.len()], z[row / y.len()]);
        points.iter_mut().zip(&x).for_each(|(point, &x)| *point = [x, y, z]);
    })
}

fn cells(split: BoxSplit, window: &Window, interrupt: Interrupt<'_>) -> Result<Vec<u32>, MeshError> {
    let [nx, ny, nz] = window.n;
    let (first, before) = (corners(window.n, [0; 3]), window.first.iter().sum::<usize>());
    let of_first: [Vec<u32>; 2] =
        [0, 1].map(|parity| split.cells(parity).iter().map(|&corner| first[corner]).collect());
    let per_cube = of_first[0].len();
    tabulate((ny * nz, nx * per_cube), interrupt, |row, cells: &mut [u32]| {
        let (j, k) = (row % ny, row / ny);
        let begin = corners(window.n, [0, j, k])[0];
        for ((i, cells), begin) in cells.chunks_exact_mut(per_cube).enumerate().zip(begin..) {
            // Cubes of the same parity differ by a translation.
            let of_first = &of_first[(i + j + k + before) % 2];
            cells.iter_mut().zip(of_first).for_each(|(node, of_first)| *node = begin + of_first);
        }
    })
}

/// The nodes of a cube of a box of `n` cubes.
fn corners(n: [usize; 3], [i, j, k]: [usize; 3]) -> [u32; 8] {
    let (row, layer) = (n[0] + 1, (n[0] + 1) * (n[1] + 1));
    let first = i + row * j + layer * k;
    std::array::from_fn(|corner| {
        (first + (corner & 1) + row * (corner >> 1 & 1) + layer * (corner >> 2)) as u32
    })
}

/// The facets of some cubes on each side of the box, by cell and facet of the cell.
pub(super) fn facets_on_sides(config: &BoxConfig, window: &Window) -> [Vec<(u32, u8)>; 6] {
    std::array::from_fn(|side| {
        let (axis, at_upper) = (side / 2, side % 2);
        let is_within = match at_upper {
            0 => window.first[axis] == 0,
            _ => window.first[axis] + window.n[axis] == config.cells[axis],
        };
        if is_within { facets_on_side(config.split, window, (axis, at_upper)) } else { Vec::new() }
    })
}

fn facets_on_side(split: BoxSplit, window: &Window, (axis, at_upper): (usize, usize)) -> Vec<(u32, u8)> {
    let patterns: [Vec<(usize, u8)>; 2] =
        std::array::from_fn(|parity| numbers_on_side(split, parity, axis, at_upper));
    let (n, before) = (window.n, window.first.iter().sum::<usize>());
    let per_cube = split.cells(0).len() / split.kind().n_nodes();
    let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut at = [0; 3];
    at[axis] = at_upper * (n[axis] - 1);
    let mut facets = Vec::with_capacity(n[u] * n[v] * patterns[0].len());
    for b in 0..n[v] {
        for a in 0..n[u] {
            (at[u], at[v]) = (a, b);
            let first = ((at[2] * n[1] + at[1]) * n[0] + at[0]) * per_cube;
            let pattern = &patterns[(at.iter().sum::<usize>() + before) % 2];
            facets.extend(pattern.iter().map(|&(cell, local)| ((first + cell) as u32, local)));
        }
    }
    facets
}

/// The facets of one cube's cells whose corners all lie on a side of the cube, by cell and facet of the cell.
fn numbers_on_side(split: BoxSplit, parity: usize, axis: usize, at_upper: usize) -> Vec<(usize, u8)> {
    let kind = split.kind();
    let cells = split.cells(parity).chunks_exact(kind.n_nodes()).enumerate();
    let of_cell = |(number, cell): (usize, &'static [usize])| {
        let is_on_side = move |facet: &[usize]| facet.iter().all(|&i| cell[i] >> axis & 1 == at_upper);
        let facets = kind.facets().iter().zip(0..);
        facets.filter(move |(facet, _)| is_on_side(facet)).map(move |(_, local)| (number, local))
    };
    cells.flat_map(of_cell).collect()
}

/// The tagged facets, side after side.
fn sides(config: &BoxConfig, mesh: &Mesh) -> Facets {
    let mut facets = Facets::default();
    let all = Window { first: [0; 3], n: config.cells };
    for (on_side, tag) in facets_on_sides(config, &all).iter().zip(1..) {
        facets.tags.resize(facets.tags.len() + on_side.len(), tag);
        for &(cell, local) in on_side {
            let (nodes, facet) = (mesh.cell(cell as usize), mesh.kind.facets()[local as usize]);
            facets.nodes.extend(facet.iter().map(|&i| nodes[i]));
        }
    }
    facets
}
