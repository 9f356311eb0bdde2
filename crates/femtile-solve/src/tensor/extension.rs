//! Lifting: extension of Dirichlet values into a box.
//!
//! Values are lifted level by level on the CPU, for the nested iteration of `start.rs`.

use femtile_device::parallel;
use femtile_multigrid::BoxGrid;

/// Rows of a table of one axis: for each output the first input and the factors from there on.
type Rows = Vec<(usize, Vec<f64>)>;

/// Extends Dirichlet values on sides into the finest grid: on each grid, from the coarsest on, values are
/// interpolated from the next coarser one, and Dirichlet values inserted.
///
/// Coarse grids approximate the difference between a solution and this extension as well as the solution,
/// even if Dirichlet values jump. An extension by zero would have a layer of one cell. `given` is zero at
/// other nodes.
///
/// # Cost
/// One product with a narrow matrix along each axis per node and grid, twice.
/// # Shapes
/// `given`: one value per node of the finest grid.
pub(super) fn extension(grids: &[BoxGrid], lagrange: &Interpolation, given: Vec<f64>) -> Vec<f64> {
    let mut sides = vec![given];
    for pair in grids.windows(2).rev() {
        let finer = &sides[sides.len() - 1];
        let mut coarser = along_axes(finer, &pair[1], &pair[0], |factor| lagrange.down(factor));
        (0..coarser.len()).filter(|&at| !is_given(&pair[0], at)).for_each(|at| coarser[at] = 0.0);
        sides.push(coarser);
    }
    let mut values = sides.pop().unwrap_or_default();
    for pair in grids.windows(2) {
        values = along_axes(&values, &pair[0], &pair[1], |factor| lagrange.up(factor));
        let Some(side) = sides.pop() else { break };
        parallel::for_chunks_mut(&mut values, 4096, |begin, values| {
            let of_sides = (begin..).zip(values).filter(|(at, _)| is_given(&pair[1], *at));
            of_sides.for_each(|(at, value)| *value = side[at]);
        });
    }
    values
}

/// Returns whether a node of a grid lies on a Dirichlet side.
fn is_given(grid: &BoxGrid, at: usize) -> bool {
    let (nodes, free) = (grid.nodes(), grid.free_sides());
    let place = [at % nodes[0], at / nodes[0] % nodes[1], at / (nodes[0] * nodes[1])];
    (0..grid.dimension()).any(|axis| {
        let [low, high] = free[axis];
        (place[axis] == 0 && !low) || (place[axis] + 1 == nodes[axis] && !high)
    })
}

/// Interpolation between a cell and its halves.
pub(super) struct Interpolation {
    degree: usize,
    /// Interpolation factors from the nodes of the cell to those of each half.
    halves: Vec<Vec<f64>>,
    /// For each node of the cell, the half that contains it and the factors from the nodes of that half.
    whole: Vec<(usize, Vec<f64>)>,
}

impl Interpolation {
    /// Makes the interpolation for elements of the degree of a space.
    pub fn of(space: &femtile_space::TensorSpace<'_>) -> Self {
        let (degree, lagrange) = (space.degree(), space.shapes());
        let nodes = lagrange.nodes().to_vec();
        let factors = |x: f64| lagrange.values(&[x]).entries;
        let halves = (0..=2 * degree).map(|i| {
            let (half, node) = if i == 2 * degree { (1, degree) } else { (i / degree, i % degree) };
            factors(0.5 * (nodes[node] + half as f64))
        });
        let whole = nodes.iter().map(|&x| {
            let half = usize::from(x > 0.5);
            (half, factors(2.0 * x - half as f64))
        });
        Self { degree, halves: halves.collect(), whole: whole.collect() }
    }

    /// Returns the interpolation from `cells` cells to their halves.
    fn up(&self, cells: usize) -> Rows {
        let p = self.degree;
        let row = |at: usize| {
            let cell = (at / (2 * p)).min(cells - 1);
            (cell * p, self.halves[at - 2 * p * cell].clone())
        };
        (0..=2 * p * cells).map(row).collect()
    }

    /// Returns the interpolation from halves to `cells` cells.
    fn down(&self, cells: usize) -> Rows {
        let p = self.degree;
        let row = |at: usize| {
            let cell = (at / p).min(cells - 1);
            let (half, factors) = &self.whole[at - p * cell];
            ((2 * cell + half) * p, factors.clone())
        };
        (0..=p * cells).map(row).collect()
    }
}

