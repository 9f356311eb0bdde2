//! Functionals of grid functions: integrals, norms, point values.

use femtile_expression::Expression;

use super::Grid;
use super::grid::AXES;
use super::line::{Sampler, Scratch};
use super::operator::Coefficient;
use crate::TimeError;

/// Nodes of the interpolation along one axis: cubic.
const POINTS: usize = 4;

/// Returns $∫u$ by the trapezoidal rule.
///
/// # Panics
/// When the length of `u` is not the number of nodes.
pub fn integral(grid: &Grid, u: &[f64]) -> f64 {
    weighted(grid, u, |_, _, value| value)
}

/// Returns $\sqrt{∫u²}$ by the trapezoidal rule.
///
/// # Panics
/// When the length of `u` is not the number of nodes.
pub fn l2_norm(grid: &Grid, u: &[f64]) -> f64 {
    weighted(grid, u, |_, _, value| value * value).sqrt()
}

/// Returns $\sqrt{∫(u - v)²}$ by the trapezoidal rule; the formula v may depend on the time.
///
/// # Panics
/// When the length of `u` is not the number of nodes.
pub fn error_l2(grid: &Grid, u: &[f64], exact: &Expression, time: f64) -> f64 {
    let sampler = Sampler::new(&Coefficient::new(&exact.at_time(time)));
    let (mut scratch, mut line) = (Scratch::default(), vec![0.0; grid.nodes()[0]]);
    let square = |number: usize, i: usize, value: f64| {
        if i == 0 {
            sampler.line(grid, grid.node(0, number, 0), &mut line, &mut scratch);
        }
        (value - line[i]) * (value - line[i])
    };
    weighted(grid, u, square).sqrt()
}

/// Returns the sum over all nodes of the quadrature weight times `value(line, i, u)`.
fn weighted(grid: &Grid, u: &[f64], mut value: impl FnMut(usize, usize, f64) -> f64) -> f64 {
    assert_eq!(u.len(), grid.n_nodes(), "one value for each node");
    let (nodes, d) = (grid.nodes(), grid.dimension());
    let width = |axis: usize, i: usize| {
        let at_side = !grid.periodic()[axis] && (i == 0 || i + 1 == nodes[axis]);
        grid.spacing()[axis] * if at_side { 0.5 } else { 1.0 }
    };
    let mut sum = 0.0;
    for (number, line) in u.chunks_exact(nodes[0]).enumerate() {
        let node = grid.node(0, number, 0);
        let measure: f64 = (1..d).map(|axis| width(axis, node[axis])).product();
        let along: f64 = line.iter().enumerate().map(|(i, &u)| width(0, i) * value(number, i, u)).sum();
        sum += measure * along;
    }
    sum
}

/// Checks that a point lies in the box.
///
/// # Errors
/// [`TimeError::Setting`] for a point outside.
pub fn check_point(grid: &Grid, point: &[f64]) -> Result<(), TimeError> {
    let d = grid.dimension();
    if point.len() != d {
        let message = format!("{} coordinates in {d} dimensions", point.len());
        return Err(TimeError::setting("point", message));
    }
    for (axis, coordinate) in point.iter().enumerate() {
        let (from, to) = (grid.lower()[axis], grid.upper()[axis]);
        if !(from..=to).contains(coordinate) {
            let message = format!("{point:?} lies outside the box, {from} to {to} along {}", AXES[axis]);
            return Err(TimeError::setting("point", message));
        }
    }
    Ok(())
}

/// Returns u at a point by cubic interpolation along each axis.
///
/// # Errors
/// [`TimeError::Setting`] when the point lies outside the box.
/// # Panics
/// When the length of `u` is not the number of nodes.
pub fn value_at(grid: &Grid, u: &[f64], point: &[f64]) -> Result<f64, TimeError> {
    assert_eq!(u.len(), grid.n_nodes(), "one value for each node");
    check_point(grid, point)?;
    let mut stencils = vec![vec![(0, 1.0)]; 3];
    for (axis, &coordinate) in point.iter().enumerate() {
        stencils[axis] = stencil(grid, axis, coordinate);
    }
    let mut sum = 0.0;
    for &(k, of_k) in &stencils[2] {
        for &(j, of_j) in &stencils[1] {
            for &(i, of_i) in &stencils[0] {
                sum += of_i * of_j * of_k * u[grid.index([i, j, k])];
            }
        }
    }
    Ok(sum)
}

/// Returns the nodes nearest to a coordinate and their Lagrange weights.
fn stencil(grid: &Grid, axis: usize, coordinate: f64) -> Vec<(usize, f64)> {
    let n = grid.nodes()[axis];
    let s = (coordinate - grid.lower()[axis]) / grid.spacing()[axis];
    let points = POINTS.min(n);
    let mut first = s.floor() as isize - (points as isize / 2 - 1);
    if !grid.periodic()[axis] {
        first = first.clamp(0, (n - points) as isize);
    }
    let weight = |p: usize| {
        let others = (0..points).filter(|&q| q != p);
        let factor = |q: usize| (s - (first + q as isize) as f64) / (p as f64 - q as f64);
        others.map(factor).product::<f64>()
    };
    let node = |p: usize| (first + p as isize).rem_euclid(n as isize) as usize;
    (0..points).map(|p| (node(p), weight(p))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(grid: &Grid, f: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        grid.all().map(|node| f(grid.point(node))).collect()
    }

    #[test]
    fn interpolation_is_exact_for_cubics_and_at_nodes() {
        let grid = Grid::new(&[5, 6, 7], &[0.0, -1.0, 2.0], &[1.0, 1.0, 3.0], &[false; 3]).unwrap();
        let cubic = |[x, y, z]: [f64; 3]| x.powi(3) - 2.0 * y * y * z + z.powi(3);
        let u = sampled(&grid, cubic);
        for point in [[0.0, -1.0, 2.0], [1.0, 1.0, 3.0], [0.13, 0.77, 2.9], [0.5, -0.01, 2.5]] {
            assert!((value_at(&grid, &u, &point).unwrap() - cubic(point)).abs() < 1e-12);
        }
        assert!(value_at(&grid, &u, &[1.1, 0.0, 2.0]).is_err() && value_at(&grid, &u, &[0.5]).is_err());
    }

    #[test]
    fn interpolation_goes_round_a_periodic_axis() {
        let grid = Grid::new(&[64, 3], &[0.0, 0.0], &[1.0, 1.0], &[true, false]).unwrap();
        let wave = |[x, y, _]: [f64; 3]| (2.0 * std::f64::consts::PI * x).cos() + y;
        let u = sampled(&grid, wave);
        for x in [0.0, 0.004, 0.995, 1.0] {
            assert!((value_at(&grid, &u, &[x, 0.3]).unwrap() - wave([x, 0.3, 0.0])).abs() < 1e-5);
        }
    }

    #[test]
    fn integrals_know_the_width_of_cells_at_sides() {
        let grid = Grid::new(&[9, 5], &[0.0, 0.0], &[2.0, 3.0], &[false, true]).unwrap();
        let u = sampled(&grid, |[x, ..]| x);
        assert!((integral(&grid, &u) - 6.0).abs() < 1e-14);
        assert!((l2_norm(&grid, &vec![2.0; 45]) - 24.0_f64.sqrt()).abs() < 1e-14);
        let exact = Expression::parse_in_time("x + t").unwrap();
        assert!((error_l2(&grid, &u, &exact, 0.5) - 0.5 * 6.0_f64.sqrt()).abs() < 1e-14);
    }
}
