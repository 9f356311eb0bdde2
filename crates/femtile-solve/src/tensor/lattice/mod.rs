//! Lattices: meshes whose cells form rows as those of a box do, in any numbering of cells and nodes.

mod coarse;
mod lines;
mod ordered;
mod walk;

use std::sync::atomic::{AtomicU32, Ordering};

use femtile_device::parallel;
use femtile_mesh::Mesh;
use femtile_space::TensorSpace;

pub(super) use coarse::CoarseProblem;
pub(super) use lines::widths;
use lines::{Lines, is_along_axes, is_straight, tolerances};

/// Cells in rows along two or three axes.
#[derive(Debug)]
pub(super) struct Lattice {
    dimension: usize,
    /// The lattice lines along each axis, if all cells are rectangles along the axes.
    lines: Option<[Lines; 3]>,
    /// Corners of cells along each axis; one along absent axes.
    along: [usize; 3],
    /// `[n_z + 1][n_y + 1][n_x + 1]`.
    corners: Vec<[f64; 3]>,
    /// The cell at each position of the space.
    cells: Vec<Cell>,
}

/// The place of a cell, and its orientation in the box.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Lines through its first corner.
    corner: [u32; 3],
    /// For each axis of the cell, the axis of the box along it, and whether it runs backwards.
    axes: [(u8, bool); 3],
}

impl Lattice {
    /// Finds the lattice of the cells of a space: by coordinates if they are rectangles, by the numbers of their nodes if these
    /// run row by row, else from neighbour to neighbour.
    ///
    /// # Errors
    /// The reason why they do not form rows.
    pub fn of(space: &TensorSpace<'_>) -> Result<Self, String> {
        let found = Self::of_rectangles(space).or_else(|| {
            ordered::numbers(space).and_then(|numbers| Self::numbered(space, &numbers, None).ok())
        });
        found.map_or_else(|| Self::numbered(space, &walk::numbers(space)?, None), Ok)
    }

    /// Finds the lattice of rectangles along the axes.
    fn of_rectangles(space: &TensorSpace<'_>) -> Option<Self> {
        let mesh = space.mesh();
        let most = tolerances(mesh);
        if !parallel::all(mesh.n_cells(), 256, |cell| {
            is_straight(mesh, cell) && is_along_axes(mesh, cell, most)
        }) {
            return None;
        }
        let has_cell = nodes_of_cells(mesh);
        let points = || mesh.points.iter().zip(&has_cell).filter_map(|(point, has)| has.then_some(point));
        let lines = parallel::map(3, 1, |axis| Lines::through(points().map(|point| point[axis]).collect()));
        let lines: [Lines; 3] = lines.try_into().ok()?;
        let number = |point: &[f64; 3]| [0, 1, 2].map(|axis| lines[axis].number(point[axis]));
        let numbers = parallel::map(mesh.n_nodes(), 256, |node| number(&mesh.points[node]));
        Self::numbered(space, &numbers, Some(lines)).ok()
    }

    /// Makes the lattice from the lattice lines of each node of the mesh.
    fn numbered(
        space: &TensorSpace<'_>,
        numbers: &[[u32; 3]],
        lines: Option<[Lines; 3]>,
    ) -> Result<Self, String> {
        let number = |node: u32| numbers[node as usize];
        let cell = |position: usize| {
            let corners = space.corners(position);
            let at: [[u32; 3]; 8] = std::array::from_fn(|bits| number(corners[bits % corners.len()]));
            Cell::between(&at[..corners.len()]).ok_or_else(|| {
                format!("cell {} does not stand in a row with its neighbours", space.order()[position])
            })
        };
        let cells = parallel::try_map_with(space.n_cells(), || (), |(), position| cell(position))?;
        let larger = |a: [u32; 3], b: [u32; 3]| [0, 1, 2].map(|axis| a[axis].max(b[axis]));
        let last = |position| space.corners(position).iter().map(|&node| number(node)).fold([0; 3], larger);
        let last = parallel::map(space.n_cells(), 256, last).into_iter().fold([0; 3], larger);
        let along = last.map(|last| last as usize + 1);
        let mut lattice = Self { dimension: space.dimension(), lines, along, corners: Vec::new(), cells };
        lattice.is_full(space)?;
        lattice.corners = vec![[0.0; 3]; along.iter().product()];
        let mesh = space.mesh();
        let of_cells = mesh.points.iter().enumerate().zip(nodes_of_cells(mesh));
        for ((node, point), _) in of_cells.filter(|(_, has_cell)| *has_cell) {
            let [x, y, z] = number(node as u32).map(|at| at as usize);
            lattice.corners[(z * along[1] + y) * along[0] + x] = *point;
        }
        Ok(lattice)
    }

    /// Checks that there is a cell in every place, and no crack between cells.
    fn is_full(&self, space: &TensorSpace<'_>) -> Result<(), String> {
        let n_places: usize = self.n_cells().iter().product();
        if self.cells.len() != n_places {
            let n_cells = self.cells.len();
            return Err(format!(
                "{n_cells} cells do not fill the rows that they stand in, which have room for {n_places}"
            ));
        }
        let n_nodes: usize = self.n_nodes(space.degree()).iter().product();
        if space.n_dofs() != n_nodes {
            return Err(walk::CRACKS.into());
        }
        Ok(())
    }

    /// Returns the cells along each axis; one along absent axes.
    pub fn n_cells(&self) -> [usize; 3] {
        self.along.map(|n| n.saturating_sub(1).max(1))
    }

