//! The points of a quadrature rule in cells, and moments of values there.

use femtile_element::quadrature::Quadrature;
use femtile_mesh::Mesh;

use super::Points;
use super::cell_coefficients::{CHUNK, ChunkScratch};

/// Points of a rule that are placed together.
const WIDTH: usize = 8;

/// Barycentric coordinates of [`WIDTH`] points, by corner.
type Shares = [[f64; WIDTH]; 4];

impl ChunkScratch {
    /// Collects the points of a quadrature rule in each cell, or its centroid, with the values of the unknown
    /// function there if it is known.
    pub(super) fn place_points(
        &mut self,
        mesh: &Mesh,
        cells: &[u32],
        rule: Option<&Quadrature>,
        unknown: &[f64],
    ) {
        let points = &mut self.points;
        self.tape.simd().vectorize(
            #[inline(always)]
            || points.place(mesh, cells, rule),
        );
        if !unknown.is_empty() {
            cells.iter().for_each(|&cell| points.push_unknown(mesh, cell, rule, unknown));
        }
    }
}

/// Returns the centroid of a cell.
pub(crate) fn centroid(mesh: &Mesh, cell: u32) -> Points {
    let mut points = Points::default();
    points.place(mesh, &[cell], None);
    points
}

/// Points of a rule in triangles and tetrahedra.
trait SimplexPoints {
    /// Replaces all points by those of a rule in some cells, or by their centroids; the points of a cell follow each other.
    fn place(&mut self, mesh: &Mesh, cells: &[u32], rule: Option<&Quadrature>);

    /// Adds the values of a function at the points of a rule in a cell, or at its centroid.
    fn push_unknown(&mut self, mesh: &Mesh, cell: u32, rule: Option<&Quadrature>, function: &[f64]);
}

impl SimplexPoints for Points {
    #[inline(always)]
    fn place(&mut self, mesh: &Mesh, cells: &[u32], rule: Option<&Quadrature>) {
        let middle = [[1.0 / mesh.kind.n_nodes() as f64; 4]];
        let places = rule.map_or(&middle[..], |rule| &rule.points);
        let n_q = places.len();
        self.clear();
        self.cells.resize(n_q * cells.len(), 0);
        for to in [&mut self.x, &mut self.y, &mut self.z] {
            to.resize(n_q * cells.len(), 0.0);
        }
        for (first, group) in (0..).step_by(WIDTH).zip(places.chunks(WIDTH)) {
            let mut shares: Shares = [[0.0; WIDTH]; 4];
            for (q, point) in group.iter().enumerate() {
                shares.iter_mut().zip(point).for_each(|(row, &share)| row[q] = share);
            }
            for (i, &cell) in cells.iter().enumerate() {
                let range = i * n_q + first..i * n_q + first + group.len();
                let corners = corners(mesh, cell);
                self.cells[range.clone()].fill(cell);
                for (axis, to) in [&mut self.x, &mut self.y, &mut self.z].into_iter().enumerate() {
                    let sums = combined(&shares, corners.map(|corner| corner[axis]));
                    // A copy of constant length is no call.
                    match to[range.clone()].as_mut_array::<WIDTH>() {
                        Some(to) => *to = sums,
                        None => to[range.clone()].copy_from_slice(&sums[..group.len()]),
                    }
                }
            }
        }
    }

    fn push_unknown(&mut self, mesh: &Mesh, cell: u32, rule: Option<&Quadrature>, function: &[f64]) {
        let nodes = mesh.cell(cell as usize);
        let at = |barycentric: &[f64]| -> f64 {
            barycentric.iter().zip(nodes).map(|(share, &node)| share * function[node as usize]).sum()
        };
        match rule {
            Some(rule) => self.unknown.extend(rule.points.iter().map(|point| at(point))),
            None => self.unknown.push(at(&[1.0 / nodes.len() as f64; 4])),
        }
    }
}

/// Returns the corners of a cell, filled up to four by the origin.
#[inline(always)]
fn corners(mesh: &Mesh, cell: u32) -> [[f64; 3]; 4] {
    let nodes = mesh.cell(cell as usize);
    match nodes.first_chunk::<4>() {
        Some(nodes) => nodes.map(|node| mesh.points[node as usize]),
        None => std::array::from_fn(|a| nodes.get(a).map_or([0.0; 3], |&node| mesh.points[node as usize])),
    }
}

/// Returns the sums of shares of numbers at the corners, in the order of the corners.
#[inline(always)]
fn combined(shares: &Shares, corners: [f64; 4]) -> [f64; WIDTH] {
    let mut sums = [0.0; WIDTH];
    for (row, x) in shares.iter().zip(corners) {
        sums.iter_mut().zip(row).for_each(|(sum, share)| *sum += share * x);
    }
    sums
}

/// Computes the means of values at the points of a rule times each shape function in the cell of a lane.
#[inline(always)]
pub(super) fn shape_moments(
    moments: &mut [[f64; CHUNK]; 4],
    lane: usize,
    values: impl Iterator<Item = f64>,
    rule: &Quadrature,
    dimension: usize,
) {
    // A sum of no terms is −0.
    let mut sums = [-0.0; 4];
    for (value, (point, weight)) in values.zip(rule.iter()) {
        let weighted = weight * value;
        sums.iter_mut().zip(point).for_each(|(sum, share)| *sum += weighted * share);
    }
    moments[..=dimension].iter_mut().zip(sums).for_each(|(row, sum)| row[lane] = sum);
}
