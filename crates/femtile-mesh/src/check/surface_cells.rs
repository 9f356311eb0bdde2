//! Measure and quality of the cells of a surface in space, which may have either side up.

use femtile_device::parallel;

use super::CheckError;
use super::curved::Rule;
use super::geometry::{CELLS_PER_BLOCK, Shapes, centroid, cross, dot, square_of, sub};
use crate::interrupt::Interrupt;
use crate::tensor::{apply, corner_places};
use crate::{CellKind, Mesh};

/// The rules by which quadrilaterals are measured: the quadrature of operators, and the corners.
struct Rules {
    quadrature: Rule,
    corners: Rule,
}

/// Measure and quality of one cell.
struct Shape {
    measure: f64,
    quality: f64,
    /// Whether the measure is more than rounding.
    is_certain: bool,
    /// The point of the quadrature whose normal leaves the mean one the most, and the Jacobian seen along the mean normal there;
    /// infinite for triangles.
    lowest: (usize, f64),
}

/// Returns the sums of the shapes of all cells, which stay as they are.
///
/// # Errors
/// [`CheckError::Degenerate`] names the first cell whose measure is zero up to rounding, [`CheckError::Folded`] the first
/// quadrilateral with a quadrature point whose normal is opposite to the mean one; [`CheckError::Interrupted`].
pub(super) fn measure(mesh: &Mesh, interrupt: Interrupt<'_>) -> Result<Shapes, CheckError> {
    let order = mesh.curved.as_ref().map_or(1, |curved| curved.order);
    let rules = Rules {
        quadrature: Rule::gauss(order, order + 1),
        corners: Rule::new(order, &[0.0, 1.0], vec![0.5; 2]),
    };
    let of_block = |block: usize| {
        if interrupt.is_set() {
            return Err(CheckError::Interrupted);
        }
        let first = block * CELLS_PER_BLOCK;
        let mut total = Shapes::new(first);
        for cell in first..mesh.n_cells().min(first + CELLS_PER_BLOCK) {
            rules.add(mesh, cell, &mut total)?;
        }
        Ok(total)
    };
    Shapes::sum(parallel::map(mesh.n_cells().div_ceil(CELLS_PER_BLOCK), 1, of_block))
}

impl Rules {
    fn add(&self, mesh: &Mesh, cell: usize, total: &mut Shapes) -> Result<(), CheckError> {
        let points = points(mesh, cell);
        let shape = match points[..] {
            [a, b, c] => triangle(sub(b, a), sub(c, a)),
            _ => self.quadrilateral(&points),
        };
        if !shape.is_certain {
            let at = centroid(&mesh.points, mesh.cell(cell));
            return Err(CheckError::Degenerate { cell, measure: shape.measure, at });
        }
        let (point, jacobian) = shape.lowest;
        // A value that is no number is refused as well.
        if jacobian.is_nan() || jacobian <= 0.0 {
            let at = apply(&[&self.quadrature.values, &self.quadrature.values], &points)[point];
            return Err(CheckError::Folded { cell, at, jacobian });
        }
        total.add(cell, shape.measure, shape.quality);
        Ok(())
    }

    fn quadrilateral(&self, points: &[[f64; 3]]) -> Shape {
        let area = |columns: &[[f64; 3]; 3]| cross(columns[0], columns[1]);
        let size = |columns: &[[f64; 3]; 3]| (square_of(columns[0]) * square_of(columns[1])).sqrt();
        let at_points = self.quadrature.jacobians(2, points);
        let (mut measure, mut extent, mut mean) = (0.0, 0.0, [0.0; 3]);
        for (q, columns) in at_points.iter().enumerate() {
            let (weight, area) = (self.quadrature.weight(2, q), area(columns));
            measure += weight * square_of(area).sqrt();
            extent += weight * size(columns);
            (0..3).for_each(|i| mean[i] += weight * area[i]);
        }
        let length = square_of(mean).sqrt();
        let seen = |columns: &[[f64; 3]; 3]| dot(area(columns), mean) / length;
        let (mut quality, mut lowest) = (1.0f64, (0, f64::INFINITY));
        for (q, columns) in at_points.iter().enumerate() {
            let value = seen(columns);
            quality = quality.min(value / size(columns));
            if value.partial_cmp(&lowest.1).is_none_or(|order| order.is_lt()) {
                lowest = (q, value);
            }
        }
        for columns in &self.corners.jacobians(2, points) {
            quality = quality.min(seen(columns) / size(columns));
        }
        let is_certain = measure > 64.0 * f64::EPSILON * extent;
        Shape { measure, quality: quality.max(0.0), is_certain, lowest }
    }
}

/// Returns the corners of a triangle, or the points of a quadrilateral with the first coordinate running fastest.
fn points(mesh: &Mesh, cell: usize) -> Vec<[f64; 3]> {
    if let Some(curved) = &mesh.curved {
        let n = curved.n_points(2);
        return curved.cells[cell * n..(cell + 1) * n].iter().map(|&i| curved.points[i as usize]).collect();
    }
    let nodes = mesh.cell(cell);
    let corner = |i: usize| mesh.points[nodes[i] as usize];
    match mesh.kind {
        CellKind::Triangle => (0..3).map(corner).collect(),
        kind => {
            let mut points = vec![[0.0; 3]; 4];
            corner_places(kind, 1).enumerate().for_each(|(i, place)| points[place] = corner(i));
            points
        }
    }
}

fn triangle(a: [f64; 3], b: [f64; 3]) -> Shape {
    let measure = 0.5 * square_of(cross(a, b)).sqrt();
    let squares = dot(a, a) + dot(b, b) + square_of(sub(b, a));
    Shape {
        measure,
        quality: 4.0 * 3f64.sqrt() * measure / squares,
        is_certain: measure > 8.0 * f64::EPSILON * (dot(a, a) * dot(b, b)).sqrt(),
        lowest: (0, f64::INFINITY),
    }
}
