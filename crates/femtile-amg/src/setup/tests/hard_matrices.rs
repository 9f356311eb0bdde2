//! Matrices that people bring: badly scaled, singular, thin, with dense rows.

use std::collections::BTreeMap;

use femtile_device::{Buffer, Cpu};
use femtile_linalg::krylov::Stop;
use femtile_sparse::Triplets;
use femtile_sparse::csr::Csr;

use crate::{AmgConfig, AmgError, AmgSolver, nullspace};

type Matrix = Csr<f64, Cpu>;
/// Entries by row and column.
type Entries = BTreeMap<(usize, usize), f64>;

fn matrix(n: usize, entries: &Entries) -> Matrix {
    let mut triplets = Triplets::new(n, n);
    entries.iter().for_each(|(&(row, column), &value)| triplets.push(row, column, value).unwrap());
    triplets.into_csr(&Cpu::new(1).unwrap()).unwrap().matrix
}

/// Adds $w (e_i - e_j)(e_i - e_j)^\mathsf{T}$.
fn join(entries: &mut Entries, [i, j]: [usize; 2], weight: f64) {
    for (row, column, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
        *entries.entry((row, column)).or_insert(0.0) += sign * weight;
    }
}

/// The five-point stencil on n × n points with numbers from `first`, `held` added to the diagonal beside the boundary for each
/// neighbour that is missing.
fn grid(entries: &mut Entries, n: usize, first: usize, held: f64) {
    for i in 0..n * n {
        let (x, y) = (i % n, i / n);
        if x > 0 {
            join(entries, [first + i - 1, first + i], 1.0);
        }
        if y > 0 {
            join(entries, [first + i - n, first + i], 1.0);
        }
        let missing = [x == 0, x + 1 == n, y == 0, y + 1 == n].iter().filter(|is| **is).count();
        *entries.entry((first + i, first + i)).or_insert(0.0) += held * missing as f64;
    }
}

