//! The solver: from a matrix, from a mesh, refilled.

use femtile_amg::{AmgConfig, AmgError, AmgSolver, Graph};
use femtile_device::{Buffer, Cpu};
use femtile_element::{Affine, P1};
use femtile_linalg::krylov::Stop;
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile_sparse::{Csr, Triplets};

/// −Δu + λu with linear elements, natural sides. Five tetrahedra a cube are regular enough for no entry to vanish where
/// nodes share a cell, once λ is there.
fn problem(cpu: &Cpu, lambda: f64) -> (Mesh, Csr<f64, Cpu>) {
    let mesh =
        box_mesh(&BoxConfig { cells: [12; 3], split: BoxSplit::Five, ..BoxConfig::default() }).unwrap();
    let mut triplets = Triplets::new(mesh.n_nodes(), mesh.n_nodes());
    for cell in mesh.cells.chunks(4) {
        let map = Affine::tetrahedron(std::array::from_fn(|i| mesh.points[cell[i] as usize]));
        for i in 0..4 {
            for j in 0..4 {
                let (g, h) = (map.gradients[i], map.gradients[j]);
                let dot = g[0] * h[0] + g[1] * h[1] + g[2] * h[2];
                let value = map.measure * (dot + lambda * P1 { dimension: 3 }.mass_mean(i, j));
                triplets.push(cell[i] as usize, cell[j] as usize, value).unwrap();
            }
        }
    }
    (mesh, triplets.into_csr(cpu).unwrap().matrix)
}

fn graph(mesh: &Mesh) -> Graph {
    Graph::from_cells(mesh.n_nodes(), 4, &mesh.cells).unwrap()
}

fn solution(solver: &AmgSolver<f32, Cpu>, a: &Csr<f64, Cpu>) -> (usize, Vec<f64>) {
    let (cpu, n) = (a.values().device(), a.n_rows());
    let b = Buffer::from_vec(cpu, (0..n).map(|i| (i % 7) as f64 - 2.5).collect::<Vec<f64>>()).unwrap();
    let mut x = Buffer::zeros(cpu, n).unwrap();
    let outcome = solver.solve(&mut x, a, &b).unwrap();
    assert_eq!(outcome.stop, Stop::Converged);
    assert!(outcome.true_relative_residual < 1e-9);
    (outcome.iterations, x.to_host().unwrap())
}

#[test]
fn a_mesh_gives_the_levels_of_its_matrix_where_no_entry_vanishes() {
    let cpu = Cpu::new(2).unwrap();
    let (mesh, a) = problem(&cpu, 1e-3);
    let config = AmgConfig { strength: 0.0, ..AmgConfig::default() };
    let from_matrix = AmgSolver::<f32, _>::from_matrix(&a, None, &config).unwrap();
    let from_mesh = AmgSolver::<f32, _>::from_graph(&a, &graph(&mesh), None, &config).unwrap();
    assert!(from_mesh.hierarchy().shapes().len() > 1);
    assert_eq!(from_mesh.hierarchy().to_string(), from_matrix.hierarchy().to_string());
    assert_eq!(solution(&from_mesh, &a), solution(&from_matrix, &a));
}

#[test]
fn a_mesh_decides_the_aggregates_where_the_matrix_would_not_join_nodes() {
    let cpu = Cpu::new(2).unwrap();
    let (mesh, a) = problem(&cpu, 1e-3);
    let config = AmgConfig { strength: 0.2, ..AmgConfig::default() };
    let from_matrix = AmgSolver::<f32, _>::from_matrix(&a, None, &config).unwrap();
    let from_mesh = AmgSolver::<f32, _>::from_graph(&a, &graph(&mesh), None, &config).unwrap();
    let n_aggregates =
        |solver: &AmgSolver<f32, Cpu>| solver.hierarchy().shapes().first().map(|shape| shape.n_aggregates);
    let all = AmgConfig { strength: 0.0, ..config };
    let expected = AmgSolver::<f32, _>::from_matrix(&a, None, &all).unwrap();
    assert_eq!(n_aggregates(&from_mesh), n_aggregates(&expected));
    assert_ne!(n_aggregates(&from_mesh), n_aggregates(&from_matrix));
    solution(&from_mesh, &a);
}

#[test]
fn a_refilled_solver_is_that_of_the_new_values() {
    let cpu = Cpu::new(1).unwrap();
    let ((_, a), (_, other)) = (problem(&cpu, 1e-3), problem(&cpu, 1.0));
    let near_nullspace: Vec<f64> = (0..a.n_rows()).map(|i| 1.0 + (i % 3) as f64).collect();
    let build =
        |a| AmgSolver::<f32, _>::from_matrix(a, Some(&near_nullspace), &AmgConfig::default()).unwrap();
    let mut solver = build(&a);
    solver.refill(&other).unwrap();
    assert_eq!(solution(&solver, &other), solution(&build(&other), &other));
}

#[test]
fn graphs_that_are_none_of_the_matrix_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let (mesh, a) = problem(&cpu, 1.0);
    let wrong = |found: Result<(), AmgError>| {
        assert!(matches!(found, Err(AmgError::Setting { field: "graph", .. })), "{found:?}");
    };
    wrong(Graph::from_cells(4, 4, &[0, 1, 2]).map(drop));
    wrong(Graph::from_cells(4, 4, &[0, 1, 2, 4]).map(drop));
    wrong(Graph::from_cells(4, 0, &[]).map(drop));
    let larger = Graph::from_cells(mesh.n_nodes() + 1, 4, &mesh.cells).unwrap();
    wrong(AmgSolver::<f32, _>::from_graph(&a, &larger, None, &AmgConfig::default()).map(drop));
}

#[test]
fn nodes_with_given_values_join_no_aggregate_of_a_mesh() {
    let cpu = Cpu::new(2).unwrap();
    let (mesh, a) = problem(&cpu, 1e-3);
    let is_held = |row: usize| mesh.points[row][0] < 1e-9;
    let mut triplets = Triplets::new(a.n_rows(), a.n_rows());
    for row in 0..a.n_rows() {
        for (column, value) in a.row(row) {
            let (stays, value) = match is_held(row) || is_held(column) {
                true => (row == column, 1.0),
                false => (true, value),
            };
            if stays {
                triplets.push(row, column, value).unwrap();
            }
        }
    }
    let held = triplets.into_csr(&cpu).unwrap().matrix;
    let config = AmgConfig { strength: 0.0, ..AmgConfig::default() };
    let from_matrix = AmgSolver::<f32, _>::from_matrix(&held, None, &config).unwrap();
    let from_mesh = AmgSolver::<f32, _>::from_graph(&held, &graph(&mesh), None, &config).unwrap();
    assert!(from_mesh.hierarchy().shapes().len() > 1);
    assert_eq!(from_mesh.hierarchy().to_string(), from_matrix.hierarchy().to_string());
    assert_eq!(solution(&from_mesh, &held), solution(&from_matrix, &held));
}
