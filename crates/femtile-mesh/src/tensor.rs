//! Polynomials on squares and cubes by their values on a grid of points, the first coordinate running fastest.

use femtile_element::tensor::{Lagrange, Table};

use crate::CellKind;

/// Corners of the unit square or cube as VTK orders them.
pub(crate) const CORNERS: [[usize; 3]; 8] =
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]];

/// The index of each corner, in VTK's order, among the points of a cell of some order.
pub(crate) fn corner_places(kind: CellKind, order: usize) -> impl Iterator<Item = usize> {
    let row = order + 1;
    CORNERS[..kind.n_nodes()].iter().map(move |[i, j, k]| order * (i + row * (j + row * k)))
}

/// Polynomials of a degree by their values at evenly spaced points of [0, 1].
pub(crate) fn evenly_spaced(order: usize) -> Lagrange {
    Lagrange::new(ticks(order))
}

/// Evenly spaced points of [0, 1], with both ends exact.
pub(crate) fn ticks(order: usize) -> Vec<f64> {
    (0..=order).map(|i| i as f64 / order as f64).collect()
}

/// Interpolates values from one grid to another by a table for each axis:
/// $$ v_{ijk} = \sum_{abc} X_{ia} Y_{jb} Z_{kc}\, u_{abc}. $$
pub(crate) fn apply<const W: usize>(tables: &[&Table], values: &[[f64; W]]) -> Vec<[f64; W]> {
    let mut values = values.to_vec();
    let mut fast = 1;
    for table in tables {
        let (n_in, n_out) = (table.n_shapes, table.n_points);
        let mut next = Vec::with_capacity(values.len() / n_in * n_out);
        for slab in values.chunks_exact(n_in * fast) {
            for row in (0..n_out).map(|point| table.row(point)) {
                next.extend((0..fast).map(|i| {
                    let mut sum = [0.0; W];
                    for (a, weight) in row.iter().enumerate() {
                        let value = &slab[i + a * fast];
                        sum.iter_mut().zip(value).for_each(|(sum, x)| *sum += weight * x);
                    }
                    sum
                }));
            }
        }
        values = next;
        fast *= n_out;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_reproduced_at_other_points() {
        let (from, to) = ([evenly_spaced(2), evenly_spaced(3), evenly_spaced(1)], [0.25, 0.7, 1.0]);
        let f = |x: f64, y: f64, z: f64| [x * x * z - y * y * y, 2.0 + x * y * z];
        let mut values = Vec::new();
        for &z in from[2].nodes() {
            for &y in from[1].nodes() {
                values.extend(from[0].nodes().iter().map(|&x| f(x, y, z)));
            }
        }
        let tables = [from[0].values(&to[..2]), from[1].values(&to), from[2].values(&to[1..])];
        let found = apply(&tables.each_ref(), &values);
        assert_eq!(found.len(), 12);
        for (i, found) in found.iter().enumerate() {
            let expected = f(to[i % 2], to[i / 2 % 3], to[1 + i / 6]);
            assert!((0..2).all(|c| (found[c] - expected[c]).abs() < 1e-14), "{i}");
        }
    }
}
