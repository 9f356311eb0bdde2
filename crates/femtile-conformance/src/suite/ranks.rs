//! Several ranks on GPUs, held to one rank on a processor.

use femtile::comm::{Comm, measure_link, threads};
use femtile::device::{Buffer, Cuda};
use femtile::linalg::{LinalgError, Preconditioner};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile::multigrid::{
    BoxGrid, DistributedMultigrid, GeometricMultigrid, Multigrid, MultigridConfig, PostOrder, Slabs,
};
use femtile::solve::{Entry, NonlinearConfig, OperatorKind, Ranks, Silent, Stages, Value};
use femtile::{AmgOptions, DeviceChoice, Method, PmgOptions, Poisson, PreconditionerConfig, SolverConfig};

use super::Scope;

/// The difference that is accepted, as a share of the range of values, for a tolerance of 1e-12.
const ACCEPTED: f64 = 1e-8;

/// Solves a problem of all kinds of conditions by some ranks that share a GPU, and compares with one on a processor.
fn compare(device: &Cuda, problem: &Poisson<'_>, config: &SolverConfig, n_ranks: &[usize], what: &str) {
    let alone = SolverConfig { device: DeviceChoice::Cpu, ..config.clone() };
    let expected = problem.solve(&alone).unwrap();
    let range = expected.values().iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    for &n in n_ranks {
        let config =
            SolverConfig { ranks: Ranks::Threads(n), device: DeviceChoice::Cuda(0), ..config.clone() };
        let cpu = femtile::device::Cpu::new(1).unwrap();
        let mut silent = Silent;
        let mut stages = Stages::new(&mut silent);
        let opening = Some(device.clone().into());
        let found = problem.discretize().unwrap().solve(&cpu, &config, opening, &mut stages).unwrap();
        assert!(found.kernel_launches() > 0, "{what}: no kernel was launched");
        assert_eq!(found.ranks().map(|used| used.n_ranks), Some(n));
        let [iterations, of_one] = [&found, &expected].map(|solution| solution.outcome().iterations);
        // A matrix that one rank inverts takes it no iterations.
        let is_inverted = expected.values().len() < 2_000;
        let most = (5 * of_one).div_ceil(4) + 1;
        assert!(
            is_inverted || iterations <= most,
            "{what} on {n} ranks: {iterations} iterations of {of_one}"
        );
        println!(
            "{what}, {} nodes: {iterations} iterations on {n} ranks, {of_one} on one",
            found.values().len()
        );
        assert_eq!(found.n_components(), expected.n_components());
        for component in 0..found.n_components() {
            let [found, expected] =
                [&found, &expected].map(|solution| solution.component(component).values());
            for (node, (found, expected)) in found.iter().zip(expected).enumerate() {
                let is_near = (found - expected).abs() <= ACCEPTED * range;
                assert!(is_near, "{what} on {n} ranks, node {node} of {component}: {found} and {expected}");
            }
        }
    }
}

fn with_conditions(mesh: &Mesh) -> Poisson<'_> {
    let problem = Poisson::new(mesh).sigma("1 + x*y").lambda("0.2 + y").source("sin(3*x) + y");
    let problem = problem.robin("ymin", "1 + x", 2.0).unwrap().neumann("xmax", "y").unwrap();
    problem.dirichlet("xmin", "x + y*y").unwrap()
}

fn config(method: Method, preconditioner: PreconditionerConfig) -> SolverConfig {
    SolverConfig { method, preconditioner, tolerance: 1e-12, threads: 1, ..SolverConfig::default() }
}

