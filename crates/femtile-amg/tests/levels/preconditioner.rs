//! One cycle as a preconditioner: symmetric, positive, a contraction, the same bits, and what it refuses.

use femtile_amg::{Amg, AmgConfig, AmgError, Cycle, PatchFormat, Smoother};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{CgOutcome, ConjugateGradient, KrylovConfig};
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_sparse::{Csr, MatrixFormat, Triplets};

type Matrix = Csr<f64, Cpu>;

fn cpu(threads: usize) -> Cpu {
    Cpu::new(threads).unwrap()
}

/// A matrix from its edges, each a weight between two rows, and what is added to its diagonal.
fn matrix(cpu: &Cpu, n: usize, edges: impl Iterator<Item = (usize, usize, f64)>, shift: f64) -> Matrix {
    let mut triplets = Triplets::new(n, n);
    (0..n).for_each(|i| triplets.push(i, i, shift).unwrap());
    for (a, b, weight) in edges {
        for (row, column, value) in [(a, a, weight), (b, b, weight), (a, b, -weight), (b, a, -weight)] {
            triplets.push(row, column, value).unwrap();
        }
    }
    triplets.into_csr(cpu).unwrap().matrix
}

/// A cube of points whose conductivity jumps from block to block.
fn cube(cpu: &Cpu, side: usize, jump: f64, shift: f64) -> Matrix {
    let sigma = move |i: usize| {
        let [x, y, z] = [i % side, i / side % side, i / side / side].map(|x| x / 4);
        if (x + y + z) % 2 == 0 { 1.0 } else { jump }
    };
    let edges = (0..side * side * side).flat_map(move |i| {
        let last = [i % side, i / side % side, i / side / side].map(|x| x + 1 == side);
        let steps = [1, side, side * side].into_iter().zip(last).filter(|(_, last)| !last);
        steps.map(move |(step, _)| {
            (i, i + step, 2.0 * sigma(i) * sigma(i + step) / (sigma(i) + sigma(i + step)))
        })
    });
    matrix(cpu, side * side * side, edges, shift)
}

fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn apply<M: Preconditioner<f64, Cpu>>(m: &M, cpu: &Cpu, r: &[f64]) -> Vec<f64> {
    let mut z = Buffer::from_vec(cpu, vec![f64::NAN; r.len()]).unwrap();
    m.apply(&mut z, &Buffer::from_host(cpu, r).unwrap()).unwrap();
    z.to_host().unwrap()
}

