//! Full multigrid with point Gauss–Seidel, for Table 3.

use femtile::device::{Buffer, Cpu};
use femtile::element::quadrature::gauss_legendre;
use femtile::element::tensor::{Lagrange, Table};
use femtile::multigrid::{BoxGrid, BoxKernels, PostOrder};
use femtile_bench::BenchError;

type Vector = Buffer<f64, Cpu>;

/// Levels of cubes with equal cells, the coarsest first.
pub(super) struct PointMultigrid {
    cpu: Cpu,
    levels: Vec<Level>,
    coarsest: <Cpu as BoxKernels<f64>>::BoxSmoother,
    post: PostOrder,
}

struct Level {
    grid: BoxGrid,
    operator: <Cpu as BoxKernels<f64>>::Operator,
    /// The transfer to the cells halved.
    transfer: <Cpu as BoxKernels<f64>>::BoxTransfer,
    /// Mass and stiffness of each axis.
    axes: [[Table; 2]; 3],
}

impl PointMultigrid {
    /// Sets up `n_levels` levels of cubes, as `Multigrid::new`.
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, n_levels: usize, post: PostOrder) -> Result<Self, BenchError> {
        let finer = |grid: &BoxGrid| Some(grid.refined());
        let grids = std::iter::successors(Some(coarse.clone()), finer).take(n_levels);
        let level = |grid: BoxGrid| -> Result<Level, BenchError> {
            Ok(Level {
                operator: cpu.box_operator(&grid)?,
                transfer: cpu.box_transfer(&grid, &grid.refined())?,
                axes: [0, 1, 2].map(|axis| matrices(grid.degree(), grid.widths(axis))),
                grid,
            })
        };
        let (levels, coarsest) = (grids.map(level).collect::<Result<_, _>>()?, cpu.box_coarsest(coarse)?);
        Ok(Self { cpu: cpu.clone(), levels, coarsest, post })
    }

    /// Returns the cycles on the finest level until the residual of f = 1 has fallen by `tolerance`; none if more than
    /// `most` are needed.
    pub fn cycles(&self, tolerance: f64, most: usize) -> Result<Option<usize>, BenchError> {
        let finest = self.levels.len() - 1;
        let b = Buffer::from_vec(&self.cpu, self.levels[finest].grid.load_of_product(|_, _| 1.0))?;
        let norm = |x: &Vector| x.as_slice().iter().map(|x| x * x).sum::<f64>().sqrt();
        let (mut x, mut r) = (self.start(finest, &b)?, Buffer::zeros(&self.cpu, b.len())?);
        for cycles in 0..=most {
            self.cpu.box_residual(&self.levels[finest].operator, &mut r, &b, &x)?;
            if norm(&r) <= tolerance * norm(&b) {
                return Ok(Some(cycles));
            }
            self.cycle(finest, &mut x, &b)?;
        }
        Ok(None)
    }

    /// Returns the start on a level: the solution of full multigrid on the coarser levels.
    fn start(&self, level: usize, b: &Vector) -> Result<Vector, BenchError> {
        let mut x = Buffer::zeros(&self.cpu, b.len())?;
        if let Some(below) = level.checked_sub(1) {
            let Level { grid, transfer, .. } = &self.levels[below];
            let mut side = Buffer::zeros(&self.cpu, grid.n_nodes())?;
            self.cpu.box_restrict(transfer, &mut side, b)?;
            let mut coarse = self.start(below, &side)?;
            self.cycle(below, &mut coarse, &side)?;
            self.cpu.box_prolongate(transfer, &mut x, &coarse)?;
        }
        Ok(x)
    }

    /// Runs a V-cycle from a level on.
    fn cycle(&self, level: usize, x: &mut Vector, b: &Vector) -> Result<(), BenchError> {
        let Some(below) = level.checked_sub(1) else {
            return Ok(self.cpu.box_smooth(&self.coarsest, x, b, PostOrder::Same)?);
        };
        let Level { grid, transfer, .. } = &self.levels[below];
        let zeros = || Buffer::zeros(&self.cpu, grid.n_nodes());
        let (mut coarse, mut side) = (zeros()?, zeros()?);
        self.levels[level].smooth(x.as_mut_slice(), b.as_slice(), PostOrder::Same);
        self.cpu.box_restrict_residual(transfer, &mut side, b, x)?;
        self.cycle(below, &mut coarse, &side)?;
        self.cpu.box_prolongate(transfer, x, &coarse)?;
        self.levels[level].smooth(x.as_mut_slice(), b.as_slice(), self.post);
        Ok(())
    }
}

impl Level {
    /// Applies one sweep in the order of nodes, or reversed.
    fn smooth(&self, x: &mut [f64], b: &[f64], order: PostOrder) {
        let n = self.grid.nodes();
        let inside = |n: usize| 1..n - 1;
        let rows = inside(n[2]).flat_map(|z| inside(n[1]).map(move |y| [y, z]));
        let mut nodes: Vec<[usize; 3]> =
            rows.flat_map(|[y, z]| inside(n[0]).map(move |x| [x, y, z])).collect();
        if order == PostOrder::Reversed {
            nodes.reverse();
        }
        nodes.into_iter().for_each(|at| self.relax(x, b, at));
    }

