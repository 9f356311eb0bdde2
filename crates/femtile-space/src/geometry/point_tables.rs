//! Tensor-product polynomials and their slopes at the points of a rule, one axis after another.

use femtile_element::tensor::{Lagrange, Table};

/// Polynomials along an axis at points, and their slopes.
#[derive(Debug, Clone)]
pub struct PointTables {
    values: Table,
    /// For linear polynomials, whose slopes are constant, at one point only.
    slopes: Table,
}

/// A function with several components on a cell, with workspace.
#[derive(Debug, Clone, Default)]
pub struct AtPoints {
    /// At nodes, then at points: `[n_q^d][components]`, the first axis fastest.
    pub values: Vec<f64>,
    /// Slopes along each axis; [`PointTables::for_points`] gives the index for a point.
    pub slopes: [Vec<f64>; 3],
    spare: Vec<f64>,
}

impl PointTables {
    /// Tabulates polynomials at points of [0, 1].
    pub fn new(shapes: &Lagrange, points: &[f64]) -> Self {
        let n_sloped = if shapes.nodes().len() == 2 { points.len().min(1) } else { points.len() };
        Self { values: shapes.values(points), slopes: shapes.slopes(&points[..n_sloped]) }
    }

    /// Returns the number of nodes along an axis.
    pub fn n_shapes(&self) -> usize {
        self.values.n_shapes
    }

    /// Replaces values at nodes by values at points.
    pub fn evaluate(&self, found: &mut AtPoints, d: usize, components: usize) {
        found.along_all(&self.values, d, components);
    }

    /// Replaces values at nodes by values at points, and evaluates slopes.
    pub fn differentiate(&self, found: &mut AtPoints, d: usize, components: usize) {
        let AtPoints { values, slopes, spare } = found;
        for axis in 0..d {
            let inner = |n_last: usize| {
                components
                    * match axis {
                        0 => 1,
                        _ => n_last * self.values.n_points.pow(axis as u32 - 1),
                    }
            };
            let (before, rest) = slopes.split_at_mut(axis);
            along(&mut rest[0], values, &self.slopes, inner(self.values.n_points));
            for slope in before {
                along(spare, slope, &self.values, inner(self.slopes.n_points));
                std::mem::swap(spare, slope);
            }
            along(spare, values, &self.values, inner(self.values.n_points));
            std::mem::swap(spare, values);
        }
    }

    /// Calls `of_point` for each point, the first axis fastest, with the indices of its slopes along each axis.
    #[inline]
    pub fn for_points(&self, d: usize, mut of_point: impl FnMut(usize, [usize; 3])) {
        let (n, n_sloped) = (self.values.n_points, self.slopes.n_points);
        // Stride of the slopes along `axis` between points along another axis.
        let stride = |axis: usize, along: usize| match (n_sloped < n, along.cmp(&axis)) {
            (true, std::cmp::Ordering::Equal) => 0,
            (true, std::cmp::Ordering::Greater) => n.pow(along as u32 - 1),
            _ => n.pow(along as u32),
        };
        let strides: [[usize; 3]; 3] = std::array::from_fn(|along| [0, 1, 2].map(|axis| stride(axis, along)));
        let mut point = 0;
        for z in 0..if d == 3 { n } else { 1 } {
            for y in 0..n {
                let mut own = [0, 1, 2].map(|axis| y * strides[1][axis] + z * strides[2][axis]);
                for _ in 0..n {
                    of_point(point, own);
                    point += 1;
                    (0..3).for_each(|axis| own[axis] += strides[0][axis]);
                }
            }
        }
    }
}

impl AtPoints {
    /// Applies a table along each axis of the values.
    pub fn along_all(&mut self, table: &Table, d: usize, components: usize) {
        for axis in 0..d {
            let inner = components * table.n_points.pow(axis as u32);
            along(&mut self.spare, &self.values, table, inner);
            std::mem::swap(&mut self.spare, &mut self.values);
        }
    }
}