/// Linear elements: rows of ranks, with a diagonal or multigrid over all ranks.
pub fn rows_of_ranks_solve_as_one(device: &Cuda, scope: &Scope) {
    let cells = if scope.has_every_kind { [23, 19, 17] } else { [4, 3, 5] };
    let mesh = box_mesh(&BoxConfig { cells, ..BoxConfig::default() }).unwrap();
    let problem = with_conditions(&mesh);
    let amg = || PreconditionerConfig::Amg(AmgOptions::default());
    let methods = [Method::Cg, Method::MergedCg, Method::PipelinedCg, Method::SStepCg { steps: 3 }];
    for method in methods {
        let config = config(method, PreconditionerConfig::Jacobi);
        compare(device, &problem, &config, &[2, 3], &format!("linear elements, {method:?}"));
    }
    compare(device, &problem, &config(Method::Cg, amg()), &[2, 3], "linear elements, amg");
    // One rank has a tile of rows, the other two, whose sums end in different numbers of addends.
    let uneven = box_mesh(&BoxConfig { cells: [13, 12, 22], ..BoxConfig::default() }).unwrap();
    compare(device, &with_conditions(&uneven), &config(Method::Cg, amg()), &[2], "uneven sums, amg");
    // Positive entries hide the direction of strong coupling.
    let sigma = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 0.05]];
    let sigma = Value::Tensor(sigma.map(|row| row.map(Entry::Number).to_vec()).to_vec());
    let skew = Poisson::new(&uneven).sigma(sigma).lambda(0.1).source("x - y");
    compare(device, &skew, &config(Method::Cg, amg()), &[2], "skew conductivity, amg");
    let floating = Poisson::new(&mesh).source("x - 0.5").neumann("all", 0.0).unwrap();
    compare(device, &floating, &config(Method::Cg, amg()), &[2], "linear elements that float, amg");
}

/// Operators without a matrix on the parts of ranks, with a diagonal or p-multigrid.
pub fn cells_of_ranks_solve_as_one(device: &Cuda, scope: &Scope) {
    let cells = if scope.has_every_kind { 9 } else { 2 };
    let solid = box_mesh(&BoxConfig {
        cells: [cells + 1, cells, cells],
        split: BoxSplit::Hexahedron,
        ..BoxConfig::default()
    });
    let plane = square(&SquareConfig {
        cells: [3 * cells, 2 * cells],
        split: SquareSplit::Quadrilateral,
        ..SquareConfig::default()
    });
    for (mesh, degree) in [(solid.unwrap(), 2), (plane.unwrap(), 3)] {
        let problem = with_conditions(&mesh).degree(degree);
        let pmg = PreconditionerConfig::Pmg(PmgOptions::default());
        for (method, preconditioner) in [
            (Method::Cg, PreconditionerConfig::Jacobi),
            (Method::MergedCg, PreconditionerConfig::Jacobi),
            (Method::Cg, pmg),
        ] {
            let what = format!("degree {degree}, {method:?}, {}", preconditioner.name());
            let config = config(method, preconditioner);
            let config = SolverConfig { operator: OperatorKind::MatrixFree, ..config };
            compare(device, &problem, &config, &[2], &what);
            if method == Method::Cg {
                let sources = ["x", "y - 0.5"].map(|text| Entry::Text(text.into()));
                let field = problem.clone().components(2).source(Value::Components(sources.to_vec()));
                compare(device, &field, &config, &[2], &format!("{what}, two components"));
            }
        }
    }
}

/// Coefficients that depend on u, on parts that GPUs assemble and on parts that the host assembles.
pub fn roots_of_ranks_are_those_of_one(device: &Cuda, scope: &Scope) {
    let n = if scope.has_every_kind { 14 } else { 4 };
    let solid = box_mesh(&BoxConfig { cells: [n, n - 1, n + 1], ..BoxConfig::default() }).unwrap();
    let split = SquareSplit::Quadrilateral;
    let plane = square(&SquareConfig { cells: [2 * n, n], split, ..SquareConfig::default() }).unwrap();
    for (mesh, degree) in [(&solid, 1), (&plane, 2)] {
        for sigma in ["1 + u^2", "1 + x"] {
            let problem = with_conditions(mesh).sigma(sigma).lambda("0.2 + u^2").degree(degree);
            let config = config(Method::Cg, PreconditionerConfig::Jacobi);
            let nonlinear = NonlinearConfig { tolerance: 1e-11, ..NonlinearConfig::default() };
            let config = SolverConfig { nonlinear, ..config };
            compare(device, &problem, &config, &[2], &format!("degree {degree}, sigma = {sigma}"));
        }
    }
}

