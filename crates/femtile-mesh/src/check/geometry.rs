//! Measure, quality and orientation of cells.

use femtile_device::parallel;

use super::CheckError;
use crate::interrupt::Interrupt;
use crate::{CellKind, Mesh};

/// Cells summed together; sums do not depend on the number of threads.
pub(super) const CELLS_PER_BLOCK: usize = 4096;

/// Measure, quality and orientation of one cell.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Signed length, area or volume.
    measure: f64,
    /// From 0 (flat) to 1 (equilateral), the same for both orientations; of tetrahedra its cube.
    quality: f64,
    /// True if the sign of the measure is certain in spite of rounding.
    is_certain: bool,
    /// The Gauss point, in the unit square or cube, with the smallest Jacobian, and that Jacobian with the
    /// sign of the measure; infinite for simplices.
    lowest: ([f64; 3], f64),
}

const ANYWHERE: ([f64; 3], f64) = ([0.5; 3], f64::INFINITY);

/// Sums and extremes over all cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shapes {
    pub(super) measure: f64,
    pub(super) n_flipped: usize,
    pub(super) worst_quality: f64,
    pub(super) worst_cell: usize,
}

impl Shapes {
    /// The sums of no cells.
    pub(super) fn new(first: usize) -> Self {
        Self { measure: 0.0, n_flipped: 0, worst_quality: f64::INFINITY, worst_cell: first }
    }

    pub(super) fn add(&mut self, cell: usize, measure: f64, quality: f64) {
        self.measure += measure;
        if quality < self.worst_quality {
            (self.worst_quality, self.worst_cell) = (quality, cell);
        }
    }

    /// Combines all blocks, or returns the first fault.
    pub(super) fn sum(blocks: Vec<Result<Self, CheckError>>) -> Result<Self, CheckError> {
        let mut total = Self::new(0);
        for block in blocks {
            let block = block?;
            total.n_flipped += block.n_flipped;
            total.add(block.worst_cell, block.measure, block.worst_quality);
        }
        Ok(total)
    }
}

/// Reorients negatively oriented cells, of which a surface has none, and sums up the shapes of all.
///
/// # Errors
/// [`CheckError::Degenerate`] names the first cell whose measure is zero up to rounding, [`CheckError::Folded`] the
/// first quadrilateral or hexahedron whose Jacobian changes its sign among its Gauss points; [`CheckError::Interrupted`].
pub(super) fn orient(mesh: &mut Mesh, interrupt: Interrupt<'_>) -> Result<Shapes, CheckError> {
    if mesh.is_surface {
        return super::surface_cells::measure(mesh, interrupt);
    }
    if let Some(shapes) = super::curved::orient(mesh, interrupt) {
        return shapes;
    }
    let (kind, points) = (mesh.kind, &mesh.points);
    let n = kind.n_nodes();
    let orient = |begin: usize, cells: &mut [u32]| match interrupt.is_set() {
        true => Err(CheckError::Interrupted),
        false => orient_block(kind, points, cells, begin / n),
    };
    let mut total = Shapes::sum(parallel::map_chunks_mut(&mut mesh.cells, CELLS_PER_BLOCK * n, orient))?;
    if kind == CellKind::Tetrahedron {
        total.worst_quality = total.worst_quality.cbrt();
    }
    Ok(total)
}

fn orient_block(
    kind: CellKind,
    points: &[[f64; 3]],
    cells: &mut [u32],
    first: usize,
) -> Result<Shapes, CheckError> {
    let mut total = Shapes::new(first);
    for (cell, nodes) in (first..).zip(cells.chunks_exact_mut(kind.n_nodes())) {
        let shape = shape(kind, points, nodes);
        if !shape.is_certain {
            return Err(CheckError::Degenerate { cell, measure: shape.measure, at: centroid(points, nodes) });
        }
        let (at, jacobian) = shape.lowest;
        // A value that is no number is refused as well.
        if jacobian.is_nan() || jacobian <= 0.0 {
            return Err(CheckError::Folded { cell, at: straight(points, nodes, at), jacobian });
        }
        if shape.measure < 0.0 {
            turn_over(kind, nodes);
            total.n_flipped += 1;
        }
        total.add(cell, shape.measure.abs(), shape.quality);
    }
    Ok(total)
}

