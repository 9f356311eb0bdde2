//! Matrices and right sides that multigrid cannot do with, or that cost much where it is careless.

use femtile_amg::{Amg, AmgConfig, AmgError, AmgSolver};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::krylov::Stop;
use femtile_sparse::csr::HostOffsets;
use femtile_sparse::{Csr, Triplets};

type Matrix = Csr<f64, Cpu>;

/// A graph's Laplacian, with something added to its diagonal.
fn laplacian(cpu: &Cpu, n: usize, edges: impl Iterator<Item = (usize, usize)>, shift: f64) -> Matrix {
    let mut triplets = Triplets::new(n, n);
    (0..n).for_each(|i| triplets.push(i, i, shift).unwrap());
    for (a, b) in edges {
        for (row, column, value) in [(a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)] {
            triplets.push(row, column, value).unwrap();
        }
    }
    triplets.into_csr(cpu).unwrap().matrix
}

fn square(side: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..side * side).flat_map(move |i| {
        let right = (i % side + 1 < side).then_some((i, i + 1));
        right.into_iter().chain((i + side < side * side).then_some((i, i + side)))
    })
}

fn solve(solver: &AmgSolver<f32, Cpu>, a: &Matrix, b: Vec<f64>) -> (Stop, Vec<f64>) {
    let cpu = a.values().device();
    let mut x = Buffer::zeros(cpu, b.len()).unwrap();
    let outcome = solver.solve(&mut x, a, &Buffer::from_vec(cpu, b).unwrap()).unwrap();
    (outcome.stop, x.to_host().unwrap())
}

fn solver(a: &Matrix) -> AmgSolver<f32, Cpu> {
    let mut solver = AmgSolver::from_matrix(a, None, &AmgConfig::default()).unwrap();
    solver.cg.tolerance = 1e-8;
    solver.cg.max_iterations = 60;
    solver
}

#[test]
fn an_indefinite_matrix_is_seen_while_levels_are_set_up() {
    let cpu = Cpu::new(1).unwrap();
    let a = laplacian(&cpu, 900, square(30), -0.5);
    let found = Amg::<f32, _>::new(&a, None, &AmgConfig::default()).unwrap_err();
    assert!(matches!(found, AmgError::Indefinite { pivot, .. } if pivot < 0.0), "{found}");
}

#[test]
fn an_indefinite_matrix_breaks_a_solve_down_with_the_value() {
    let cpu = Cpu::new(1).unwrap();
    let (a, indefinite) = (laplacian(&cpu, 900, square(30), 0.1), laplacian(&cpu, 900, square(30), -0.5));
    let (stop, x) = solve(&solver(&a), &indefinite, vec![1.0; 900]);
    assert!(matches!(stop, Stop::Breakdown { quantity: "p·Ap", value } if value < 0.0), "{stop:?}");
    assert!(x.iter().all(|x| x.is_finite()));
}

#[test]
fn a_singular_matrix_is_solved_for_balanced_right_sides_and_says_so_for_others() {
    let cpu = Cpu::new(1).unwrap();
    let a = laplacian(&cpu, 1_600, square(40), 0.0);
    let balanced: Vec<f64> = (0..1_600).map(|i| (i % 40) as f64 - 19.5).collect();
    assert_eq!(solve(&solver(&a), &a, balanced.clone()).0, Stop::Converged);
    let (stop, _) = solve(&solver(&a), &a, balanced.iter().map(|b| b + 5.0).collect());
    assert_ne!(stop, Stop::Converged);
}

/// Time or memory that grows with the square of a valence of 200,000 would not end here.
#[test]
fn stars_cost_no_more_than_their_edges() {
    let cpu = Cpu::new(2).unwrap();
    let n = 200_000;
    for centre in [0, n - 1] {
        let a = laplacian(&cpu, n, (0..n).filter(|&i| i != centre).map(|i| (centre, i)), 1e-2);
        let (stop, _) = solve(&solver(&a), &a, vec![1.0; n]);
        assert_eq!(stop, Stop::Converged);
    }
}

