//! Lattice lines between cells along an axis.

use femtile_mesh::Mesh;
use rayon::prelude::*;

/// Coordinates that differ by less than this share of the box are equal: files may have f32 coordinates.
const COORDINATE_TOLERANCE: f64 = 1e-7;

/// Widths that differ by less than this share are equal.
const WIDTH_TOLERANCE: f64 = 1e-4;

/// The lattice lines along an axis.
#[derive(Debug)]
pub(super) struct Lines {
    pub places: Vec<f64>,
    /// Coordinates that occur, ascending, and the place of each.
    coordinates: Vec<f64>,
    numbers: Vec<u32>,
}

impl Lines {
    /// Makes lines through all of these coordinates.
    pub fn through(mut coordinates: Vec<f64>) -> Self {
        coordinates.par_sort_unstable_by(f64::total_cmp);
        coordinates.dedup_by_key(|x| x.to_bits());
        let extent = coordinates.last().zip(coordinates.first()).map_or(0.0, |(last, first)| last - first);
        let (mut places, mut numbers): (Vec<f64>, Vec<u32>) = (Vec::new(), Vec::new());
        for &x in &coordinates {
            if places.last().is_none_or(|place| x - place > COORDINATE_TOLERANCE * extent) {
                places.push(x);
            }
            numbers.push(places.len() as u32 - 1);
        }
        Self { places, coordinates, numbers }
    }

    /// Returns the line through a coordinate; `u32::MAX` if there is none, as for nodes without cells.
    pub fn number(&self, x: f64) -> u32 {
        let at = self.coordinates.binary_search_by(|other| other.total_cmp(&x));
        at.map_or(u32::MAX, |at| self.numbers[at])
    }

    /// Returns the [widths] between lines.
    pub fn widths(&self) -> Vec<f64> {
        widths(&self.places)
    }
}

/// Returns the widths between coordinates; nearly equal widths are made equal to the first of them.
pub(in crate::tensor) fn widths(coordinates: &[f64]) -> Vec<f64> {
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
    coordinates.windows(2).map(width).collect()
}

/// Returns the distance along each axis beyond which coordinates are not on one line.
pub(super) fn tolerances(mesh: &Mesh) -> [f64; 3] {
    let ends = |axis: usize| {
        let along = || mesh.points.par_iter().map(|point| point[axis]);
        along().reduce(|| f64::NEG_INFINITY, f64::max) - along().reduce(|| f64::INFINITY, f64::min)
    };
    [0, 1, 2].map(|axis| 2.0 * COORDINATE_TOLERANCE * ends(axis))
}

/// Returns whether the edges of a cell from its first corner run along axes, as those of rectangles on lines do.
pub(super) fn is_along_axes(mesh: &Mesh, cell: usize, most: [f64; 3]) -> bool {
    let corner = |vtk: usize| mesh.points[mesh.cell(cell)[vtk] as usize];
    let is_along = |&vtk: &usize| {
        let edge = difference(corner(vtk), corner(0));
        (0..3).filter(|&axis| edge[axis].abs() > most[axis]).count() <= 1
    };
    [1, 3, 4][..mesh.dimension()].iter().all(is_along)
}

/// Returns whether a rectangular cell of higher degree has straight edges and faces.
pub(super) fn is_straight(mesh: &Mesh, cell: usize) -> bool {
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

pub(super) fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|axis| a[axis] - b[axis])
}