/// Image of a point of the unit square or cube.
fn straight(points: &[[f64; 3]], nodes: &[u32], at: [f64; 3]) -> [f64; 3] {
    let mut image = [0.0; 3];
    for (i, &node) in nodes.iter().enumerate() {
        let (weight, _) = corner_shape(i, if nodes.len() == 4 { [at[0], at[1], 0.0] } else { at });
        image.iter_mut().zip(points[node as usize]).for_each(|(sum, x)| *sum += weight * x);
    }
    image
}

/// Value and gradient of the trilinear shape of a corner.
fn corner_shape(corner: usize, [x, y, z]: [f64; 3]) -> (f64, [f64; 3]) {
    let (at_x, at_y, at_z) = (matches!(corner % 4, 1 | 2), matches!(corner % 4, 2 | 3), corner >= 4);
    let factor = |upper: bool, t: f64| if upper { (t, 1.0) } else { (1.0 - t, -1.0) };
    let ((vx, dx), (vy, dy), (vz, dz)) = (factor(at_x, x), factor(at_y, y), factor(at_z, z));
    (vx * vy * vz, [dx * vy * vz, vx * dy * vz, vx * vy * dz])
}

/// Two Gauss points a direction, which integrate the Jacobian of a trilinear map exactly.
fn gauss(point: usize) -> [f64; 3] {
    let gauss = [0.5 - 0.5 / 3f64.sqrt(), 0.5 + 0.5 / 3f64.sqrt()];
    [gauss[point & 1], gauss[point >> 1 & 1], gauss[point >> 2]]
}

/// Returns the smaller of two Jacobians with their points; NaN counts as the smallest.
fn lower(a: ([f64; 3], f64), b: ([f64; 3], f64)) -> ([f64; 3], f64) {
    if b.1.partial_cmp(&a.1).is_none_or(|order| order.is_lt()) { b } else { a }
}

/// Exchanges nodes so that the cell changes its orientation and keeps its shape.
pub(super) fn turn_over(kind: CellKind, nodes: &mut [u32]) {
    match kind {
        CellKind::Segment => nodes.swap(0, 1),
        CellKind::Triangle => nodes.swap(1, 2),
        CellKind::Tetrahedron => nodes.swap(2, 3),
        CellKind::Quadrilateral => nodes.swap(1, 3),
        CellKind::Hexahedron => {
            nodes.swap(1, 3);
            nodes.swap(5, 7);
        }
    }
}

/// Measure and quality of a cell.
///
/// Simplices have the mean ratio of their edges,
/// $$ q_3 = \frac{12\,(3V)^{2/3}}{\sum_{i<j} l_{ij}^2}, \qquad q_2 = \frac{4\sqrt3\,A}{\sum l_{ij}^2}, $$
/// the others their smallest scaled Jacobian at a corner, or 0 if they are folded.
///
/// # Source
/// `[liu1994]`, $\eta$.
fn shape(kind: CellKind, points: &[[f64; 3]], nodes: &[u32]) -> Shape {
    let p = |i: usize| points[nodes[i] as usize];
    match kind {
        CellKind::Segment => {
            let length = p(1)[0] - p(0)[0];
            Shape { measure: length, quality: 1.0, is_certain: length != 0.0, lowest: ANYWHERE }
        }
        CellKind::Triangle => triangle(sub(p(1), p(0)), sub(p(2), p(0))),
        CellKind::Tetrahedron => tetrahedron(sub(p(1), p(0)), sub(p(2), p(0)), sub(p(3), p(0))),
        CellKind::Quadrilateral => quadrilateral(std::array::from_fn(p)),
        CellKind::Hexahedron => hexahedron(&std::array::from_fn(p)),
    }
}

fn triangle(a: [f64; 3], b: [f64; 3]) -> Shape {
    let (plus, minus) = (a[0] * b[1], a[1] * b[0]);
    let area = 0.5 * (plus - minus);
    let squares = dot(a, a) + dot(b, b) + square_of(sub(b, a));
    Shape {
        measure: area,
        quality: 4.0 * 3f64.sqrt() * area.abs() / squares,
        is_certain: (plus - minus).abs() > 8.0 * f64::EPSILON * (plus.abs() + minus.abs()),
        lowest: ANYWHERE,
    }
}

