mod boxes;
mod components;
mod in_time;
mod in_time_on_parts;
mod nonlinear;
mod parts;
mod scattered;

use femtile_mesh::Mesh;
use femtile_mesh::generate::{
    BoxConfig, BoxSplit, HexahedralBallConfig, SquareConfig, SquareSplit, box_mesh, hexahedral_ball, square,
};
use femtile_mesh::partition::Partitioner;

use super::*;
use crate::{AmgOptions, LevelPrecision, Method, Poisson, Progress, SolverConfig};

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
    // Above the rounding level, so that no solve is continued after the acceptance tests.
    let config = |n| SolverConfig { tolerance: 1e-12, ..config(n) };
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
                    assert_eq!((used.n_ranks, used.partition), (n, partitioner.name()));
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
        let division = ReplicatedPartition::of(&discretization, partition, &config(n_ranks)).unwrap();
        let mesh = MeshOfRanks::Replicated(Box::new(division));
        let found = solve_divided(
            (discretization, None),
            mesh,
            (&cpu, None),
            (&config(n_ranks), "test"),
            &mut stages,
        )
        .unwrap();
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
    let cuda = |ranks| SolverConfig { device: DeviceChoice::Cuda(4095), ..config(ranks) };
    assert!(error(problem(), cuda(1)).contains("`Ranks::One`"));
    assert!(error(problem(), cuda(2)).contains("cuda:4095"));
    assert!(error(problem(), config(0)).contains("0 ranks"));
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

fn cubes() -> Mesh {
    let of = BoxConfig { cells: [4, 3, 5], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let mut mesh = box_mesh(&of).unwrap();
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(cell % 3 == 0)).collect();
    mesh
}