/// Applies tables along the axes along which two grids differ; `rows` takes the cells of the coarser one.
fn along_axes(x: &[f64], from: &BoxGrid, to: &BoxGrid, rows: impl Fn(usize) -> Rows) -> Vec<f64> {
    let (mut nodes, target) = (from.nodes(), to.nodes());
    let mut values = x.to_vec();
    for axis in 0..from.dimension() {
        if nodes[axis] != target[axis] {
            let rows = rows(from.widths(axis).len().min(to.widths(axis).len()));
            values = along(&values, nodes, axis, &rows);
            nodes[axis] = target[axis];
        }
    }
    values
}

/// Applies a table along an axis.
fn along(x: &[f64], nodes: [usize; 3], axis: usize, rows: &Rows) -> Vec<f64> {
    let inner: usize = nodes[..axis].iter().product();
    let outer: usize = nodes[axis + 1..].iter().product();
    let mut y = vec![0.0; inner * rows.len() * outer];
    let rows_per_piece = 1 + 4096 / inner;
    parallel::for_chunks_mut(&mut y, inner * rows_per_piece, |begin, y| {
        for (row, y) in (begin / inner..).zip(y.chunks_mut(inner)) {
            let (first, factors) = &rows[row % rows.len()];
            for (k, factor) in factors.iter().enumerate() {
                let x = &x[(row / rows.len() * nodes[axis] + first + k) * inner..];
                y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
            }
        }
    });
    y
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
    use femtile_space::TensorSpace;

    use super::*;

    /// Grids of a degree, the coarsest first, with one free side.
    fn grids(degree: usize) -> Vec<BoxGrid> {
        let widths = [vec![0.1; 8], vec![0.1; 12], vec![0.3; 2]];
        let free = [[false; 2], [false, true], [false; 2]];
        let finest = BoxGrid::new(degree, &widths).unwrap().with_free_sides(free).unwrap();
        let mut grids: Vec<_> = std::iter::successors(Some(finest), BoxGrid::coarsened).collect();
        grids.reverse();
        assert!(grids.len() > 2);
        grids
    }

    fn interpolation(degree: usize) -> Interpolation {
        let config = BoxConfig { cells: [1; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        Interpolation::of(&TensorSpace::new(&box_mesh(&config).unwrap(), degree).unwrap())
    }

    /// Any values.
    fn values(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.5).collect()
    }

    #[test]
    fn what_is_interpolated_to_halves_and_back_is_the_same() {
        for degree in [1, 2, 5] {
            let (grids, interpolation) = (grids(degree), interpolation(degree));
            for pair in grids.windows(2) {
                let coarse = values(pair[0].n_nodes());
                let fine = along_axes(&coarse, &pair[0], &pair[1], |cells| interpolation.up(cells));
                assert_eq!(fine.len(), pair[1].n_nodes());
                let back = along_axes(&fine, &pair[1], &pair[0], |cells| interpolation.down(cells));
                let same = back.iter().zip(&coarse).all(|(back, value)| (back - value).abs() < 1e-12);
                assert!(same, "degree {degree}");
            }
        }
    }

    #[test]
    fn extensions_have_the_given_values_and_are_bounded_by_them() {
        for degree in [1, 3] {
            let (grids, interpolation) = (grids(degree), interpolation(degree));
            let finest = grids.last().unwrap();
            let given = |at: usize| is_given(finest, at);
            let n_given = (0..finest.n_nodes()).filter(|&at| given(at)).count();
            assert_eq!(n_given, finest.n_nodes() - finest.n_unknowns());
            let side: Vec<f64> = (0..finest.n_nodes()).map(|at| f64::from(u8::from(given(at)))).collect();
            let extended = extension(&grids, &interpolation, side);
            for (at, value) in extended.iter().enumerate() {
                assert!(!given(at) || *value == 1.0, "degree {degree}, node {at}: {value}");
                assert!(value.abs() < 2.0, "degree {degree}, node {at}: {value}");
            }
            // Values next to a side follow those on it.
            let [n, m, _] = finest.nodes();
            let middle = (n * m) * degree + n * (m / 2);
            assert!((extended[middle + 1] - 1.0).abs() < 0.8, "{}", extended[middle + 1]);
        }
    }
}
