//! Measure, quality and orientation of curved quadrilaterals and hexahedra.

use femtile_device::parallel;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::Table;

use super::CheckError;
use super::geometry::{CELLS_PER_BLOCK, Shapes, cross, dot, square_of, turn_over};
use crate::interrupt::Interrupt;
use crate::tensor::{apply, evenly_spaced};
use crate::{CellKind, Curved, Mesh};

/// Values and slopes of the shapes at the points of a rule, and its weights.
pub(super) struct Rule {
    pub values: Table,
    slopes: Table,
    weights: Vec<f64>,
}

impl Rule {
    pub fn new(order: usize, points: &[f64], weights: Vec<f64>) -> Self {
        let shapes = evenly_spaced(order);
        Self { values: shapes.values(points), slopes: shapes.slopes(points), weights }
    }

    pub fn gauss(order: usize, n: usize) -> Self {
        let (points, weights) = gauss_legendre(n);
        Self::new(order, &points, weights)
    }

    /// Columns of the Jacobian at each point; the third is (0, 0, 1) in two dimensions.
    pub fn jacobians(&self, dimension: usize, points: &[[f64; 3]]) -> Vec<[[f64; 3]; 3]> {
        let along = |axis: usize| {
            let tables: Vec<&Table> =
                (0..dimension).map(|d| if d == axis { &self.slopes } else { &self.values }).collect();
            apply(&tables, points)
        };
        let columns: Vec<_> = (0..dimension).map(along).collect();
        let column = |d: usize, q: usize| columns.get(d).map_or([0.0, 0.0, 1.0], |column| column[q]);
        (0..columns[0].len()).map(|q| std::array::from_fn(|d| column(d, q))).collect()
    }

    pub fn weight(&self, dimension: usize, point: usize) -> f64 {
        let n = self.weights.len();
        (0..dimension).map(|d| self.weights[point / n.pow(d as u32) % n]).product()
    }
}

/// The rules that the cells of a mesh are measured by, and their points.
struct Rules<'a> {
    kind: CellKind,
    dimension: usize,
    order: usize,
    points: &'a [[f64; 3]],
    /// Exact for the Jacobian, of degree $dg - 1$ in each coordinate.
    measure: Rule,
    /// The quadrature of $g + 1$ points at which operators evaluate the Jacobian.
    quadrature: Rule,
    corners: Rule,
}

/// Measure, quality and orientation of one cell.
struct Shape {
    measure: f64,
    quality: f64,
    is_certain: bool,
    /// The point with the smallest Jacobian, signed relative to the measure, and its value there.
    lowest: (usize, f64),
}

impl<'a> Rules<'a> {
    fn new(kind: CellKind, order: usize, points: &'a [[f64; 3]]) -> Self {
        let dimension = kind.dimension();
        Self {
            kind,
            dimension,
            order,
            points,
            measure: Rule::gauss(order, (dimension * order).div_ceil(2)),
            quadrature: Rule::gauss(order, order + 1),
            corners: Rule::new(order, &[0.0, 1.0], vec![0.5; 2]),
        }
    }

    fn shape(&self, points: &[[f64; 3]]) -> Shape {
        let (mut measure, mut size) = (0.0, 0.0);
        for (q, columns) in self.measure.jacobians(self.dimension, points).iter().enumerate() {
            let weight = self.measure.weight(self.dimension, q);
            measure += weight * determinant(columns);
            size += weight * extent(columns);
        }
        let (mut quality, mut lowest) = (1.0f64, (0, f64::INFINITY));
        for (q, columns) in self.quadrature.jacobians(self.dimension, points).iter().enumerate() {
            let value = measure.signum() * determinant(columns);
            quality = quality.min(value / extent(columns));
            // A value that is no number is the worst of all.
            if value.partial_cmp(&lowest.1).is_none_or(|order| order.is_lt()) {
                lowest = (q, value);
            }
        }
        for columns in &self.corners.jacobians(self.dimension, points) {
            quality = quality.min(measure.signum() * determinant(columns) / extent(columns));
        }
        Shape {
            measure,
            quality: quality.max(0.0),
            is_certain: measure.abs() > 64.0 * f64::EPSILON * size,
            lowest,
        }
    }

    fn orient_cell(
        &self,
        cell: usize,
        corners: &mut [u32],
        places: &mut [u32],
        total: &mut Shapes,
    ) -> Result<(), CheckError> {
        let points: Vec<[f64; 3]> = places.iter().map(|&point| self.points[point as usize]).collect();
        let shape = self.shape(&points);
        if !shape.is_certain {
            let n = points.len() as f64;
            let at = std::array::from_fn(|d| points.iter().map(|p| p[d]).sum::<f64>() / n);
            return Err(CheckError::Degenerate { cell, measure: shape.measure, at });
        }
        let (point, jacobian) = shape.lowest;
        // A value that is no number is refused as well.
        if jacobian.is_nan() || jacobian <= 0.0 {
            let at = apply(&vec![&self.quadrature.values; self.dimension], &points)[point];
            return Err(CheckError::Folded { cell, at, jacobian });
        }
        if shape.measure < 0.0 {
            turn_over(self.kind, corners);
            exchange_axes(self.order + 1, places);
            total.n_flipped += 1;
        }
        total.add(cell, shape.measure.abs(), shape.quality);
        Ok(())
    }
}

fn determinant([a, b, c]: &[[f64; 3]; 3]) -> f64 {
    dot(*a, cross(*b, *c))
}

fn extent(columns: &[[f64; 3]; 3]) -> f64 {
    columns.iter().map(|&column| square_of(column)).product::<f64>().sqrt()
}

/// Turns negatively oriented curved cells over, corners and all, and sums up the shapes of all; nothing for straight
/// ones.
///
/// # Errors
/// [`CheckError::Degenerate`] names the first cell whose measure is zero up to rounding,
/// [`CheckError::Folded`] the first whose Jacobian is not positive at one of $g + 1$ Gauss points per axis.
pub(super) fn orient(mesh: &mut Mesh, interrupt: Interrupt<'_>) -> Option<Result<Shapes, CheckError>> {
    let (kind, curved) = (mesh.kind, mesh.curved.as_mut()?);
    let (n, n_points) = (kind.n_nodes(), curved.n_points(kind.dimension()));
    let Curved { order, points, cells } = curved;
    let rules = Rules::new(kind, *order, points);
    let both = mesh.cells.chunks_mut(CELLS_PER_BLOCK * n).zip(cells.chunks_mut(CELLS_PER_BLOCK * n_points));
    let blocks = (0..).step_by(CELLS_PER_BLOCK).zip(both).collect();
    let orient = |(first, (corners, cells)): (usize, (&mut [u32], &mut [u32]))| {
        if interrupt.is_set() {
            return Err(CheckError::Interrupted);
        }
        let mut total = Shapes::new(first);
        let both = corners.chunks_exact_mut(n).zip(cells.chunks_exact_mut(n_points));
        for (cell, (corners, shape)) in (first..).zip(both) {
            rules.orient_cell(cell, corners, shape, &mut total)?;
        }
        Ok(total)
    };
    Some(Shapes::sum(parallel::map_items(blocks, orient)))
}

/// Exchanges the first two axes of a grid of points.
fn exchange_axes(row: usize, places: &mut [u32]) {
    for layer in places.chunks_exact_mut(row * row) {
        for j in 0..row {
            (0..j).for_each(|i| layer.swap(i + row * j, j + row * i));
        }
    }
}
