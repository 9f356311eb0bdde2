use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};

use super::*;
use crate::{Method, Poisson, Progress, SolverConfig};

fn solid() -> Mesh {
    let mut mesh = box_mesh(&BoxConfig { cells: [7, 5, 6], ..BoxConfig::default() }).unwrap();
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(cell % 3 == 0)).collect();
    mesh
}

fn plane() -> Mesh {
    square(&SquareConfig { cells: [13, 9], ..SquareConfig::default() }).unwrap()
}

fn config(ranks: usize) -> SolverConfig {
    SolverConfig {
        ranks: Ranks::Threads(ranks),
        preconditioner: PreconditionerConfig::Jacobi,
        tolerance: 1e-13,
        device: DeviceChoice::Cpu,
        threads: 2,
        ..SolverConfig::default()
    }
}

/// Problems with every kind of condition and coefficient.
fn problems<'m>(mesh: &'m Mesh) -> Vec<Poisson<'m>> {
    let by_tag = || crate::Value::by_tag([("0", 1.0), ("1", 20.0)]);
    let tagged = !mesh.cell_tags.is_empty();
    let sigma = || if tagged { by_tag() } else { "1 + x*y".into() };
    let plain = || Poisson::new(mesh).sigma(sigma()).source("sin(3*x) + y");
    let held = plain().dirichlet("xmin", "y*y").unwrap();
    let mixed = plain()
        .neumann("xmax", "y")
        .unwrap()
        .robin("ymin", "1 + x", 2.0)
        .unwrap()
        .dirichlet("xmin", "x + y")
        .unwrap()
        .dirichlet("ymax", "1 - x")
        .unwrap();
    let reacting = plain().lambda("0.5 + x").neumann("all", 0.25).unwrap();
    let exchange = plain().robin("xmax", 3.0, "y").unwrap();
    let at_nodes = plain().dirichlet_at_nodes("x < 1e-9 && y < 0.5", 2.0).unwrap();
    let open = Poisson::new(mesh).neumann("xmin", -1.0).unwrap().neumann("xmax", 1.0).unwrap();
    vec![held, mixed, reacting, exchange, at_nodes, open]
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

fn assert_same(found: &[f64], expected: &[f64], tolerance: f64, name: &str) {
    let size = largest(expected);
    for (node, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * size, "{name}, node {node}: {found} and {expected}");
    }
}

#[test]
fn a_solution_does_not_depend_on_the_number_of_ranks() {
    for mesh in [plane(), solid()] {
        for (number, problem) in problems(&mesh).iter().enumerate() {
            let alone = problem.solve(&SolverConfig { ranks: Ranks::One, ..config(1) }).unwrap();
            assert!(alone.has_converged(), "{number}");
            for n in [1, 2, 3, 4, 7] {
                for partitioner in [Partitioner::Bisection, Partitioner::Hilbert] {
                    let found = problem.solve(&SolverConfig { partitioner, ..config(n) }).unwrap();
                    let name = format!("problem {number}, {n} ranks, {}", mesh.kind);
                    assert!(found.has_converged(), "{name}");
                    let [found_its, expected_its] =
                        [&found, &alone].map(|solution| solution.outcome().iterations);
                    assert!(found_its.abs_diff(expected_its) <= 1, "{name}: {found_its} and {expected_its}");
                    assert_same(found.values(), alone.values(), 1e-10, &name);
                    let used = found.ranks().unwrap();
                    assert_eq!((used.n_ranks, used.partitioner), (n, partitioner));
                    assert!(used.quality.most_cells - used.quality.fewest_cells <= 1);
                }
            }
        }
    }
}

#[test]
fn a_solution_does_not_depend_on_the_partition() {
    let mesh = solid();
    let problem = &problems(&mesh)[1];
    let alone = problem.solve(&SolverConfig { ranks: Ranks::One, ..config(1) }).unwrap();
    let (n, cpu) = (mesh.n_cells(), Cpu::new(1).unwrap());
    // Dealt out in turn, at random, one cell for most ranks, ranks without any.
    let dealt: Vec<u32> = (0..n as u32).map(|cell| cell % 3).collect();
    let mut state = 12345u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    let random: Vec<u32> = (0..n).map(|_| random() % 4).collect();
    let single: Vec<u32> = (0..n as u32).map(|cell| if cell < 4 { cell } else { 4 }).collect();
    let without: Vec<u32> = (0..n).map(|cell| if cell < n / 2 { 1 } else { 3 }).collect();
    for (name, ranks, n_ranks) in
        [("dealt", dealt, 3), ("random", random, 4), ("single", single, 5), ("without", without, 5)]
    {
        let partition = Partition::new(ranks, n_ranks).unwrap();
        let discretization = problem.discretize().unwrap();
        let mut progress = Silent;
        let mut stages = Stages::new(&mut progress);
        let found =
            solve_divided(discretization, &partition, &cpu, (&config(n_ranks), "test"), &mut stages).unwrap();
        assert!(found.has_converged(), "{name}");
        assert_same(found.values(), alone.values(), 1e-10, name);
    }
}

#[test]
fn a_few_cells_are_enough_for_many_ranks() {
    let mesh = square(&SquareConfig { cells: [1, 1], ..SquareConfig::default() }).unwrap();
    let problem = Poisson::new(&mesh).source(1.0).dirichlet("xmin", "y").unwrap();
    let alone = problem.solve(&SolverConfig { ranks: Ranks::One, ..config(1) }).unwrap();
    let found = problem.solve(&config(9)).unwrap();
    assert_same(found.values(), alone.values(), 1e-12, "two triangles");
    assert_eq!(found.ranks().unwrap().quality.fewest_cells, 0);
}

