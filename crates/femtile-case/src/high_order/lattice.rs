//! Boxes of rectangular cells among meshes, however their cells and nodes are numbered.

use std::collections::HashMap;

use femtile_fem::dofs::TensorSpace;
use femtile_mesh::Mesh;

/// Coordinates that differ by less than this share of the box are one, as single precision in a file leaves them.
const COORDINATE_TOLERANCE: f64 = 1e-7;

/// Widths that differ by less than this share are one.
const WIDTH_TOLERANCE: f64 = 1e-4;

/// A box whose cells stand in rows along the axes.
#[derive(Debug)]
pub(super) struct Lattice {
    /// Where cells begin and end along each axis; one place where there is no such axis.
    lines: [Lines; 3],
    /// Of the cell at each position of the space.
    cells: Vec<Cell>,
}

/// Where a cell stands, and how its axes lie in those of the box.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Lines through its first corner.
    corner: [u32; 3],
    /// The axis of the box along each of its own, and whether it runs backwards.
    axes: [(u8, bool); 3],
}

impl Lattice {
    /// Of the cells of a space.
    ///
    /// # Errors
    /// What keeps them from being a box of rectangles.
    pub fn of(space: &TensorSpace<'_>) -> Result<Self, String> {
        let mesh = space.mesh();
        let mut has_cell = vec![false; mesh.n_nodes()];
        mesh.cells.iter().for_each(|&node| has_cell[node as usize] = true);
        let points = || mesh.points.iter().zip(&has_cell).filter_map(|(point, has)| has.then_some(point));
        let lines = [0, 1, 2].map(|axis| Lines::through(points().map(|point| point[axis])));
        let number = |point: &[f64; 3]| [0, 1, 2].map(|axis| lines[axis].number(point[axis]));
        let numbers: Vec<[u32; 3]> = mesh.points.iter().map(number).collect();
        let cell = |position: usize| {
            let number = space.order()[position];
            let corners: Vec<[u32; 3]> =
                space.corners(position).iter().map(|&node| numbers[node as usize]).collect();
            let Some(cell) = Cell::between(&corners) else {
                return Err(format!(
                    "cell {number} is no rectangle along the axes in a row with its neighbours"
                ));
            };
            match is_straight(mesh, number as usize) {
                true => Ok(cell),
                false => Err(format!("cell {number} is curved")),
            }
        };
        let cells = (0..space.n_cells()).map(cell).collect::<Result<Vec<_>, _>>()?;
        let lattice = Self { lines, cells };
        lattice.is_full(space).map(|()| lattice)
    }

    /// Whether there is a cell in every place, and no crack between them.
    fn is_full(&self, space: &TensorSpace<'_>) -> Result<(), String> {
        let n_places: usize = self.n_cells().iter().product();
        if self.cells.len() != n_places {
            let n_cells = self.cells.len();
            return Err(format!(
                "{n_cells} cells do not fill the box around them, which has room for {n_places}"
            ));
        }
        let n_nodes: usize = self.n_nodes(space.degree()).iter().product();
        if space.n_dofs() != n_nodes {
            return Err(
                "cells that touch do not share their nodes (merge = true in [mesh] joins them)".into()
            );
        }
        Ok(())
    }

    /// Cells along each axis; one where there is no such axis.
    fn n_cells(&self) -> [usize; 3] {
        self.lines.each_ref().map(|lines| lines.places.len().saturating_sub(1).max(1))
    }

    /// Nodes along each axis.
    fn n_nodes(&self, degree: usize) -> [usize; 3] {
        self.lines.each_ref().map(|lines| degree * (lines.places.len() - 1) + 1)
    }

    /// Widths of the cells along each of so many axes, those that differ by rounding made the same.
    pub fn widths(&self, dimension: usize) -> Vec<Vec<f64>> {
        self.lines[..dimension].iter().map(Lines::widths).collect()
    }

    /// The ends of the box along an axis.
    pub fn ends(&self, axis: usize) -> [f64; 2] {
        let places = &self.lines[axis].places;
        [places[0], places[places.len() - 1]]
    }