    /// Returns the nodes along each axis.
    fn n_nodes(&self, degree: usize) -> [usize; 3] {
        self.along.map(|n| degree * (n - 1) + 1)
    }

    /// Returns the widths of cells along each axis, equal up to rounding made equal, if they are rectangles.
    pub fn widths(&self) -> Option<Vec<Vec<f64>>> {
        Some(self.lines.as_ref()?[..self.dimension].iter().map(Lines::widths).collect())
    }

    /// Returns the corners of all cells, `[n_z + 1][n_y + 1][n_x + 1]`.
    pub fn corners(&self) -> &[[f64; 3]] {
        &self.corners
    }

    /// Returns the number of cells before a cell along each axis; `position` is that of the cell in the
    /// space.
    pub fn place(&self, position: usize) -> [usize; 3] {
        let mut place = self.cells[position].corner.map(|line| line as usize);
        let axes = &self.cells[position].axes[..self.dimension];
        axes.iter().filter(|(_, backwards)| *backwards).for_each(|(axis, _)| place[*axis as usize] -= 1);
        place
    }

    /// Returns the lattice lines of each node of the mesh that belongs to a cell.
    fn numbers(&self, space: &TensorSpace<'_>) -> Vec<[u32; 3]> {
        let mut numbers = vec![[0; 3]; space.mesh().n_nodes()];
        for (position, cell) in self.cells.iter().enumerate() {
            for (bits, &node) in space.corners(position).iter().enumerate() {
                numbers[node as usize] = cell.corner_at(bits, self.dimension).unwrap_or(cell.corner);
            }
        }
        numbers
    }

    /// Returns the name of the lower or upper side across an axis.
    pub fn side(&self, axis: usize, is_upper: bool) -> String {
        if let Some(lines) = &self.lines {
            let places = &lines[axis].places;
            let place = if is_upper { places[places.len() - 1] } else { places[0] };
            return format!("{} = {place}", ["x", "y", "z"][axis]);
        }
        let mut at = self.along.map(|n| n / 2);
        at[axis] = if is_upper { self.along[axis] - 1 } else { 0 };
        let [x, y, z] = self.corners[(at[2] * self.along[1] + at[1]) * self.along[0] + at[0]];
        format!("around the point ({x:.3}, {y:.3}, {z:.3})")
    }

    /// Returns the node of the box of each degree of freedom, x fastest.
    ///
    /// # Cost
    /// Reads the degrees of freedom of all cells once.
    pub fn nodes(&self, space: &TensorSpace<'_>) -> Vec<u32> {
        let (degree, n) = (space.degree(), space.degree() as i64 + 1);
        let [along_x, along_y, _] = self.n_nodes(degree);
        let strides = [1, along_x as i64, (along_x * along_y) as i64];
        let nodes = parallel::map(space.n_dofs(), 1 << 14, |_| AtomicU32::new(0));
        let of_cell = |dofs: &mut Vec<u32>, position: usize| {
            let cell = &self.cells[position];
            space.cell_dofs(position, dofs);
            let first: i64 =
                (0..3).map(|axis| degree as i64 * i64::from(cell.corner[axis]) * strides[axis]).sum();
            let step = |(axis, backwards): (u8, bool)| {
                if backwards { -strides[axis as usize] } else { strides[axis as usize] }
            };
            let steps = cell.axes.map(step);
            for (&dof, at) in dofs.iter().zip((0..).map(|at: i64| [at % n, at / n % n, at / (n * n)])) {
                let along: i64 = (0..3).map(|axis| at[axis] * steps[axis]).sum();
                // Cells that share a degree of freedom find the same node.
                nodes[dof as usize].store((first + along) as u32, Ordering::Relaxed);
            }
        };
        parallel::map_with(self.cells.len(), 16, || vec![0; space.dofs_per_cell()], of_cell);
        nodes.into_iter().map(AtomicU32::into_inner).collect()
    }
}

/// Returns whether each node belongs to a cell.
fn nodes_of_cells(mesh: &Mesh) -> Vec<bool> {
    let mut has_cell = vec![false; mesh.n_nodes()];
    mesh.cells.iter().for_each(|&node| has_cell[node as usize] = true);
    has_cell
}

impl Cell {
    /// Makes a cell with corners on these lines, by bits, if they are those of a rectangle between consecutive lines.
    fn between(corners: &[[u32; 3]]) -> Option<Self> {
        let d = corners.len().ilog2() as usize;
        let mut axes = [(2, false); 3];
        for own in 0..d {
            let (from, to) = (corners[0], corners[1 << own]);
            let axis = (0..3).find(|&axis| from[axis] != to[axis])?;
            axes[own] = (axis as u8, to[axis] < from[axis]);
        }
        let cell = Self { corner: corners[0], axes };
        let is_there = |(bits, corner): (usize, &[u32; 3])| cell.corner_at(bits, d) == Some(*corner);
        corners.iter().enumerate().all(is_there).then_some(cell)
    }

    /// Returns the lattice lines of the corner with these bits.
    fn corner_at(&self, bits: usize, d: usize) -> Option<[u32; 3]> {
        let mut at = self.corner;
        for (own, &(axis, backwards)) in self.axes[..d].iter().enumerate() {
            let step = (bits >> own & 1) as u32;
            let line = &mut at[axis as usize];
            *line = if backwards { line.checked_sub(step)? } else { *line + step };
        }
        Some(at)
    }
}
