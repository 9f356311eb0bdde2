//! `LinearSolver`: many right sides, refills, near-nullspaces, precision of levels, refusals.

use femtile_device::{Buffer, Cpu};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::Stop;
use femtile_solve::{
    AmgGraph, AmgOptions, GmgOptions, LevelPrecision, LinearSolver, MatrixFormat, Method,
    PreconditionerConfig, Silent, SolveError, SolverConfig,
};
use femtile_sparse::{Csr, Format, Triplets};

type Matrix = Csr<f64, Cpu>;

/// A matrix from entries of its lower triangle.
fn symmetric(n: usize, lower: impl IntoIterator<Item = (usize, usize, f64)>) -> Matrix {
    let mut triplets = Triplets::new(n, n);
    for (row, column, value) in lower {
        triplets.push(row, column, value).unwrap();
        if row != column {
            triplets.push(column, row, value).unwrap();
        }
    }
    triplets.into_csr(&Cpu::new(1).unwrap()).unwrap().matrix
}

/// −∇·(σ∇u) on n × n points between which σ varies by the factor `jump`.
fn grid(n: usize, jump: f64) -> Matrix {
    let sigma = |i: usize| if (i % n) * 2 < n { 1.0 } else { jump };
    let mut lower: Vec<(usize, usize, f64)> = (0..n * n).map(|i| (i, i, 0.1 * sigma(i))).collect();
    let neighbours = |i: usize| {
        [(!i.is_multiple_of(n)).then(|| i - 1), (i >= n).then(|| i - n)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    for i in 0..n * n {
        for j in neighbours(i) {
            let value = 0.5 * (sigma(i) + sigma(j));
            lower.extend([(i, j, -value), (i, i, value), (j, j, value)]);
        }
    }
    symmetric(n * n, lower)
}

fn amg(precision: LevelPrecision) -> PreconditionerConfig {
    PreconditionerConfig::Amg(AmgOptions { precision, ..AmgOptions::default() })
}

fn config(preconditioner: PreconditionerConfig) -> SolverConfig {
    SolverConfig { preconditioner, ..SolverConfig::default() }
}

fn right_side(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7 + seed * 13) % 11) as f64 - 4.0).collect()
}