    fn relax(&self, x: &mut [f64], b: &[f64], at: [usize; 3]) {
        let [n, m, _] = self.grid.nodes();
        let k = self.grid.degree();
        // Nodes of the cells of a node.
        let near = |axis: usize| {
            let first = (at[axis] - 1) / k * k;
            first..(at[axis] / k + 1) * k + 1
        };
        let row = |axis: usize, which: usize| self.axes[axis][which].row(at[axis]);
        let [[mx, kx], [my, ky], [mz, kz]] = [0, 1, 2].map(|axis| [0, 1].map(|which| row(axis, which)));
        let node = (at[2] * m + at[1]) * n + at[0];
        let (mut product, mut diagonal) = (0.0, 0.0);
        for (l, j) in near(2).flat_map(|l| near(1).map(move |j| (l, j))) {
            for i in near(0) {
                let entry = (kx[i] * my[j] + mx[i] * ky[j]) * mz[l] + mx[i] * my[j] * kz[l];
                let column = (l * m + j) * n + i;
                product += entry * x[column];
                if column == node {
                    diagonal = entry;
                }
            }
        }
        x[node] += (b[node] - product) / diagonal;
    }
}

/// Returns mass and stiffness of cells of these widths.
fn matrices(degree: usize, widths: &[f64]) -> [Table; 2] {
    let lagrange = Lagrange::gauss_lobatto(degree);
    let (points, weights) = gauss_legendre(degree + 1);
    let of_cell = [lagrange.values(&points), lagrange.slopes(&points)].map(|table| table.gram(&weights));
    let n = degree * widths.len() + 1;
    [0, 1].map(|which| {
        let mut entries = vec![0.0; n * n];
        for (cell, width) in widths.iter().enumerate() {
            let scale = if which == 0 { *width } else { 1.0 / width };
            for (i, j) in (0..=degree).flat_map(|i| (0..=degree).map(move |j| (i, j))) {
                entries[(degree * cell + i) * n + degree * cell + j] += scale * of_cell[which].row(i)[j];
            }
        }
        Table { n_points: n, n_shapes: n, entries }
    })
}

#[cfg(test)]
mod tests {
    use femtile::multigrid::{Multigrid, MultigridConfig, Smoother};

    use super::*;

    #[test]
    fn points_need_at_least_twice_the_cycles_of_patches() {
        let cpu = Cpu::new(1).unwrap();
        for degree in [2, 3] {
            let coarse = BoxGrid::unit(3, degree, 2).unwrap();
            let config = MultigridConfig { smoother: Smoother::VertexPatch, post: PostOrder::Same };
            let patches = Multigrid::<f64>::new(&cpu, &coarse, 2, config).unwrap();
            let b = Buffer::from_vec(&cpu, patches.grid().load(|_| 1.0)).unwrap();
            let mut x = Buffer::zeros(&cpu, b.len()).unwrap();
            let of_patches = patches.solve_full(&mut x, &b, 1e-9, 60).unwrap().cycles();
            let points = PointMultigrid::new(&cpu, &coarse, 2, PostOrder::Same).unwrap();
            let of_points = points.cycles(1e-9, 60).unwrap().unwrap();
            assert!(of_points >= 2 * of_patches, "degree {degree}: {of_points}, {of_patches}");
        }
    }

    #[test]
    fn a_sweep_leaves_a_solution_as_it_is() {
        let cpu = Cpu::new(1).unwrap();
        let points = PointMultigrid::new(&cpu, &BoxGrid::unit(3, 3, 2).unwrap(), 2, PostOrder::Same).unwrap();
        let level = &points.levels[1];
        let (nodes, n) = (level.grid.nodes(), level.grid.n_nodes());
        let is_inside = |at: usize| {
            [at % nodes[0], at / nodes[0] % nodes[1], at / (nodes[0] * nodes[1])]
                .iter()
                .zip(nodes)
                .all(|(&at, n)| at > 0 && at + 1 < n)
        };
        let value = |i: usize| if is_inside(i) { (i * 7919 % 1009) as f64 / 1009.0 } else { 0.0 };
        let x = Buffer::from_vec(&cpu, (0..n).map(value).collect()).unwrap();
        let (zero, mut b) = (Buffer::zeros(&cpu, n).unwrap(), Buffer::zeros(&cpu, n).unwrap());
        cpu.box_residual(&level.operator, &mut b, &zero, &x).unwrap();
        let b: Vec<f64> = b.as_slice().iter().map(|b| -b).collect();
        for order in [PostOrder::Same, PostOrder::Reversed] {
            let mut found = x.as_slice().to_vec();
            level.smooth(&mut found, &b, order);
            assert!(found.iter().zip(x.as_slice()).all(|(found, x)| (found - x).abs() < 1e-12));
        }
    }
}
