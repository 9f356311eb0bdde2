//! Polynomial order of the maps of cells, and the coefficients of these polynomials.

use femtile_element::tensor::{Lagrange, Table};
use femtile_space::geometry::along_all;

/// Orders expanded in powers; higher ones are expanded in Lagrange polynomials at the nodes of the cell.
const HIGHEST_OF_POWERS: usize = 2;

/// Polynomials through the nodes of the hexahedra of a mesh, which all have one order.
#[derive(Debug)]
pub(super) struct Curvature {
    order: usize,
    /// For orders 1 and 2, tables from the nodes of the order of the mesh to theirs, and back.
    changes: [[Table; 2]; HIGHEST_OF_POWERS],
}

fn equispaced(order: usize) -> Vec<f64> {
    (0..=order).map(|i| i as f64 / order as f64).collect()
}

/// Returns the table from values at equispaced nodes to coefficients of 1, ξ and ξ², with ξ from −1 to 1.
fn to_powers(order: usize) -> Table {
    let entries = match order {
        1 => vec![0.5, 0.5, -0.5, 0.5],
        _ => vec![0.0, 1.0, 0.0, -0.5, 0.0, 0.5, 0.5, -1.0, 0.5],
    };
    Table { n_points: order + 1, n_shapes: order + 1, entries }
}

/// Returns the functions of [`Curvature::polynomial`] at points of [0, 1], and their slopes.
pub(super) fn tables(order: usize, points: &[f64]) -> [Table; 2] {
    if order > HIGHEST_OF_POWERS {
        let shapes = Lagrange::new(equispaced(order));
        return [shapes.values(points), shapes.slopes(points)];
    }
    let powers = |xi: f64| [1.0, xi, xi * xi];
    let slopes = |xi: f64| [0.0, 1.0, 2.0 * xi];
    let table = |of: &dyn Fn(f64) -> [f64; 3]| Table {
        n_points: points.len(),
        n_shapes: order + 1,
        entries: points.iter().flat_map(|x| of(2.0 * x - 1.0).into_iter().take(order + 1)).collect(),
    };
    [table(&powers), table(&slopes)]
}

impl Curvature {
    pub fn new(order: usize) -> Self {
        let own = Lagrange::new(equispaced(order));
        let change = |other: usize| {
            let nodes = equispaced(other);
            [own.values(&nodes), Lagrange::new(nodes).values(&equispaced(order))]
        };
        Self { order, changes: [change(1), change(2)] }
    }

    /// Returns the order of the map through these nodes up to rounding: 1, 2, or that of the mesh.
    pub fn order_of(&self, nodes: &[[f64; 3]]) -> usize {
        let size = nodes.iter().flatten().fold(0.0_f64, |size, x| size.max(x.abs()));
        let rounding = 8.0 * f64::EPSILON * size;
        let is_of = |order: &usize| {
            let [down, up] = &self.changes[order - 1];
            let again = along_all(&along_all(nodes, &[down; 3]), &[up; 3]);
            nodes.iter().flatten().zip(again.iter().flatten()).all(|(x, again)| (x - again).abs() <= rounding)
        };
        (1..=HIGHEST_OF_POWERS.min(self.order - 1)).find(is_of).unwrap_or(self.order)
    }

    /// Returns the coefficients of the map through these nodes in products of the functions of [`tables`], with
    /// positive J: `[(order + 1)³]`, the first axis fastest. For a mirrored cell all coordinates change sign, which
    /// leaves the metric unchanged.
    pub fn polynomial(&self, nodes: &[[f64; 3]], order: usize, is_mirrored: bool) -> Vec<[f64; 3]> {
        let origin = nodes[0];
        let mut found: Vec<[f64; 3]> =
            nodes.iter().map(|node| std::array::from_fn(|i| node[i] - origin[i])).collect();
        let mut factor = if is_mirrored { -1.0 } else { 1.0 };
        if order <= HIGHEST_OF_POWERS {
            if order != self.order {
                found = along_all(&found, &[&self.changes[order - 1][0]; 3]);
            }
            found = along_all(&found, &[&to_powers(order); 3]);
            // ξ runs twice as fast as the coordinate of the reference cell.
            factor *= 2.0;
        }
        found.iter_mut().flatten().for_each(|x| *x *= factor);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the nodes of a bent cell of an order.
    fn nodes(order: usize, map: impl Fn([f64; 3]) -> [f64; 3]) -> Vec<[f64; 3]> {
        let at = equispaced(order);
        let n = order + 1;
        (0..n.pow(3)).map(|i| map([at[i % n], at[i / n % n], at[i / (n * n)]])).collect()
    }

    fn trilinear([x, y, z]: [f64; 3]) -> [f64; 3] {
        [1e3 + x + 0.2 * y * z, 2.0 * y - 0.1 * x * y * z, z + 0.3 * x * y]
    }

    fn triquadratic([x, y, z]: [f64; 3]) -> [f64; 3] {
        [x + 0.2 * y * y * z, y - 0.1 * x * x * z * z, 3.0 + z + 0.3 * x * y]
    }

    fn cubic([x, y, z]: [f64; 3]) -> [f64; 3] {
        [x + 0.1 * y * y * y, y, z]
    }

    #[test]
    fn the_order_of_a_map_is_the_least_that_gives_its_points() {
        for order in 1..=9 {
            let curvature = Curvature::new(order);
            assert_eq!(curvature.order_of(&nodes(order, trilinear)), 1);
            assert_eq!(curvature.order_of(&nodes(order, triquadratic)), order.min(2));
            assert_eq!(curvature.order_of(&nodes(order, cubic)), if order == 1 { 1 } else { order.max(2) });
        }
    }

    #[test]
    fn polynomials_have_the_slopes_of_the_map() {
        let points = [0.1, 0.45, 1.0];
        for order in 1..=6 {
            let curvature = Curvature::new(order);
            let nodes = nodes(order, trilinear);
            for of in [1, 2, order] {
                for sign in [1.0, -1.0] {
                    let coefficients = curvature.polynomial(&nodes, of, sign < 0.0);
                    let [values, slopes] = tables(of, &points);
                    let along_y = along_all(&coefficients, &[&values, &slopes, &values]);
                    for (at, found) in along_y.iter().enumerate() {
                        let [x, z] = [points[at % 3], points[at / 9]];
                        let expected = [0.2 * z, 2.0 - 0.1 * x * z, 0.3 * x].map(|slope| sign * slope);
                        for i in 0..3 {
                            assert!((found[i] - expected[i]).abs() < 1e-10, "{of} of {order}: {found:?}");
                        }
                    }
                }
            }
        }
    }
}