fn squares() -> Mesh {
    let of = SquareConfig { cells: [7, 5], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
    square(&of).unwrap()
}

/// Cells in blocks that meet at odd corners, with curved sides.
fn round() -> Mesh {
    hexahedral_ball(&HexahedralBallConfig { cells: 2, layers: 2, ..HexahedralBallConfig::default() }).unwrap()
}

/// Every cell has its corners named from another one on, so axes and orders of neighbours differ.
fn turned(mesh: Mesh) -> Mesh {
    let turns: [[usize; 8]; 3] =
        [[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 0, 5, 6, 7, 4], [4, 0, 3, 7, 5, 1, 2, 6]];
    let cells =
        mesh.cells.chunks(8).enumerate().flat_map(|(i, cell)| turns[i % 3].map(|corner| cell[corner]));
    Mesh { cells: cells.collect(), ..mesh.clone() }
}

#[test]
fn a_solution_of_any_degree_does_not_depend_on_the_number_of_ranks() {
    for (mesh, degrees) in [(squares(), [1, 3]), (cubes(), [1, 2]), (turned(cubes()), [3, 4])] {
        for (number, problem) in problems(&mesh).into_iter().enumerate() {
            for degree in degrees {
                let problem = problem.clone().degree(degree);
                // The last one leaves a constant open, of which rounding errors add up.
                let tolerance = if number == 5 { 1e-11 } else { 1e-12 };
                let of = |ranks| SolverConfig { ranks, tolerance, ..config(1) };
                let alone = problem.solve(&of(Ranks::One)).unwrap();
                for (n, partitioner) in [(2, Partitioner::Bisection), (3, Partitioner::Hilbert)] {
                    let found =
                        problem.solve(&SolverConfig { partitioner, ..of(Ranks::Threads(n)) }).unwrap();
                    let name = format!("problem {number} of degree {degree}, {n} ranks, {}", mesh.kind);
                    assert!(found.has_converged() && alone.has_converged(), "{name}");
                    assert_same(found.values(), alone.values(), 1e-9, &name);
                    // Residuals of 1e-12 are close to rounding errors, which differ.
                    let [found_its, expected_its] = [Ranks::Threads(n), Ranks::One].map(|ranks| {
                        let config = SolverConfig { partitioner, tolerance: 1e-9, ..of(ranks) };
                        problem.solve(&config).unwrap().outcome().iterations
                    });
                    assert!(found_its.abs_diff(expected_its) <= 1, "{name}: {found_its} and {expected_its}");
                }
            }
        }
    }
}

#[test]
fn a_solution_of_any_degree_does_not_depend_on_the_partition() {
    let mesh = round();
    let problem = Poisson::new(&mesh).sigma("1 + x*x").source("sin(3*x) + y").degree(3);
    let problem = problem.dirichlet("z < -0.1", "x*y").unwrap().robin("x > 0.1", "1 + y", 2.0).unwrap();
    let alone = problem.solve(&SolverConfig { ranks: Ranks::One, ..config(1) }).unwrap();
    let (n, cpu) = (mesh.n_cells(), Cpu::new(1).unwrap());
    let dealt: Vec<u32> = (0..n as u32).map(|cell| cell % 3).collect();
    let single: Vec<u32> = (0..n as u32).map(|cell| cell.min(4)).collect();
    let without: Vec<u32> = (0..n).map(|cell| if cell < n / 2 { 1 } else { 3 }).collect();
    let pmg = PreconditionerConfig::Pmg(crate::PmgOptions::default());
    for (name, ranks, n_ranks) in [("dealt", dealt, 3), ("single", single, 5), ("without", without, 5)] {
        for preconditioner in [PreconditionerConfig::Jacobi, pmg.clone()] {
            let partition = Partition::new(ranks.clone(), n_ranks).unwrap();
            let discretization = problem.discretize().unwrap();
            let mut progress = Silent;
            let mut stages = Stages::new(&mut progress);
            let config = SolverConfig { preconditioner, ..config(n_ranks) };
            let division = ReplicatedPartition::of(&discretization, partition, &config).unwrap();
            let mesh = MeshOfRanks::Replicated(Box::new(division));
            let with = (&config, "test");
            let found = solve_divided((discretization, None), mesh, (&cpu, None), with, &mut stages).unwrap();
            assert!(found.has_converged(), "{name}");
            assert_same(found.values(), alone.values(), 1e-10, name);
        }
    }
}

/// The levels of p-multigrid are those of one rank, but for aggregates of the lowest.
#[test]
fn p_multigrid_takes_about_as_many_iterations_as_on_one_rank() {
    let of = BoxConfig { cells: [6, 6, 6], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let (boxes, ball) = (box_mesh(&of).unwrap(), round());
    for (mesh, degree) in [(&boxes, 4), (&ball, 3), (&boxes, 1)] {
        let held = Poisson::new(mesh).sigma("1 + x*x").source("y").dirichlet("z < 0.1", 1.0).unwrap();
        let open = Poisson::new(mesh).source("x - 0.5").neumann("all", 0.0).unwrap();
        let problems = [Some(held), (mesh.points.len() == boxes.points.len()).then_some(open)];
        for problem in problems.into_iter().flatten() {
            let problem = problem.degree(degree);
            for precision in [LevelPrecision::F32, LevelPrecision::F64] {
                let options = crate::PmgOptions { precision, ..crate::PmgOptions::default() };
                let of = |ranks| SolverConfig {
                    ranks,
                    preconditioner: PreconditionerConfig::Pmg(options.clone()),
                    tolerance: 1e-11,
                    ..config(1)
                };
                let alone = problem.solve(&of(Ranks::One)).unwrap();
                for n in [1, 2, 3] {
                    let found = problem.solve(&of(Ranks::Threads(n))).unwrap();
                    assert!(found.has_converged() && alone.has_converged());
                    let [found_its, expected_its] =
                        [&found, &alone].map(|solution| solution.outcome().iterations);
                    assert!(
                        found_its as f64 <= 1.25 * expected_its as f64 + 1.0,
                        "degree {degree}, {n} ranks: {found_its} and {expected_its}"
                    );
                    assert_same(found.values(), alone.values(), 1e-8, "p-multigrid");
                    assert_eq!(found.levels()[0].n_rows, alone.levels()[0].n_rows);
                    assert_eq!(found.preconditioner(), "pmg");
                }
            }
        }
    }
}

/// Matrices of any degree, and the methods that merge passes.
#[test]
fn assembled_and_merged_solves_of_any_degree_run_on_several_ranks() {
    let mesh = cubes();
    let problem = |degree| problems(&mesh)[1].clone().degree(degree);
    let assembled = |preconditioner| SolverConfig {
        operator: crate::OperatorKind::Assembled,
        preconditioner,
        ..config(3)
    };
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    let methods = [Method::MergedCg, Method::PipelinedCg, Method::Gmres { restart: 60 }];
    let mut cases = vec![(1, assembled(amg.clone())), (2, assembled(PreconditionerConfig::Jacobi))];
    cases.extend(methods.map(|method| (2, SolverConfig { method, tolerance: 1e-11, ..config(3) })));
    cases.push((2, SolverConfig { preconditioner: PreconditionerConfig::None, ..config(2) }));
    cases.push((1, SolverConfig { preconditioner: PreconditionerConfig::Auto, ..config(2) }));
    for (degree, config) in cases {
        let alone = problem(degree).solve(&SolverConfig { ranks: Ranks::One, ..config.clone() }).unwrap();
        let found = problem(degree).solve(&config).unwrap();
        let name = format!("{} {}", config.method.name(), found.preconditioner());
        assert!(found.has_converged() && alone.has_converged(), "{name}");
        assert_same(found.values(), alone.values(), 1e-8, &name);
    }
}

#[test]
fn the_device_that_is_asked_for_stays_where_the_preconditioner_is_chosen() {
    let mesh = plane();
    let problem = Poisson::new(&mesh).source(1.0).dirichlet("all", 0.0).unwrap();
    let discretization = problem.discretize().unwrap();
    for device in [DeviceChoice::Cpu, DeviceChoice::Cuda(1)] {
        let config = SolverConfig { device, preconditioner: PreconditionerConfig::Auto, ..config(2) };
        let boxed = |options: &GmgOptions| boxes(&discretization, options, 2).map(Some);
        let chosen = chosen(&discretization, &config, 2, Solves::One, &boxed).unwrap();
        assert_eq!(chosen.config.device, device);
        assert_ne!(chosen.config.preconditioner, PreconditionerConfig::Auto);
    }
}

#[test]
fn problems_that_methods_of_callers_cannot_take_are_refused() {
    let mesh = plane();
    let plain = || Poisson::new(&mesh).lambda(1.0);
    let in_time = crate::Transient::new(plain().sigma("1 + t"), 0.0);
    for (problem, words) in [
        (plain().dirichlet("xmin", 1.0).unwrap().discretize(), "natural boundary conditions"),
        (in_time.discretize(), "depend on t"),
        (plain().sigma("1 + u*u").discretize(), "depends on u"),
    ] {
        let error = problem.unwrap().distributed(&config(2)).unwrap_err().to_string();
        assert!(error.contains("solver.ranks") && error.contains(words), "{error}");
    }
    assert!(plain().discretize().unwrap().distributed(&config(2)).is_ok());
}
