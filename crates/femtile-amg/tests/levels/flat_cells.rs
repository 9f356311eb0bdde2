//! Flat hexahedra and slivers: few iterations, the same bits for any number of threads.

use femtile_amg::{AmgConfig, AmgSolver};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::krylov::Stop;
use femtile_sparse::{Csr, Triplets};

type Matrix = Csr<f64, Cpu>;

/// −Δu with trilinear hexahedra, `n` a side, whose sides are 1, 1 and `flat`, natural conditions but for u = 0 at one side.
fn hexahedra(cpu: &Cpu, n: usize, flat: f64) -> Matrix {
    let side = n + 1;
    let is_end = |i: usize| i == 0 || i == n;
    let stiffness = |i: usize, j: usize| if i == j { if is_end(i) { 1.0 } else { 2.0 } } else { -1.0 };
    let mass = |i: usize, j: usize| if i == j { if is_end(i) { 2.0 } else { 4.0 } } else { 1.0 };
    let places = |row: usize| [row % side, row / side % side, row / side / side];
    let mut triplets = Triplets::new(side.pow(3), side.pow(3));
    for row in 0..side.pow(3) {
        let at = places(row);
        if at[0] == 0 {
            triplets.push(row, row, 1.0).unwrap();
            continue;
        }
        for step in 0..27 {
            let to = [step % 3, step / 3 % 3, step / 9];
            let to = [0, 1, 2].map(|d| (at[d] + to[d]).wrapping_sub(1));
            if to[0] == 0 || to.iter().any(|&i| i > n) {
                continue;
            }
            let along = |axis: usize| -> f64 {
                (0..3).map(|d| if d == axis { stiffness(at[d], to[d]) } else { mass(at[d], to[d]) }).product()
            };
            let column = to[0] + side * (to[1] + side * to[2]);
            triplets.push(row, column, along(0) + along(1) + along(2) / (flat * flat)).unwrap();
        }
    }
    triplets.into_csr(cpu).unwrap().matrix
}

/// A cube of `side` points an axis, one side of it held, in which every third square of four points along all axes has a
/// sliver: K s sᵀ with s = (1, −1, −1, 1).
fn slivers(cpu: &Cpu, side: usize, k: f64) -> Matrix {
    let n = side.pow(3);
    let mut triplets = Triplets::new(n, n);
    let mut add = |nodes: &[usize], s: &[f64], k: f64| {
        let is_free = |node: usize| !node.is_multiple_of(side);
        for (&i, &s_i) in nodes.iter().zip(s) {
            for (&j, &s_j) in nodes.iter().zip(s) {
                if is_free(i) && is_free(j) {
                    triplets.push(i, j, k * s_i * s_j).unwrap();
                }
            }
        }
    };
    for i in 0..n {
        let at = [i % side, i / side % side, i / side / side];
        for (d, step) in [1, side, side * side].into_iter().enumerate() {
            if at[d] + 1 < side {
                add(&[i, i + step], &[1.0, -1.0], 1.0);
            }
        }
        if at.iter().all(|x| x % 3 == 1 && x + 1 < side) {
            add(&[i, i + 1, i + side, i + side + 1], &[1.0, -1.0, -1.0, 1.0], k);
        }
    }
    (0..n).filter(|i| i.is_multiple_of(side)).for_each(|i| triplets.push(i, i, 1.0).unwrap());
    triplets.into_csr(cpu).unwrap().matrix
}

/// Iterations to 1e-10, and the solution, for a right side of ones.
fn solve(a: &Matrix) -> (usize, Vec<f64>) {
    let cpu = a.values().device();
    let mut solver = AmgSolver::<f32, _>::from_matrix(a, None, &AmgConfig::default()).unwrap();
    (solver.cg.tolerance, solver.cg.max_iterations) = (1e-10, 300);
    let b = Buffer::from_vec(cpu, vec![1.0; a.n_rows()]).unwrap();
    let mut x = Buffer::zeros(cpu, a.n_rows()).unwrap();
    let outcome = solver.solve(&mut x, a, &b).unwrap();
    assert_eq!(outcome.stop, Stop::Converged, "{}", solver.hierarchy());
    (outcome.iterations, x.to_host().unwrap())
}

#[test]
fn flat_hexahedra_take_hardly_more_iterations_than_cubes() {
    let cpu = Cpu::new(2).unwrap();
    for (flat, most) in [(1.0, 12), (0.3, 20), (0.1, 30), (0.01, 35)] {
        let (iterations, _) = solve(&hexahedra(&cpu, 12, flat));
        assert!(iterations <= most, "{iterations} iterations at 1:1:{flat}");
    }
}

#[test]
fn a_residual_that_is_rounding_in_every_row_does_not_keep_a_solve_from_converging() {
    // The products of flat cells round to more than the tolerance times ‖b‖.
    let (iterations, _) = solve(&hexahedra(&Cpu::new(2).unwrap(), 12, 0.002));
    assert!(iterations <= 40, "{iterations}");
}

#[test]
fn slivers_cost_few_iterations_however_flat_they_are() {
    let cpu = Cpu::new(2).unwrap();
    for k in [1e3, 1e4, 1e5] {
        let (iterations, _) = solve(&slivers(&cpu, 16, k));
        assert!(iterations <= 40, "{iterations} iterations with {k}");
    }
}

#[test]
fn flat_cells_and_slivers_have_the_same_bits_for_any_number_of_threads() {
    let of = |threads: usize| {
        let cpu = Cpu::new(threads).unwrap();
        (solve(&hexahedra(&cpu, 10, 0.1)), solve(&slivers(&cpu, 12, 1e3)))
    };
    let one = of(1);
    assert_eq!(one, of(2));
    assert_eq!(one, of(3));
}
