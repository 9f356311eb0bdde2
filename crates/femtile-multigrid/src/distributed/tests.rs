use femtile_comm::{Comm, threads};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, Preconditioner};

use super::{DistributedMultigrid, Slabs};
use crate::grid::BoxGrid;
use crate::{GeometricMultigrid, Multigrid, MultigridConfig, PostOrder, Smoother};

/// A right side, zero at Dirichlet nodes.
fn side(grid: &BoxGrid) -> Vec<f64> {
    let mut b: Vec<f64> = (0..grid.n_nodes()).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
    grid.clear_given(&mut b);
    b
}

/// The nodes of a rank, not in their order.
fn nodes(grid: &BoxGrid, comm: &Comm) -> Vec<u32> {
    let last = grid.dimension() - 1;
    let planes = Slabs::new(grid.widths(last).len(), comm.n_ranks()).planes(grid.degree(), comm.rank());
    let n: usize = grid.nodes()[..last].iter().product();
    (n * planes.start..n * planes.end).map(|node| node as u32).rev().collect()
}

/// The cycle of one rank, with the eigenvalues that several have estimated for divided levels.
fn of_one(
    grid: &BoxGrid,
    config: MultigridConfig,
    of_ranks: &DistributedMultigrid<f64, Cpu>,
    b: &[f64],
) -> Vec<f64> {
    let cpu = Cpu::new(1).unwrap();
    let mut whole = Multigrid::<f64, Cpu>::from_finest(&cpu, grid, config).unwrap();
    for (level, divided) in whole.levels.iter_mut().rev().zip(&of_ranks.levels) {
        let [own, found] = [&level.smoother, &divided.local.smoother].map(|smoother| smoother.largest());
        if let (Some(own), Some(found)) = (own, found) {
            assert!((found / own - 1.0).abs() < 0.05, "{own} {found}");
            level.smoother.set_largest(found);
        }
    }
    let whole = GeometricMultigrid::from_multigrid(whole).unwrap();
    let mut z = Buffer::zeros(&cpu, b.len()).unwrap();
    whole.apply(&mut z, &Buffer::from_host(&cpu, b).unwrap()).unwrap();
    z.to_host().unwrap()
}

/// The cycle of one rank, and the largest difference of that of several, with the number of divided levels.
fn compared(grid: &BoxGrid, config: MultigridConfig, n_ranks: usize) -> (f64, usize) {
    let b = side(grid);
    let of_rank = |comm: Comm| -> Result<(f64, usize), LinalgError> {
        let cpu = Cpu::new(1)?;
        let nodes = nodes(grid, &comm);
        let cycle = DistributedMultigrid::<f64, Cpu>::dividing(&cpu, &comm, (grid, &nodes), config, 200)
            .expect("levels");
        let wanted = of_one(grid, config, &cycle, &b);
        let largest = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let own: Vec<f64> = nodes.iter().map(|&node| b[node as usize]).collect();
        let r = Buffer::from_vec(&cpu, own)?;
        let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; nodes.len()])?;
        // Vectors of the first application must not matter.
        for _ in 0..2 {
            cycle.apply(&mut z, &r)?;
        }
        let difference = |(&node, z): (&u32, &f64)| (z - wanted[node as usize]).abs() / largest;
        let most = nodes
            .iter()
            .zip(z.as_slice())
            .map(difference)
            .fold(0.0, |most: f64, x| if x.is_nan() { x } else { most.max(x) });
        let all = comm.all_gather(&[most])?.into_iter().flatten();
        Ok((all.fold(0.0, |most: f64, x| if x.is_nan() { x } else { most.max(x) }), cycle.n_divided()))
    };
    let (most, n_divided) = threads::run(n_ranks, of_rank, |comm| of_rank(comm).map(drop)).unwrap();
    (most, n_divided)
}

#[test]
fn a_cycle_of_several_ranks_is_that_of_one() {
    let free = [[false, true], [true, false], [true, true]];
    let cubes = |degree, n: [usize; 3]| BoxGrid::new(degree, &n.map(|n| vec![1.0 / n as f64; n])).unwrap();
    let graded = |n: usize| (0..n).map(|i| 1.0 + 0.01 * (i / 2) as f64).collect::<Vec<f64>>();
    let squares = BoxGrid::new(2, &[vec![0.02; 24], vec![0.02; 40]]).unwrap();
    let grids = [
        ("cubes of degree 1", cubes(1, [8, 8, 36])),
        ("cubes of degree 2", cubes(2, [8, 4, 32])),
        ("cubes of degree 3 with free sides", cubes(3, [4, 4, 32]).with_free_sides(free).unwrap()),
        ("graded cells", BoxGrid::new(1, &[graded(8), graded(12), graded(36)]).unwrap()),
        ("squares", squares.clone()),
        ("squares with free sides", squares.with_free_sides(free).unwrap()),
        ("deformed cells", deformed(1, [8, 8, 36])),
        ("deformed cells of degree 2", deformed(2, [4, 6, 32])),
    ];
    let mut n_most = 0;
    for (name, grid) in &grids {
        for smoother in [Smoother::VertexPatch, Smoother::Chebyshev] {
            for post in [PostOrder::Reversed, PostOrder::Same] {
                for n_ranks in [1, 2, 3] {
                    let config = MultigridConfig { smoother, post };
                    let (most, n_divided) = compared(grid, config, n_ranks);
                    assert!(most < 1e-12, "{name}, {smoother:?}, {post:?}, {n_ranks} ranks: {most}");
                    assert!(n_ranks == 1 || n_divided > 0, "{name}, {n_ranks} ranks");
                    n_most = n_most.max(n_divided);
                }
            }
        }
    }
    assert!(n_most > 1, "some grid has several divided levels");
}

/// A box of cells that are not rectangles, with coefficients that differ.
fn deformed(degree: usize, n: [usize; 3]) -> BoxGrid {
    let corners = crate::grid::all(n.map(|n| n + 1)).map(|at| {
        let [x, y, z] = [0, 1, 2].map(|axis| at[axis] as f64 / n[axis] as f64);
        [x + 0.05 * y * z, y + 0.03 * (3.0 * x).sin(), z + 0.04 * x * y]
    });
    let coefficients = crate::grid::all(n).map(|at| 1.0 + (at[2] % 3) as f64);
    BoxGrid::mapped(degree, &n, corners.collect(), coefficients.collect()).unwrap()
}

#[test]
fn others_nodes_are_refused() {
    let grid = BoxGrid::unit(2, 1, 16).unwrap();
    let of_rank = |comm: Comm| -> Result<bool, LinalgError> {
        let cpu = Cpu::new(1)?;
        let mut nodes = nodes(&grid, &comm);
        if comm.rank() == 1 {
            nodes.pop();
        }
        let config = MultigridConfig::default();
        Ok(DistributedMultigrid::<f32, Cpu>::new(&cpu, &comm, (&grid, &nodes), config).is_err())
    };
    assert!(threads::run(2, of_rank, |comm| of_rank(comm).map(|refused| assert!(refused))).unwrap());
}