fn tetrahedron(a: [f64; 3], b: [f64; 3], c: [f64; 3]) -> Shape {
    let determinant = dot(a, cross(b, c));
    // The sum of the same six products without their signs bounds the rounding of the determinant.
    let [a1, b1, c1] = [a, b, c].map(|v| v.map(f64::abs));
    let permanent = a1[0] * (b1[1] * c1[2] + b1[2] * c1[1])
        + a1[1] * (b1[2] * c1[0] + b1[0] * c1[2])
        + a1[2] * (b1[0] * c1[1] + b1[1] * c1[0]);
    let squares = dot(a, a)
        + dot(b, b)
        + dot(c, c)
        + square_of(sub(b, a))
        + square_of(sub(c, a))
        + square_of(sub(c, b));
    Shape {
        measure: determinant / 6.0,
        quality: 432.0 * (determinant / (squares * squares.sqrt())).powi(2),
        is_certain: determinant.abs() > 16.0 * f64::EPSILON * permanent,
        lowest: ANYWHERE,
    }
}

fn quadrilateral(p: [[f64; 3]; 4]) -> Shape {
    let (a, b) = (sub(p[2], p[0]), sub(p[3], p[1]));
    let (plus, minus) = (a[0] * b[1], a[1] * b[0]);
    let area = 0.5 * (plus - minus);
    let jacobian = |i: usize| {
        let (next, last) = (sub(p[(i + 1) % 4], p[i]), sub(p[(i + 3) % 4], p[i]));
        let size = (square_of(next) * square_of(last)).sqrt();
        (area.signum() * cross(next, last)[2], size)
    };
    let corners: [(f64, f64); 4] = std::array::from_fn(jacobian);
    // The Jacobian of a bilinear map is bilinear itself.
    let at_gauss = |q: usize| {
        let at = [gauss(q)[0], gauss(q)[1], 0.0];
        (at, (0..4).map(|i| corner_shape(i, at).0 * corners[i].0).sum())
    };
    Shape {
        measure: area,
        quality: corners.iter().map(|(value, size)| value / size).fold(1.0, f64::min).max(0.0),
        is_certain: (plus - minus).abs() > 8.0 * f64::EPSILON * (plus.abs() + minus.abs()),
        lowest: (0..4).map(at_gauss).fold(ANYWHERE, lower),
    }
}

/// Edges that leave each corner of a hexahedron, right-handed.
const HEXAHEDRON_CORNERS: [[usize; 3]; 8] =
    [[1, 3, 4], [2, 0, 5], [3, 1, 6], [0, 2, 7], [7, 5, 0], [4, 6, 1], [5, 7, 2], [6, 4, 3]];

fn hexahedron(p: &[[f64; 3]; 8]) -> Shape {
    let (mut volume, mut size) = (0.0, 0.0);
    let mut jacobians = [0.0; 8];
    for (q, jacobian) in jacobians.iter_mut().enumerate() {
        let mut columns = [[0.0; 3]; 3];
        for (i, corner) in p.iter().enumerate() {
            let (_, gradient) = corner_shape(i, gauss(q));
            for (column, g) in columns.iter_mut().zip(gradient) {
                column.iter_mut().zip(corner).for_each(|(c, x)| *c += g * x);
            }
        }
        *jacobian = dot(columns[0], cross(columns[1], columns[2]));
        volume += *jacobian / 8.0;
        size += columns.iter().map(|&c| square_of(c)).product::<f64>().sqrt() / 8.0;
    }
    let corner = |(i, edges): (usize, &[usize; 3])| {
        let [a, b, c] = edges.map(|j| sub(p[j], p[i]));
        volume.signum() * dot(a, cross(b, c)) / (square_of(a) * square_of(b) * square_of(c)).sqrt()
    };
    let quality = HEXAHEDRON_CORNERS.iter().enumerate().map(corner).fold(1.0, f64::min).max(0.0);
    let at_gauss = |q: usize| (gauss(q), volume.signum() * jacobians[q]);
    let lowest = (0..8).map(at_gauss).fold(ANYWHERE, lower);
    Shape { measure: volume, quality, is_certain: volume.abs() > 64.0 * f64::EPSILON * size, lowest }
}

/// Mean of some points.
pub(super) fn centroid(points: &[[f64; 3]], nodes: &[u32]) -> [f64; 3] {
    std::array::from_fn(|d| {
        nodes.iter().map(|&node| points[node as usize][d]).sum::<f64>() / nodes.len() as f64
    })
}

pub(super) fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn square_of(a: [f64; 3]) -> f64 {
    dot(a, a)
}