#[test]
fn what_is_bad_in_a_large_matrix_is_named_by_its_row() {
    let cpu = Cpu::new(2).unwrap();
    let n = 2_500;
    let good = laplacian(&cpu, n, square(50), 1.0);
    let lengths: Vec<usize> = (0..n).map(|row| good.row(row).count()).collect();
    let with = |row: usize, column: usize, value: f64| {
        let at = good.row(row).position(|(found, _)| found == column).unwrap();
        let mut values = good.values().to_host().unwrap();
        values[lengths[..row].iter().sum::<usize>() + at] = value;
        let columns = good.columns().to_host().unwrap();
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        let bad = Csr::from_parts(&cpu, n, offsets, columns, values).unwrap();
        Amg::<f32, _>::new(&bad, None, &AmgConfig::default()).unwrap_err()
    };
    assert_eq!(with(1_300, 1_300, 0.0), AmgError::Diagonal { row: 1_300, value: 0.0 });
    assert_eq!(with(2_499, 2_499, -2.0), AmgError::Diagonal { row: 2_499, value: -2.0 });
    let found = with(1_300, 1_301, f64::NAN);
    assert!(matches!(found, AmgError::NotFinite { row: 1_300, column: 1_301, .. }), "{found}");
    let found = with(1_301, 1_300, -3.0);
    assert!(matches!(found, AmgError::NotSymmetric { row: 1_300, column: 1_301, .. }), "{found}");
}

/// Stacks of three unknowns in a row, 10⁷ times as strongly connected as neighbours, the first stack held.
fn stacks(cpu: &Cpu, n: usize) -> Matrix {
    let mut triplets = Triplets::new(3 * n, 3 * n);
    (0..3).for_each(|i| triplets.push(i, i, 1.0).unwrap());
    let within = (0..3 * n).filter(|i| i % 3 < 2).map(|i| (i, i + 1, 1e7));
    for (a, b, weight) in within.chain((3..3 * n).map(|i| (i - 3, i, 1.0))) {
        for (row, column, sign) in [(a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)] {
            triplets.push(row, column, sign * weight).unwrap();
        }
    }
    triplets.into_csr(cpu).unwrap().matrix
}

#[test]
fn a_single_level_that_single_precision_takes_for_singular_is_left_to_double() {
    let cpu = Cpu::new(1).unwrap();
    let a = stacks(&cpu, 5);
    let found = Amg::<f32, _>::new(&a, None, &AmgConfig::default()).unwrap_err();
    assert!(matches!(found, AmgError::Resolution { n_rows: 15, n_lost: 1..=5 }), "{found}");
    assert!(found.is_of_precision());
    let mut solver = AmgSolver::<f64, _>::from_matrix(&a, None, &AmgConfig::default()).unwrap();
    solver.cg.tolerance = 1e-6;
    let (b, mut x) = (Buffer::from_vec(&cpu, vec![1.0; 15]).unwrap(), Buffer::zeros(&cpu, 15).unwrap());
    let outcome = solver.solve(&mut x, &a, &b).unwrap();
    assert!(outcome.stop == Stop::Converged && outcome.iterations <= 3, "{outcome:?}");
    // The load of all stacks goes through the first, which gives way by as much.
    assert!((x.to_host().unwrap()[1] - 5.0).abs() < 1e-5);
}

#[test]
fn a_single_level_that_is_singular_in_double_precision_as_well_stays_in_single() {
    let cpu = Cpu::new(1).unwrap();
    let pairs = |n: usize| (0..n).step_by(2).map(|i| (i, i + 1));
    for a in [laplacian(&cpu, 100, square(10), 0.0), laplacian(&cpu, 60, pairs(60), 0.0)] {
        let n = a.n_rows();
        let b = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(solve(&solver(&a), &a, b).0, Stop::Converged);
    }
}