/// Applies a table along the axis of a tensor with `inner` entries before it.
pub fn along(to: &mut Vec<f64>, from: &[f64], table: &Table, inner: usize) {
    let (m, n) = (table.n_points, table.n_shapes);
    to.resize(from.len() / n * m, 0.0);
    for (to, from) in to.chunks_exact_mut(m * inner).zip(from.chunks_exact(n * inner)) {
        for (row, to) in to.chunks_exact_mut(inner).enumerate() {
            apply_row(to, from, table.row(row));
        }
    }
}

/// Sums vectors, one after another, with a factor for each; the sum begins with 0.
fn apply_row(to: &mut [f64], from: &[f64], factors: &[f64]) {
    let inner = to.len();
    match (inner, factors) {
        (1, _) => to[0] = factors.iter().zip(from).fold(0.0, |sum, (factor, from)| sum + factor * from),
        (_, &[first, second]) => {
            let (from, other) = from.split_at(inner);
            let pairs = from.iter().zip(other);
            to.iter_mut().zip(pairs).for_each(|(to, (a, b))| *to = 0.0 + first * a + second * b);
        }
        _ => {
            to.fill(0.0);
            for (factor, from) in factors.iter().zip(from.chunks_exact(inner)) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates each component with its slopes along all axes at a point, by direct sums.
    fn direct(shapes: &Lagrange, nodal: &[f64], at: &[f64], components: usize) -> Vec<[f64; 4]> {
        let (n, d) = (shapes.nodes().len(), at.len());
        let (values, slopes) = (shapes.values(at), shapes.slopes(at));
        let factor = |axis: usize, node: usize, is_sloped: bool| {
            let table = if is_sloped { &slopes } else { &values };
            table.row(axis)[node / n.pow(axis as u32) % n]
        };
        let product = |node: usize, sloped: usize| -> f64 {
            (0..d).map(|axis| factor(axis, node, axis == sloped)).product()
        };
        let sum = |component: usize, sloped: usize| -> f64 {
            (0..n.pow(d as u32))
                .map(|node| nodal[node * components + component] * product(node, sloped))
                .sum()
        };
        (0..components).map(|component| [3, 0, 1, 2].map(|sloped| sum(component, sloped))).collect()
    }

    #[test]
    fn values_and_slopes_are_those_of_sums_over_all_shapes() {
        let points = [0.1, 0.4, 0.95];
        for (n, d, components) in [(2, 2, 3), (2, 3, 1), (2, 3, 3), (3, 2, 1), (4, 3, 2)] {
            let shapes = Lagrange::gauss_lobatto(n - 1);
            let nodal: Vec<f64> =
                (0..n.pow(d as u32) * components).map(|i| (i * i % 17) as f64 - 5.0).collect();
            let tables = PointTables::new(&shapes, &points);
            let mut found = AtPoints { values: nodal.clone(), ..AtPoints::default() };
            tables.differentiate(&mut found, d, components);
            let mut n_points = 0;
            tables.for_points(d, |point, own| {
                let at: Vec<f64> = (0..d).map(|axis| points[point / 3usize.pow(axis as u32) % 3]).collect();
                for (i, expected) in direct(&shapes, &nodal, &at, components).into_iter().enumerate() {
                    let slope = |axis: usize| found.slopes[axis][own[axis] * components + i];
                    assert!((found.values[point * components + i] - expected[0]).abs() < 1e-12);
                    assert!((0..d).all(|axis| (slope(axis) - expected[1 + axis]).abs() < 1e-11), "{n} {d}");
                }
                n_points += 1;
            });
            assert_eq!(n_points, 3usize.pow(d as u32));
            let mut again = AtPoints { values: nodal, ..AtPoints::default() };
            tables.evaluate(&mut again, d, components);
            assert_eq!(again.values, found.values);
        }
    }
}