fn largest_difference(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

const ALL: [fn() -> PreconditionerConfig; 4] = [
    || PreconditionerConfig::None,
    || PreconditionerConfig::Jacobi,
    || amg(LevelPrecision::F32),
    || amg(LevelPrecision::F64),
];

#[test]
fn a_solver_with_other_values_solves_as_a_new_one_does() {
    let (first, doubled, other) = (grid(30, 1.0), grid(30, 1.0), grid(30, 50.0));
    let b = right_side(900, 1);
    let cases = ALL.iter().flat_map(|preconditioner| {
        [MatrixFormat::Csr, MatrixFormat::EllWarp].map(|format| (preconditioner(), format))
    });
    for (preconditioner, format) in cases {
        let config = SolverConfig { format, ..config(preconditioner) };
        let mut solver = LinearSolver::new(&first, &config).unwrap();
        assert_eq!(solver.format().0 == Format::Csr, format == MatrixFormat::Csr);
        let before = solver.solve(&b).unwrap();
        solver.refill(&other).unwrap();
        let found = solver.solve(&b).unwrap();
        let expected = LinearSolver::new(&other, &config).unwrap().solve(&b).unwrap();
        assert!(found.has_converged() && expected.has_converged());
        assert!(largest_difference(&before.x, &expected.x) > 1e-2, "the matrices have the same solution");
        assert!(largest_difference(&found.x, &expected.x) < 1e-6, "{config:?}");
        // Back to the first values, to the last bit.
        solver.refill(&doubled).unwrap();
        assert_eq!(solver.solve(&b).unwrap().x, before.x, "{config:?}");
    }
}

#[test]
fn another_pattern_is_refused_and_the_solver_stays_what_it_was() {
    let a = grid(12, 1.0);
    let b = right_side(144, 1);
    for preconditioner in ALL {
        let mut solver = LinearSolver::new(&a, &config(preconditioner())).unwrap();
        let before = solver.solve(&b).unwrap().x;
        let n = a.n_nonzeros();
        let missing = symmetric(144, (0..144).map(|i| (i, i, 1.0)));
        // As many rows and entries, in other places.
        let moved = symmetric(
            144,
            (0..144)
                .map(|i| (i, i, 9.0))
                .chain((12..144).map(|i| (i, i - 12, -1.0)))
                .chain((0..132).map(|i| (i + 2, i, -1.0))),
        );
        assert_eq!(moved.n_nonzeros(), n);
        for other in [missing, moved, grid(11, 1.0)] {
            let error = solver.refill(&other).unwrap_err();
            assert!(
                matches!(&error, SolveError::Linalg(LinalgError::Setting { field: "matrix", message })
                    if message.contains("another pattern")),
                "{error}"
            );
        }
        assert_eq!(solver.solve(&b).unwrap().x, before);
    }
}

#[test]
fn one_solver_serves_many_right_sides() {
    let a = grid(20, 10.0);
    for preconditioner in ALL {
        let config = config(preconditioner());
        let solver = LinearSolver::new(&a, &config).unwrap();
        for seed in 0..3 {
            let b = right_side(400, seed);
            let expected = LinearSolver::new(&a, &config).unwrap().solve(&b).unwrap();
            let found = solver.solve(&b).unwrap();
            assert_eq!(found.x, expected.x);
            assert_eq!(found.outcome.iterations, expected.outcome.iterations);
        }
    }
}

#[test]
fn an_initial_guess_that_solves_the_system_saves_iterations() {
    let a = grid(20, 10.0);
    let solver = LinearSolver::new(&a, &config(amg(LevelPrecision::F32))).unwrap();
    let b = right_side(400, 1);
    let solution = solver.solve(&b).unwrap();
    let again = solver.solve_from(solution.x, &b, &mut Silent).unwrap();
    assert!(again.has_converged());
    assert!(again.outcome.iterations < solution.outcome.iterations / 2, "{}", again.outcome.iterations);
}

/// A matrix on which 1/d is small: a grid, its rows and columns multiplied by d.
fn scaled_grid(n: usize, d: impl Fn(usize) -> f64) -> Matrix {
    let plain = grid(n, 1.0);
    let rows = (0..n * n).flat_map(|row| plain.row(row).map(move |(column, value)| (row, column, value)));
    let lower = rows.filter(|(row, column, _)| column <= row);
    let lower: Vec<_> = lower.map(|(row, column, value)| (row, column, value * d(row) * d(column))).collect();
    symmetric(n * n, lower)
}

#[test]
fn a_badly_scaled_matrix_needs_no_near_nullspace_also_after_a_refill() {
    let n = 40;
    let d = |i: usize| 1.0 + 0.9 * (7.0 * i as f64).sin();
    let a = scaled_grid(n, d);
    let near: Vec<f64> = (0..n * n).map(|i| 1.0 / d(i)).collect();
    let b = right_side(n * n, 2);
    let config = config(amg(LevelPrecision::F64));
    let without = LinearSolver::new(&a, &config).unwrap().solve(&b).unwrap();
    let mut solver = LinearSolver::with_near_nullspace(&a, &near, &config).unwrap();
    let with = solver.solve(&b).unwrap();
    assert!(with.has_converged());
    let [exact, found] = [&with, &without].map(|solution| solution.outcome.iterations);
    assert!(without.has_converged() && found <= exact + 3 && found < 15, "{exact} {found}");
    solver.refill(&a).unwrap();
    assert_eq!(solver.solve(&b).unwrap().x, with.x);
    for wrong in [&near[1..], &[]] {
        let error = LinearSolver::with_near_nullspace(&a, wrong, &config).err().unwrap();
        assert!(matches!(error, SolveError::Amg(_)), "{error}");
    }
}

#[test]
fn levels_are_kept_in_double_precision_where_single_does_not_hold_the_matrix() {
    let block = grid(16, 1.0);
    let n = 256;
    let of = |offset: usize, factor: f64| {
        let rows = (0..n).flat_map(|row| block.row(row).map(move |(column, value)| (row, column, value)));
        let lower = rows.filter(|(row, column, _)| column <= row);
        lower
            .map(move |(row, column, value)| (row + offset, column + offset, value * factor))
            .collect::<Vec<_>>()
    };
    let a = symmetric(2 * n, of(0, 1.0).into_iter().chain(of(n, 1e-20)));
    let b: Vec<f64> = (0..2 * n).map(|row| a.row(row).map(|(_, value)| value).sum()).collect();
    let sound = LinearSolver::new(&block, &config(amg(LevelPrecision::F32))).unwrap();
    assert!(sound.warnings().is_empty(), "{:?}", sound.warnings());
    let solver = LinearSolver::new(&a, &config(amg(LevelPrecision::F32))).unwrap();
    assert!(solver.warnings().iter().any(|text| text.contains("f64")), "{:?}", solver.warnings());
    assert!(!solver.levels().is_empty());
    let solution = solver.solve(&b).unwrap();
    assert!(solution.has_converged());
    assert!(solution.x[..n].iter().all(|x| (x - 1.0).abs() < 1e-6));
}

#[test]
fn matrices_and_vectors_that_form_no_system_are_refused() {
    let mut wide = Triplets::new(2, 3);
    wide.push(0, 0, 1.0).unwrap();
    let wide = wide.into_csr(&Cpu::new(1).unwrap()).unwrap().matrix;
    let said = LinearSolver::new(&wide, &SolverConfig::default()).err().unwrap().to_string();
    assert!(said.contains("2 × 3 is not square"), "{said}");

    let a = grid(4, 1.0);
    let boxes = PreconditionerConfig::Gmg(GmgOptions::default());
    let said = LinearSolver::new(&a, &config(boxes)).err().unwrap().to_string();
    assert!(said.contains("solver.preconditioner") && said.contains("amg"), "{said}");

    let solver = LinearSolver::new(&a, &SolverConfig::default()).unwrap();
    assert!(matches!(solver.solve(&[1.0; 15]), Err(SolveError::Linalg(LinalgError::Length { .. }))));
    let mut b = vec![1.0; 16];
    b[3] = f64::NAN;
    let said = solver.solve(&b).unwrap_err().to_string();
    assert!(said.contains("entry 3 (counted from 0) is NaN"), "{said}");
    assert!(solver.solve_from(vec![0.0; 15], &[1.0; 16], &mut Silent).is_err());
}

#[test]
fn a_matrix_has_no_mesh_that_aggregates_could_follow() {
    let a = grid(4, 1.0);
    let preconditioner =
        PreconditionerConfig::Amg(AmgOptions { graph: AmgGraph::Mesh, ..AmgOptions::default() });
    let solver = LinearSolver::new(&a, &SolverConfig { preconditioner, ..SolverConfig::default() });
    let said = solver.err().expect("refused").to_string();
    assert!(said.contains("solver.amg.graph") && said.contains("\"matrix\""), "{said}");
}

/// Two grids whose rows alternate, and what is nearly in their null spaces, one vector after the other.
#[test]
fn several_vectors_of_a_near_nullspace_follow_one_another() {
    let n = 40;
    let d = |i: usize| 1.0 + 0.9 * (7.0 * i as f64).sin();
    let one = scaled_grid(n, d);
    let entries = (0..2 * n * n)
        .flat_map(|row| one.row(row / 2).map(move |(column, value)| (row, 2 * column + row % 2, value)));
    let a = symmetric(2 * n * n, entries.filter(|(row, column, _)| column <= row).collect::<Vec<_>>());
    let of = |part: usize| (0..2 * n * n).map(move |i| if i % 2 == part { 1.0 / d(i / 2) } else { 0.0 });
    let near: Vec<f64> = of(0).chain(of(1)).collect();
    let b = right_side(2 * n * n, 2);
    let PreconditionerConfig::Amg(mut options) = amg(LevelPrecision::F64) else { unreachable!() };
    options.config.block_size = 2;
    let config = config(PreconditionerConfig::Amg(options));
    let without = LinearSolver::new(&a, &config).unwrap().solve(&b).unwrap();
    let with = LinearSolver::with_near_nullspace(&a, &near, &config).unwrap().solve(&b).unwrap();
    let [few, many] = [&with, &without].map(|solution| solution.outcome.iterations);
    assert!(with.has_converged() && 3 * few < 2 * many, "{few} {many}");
}

#[test]
fn a_refused_refill_leaves_the_solver_as_it_was() {
    let a = grid(12, 1.0);
    let b = right_side(144, 1);
    let bad = |value: f64| {
        let rows = (0..144).flat_map(|row| a.row(row).map(move |(column, entry)| (row, column, entry)));
        let lower = rows.filter(|(row, column, _)| column <= row);
        symmetric(
            144,
            lower
                .map(|(row, column, entry)| (row, column, if row == 7 { value } else { entry }))
                .collect::<Vec<_>>(),
        )
    };
    for preconditioner in ALL.into_iter().skip(1) {
        for format in [MatrixFormat::Csr, MatrixFormat::EllWarp] {
            let config = SolverConfig { format, ..config(preconditioner()) };
            let mut solver = LinearSolver::new(&a, &config).unwrap();
            let before = solver.solve(&b).unwrap().x;
            for value in [f64::NAN, -1.0] {
                assert!(solver.refill(&bad(value)).is_err());
                assert_eq!(solver.solve(&b).unwrap().x, before, "{config:?}");
            }
            solver.refill(&a).unwrap();
            assert_eq!(solver.solve(&b).unwrap().x, before);
        }
    }
}

#[test]
fn right_sides_of_a_singular_matrix_are_projected_and_that_is_told() {
    // A grid whose first part is held, and a pair that is not.
    let n = 15;
    let plain = grid(n, 1.0);
    let rows = (0..n * n).flat_map(|row| plain.row(row).map(move |(column, value)| (row, column, value)));
    let lower = rows.filter(|(row, column, _)| column <= row);
    let pair = [(n * n, n * n, 2.0), (n * n + 1, n * n, -2.0), (n * n + 1, n * n + 1, 2.0)];
    let a = symmetric(n * n + 2, lower.chain(pair).collect::<Vec<_>>());
    let solver = LinearSolver::new(&a, &config(amg(LevelPrecision::F32))).unwrap();
    assert!(solver.warnings().iter().any(|text| text.contains("singular")), "{:?}", solver.warnings());
    let mut b = right_side(n * n + 2, 1);
    (b[n * n], b[n * n + 1]) = (5.0, 1.0);
    let solution = solver.solve(&b).unwrap();
    assert!(solution.has_converged());
    // Of (5, 1) the part (2, −2) remains.
    assert!((solution.x[n * n] - solution.x[n * n + 1] - 1.0).abs() < 1e-8);
}

#[test]
fn gmres_needs_no_definite_matrix_and_others_say_so() {
    let negative = symmetric(3, [(0, 0, -3.0), (1, 0, 1.0), (1, 1, -3.0), (2, 1, 2.0), (2, 2, -3.0)]);
    let saddle = symmetric(3, [(0, 0, 2.0), (1, 1, 2.0), (2, 0, 1.0), (2, 1, 1.0)]);
    for a in [&negative, &saddle] {
        let b: Vec<f64> = (0..3).map(|row| a.row(row).map(|(_, value)| value).sum()).collect();
        let gmres =
            SolverConfig { method: femtile_solve::Method::Gmres { restart: 30 }, ..SolverConfig::default() };
        let solution = LinearSolver::new(a, &gmres).unwrap().solve(&b).unwrap();
        assert!(solution.has_converged() && largest_difference(&solution.x, &[1.0; 3]) < 1e-8);
    }
    for preconditioner in ALL.into_iter().skip(1) {
        let said = LinearSolver::new(&saddle, &config(preconditioner())).err().unwrap().to_string();
        assert!(said.contains("gmres") && !said.contains("cells"), "{said}");
    }
}

/// A matrix with other values on the same pattern.
fn times(a: &Matrix, factor: f64) -> Matrix {
    let values = a.values().as_slice().iter().map(|value| factor * value).collect();
    a.with_values(Buffer::from_vec(a.values().device(), values).unwrap()).unwrap()
}

#[test]
fn a_negative_definite_matrix_is_solved_as_its_negative_with_a_warning() {
    let (a, b) = (grid(30, 50.0), right_side(900, 1));
    for preconditioner in ALL {
        let config = config(preconditioner());
        let plain = LinearSolver::new(&a, &config).unwrap();
        let mut solver = LinearSolver::new(&times(&a, -1.0), &config).unwrap();
        assert!(solver.warnings()[0].contains("−A x = −b"), "{:?}", solver.warnings());
        let expected: Vec<f64> = plain.solve(&b).unwrap().x.iter().map(|x| -x).collect();
        let found = solver.solve(&b).unwrap();
        assert!(found.has_converged());
        assert!(largest_difference(&found.x, &expected) < 1e-8, "{config:?}");
        // A guess has the sign of the solution.
        let again = solver.solve_from(found.x, &b, &mut Silent).unwrap();
        assert!(again.outcome.iterations <= 1, "{config:?}: {}", again.outcome.iterations);
        let z: Vec<f64> = plain.precondition(&b).unwrap().iter().map(|z| -z).collect();
        assert_eq!(solver.precondition(&b).unwrap(), z, "{config:?}");
        solver.refill(&a).unwrap();
        assert!(largest_difference(&solver.solve(&b).unwrap().x, &plain.solve(&b).unwrap().x) < 1e-8);
    }
}

#[test]
fn an_indefinite_matrix_is_refused_with_the_method_that_solves_it() {
    let n = 24;
    let shifted = symmetric(
        n * n,
        (0..n * n).flat_map(|i| {
            let neighbours = [(i % n > 0).then(|| i - 1), (i >= n).then(|| i - n)];
            let neighbours = neighbours.into_iter().flatten().map(move |j| (i, j, -1.0));
            neighbours.chain([(i, i, 3.0)])
        }),
    );
    let b = right_side(n * n, 2);
    let jacobi = LinearSolver::new(&shifted, &config(PreconditionerConfig::Jacobi)).unwrap();
    let refused = jacobi.solve(&b).unwrap().outcome;
    assert!(!matches!(refused.stop, Stop::Converged) && refused.reason().contains("gmres"), "{refused:?}");
    let method = Method::Gmres { restart: 200 };
    let gmres = SolverConfig { method, ..config(PreconditionerConfig::Jacobi) };
    let found = LinearSolver::new(&shifted, &gmres).unwrap().solve(&b).unwrap();
    assert!(found.has_converged(), "{}", found.outcome.reason());
    let mut r = b.clone();
    for (i, r) in r.iter_mut().enumerate() {
        *r -= shifted.row(i).map(|(j, value)| value * found.x[j]).sum::<f64>();
    }
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    assert!(norm(&r) <= 2e-10 * norm(&b), "{}", norm(&r));
}

/// A chain, some nodes of which are connected to a tenth of all others as well, a tenth as strongly: no row is dense, and the
/// next level is full.
fn chain_with_hubs(n: usize, n_hubs: usize) -> Matrix {
    let chain = (1..n).map(|i| (i, i - 1, 1.0));
    let spokes = (0..n_hubs).flat_map(|hub| {
        let centre = hub * (n / n_hubs);
        let ends = (0..n / 10).map(move |k| (10 * k + 7 * hub) % n);
        ends.filter(move |end| end.abs_diff(centre) > 1)
            .map(move |end| (centre.max(end), centre.min(end), 0.1))
    });
    let edges =
        chain.chain(spokes).flat_map(|(i, j, weight)| [(i, j, -weight), (i, i, weight), (j, j, weight)]);
    symmetric(n, edges.chain((0..n).map(|i| (i, i, 0.01))))
}

#[test]
fn levels_that_fill_up_give_way_to_the_diagonal_where_the_choice_is_the_librarys() {
    let a = chain_with_hubs(1000, 20);
    let asked = LinearSolver::new(&a, &config(amg(LevelPrecision::F32))).unwrap();
    let n_entries: usize = asked.levels().iter().filter_map(|level| level.n_nonzeros).sum();
    assert!(n_entries > 3 * a.n_nonzeros(), "{n_entries}");
    assert_eq!(asked.preconditioner(), "amg");
    assert!(
        asked.warnings().iter().any(|w| w.contains("\"jacobi\" takes less memory")),
        "{:?}",
        asked.warnings()
    );
    let chosen = LinearSolver::new(&a, &config(PreconditionerConfig::Auto)).unwrap();
    assert_eq!(chosen.preconditioner(), "jacobi");
    assert!(chosen.warnings().iter().any(|w| w.contains("the diagonal is taken")), "{:?}", chosen.warnings());
    let b = right_side(1000, 1);
    let (by_diagonal, by_levels) = (chosen.solve(&b).unwrap(), asked.solve(&b).unwrap());
    assert!(by_diagonal.has_converged());
    assert!(largest_difference(&by_diagonal.x, &by_levels.x) < 1e-6);
    // Without hubs the levels stay small.
    let usual = LinearSolver::new(&grid(30, 1.0), &config(PreconditionerConfig::Auto)).unwrap();
    assert_eq!(usual.preconditioner(), "amg");
}