    /// The node of the box that each degree of freedom is, x running fastest.
    ///
    /// # Cost
    /// Reads the degrees of freedom of all cells once.
    pub fn nodes(&self, space: &TensorSpace<'_>) -> Vec<u32> {
        let (degree, n) = (space.degree(), space.degree() + 1);
        let [along_x, along_y, _] = self.n_nodes(degree);
        let strides = [1, along_x as i64, (along_x * along_y) as i64];
        let mut nodes = vec![0; space.n_dofs()];
        let mut dofs = vec![0; space.dofs_per_cell()];
        for (position, cell) in self.cells.iter().enumerate() {
            space.cell_dofs(position, &mut dofs);
            let first: i64 =
                (0..3).map(|axis| degree as i64 * i64::from(cell.corner[axis]) * strides[axis]).sum();
            let steps =
                cell.axes.map(
                    |(axis, backwards)| {
                        if backwards { -strides[axis as usize] } else { strides[axis as usize] }
                    },
                );
            for (at, &dof) in dofs.iter().enumerate() {
                let at = [at % n, at / n % n, at / (n * n)];
                let along: i64 = (0..3).map(|axis| at[axis] as i64 * steps[axis]).sum();
                nodes[dof as usize] = (first + along) as u32;
            }
        }
        nodes
    }
}

impl Cell {
    /// With corners on these lines, by bits, where they are the corners of a rectangle between lines that follow each other.
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

    /// Lines through the corner of these bits.
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

/// Where cells begin and end along an axis.
#[derive(Debug)]
struct Lines {
    places: Vec<f64>,
    /// The place of each coordinate that occurs, by its bits.
    numbers: HashMap<u64, u32>,
}

impl Lines {
    /// Through all of these coordinates.
    fn through(coordinates: impl Iterator<Item = f64>) -> Self {
        let mut numbers: HashMap<u64, u32> = coordinates.map(|x| (x.to_bits(), 0)).collect();
        let mut sorted: Vec<f64> = numbers.keys().map(|&bits| f64::from_bits(bits)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let extent = sorted.last().zip(sorted.first()).map_or(0.0, |(last, first)| last - first);
        let mut places: Vec<f64> = Vec::new();
        for x in sorted {
            if places.last().is_none_or(|place| x - place > COORDINATE_TOLERANCE * extent) {
                places.push(x);
            }
            numbers.insert(x.to_bits(), places.len() as u32 - 1);
        }
        Self { places, numbers }
    }

    /// The line through a coordinate; of nodes that no cell has there may be none.
    fn number(&self, x: f64) -> u32 {
        self.numbers.get(&x.to_bits()).copied().unwrap_or(u32::MAX)
    }

    /// Widths between them; each is the first of those that it hardly differs from.
    fn widths(&self) -> Vec<f64> {
        let mut known: Vec<f64> = Vec::new();
        let mut last = 0;
        let width = |ends: &[f64]| {
            let width = ends[1] - ends[0];
            let is_same = |known: &f64| (known - width).abs() <= WIDTH_TOLERANCE * width;
            if !known.get(last).is_some_and(is_same) {
                last = known.iter().position(is_same).unwrap_or(known.len());
            }
            if last == known.len() {
                known.push(width);
            }
            known[last]
        };
        self.places.windows(2).map(width).collect()
    }
}

/// Whether the shape of a rectangular cell is that of its corners.
fn is_straight(mesh: &Mesh, cell: usize) -> bool {
    let Some(curved) = &mesh.curved else { return true };
    let (d, n) = (mesh.dimension(), curved.order + 1);
    let corner = |vtk: usize| mesh.points[mesh.cell(cell)[vtk] as usize];
    let origin = corner(0);
    let edges: Vec<[f64; 3]> = [1, 3, 4][..d].iter().map(|&vtk| difference(corner(vtk), origin)).collect();
    let size = edges.iter().flatten().fold(0.0_f64, |most, edge| most.max(edge.abs()));
    let points = curved.cells.chunks_exact(curved.n_points(d)).nth(cell).unwrap_or_default();
    points.iter().enumerate().all(|(at, &point)| {
        let mut rest = difference(curved.points[point as usize], origin);
        for (axis, edge) in edges.iter().enumerate() {
            let share = (at / n.pow(axis as u32) % n) as f64 / curved.order as f64;
            (0..3).for_each(|i| rest[i] -= share * edge[i]);
        }
        rest.iter().all(|rest| rest.abs() <= WIDTH_TOLERANCE * size)
    })
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|axis| a[axis] - b[axis])
}