/// Messages between two ranks, as `femtile devices` measures them.
pub fn links_have_costs(device: &Cuda, scope: &Scope) {
    if !scope.has_every_kind {
        return;
    }
    let costs = measure_link([device, device]).unwrap();
    assert!(costs.seconds > 0.0 && costs.bytes_per_second > 0.0, "{costs:?}");
}

/// Geometric multigrid on a box that is divided among ranks: a cycle is that of one rank on the same device.
pub fn box_cycles_of_ranks_are_those_of_one(device: &Cuda, scope: &Scope) {
    let (n, long) = if scope.has_every_kind { (16, 40) } else { (4, 16) };
    let widths = |n: usize| vec![1.0 / n as f64; n];
    let free = [[false, true], [true, false], [true, true]];
    let cubes = |degree| BoxGrid::new(degree, &[widths(n), widths(n), widths(long)]).unwrap();
    let squares = BoxGrid::new(2, &[widths(2 * n), widths(2 * long)]).unwrap();
    let graded: Vec<f64> = (0..long).map(|i| 1.0 + 0.01 * (i / 2) as f64).collect();
    let graded = BoxGrid::new(1, &[widths(n), widths(n), graded]).unwrap();
    for (name, grid, tolerance) in [
        ("cubes of degree 1", cubes(1), 1e-11),
        ("cubes of degree 2", cubes(2), 1e-11),
        ("cubes with free sides", cubes(2).with_free_sides(free).unwrap(), 1e-11),
        ("squares", squares.clone(), 1e-11),
        ("squares with free sides", squares.with_free_sides(free).unwrap(), 1e-11),
        // Ranks estimate the largest eigenvalue on their layers.
        ("graded cells", graded, 5e-3),
    ] {
        let counts: &[usize] = if scope.has_every_kind { &[2, 3] } else { &[2] };
        counts.iter().for_each(|&n_ranks| compare_cycles(device, name, &grid, tolerance, n_ranks));
    }
}

/// Compares a cycle of several ranks that share a GPU with that of one.
fn compare_cycles(device: &Cuda, name: &str, grid: &BoxGrid, tolerance: f64, n_ranks: usize) {
    let config = MultigridConfig { post: PostOrder::Reversed, ..MultigridConfig::default() };
    let whole = Multigrid::<f64, Cuda>::from_finest(device, grid, config).unwrap();
    let whole = GeometricMultigrid::from_multigrid(whole).unwrap();
    let b = grid.load(|[x, y, z]| (3.0 * x).sin() + y * z);
    let mut wanted = Buffer::zeros(device, b.len()).unwrap();
    whole.apply(&mut wanted, &Buffer::from_host(device, &b).unwrap()).unwrap();
    let wanted = wanted.to_host().unwrap();
    let range = wanted.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let of_rank = |comm: Comm| -> Result<(), LinalgError> {
        let comm = comm.with_gpu(device)?;
        let last = grid.dimension() - 1;
        let n_plane: usize = grid.nodes()[..last].iter().product();
        let slabs = Slabs::new(grid.widths(last).len(), n_ranks);
        let planes = slabs.planes(grid.degree(), comm.rank());
        let nodes: Vec<u32> =
            (n_plane * planes.start..n_plane * planes.end).map(|node| node as u32).collect();
        let of = (grid, &nodes[..]);
        let cycle = DistributedMultigrid::<f64, Cuda>::dividing(device, &comm, of, config, 100).unwrap();
        assert!(cycle.n_divided() > 0, "{name}");
        let own: Vec<f64> = nodes.iter().map(|&node| b[node as usize]).collect();
        let r = Buffer::from_vec(device, own)?;
        let mut z = Buffer::from_vec(device, vec![f64::NAN; nodes.len()])?;
        for _ in 0..2 {
            cycle.apply(&mut z, &r)?;
        }
        for (&node, found) in nodes.iter().zip(z.to_host()?) {
            let expected = wanted[node as usize];
            let is_near = (found - expected).abs() <= tolerance * range;
            assert!(is_near, "{name} on {n_ranks} ranks, node {node}: {found} and {expected}");
        }
        // Others read buffers of the cycle until their values have come.
        comm.all_gather(&[0_u8]).map(drop)
    };
    threads::run(n_ranks, of_rank, of_rank).unwrap();
}