#[test]
fn every_method_runs_on_several_ranks() {
    let mesh = solid();
    let problem = &problems(&mesh)[1];
    for method in [
        Method::Cg,
        Method::MergedCg,
        Method::PipelinedCg,
        Method::SStepCg { steps: 3 },
        Method::Gmres { restart: 60 },
    ] {
        for preconditioner in [PreconditionerConfig::Jacobi, PreconditionerConfig::None] {
            let of = |ranks| SolverConfig {
                method,
                preconditioner: preconditioner.clone(),
                tolerance: 1e-10,
                ranks,
                ..config(1)
            };
            let alone = problem.solve(&of(Ranks::One)).unwrap();
            let found = problem.solve(&of(Ranks::Threads(3))).unwrap();
            let name = format!("{} {}", method.name(), preconditioner.name());
            assert!(found.has_converged(), "{name}");
            let [found_its, expected_its] = [&found, &alone].map(|solution| solution.outcome().iterations);
            assert!(found_its.abs_diff(expected_its) <= 3, "{name}: {found_its} and {expected_its}");
            assert_same(found.values(), alone.values(), 1e-7, &name);
        }
    }
}

#[test]
fn what_one_rank_refuses_several_refuse_with_the_same_words() {
    let mesh = solid();
    let unbalanced = Poisson::new(&mesh).source(1.0);
    let negative = Poisson::new(&mesh).sigma("0.3 - x").dirichlet("all", 0.0).unwrap();
    let two = Mesh::new(
        vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [5.0, 0.0, 0.0], [6.0, 0.0, 0.0], [5.0, 1.0, 0.0]],
        femtile_mesh::CellKind::Triangle,
        vec![0, 1, 2, 3, 4, 5],
    )
    .unwrap();
    let floating = Poisson::new(&two).dirichlet("x < 3", 0.0).unwrap();
    for problem in [&unbalanced, &negative, &floating] {
        let alone = problem.solve(&SolverConfig { ranks: Ranks::One, ..config(1) }).unwrap_err().to_string();
        let found = problem.solve(&config(2)).unwrap_err().to_string();
        let begin = |text: &str| text.chars().take(12).collect::<String>();
        assert_eq!(begin(&alone), begin(&found), "{alone}\n{found}");
    }
}

#[test]
fn what_several_ranks_cannot_do_is_refused() {
    let mesh = solid();
    let problem = || Poisson::new(&mesh).source(1.0).dirichlet("all", 0.0).unwrap();
    let error = |problem: Poisson<'_>, config: SolverConfig| problem.solve(&config).unwrap_err().to_string();
    let cuda = SolverConfig { device: DeviceChoice::Cuda(0), ..config(2) };
    assert!(error(problem(), cuda).contains("compute on processors"));
    assert!(error(problem().sigma("1 + u*u"), config(2)).contains("a coefficient depends on u"));
    assert!(error(problem(), config(0)).contains("0 ranks"));
    let of_cubes = BoxConfig { cells: [2, 2, 2], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let cubes = box_mesh(&of_cubes).unwrap();
    let of_cubes = Poisson::new(&cubes).source(1.0).dirichlet("all", 0.0).unwrap();
    assert!(error(of_cubes, config(2)).contains("linear elements"));
}

/// Asks for a stop in an iteration.
struct StopAt(usize, usize);

impl Progress for StopAt {
    fn iteration(&mut self, iteration: usize, _: f64, _: f64) {
        self.1 = iteration;
    }

    fn is_interrupted(&self) -> bool {
        self.1 >= self.0
    }
}

#[test]
fn all_ranks_stop_together() {
    let mesh = solid();
    let problem = &problems(&mesh)[1];
    let stopped = problem.solve_with(&config(3), &mut StopAt(5, 0)).unwrap();
    assert_eq!(stopped.outcome().stop, femtile_linalg::krylov::Stop::Interrupted);
    assert!((8..20).contains(&stopped.outcome().iterations), "{}", stopped.outcome().iterations);
    let over = SolverConfig { time_limit: Some(std::time::Duration::ZERO), ..config(3) };
    let over = problem.solve(&over).unwrap();
    assert_eq!(over.outcome().stop, femtile_linalg::krylov::Stop::TimeLimit);
}

/// Iterations with algebraic multigrid are those of one rank, but for a few at the borders.
#[test]
fn multigrid_takes_about_as_many_iterations_as_on_one_rank() {
    let mesh = box_mesh(&BoxConfig { cells: [24, 24, 24], ..BoxConfig::default() }).unwrap();
    let held = Poisson::new(&mesh).sigma("1 + x").source("y").dirichlet("xmin", 1.0).unwrap();
    let open = Poisson::new(&mesh).neumann("xmin", -1.0).unwrap().neumann("xmax", 1.0).unwrap();
    for (name, problem) in [("held", &held), ("open", &open)] {
        for precision in [LevelPrecision::F32, LevelPrecision::F64] {
            let of = |ranks| {
                let preconditioner =
                    PreconditionerConfig::Amg(AmgOptions { precision, ..AmgOptions::default() });
                SolverConfig { ranks, preconditioner, tolerance: 1e-10, ..config(1) }
            };
            let alone = problem.solve(&of(Ranks::One)).unwrap();
            for n in [1, 2, 3, 5] {
                let found = problem.solve(&of(Ranks::Threads(n))).unwrap();
                assert!(found.has_converged(), "{name}");
                let [found_its, expected_its] =
                    [&found, &alone].map(|solution| solution.outcome().iterations);
                assert!(
                    found_its as f64 <= 1.25 * expected_its as f64 + 1.0,
                    "{name}: {found_its} and {expected_its}"
                );
                assert_same(found.values(), alone.values(), 1e-7, name);
                assert_eq!(found.levels()[0].n_rows, mesh.n_nodes());
            }
        }
    }
}