/// A number in [−1, 1) for an index.
fn random(i: usize) -> f64 {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// D A D.
fn scaled(entries: &Entries, d: impl Fn(usize) -> f64) -> Entries {
    entries.iter().map(|(&(row, column), value)| ((row, column), value * d(row) * d(column))).collect()
}

struct Solved {
    x: Vec<f64>,
    iterations: usize,
}

fn product(a: &Matrix, x: &[f64]) -> Vec<f64> {
    (0..a.n_rows()).map(|row| a.row(row).map(|(column, value)| value * x[column]).sum()).collect()
}

/// Solves with levels in single precision, in double precision if that fails.
fn solve(a: &Matrix, near_nullspace: Option<&[f64]>, config: &AmgConfig, b: Vec<f64>) -> Solved {
    let cpu = Cpu::new(1).unwrap();
    let (b, mut x) = (Buffer::from_vec(&cpu, b).unwrap(), Buffer::zeros(&cpu, a.n_rows()).unwrap());
    let outcome = match AmgSolver::<f32, _>::from_matrix(a, near_nullspace, config) {
        Ok(solver) => solver.solve(&mut x, a, &b),
        Err(error) => {
            assert!(error.is_of_precision(), "{error}");
            AmgSolver::<f64, _>::from_matrix(a, near_nullspace, config).unwrap().solve(&mut x, a, &b)
        }
    };
    let outcome = outcome.unwrap();
    assert_eq!(outcome.stop, Stop::Converged, "{} iterations", outcome.iterations);
    Solved { x: x.to_host().unwrap(), iterations: outcome.iterations }
}

#[test]
fn iterations_do_not_depend_on_a_symmetric_scaling_of_the_matrix() {
    let n = 60;
    let mut plain = Entries::new();
    grid(&mut plain, n, 0, 1.0);
    let a = matrix(n * n, &plain);
    let x: Vec<f64> = (0..n * n).map(|i| 1.0 + random(i)).collect();
    let (b, config) = (product(&a, &x), AmgConfig::default());
    let base = solve(&a, None, &config, b.clone());
    for decades in [1.5, 3.0] {
        let d = |i: usize| 10.0_f64.powf(decades * random(7 * i));
        let bad = matrix(n * n, &scaled(&plain, d));
        let rhs: Vec<f64> = b.iter().enumerate().map(|(i, b)| d(i) * b).collect();
        let exact: Vec<f64> = (0..n * n).map(|i| 1.0 / d(i)).collect();
        for near in [None, Some(exact.as_slice())] {
            let found = solve(&bad, near, &config, rhs.clone());
            let (few, many) = (base.iterations, found.iterations);
            assert!(many <= few + 2, "10^±{decades}, {}: {many} for {few}", near.is_some());
            let error = (0..n * n).map(|i| (d(i) * found.x[i] - x[i]).abs()).fold(0.0, f64::max);
            assert!(error < 1e-5, "10^±{decades}: {error:e}");
        }
    }
}

/// The stencil of two or six neighbours on n points a side of a box, `held` added to the diagonal for each neighbour that is
/// missing.
fn lattice(n: usize, dimension: u32, held: f64) -> Entries {
    let mut entries = Entries::new();
    for i in 0..n.pow(dimension) {
        for step in (0..dimension).map(|axis| n.pow(axis)) {
            let place = i / step % n;
            if place > 0 {
                join(&mut entries, [i - step, i], 1.0);
            }
            let missing = [place == 0, place + 1 == n].iter().filter(|is| **is).count();
            *entries.entry((i, i)).or_insert(0.0) += held * missing as f64;
        }
    }
    entries
}

#[test]
fn iterations_do_not_depend_on_a_mild_scaling_either() {
    let config = AmgConfig::default();
    for (n, dimension) in [(400, 1), (2_000, 1), (12, 3)] {
        let (plain, rows) = (lattice(n, dimension, 1.0), n.pow(dimension));
        let x: Vec<f64> = (0..rows).map(|i| 1.0 + random(i)).collect();
        let a = matrix(rows, &plain);
        let base = solve(&a, None, &config, product(&a, &x)).iterations;
        for amplitude in [0.1, 0.3, 0.5, 0.9] {
            let waves = |i: usize| 1.0 + amplitude * (7.0 * i as f64).sin();
            let noise = |i: usize| 1.0 + amplitude * random(7 * i);
            for d in [&waves as &dyn Fn(usize) -> f64, &noise] {
                let mild = matrix(rows, &scaled(&plain, d));
                let rhs: Vec<f64> = product(&a, &x).iter().enumerate().map(|(i, b)| d(i) * b).collect();
                let exact: Vec<f64> = (0..rows).map(|i| 1.0 / d(i)).collect();
                for near in [None, Some(exact.as_slice())] {
                    let found = solve(&mild, near, &config, rhs.clone()).iterations;
                    assert!(
                        found <= base + 2,
                        "{n}, {dimension}, ±{amplitude}, {}: {found} for {base}",
                        near.is_some()
                    );
                }
            }
        }
    }
}

#[test]
fn reactions_exchange_and_coefficients_are_no_scaling() {
    let (n, config) = (12, AmgConfig::default());
    let rows = n * n * n;
    let contrast = |size: f64| {
        let sigma: Vec<f64> = (0..rows).map(|i| (size * random(i)).exp()).collect();
        let plain = lattice(n, 3, 0.0);
        let mut entries = Entries::new();
        for &(i, j) in plain.keys().filter(|(i, j)| i < j) {
            join(&mut entries, [i, j], (sigma[i] * sigma[j]).sqrt());
        }
        entries
    };
    let with = |mut entries: Entries, added: &dyn Fn(usize) -> f64| {
        (0..rows).for_each(|i| *entries.entry((i, i)).or_insert(0.0) += added(i));
        entries
    };
    let plain = || lattice(n, 3, 0.0);
    let spots = |i: usize| if random(i) > 0.9 { 1.0 } else { 1e-6 };
    let cases: [(&str, Entries); 7] = [
        ("held", lattice(n, 3, 1.0)),
        ("exchange", with(plain(), &|i| if i < n * n { 50.0 } else { 0.0 })),
        ("reaction", with(plain(), &|i| if i < rows / 2 { 4.0 } else { 1e-6 })),
        ("reaction in spots", with(plain(), &spots)),
        ("contrast", with(contrast(2.0), &|_| 1e-6)),
        ("contrast, held", with(contrast(6.0), &|i| if i < n * n { 50.0 } else { 0.0 })),
        ("contrast with reaction", with(contrast(2.0), &spots)),
    ];
    for (name, entries) in cases {
        let solver = AmgSolver::<f32, _>::from_matrix(&matrix(rows, &entries), None, &config).unwrap();
        assert!(solver.amg.levels.factors.is_none(), "{name}");
    }
}

#[test]
fn rows_in_other_units_take_as_few_iterations() {
    // Millimetres for metres in one half, and irregular diagonals.
    let n = 40;
    let mut plain = Entries::new();
    grid(&mut plain, n, 0, 1.0);
    for i in 0..n * n - n {
        join(&mut plain, [i, i + n], 0.5 + 0.5 * random(i));
    }
    let (config, ones) = (AmgConfig::default(), vec![1.0; n * n]);
    let base = solve(&matrix(n * n, &plain), None, &config, ones.clone()).iterations;
    let halves = |i: usize| if i % n < n / 2 { 1.0 } else { 1e3 };
    let found = solve(&matrix(n * n, &scaled(&plain, halves)), None, &config, ones).iterations;
    assert!(found <= base + 4, "{found} for {base}");
}

#[test]
fn a_matrix_that_is_scaled_first_can_be_refilled() {
    let n = 20;
    let mut plain = Entries::new();
    grid(&mut plain, n, 0, 1.0);
    let bad = |decades: f64| matrix(n * n, &scaled(&plain, |i| 10.0_f64.powf(decades * random(i))));
    let cpu = Cpu::new(1).unwrap();
    let mut solver =
        AmgSolver::<f32, _>::from_matrix(&matrix(n * n, &plain), None, &AmgConfig::default()).unwrap();
    for decades in [2.0, 0.0, 3.0] {
        let a = bad(decades);
        solver.refill(&a).unwrap();
        let b = Buffer::from_vec(&cpu, product(&a, &vec![1.0; n * n])).unwrap();
        let mut x = Buffer::zeros(&cpu, n * n).unwrap();
        let outcome = solver.solve(&mut x, &a, &b).unwrap();
        assert!(outcome.stop == Stop::Converged && outcome.iterations < 20, "{}", outcome.iterations);
    }
}

#[test]
fn an_asymmetric_entry_is_told_as_it_was_given_before_scaling() {
    let n = 30;
    let mut entries = Entries::new();
    grid(&mut entries, n, 0, 1.0);
    let d = |i: usize| 10.0_f64.powf(2.0 * random(i));
    let mut entries = scaled(&entries, d);
    let given = *entries.get(&(31, 32)).unwrap();
    entries.insert((31, 32), 2.0 * given);
    let error =
        AmgSolver::<f64, _>::from_matrix(&matrix(n * n, &entries), None, &AmgConfig::default()).unwrap_err();
    let AmgError::NotSymmetric { row, column, value, mirror, .. } = error else { panic!("{error}") };
    assert_eq!((row, column), (31, 32));
    assert!(
        (value / given - 2.0).abs() < 1e-6 && (mirror / given - 1.0).abs() < 1e-6,
        "{value} {mirror} {given}"
    );
}

#[test]
fn parts_that_nothing_holds_are_solved_up_to_their_constants() {
    let (n, parts) = (40, [15, 2, 3, 1_600]);
    for held in [0.0, 1.0] {
        let mut entries = Entries::new();
        grid(&mut entries, n, 0, 1.0);
        let mut first = n * n;
        for (number, len) in parts.into_iter().enumerate() {
            match len {
                1_600 => grid(&mut entries, n, first, held),
                _ => (1..len).for_each(|i| {
                    join(&mut entries, [first + i - 1, first + i], 3.0_f64.powi(number as i32 - 4))
                }),
            }
            first += len;
        }
        let a = matrix(first, &entries);
        let config = AmgConfig::default();
        let null = nullspace(&a, None, &config).unwrap();
        assert_eq!(null.len(), if held > 0.0 { 3 } else { 4 });
        let b = product(&a, &(0..first).map(random).collect::<Vec<_>>());
        let iterations = solve(&a, None, &config, b).iterations;
        assert!(iterations < 25, "{iterations}");
    }
}

/// Springs between neighbouring points of a lattice, also along diagonals, of the stiffness of their reciprocal length;
/// with its rigid motions, all values of a row together.
fn springs(points: [usize; 3], widths: [f64; 3]) -> (Entries, Vec<f64>, usize) {
    let dimension = if points[2] == 1 { 2 } else { 3 };
    let n = points.iter().product::<usize>();
    let place = |i: usize| [i % points[0], i / points[0] % points[1], i / (points[0] * points[1])];
    let position = |i: usize| [0, 1, 2].map(|axis| widths[axis] * place(i)[axis] as f64);
    let mut entries = Entries::new();
    for i in 0..n {
        for j in i + 1..n {
            if (0..3).any(|axis| place(i)[axis].abs_diff(place(j)[axis]) > 1) {
                continue;
            }
            let along = [0, 1, 2].map(|axis| position(j)[axis] - position(i)[axis]);
            let square = along.iter().map(|x| x * x).sum::<f64>();
            for (p, q) in (0..dimension).flat_map(|p| (0..dimension).map(move |q| (p, q))) {
                let value = along[p] * along[q] / square.powf(1.5);
                for (a, b, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
                    *entries.entry((dimension * a + p, dimension * b + q)).or_insert(0.0) += sign * value;
                }
            }
        }
    }
    let mut motions = Vec::new();
    for i in 0..n {
        let [x, y, z] = position(i);
        let turns = [[-y, x, 0.0], [0.0, -z, y], [z, 0.0, -x]];
        for p in 0..dimension {
            motions.extend((0..dimension).map(|q| if p == q { 1.0 } else { 0.0 }));
            let n_turns = if dimension == 2 { 1 } else { 3 };
            motions.extend(turns[..n_turns].iter().map(|turn| turn[p]));
        }
    }
    (entries, motions, dimension)
}

#[test]
fn free_bodies_are_solved_up_to_their_rigid_motions() {
    for points in [[7, 4, 1], [12, 12, 1], [4, 5, 5], [40, 30, 1]] {
        let (entries, motions, dimension) = springs(points, [1.0, 1.1, 0.9]);
        let n = motions.len() / (3 * dimension - 3);
        let a = matrix(n, &entries);
        let config = AmgConfig::displacements(dimension);
        let null = nullspace(&a, Some(&motions), &config).unwrap();
        assert_eq!(null.len(), 3 * dimension - 3, "{points:?}");
        let b = product(&a, &(0..n).map(random).collect::<Vec<_>>());
        let iterations = solve(&a, Some(&motions), &config, b.clone()).iterations;
        assert!(iterations < 40, "{points:?}: {iterations}");
        if n < 600 {
            let iterations = solve(&a, None, &config, b).iterations;
            assert!(iterations < 40, "{points:?} without motions: {iterations}");
        }
    }
}

#[test]
fn a_scaled_body_takes_as_many_iterations_as_a_plain_one() {
    let (mut entries, motions, dimension) = springs([30, 25, 1], [1.0, 1.0, 1.0]);
    let n = motions.len() / 3;
    (0..60).for_each(|row| *entries.get_mut(&(row, row)).unwrap() += 1.0);
    let config = AmgConfig::displacements(dimension);
    let (a, ones) = (matrix(n, &entries), vec![1.0; n]);
    let base = solve(&a, Some(&motions), &config, product(&a, &ones)).iterations;
    let d = |i: usize| 10.0_f64.powf(2.0 * random(i));
    let bad = matrix(n, &scaled(&entries, d));
    let near: Vec<f64> = motions.iter().enumerate().map(|(i, value)| value / d(i / 3)).collect();
    let found = solve(&bad, Some(&near), &config, product(&bad, &ones)).iterations;
    assert!(found <= base + 4, "{found} for {base}");
}

#[test]
fn thin_walls_are_coarsened_to_a_level_that_is_solved() {
    let (mut entries, motions, dimension) = springs([24, 24, 3], [1.0, 1.0, 0.02]);
    let n = motions.len() / 6;
    let held = (0..n).filter(|row| row / dimension % 24 == 0);
    held.for_each(|row| *entries.get_mut(&(row, row)).unwrap() += 100.0);
    let (a, config) = (matrix(n, &entries), AmgConfig::displacements(dimension));
    let solver = AmgSolver::<f64, _>::from_matrix(&a, Some(&motions), &config).unwrap();
    let hierarchy = solver.hierarchy();
    assert!(!hierarchy.is_stalled() && hierarchy.shapes().last().unwrap().n_rows <= 600, "{hierarchy}");
    assert!(hierarchy.operator_complexity() < 3.0, "{hierarchy}");
}

#[test]
fn dense_rows_leave_the_levels_sparse() {
    let n = 60;
    let mut entries = Entries::new();
    grid(&mut entries, n, 0, 1.0);
    for hub in 0..4 {
        (0..n * n).filter(|i| i % 4 == hub).for_each(|i| join(&mut entries, [i, n * n + hub], 1e-2));
    }
    let (a, config) = (matrix(n * n + 4, &entries), AmgConfig::default());
    let solver = AmgSolver::<f32, _>::from_matrix(&a, None, &config).unwrap();
    assert!(solver.hierarchy().operator_complexity() < 1.7, "{}", solver.hierarchy());
    let iterations = solve(&a, None, &config, vec![1.0; n * n + 4]).iterations;
    assert!(iterations < 30, "{iterations}");
}