fn product(a: &Matrix, cpu: &Cpu, x: &[f64]) -> Vec<f64> {
    let mut y = Buffer::zeros(cpu, x.len()).unwrap();
    a.apply(&mut y, &Buffer::from_host(cpu, x).unwrap()).unwrap();
    y.to_host().unwrap()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn solve(a: &Matrix, cpu: &Cpu, config: &AmgConfig, b: &[f64]) -> (CgOutcome, Vec<f64>) {
    let amg = Amg::<f32, _>::new(a, None, config).unwrap();
    let mut x = Buffer::zeros(cpu, b.len()).unwrap();
    let cg = ConjugateGradient::new(KrylovConfig {
        tolerance: 1e-8,
        max_iterations: 200,
        ..KrylovConfig::default()
    });
    let b = Buffer::from_host(cpu, b).unwrap();
    let outcome = cg.solve(&mut x, a, &amg, &b, &SingleRank, &mut ()).unwrap();
    (outcome, x.to_host().unwrap())
}

const PATCHES: Smoother = Smoother::Patch { inner: 3, format: PatchFormat::FullRowEll };

fn every_config() -> Vec<AmgConfig> {
    let smoothers = [
        Smoother::Jacobi { sweeps: 1 },
        Smoother::Jacobi { sweeps: 2 },
        Smoother::Chebyshev { degree: 1 },
        Smoother::Chebyshev { degree: 2 },
        Smoother::Chebyshev { degree: 3 },
        Smoother::GaussSeidel { sweeps: 1 },
        Smoother::GaussSeidel { sweeps: 2 },
        Smoother::Patch { inner: 1, format: PatchFormat::Csr },
        Smoother::Patch { inner: 2, format: PatchFormat::SymmetricCoo },
        Smoother::Patch { inner: 3, format: PatchFormat::FullRowEll },
        Smoother::Patch { inner: 8, format: PatchFormat::FullRowEll },
    ];
    let of = |smoother| {
        [Cycle::V, Cycle::W, Cycle::K].map(|cycle| AmgConfig {
            smoother,
            cycle,
            coarse_rows: 20,
            ..AmgConfig::default()
        })
    };
    smoothers.into_iter().flat_map(of).collect()
}

#[test]
fn a_cycle_is_symmetric_positive_and_a_contraction() {
    let cpu = cpu(2);
    let a = cube(&cpu, 22, 100.0, 1e-3);
    let n = a.n_rows();
    for config in every_config() {
        let amg = Amg::<f64, _>::new(&a, None, &config).unwrap();
        assert!(amg.hierarchy().shapes().len() > 2, "{}", amg.hierarchy());
        let (x, y) = (random(n, 1), random(n, 2));
        let (mx, my) = (apply(&amg, &cpu, &x), apply(&amg, &cpu, &y));
        let (left, right) = (dot(&mx, &y), dot(&x, &my));
        // A K cycle is no fixed map, and so has no adjoint.
        assert!(
            config.cycle == Cycle::K
                || (left - right).abs() < 1e-12 * dot(&mx, &mx).sqrt() * dot(&y, &y).sqrt(),
            "{config:?}: {left} {right}"
        );
        assert!(dot(&mx, &x) > 0.0 && dot(&my, &y) > 0.0, "{config:?}");
        // The slowest error comes out after some cycles.
        let (mut e, mut factor) = (random(n, 3), 0.0);
        for _ in 0..12 {
            let before = dot(&e, &product(&a, &cpu, &e)).sqrt();
            let correction = apply(&amg, &cpu, &product(&a, &cpu, &e));
            e.iter_mut().zip(correction).for_each(|(e, c)| *e = (*e - c) / before);
            factor = dot(&e, &product(&a, &cpu, &e)).sqrt();
        }
        assert!(factor < 0.95, "{config:?}: an error becomes {factor} of what it was");
    }
}

#[test]
fn iterations_hardly_grow_with_the_size_nor_with_jumps() {
    let cpu = cpu(2);
    let iterations = |side: usize, jump: f64| {
        let a = cube(&cpu, side, jump, 1e-3);
        let (outcome, _) = solve(&a, &cpu, &AmgConfig::default(), &vec![1.0; a.n_rows()]);
        assert_eq!(outcome.stop, Stop::Converged);
        outcome.iterations
    };
    let (small, large, jumps) = (iterations(12, 1.0), iterations(40, 1.0), iterations(40, 10.0));
    assert!(large <= 12 && 2 * large <= 3 * small, "{small} iterations, then {large}");
    assert!(jumps <= 2 * large, "{large} iterations, {jumps} with jumps");
}

#[test]
fn cycles_of_conjugate_gradients_help_where_jumps_are_hardly_larger_than_aggregates() {
    let cpu = cpu(2);
    let a = cube(&cpu, 40, 1e3, 1e-3);
    let iterations = |cycle| {
        let config = AmgConfig { cycle, ..AmgConfig::default() };
        let (outcome, _) = solve(&a, &cpu, &config, &vec![1.0; a.n_rows()]);
        assert_eq!(outcome.stop, Stop::Converged);
        outcome.iterations
    };
    let (v, k) = (iterations(Cycle::V), iterations(Cycle::K));
    println!("V {v} W {} K {k}", iterations(Cycle::W));
    assert!(4 * k <= 3 * v, "{v} iterations with V, {k} with K");
}

#[test]
fn right_sides_of_any_size_take_as_many_iterations_and_have_the_same_bits() {
    let cpu = cpu(2);
    let a = cube(&cpu, 20, 1.0, 1e-3);
    let b = random(a.n_rows(), 9);
    let (expected, x) = solve(&a, &cpu, &AmgConfig::default(), &b);
    for exponent in [-400, -133, 133, 400] {
        let factor = 2.0_f64.powi(exponent);
        let scaled: Vec<f64> = b.iter().map(|b| factor * b).collect();
        let (outcome, y) = solve(&a, &cpu, &AmgConfig::default(), &scaled);
        assert_eq!(
            (outcome.stop, outcome.iterations),
            (Stop::Converged, expected.iterations),
            "2^{exponent}"
        );
        assert!(y.iter().zip(&x).all(|(y, x)| *y == factor * x), "2^{exponent}");
    }
}

#[test]
fn the_solution_has_the_same_bits_at_one_two_and_three_threads() {
    let bits = |threads: usize, smoother, cycle, format| {
        let cpu = cpu(threads);
        let a = cube(&cpu, 26, 10.0, 1e-3);
        let config = AmgConfig { smoother, cycle, format, ..AmgConfig::default() };
        let (outcome, x) = solve(&a, &cpu, &config, &random(a.n_rows(), 4));
        (outcome.iterations, x.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    let (chebyshev, seidel) = (Smoother::Chebyshev { degree: 2 }, Smoother::GaussSeidel { sweeps: 1 });
    for (smoother, cycle, format) in [
        (chebyshev, Cycle::V, MatrixFormat::Csr),
        (chebyshev, Cycle::V, MatrixFormat::EllWarp),
        (seidel, Cycle::V, MatrixFormat::Auto),
        (chebyshev, Cycle::K, MatrixFormat::EllWarp),
        (PATCHES, Cycle::V, MatrixFormat::Auto),
    ] {
        let one = bits(1, smoother, cycle, format);
        assert_eq!(one, bits(2, smoother, cycle, format));
        assert_eq!(one, bits(3, smoother, cycle, format));
    }
}

#[test]
fn a_refilled_hierarchy_is_that_of_the_new_values() {
    let cpu = cpu(1);
    let (a, other) = (cube(&cpu, 14, 1.0, 1e-3), cube(&cpu, 14, 1.0, 0.5));
    let larger = cube(&cpu, 16, 1.0, 0.5);
    let in_slices = AmgConfig { format: MatrixFormat::EllWarp, ..AmgConfig::default() };
    for config in [AmgConfig::default(), in_slices, AmgConfig { smoother: PATCHES, ..AmgConfig::default() }] {
        let mut amg = Amg::<f64, _>::new(&a, None, &config).unwrap();
        for (next, seed) in [(&other, 5), (&larger, 8)] {
            amg.refill(next, None).unwrap();
            let r = random(next.n_rows(), seed);
            let fresh = Amg::<f64, _>::new(next, None, &config).unwrap();
            assert_eq!(apply(&amg, &cpu, &r), apply(&fresh, &cpu, &r));
        }
    }
}

/// Where levels end too early to be solved directly, the last one is smoothed.
#[test]
fn there_are_no_more_levels_than_asked_for() {
    let cpu = cpu(2);
    let a = cube(&cpu, 20, 1.0, 1.0);
    let r = random(a.n_rows(), 9);
    for smoother in [AmgConfig::default().smoother, PATCHES] {
        for max_levels in 1..4 {
            let amg =
                Amg::<f64, _>::new(&a, None, &AmgConfig { smoother, max_levels, ..AmgConfig::default() });
            let amg = amg.unwrap();
            assert_eq!(amg.hierarchy().shapes().len(), max_levels, "{}", amg.hierarchy());
            assert!(dot(&apply(&amg, &cpu, &r), &r) > 0.0);
            let n_patches = amg.hierarchy().shapes()[0].n_patches;
            assert_eq!(n_patches >= a.n_rows() / 400, smoother == PATCHES, "{}", amg.hierarchy());
        }
    }
}

/// Small, extreme and odd matrices that are fine.
#[test]
fn matrices_of_every_shape_are_solved() {
    let cpu = cpu(2);
    let star = (1..3_000).map(|i| (0, i, 1.0));
    let chain = |n: usize| (1..n).map(|i| (i - 1, i, 1.0));
    let two_chains = chain(2_000).chain((2_001..4_000).map(|i| (i - 1, i, 1.0)));
    let dense = (0..60).flat_map(|i| (0..i).map(move |j| (i, j, 1.0)));
    let hub = chain(3_000).chain((2..3_000).map(|i| (0, i, 1e-3)));
    let cases: Vec<(&str, Matrix)> = vec![
        ("one row", matrix(&cpu, 1, std::iter::empty(), 3.0)),
        ("two rows", matrix(&cpu, 2, chain(2), 1e-3)),
        ("a diagonal", matrix(&cpu, 1_000, std::iter::empty(), 2.0)),
        ("a star", matrix(&cpu, 3_000, star, 1e-3)),
        ("a chain", matrix(&cpu, 3_000, chain(3_000), 1e-6)),
        ("two chains", matrix(&cpu, 4_000, two_chains, 1e-4)),
        ("a full matrix", matrix(&cpu, 60, dense, 1e-2)),
        ("a chain with a hub", matrix(&cpu, 3_000, hub, 1e-4)),
        ("tiny numbers", matrix(&cpu, 3_000, chain(3_000).map(|(a, b, w)| (a, b, 1e-120 * w)), 1e-124)),
        ("large numbers", matrix(&cpu, 3_000, chain(3_000).map(|(a, b, w)| (a, b, 1e120 * w)), 1e116)),
    ];
    for config in [AmgConfig::default(), AmgConfig { smoother: PATCHES, ..AmgConfig::default() }] {
        for (name, a) in &cases {
            let b = random(a.n_rows(), 6);
            let (outcome, _) = solve(a, &cpu, &config, &b);
            let name = format!("{name}, {:?}", config.smoother);
            assert!(outcome.stop == Stop::Converged && outcome.iterations <= 40, "{name}: {outcome:?}");
            assert!(outcome.true_relative_residual < 1e-7, "{name}: {}", outcome.true_relative_residual);
        }
        let empty = matrix(&cpu, 0, std::iter::empty(), 0.0);
        let amg = Amg::<f32, _>::new(&empty, None, &config).unwrap();
        assert!(apply(&amg, &cpu, &[]).is_empty());
    }
}

#[test]
fn a_singular_matrix_is_solved_beside_its_nullspace() {
    let cpu = cpu(2);
    let a = cube(&cpu, 20, 1.0, 0.0);
    let mut b = random(a.n_rows(), 7);
    let mean = b.iter().sum::<f64>() / b.len() as f64;
    b.iter_mut().for_each(|b| *b -= mean);
    let (outcome, _) = solve(&a, &cpu, &AmgConfig::default(), &b);
    assert!(outcome.stop == Stop::Converged && outcome.iterations <= 20, "{outcome:?}");
}

fn refused(a: &Matrix, config: &AmgConfig) -> AmgError {
    Amg::<f64, _>::new(a, None, config).unwrap_err()
}

#[test]
fn bad_matrices_are_named() {
    let cpu = cpu(1);
    let default = AmgConfig::default();
    let build = |entries: &[(usize, usize, f64)]| {
        let mut triplets = Triplets::new(3, 3);
        entries.iter().for_each(|&(row, column, value)| triplets.push(row, column, value).unwrap());
        triplets.into_csr(&cpu).unwrap().matrix
    };
    let ones = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)];
    let with = |entries: &[(usize, usize, f64)]| build(&[&ones, entries].concat());
    assert_eq!(refused(&build(&ones[..2]), &default), AmgError::Diagonal { row: 2, value: 0.0 });
    assert_eq!(refused(&with(&[(1, 1, -1.5)]), &default), AmgError::Diagonal { row: 1, value: -0.5 });
    let found = refused(&with(&[(0, 2, 0.5)]), &default);
    let AmgError::NotSymmetric { row: 0, column: 2, value, mirror, asymmetry } = found else {
        panic!("{found}")
    };
    assert!(value == 0.5 && mirror == 0.0 && asymmetry > 0.3, "{value} {mirror} {asymmetry}");
    let found = refused(&with(&[(0, 1, -2.0), (1, 0, -2.0)]), &default);
    assert!(matches!(found, AmgError::Indefinite { n_rows: 3, row: 1, .. }), "{found}");
    let tiny = build(&[(0, 0, 1.0), (1, 1, 1e-20), (2, 2, 1.0)]);
    let found = Amg::<f32, _>::new(&tiny, None, &default).unwrap_err();
    assert!(
        matches!(found, AmgError::Range { row: 1, ratio } if ratio > 0.0) && found.is_of_precision(),
        "{found}"
    );
    assert!(Amg::<f64, _>::new(&tiny, None, &default).is_ok());
    let wide = Csr::from_parts(&cpu, 2, vec![0, 1].into(), vec![0], vec![1.0]).unwrap();
    assert_eq!(refused(&wide, &default), AmgError::NotSquare { n_rows: 1, n_cols: 2 });
    let not_a_number = Csr::from_parts(&cpu, 1, vec![0, 1].into(), vec![0], vec![f64::NAN]).unwrap();
    let found = refused(&not_a_number, &default);
    assert!(matches!(found, AmgError::NotFinite { row: 0, column: 0, .. }), "{found}");
}

#[test]
fn bad_settings_are_refused_with_what_to_choose() {
    let cpu = cpu(1);
    let a = cube(&cpu, 4, 1.0, 1.0);
    let bad = [
        AmgConfig { block_size: 0, ..AmgConfig::default() },
        AmgConfig { block_size: 3, ..AmgConfig::default() },
        AmgConfig { strength: -0.1, ..AmgConfig::default() },
        AmgConfig { strength: f64::NAN, ..AmgConfig::default() },
        AmgConfig { max_levels: 0, ..AmgConfig::default() },
        AmgConfig { smoother: Smoother::Chebyshev { degree: 0 }, ..AmgConfig::default() },
        AmgConfig {
            smoother: Smoother::Patch { inner: 17, format: PatchFormat::Csr },
            ..AmgConfig::default()
        },
    ];
    for config in bad {
        assert!(matches!(refused(&a, &config), AmgError::Setting { .. }), "{config:?}");
    }
    let amg = |vectors: &[f64]| Amg::<f64, _>::new(&a, Some(vectors), &AmgConfig::default());
    assert!(matches!(amg(&[1.0; 65]), Err(AmgError::Setting { field: "near_nullspace", .. })));
    assert!(matches!(amg(&[f64::NAN; 64]), Err(AmgError::Setting { field: "near_nullspace", .. })));
    let patches = AmgConfig { smoother: PATCHES, ..AmgConfig::default() };
    let many = Amg::<f64, _>::new(&a, Some(&vec![1.0; 401 * 64]), &patches);
    assert!(matches!(many, Err(AmgError::Setting { field: "smoother", .. })));
}

#[test]
fn vectors_of_another_length_are_refused() {
    let cpu = cpu(1);
    let a = cube(&cpu, 4, 1.0, 1.0);
    let amg = Amg::<f64, _>::new(&a, None, &AmgConfig::default()).unwrap();
    let mut z: Buffer<f64, _> = Buffer::zeros(&cpu, 64).unwrap();
    let r: Buffer<f64, _> = Buffer::zeros(&cpu, 63).unwrap();
    assert!(amg.apply(&mut z, &r).is_err());
}
