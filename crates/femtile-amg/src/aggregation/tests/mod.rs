//! Convection–diffusion at all cell Péclet numbers, the cycle against dense matrices, and what the set-up refuses.

mod convection;

use femtile_device::{Buffer, Cpu};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::KrylovConfig;
use femtile_linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_sparse::{Csr, Triplets};

use super::couplings::Couplings;
use super::dense_factor::DenseFactor;
use super::downstream::downstream_order;
use super::incomplete_factor::IncompleteFactor;
use super::{AggregationAmg, AggregationConfig};
use crate::AmgError;
use crate::setup::rows::Rows;
use convection::{Flow, galerkin_supg, tetrahedra_supg, upwind};

fn matrix(cpu: &Cpu, n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64, Cpu> {
    let mut triplets = Triplets::new(n, n);
    entries.iter().for_each(|&(row, column, value)| triplets.push(row, column, value).unwrap());
    triplets.into_csr(cpu).unwrap().matrix
}

fn rows(n: usize, entries: &[(usize, usize, f64)]) -> Rows<f64> {
    Rows::as_is(&matrix(&Cpu::new(1).unwrap(), n, entries)).unwrap()
}

/// Six rows of diagonal one, and what flows from a row to another.
fn order_of(flows: &[(usize, usize, f64)]) -> Vec<u32> {
    let diagonal = (0..6).map(|i| (i, i, 1.0));
    let entries: Vec<_> =
        diagonal.chain(flows.iter().map(|&(from, to, weight)| (to, from, -weight))).collect();
    downstream_order(&Couplings::new(rows(6, &entries)), &[1.0; 6])
}

#[test]
fn rows_are_ordered_downstream() {
    assert_eq!(
        order_of(&[(5, 4, 0.9), (4, 3, 0.9), (3, 2, 0.9), (2, 1, 0.9), (1, 0, 0.9)]),
        [5, 4, 3, 2, 1, 0]
    );
    let and_back = [(5, 4, 0.9), (4, 5, 0.2), (4, 2, 0.9), (2, 4, 0.2), (2, 0, 0.9), (0, 2, 0.2)];
    assert_eq!(order_of(&and_back), [1, 3, 5, 4, 2, 0]);
}

#[test]
fn rows_without_a_flow_keep_their_order() {
    assert_eq!(order_of(&[(0, 3, 0.5), (3, 0, 0.5), (1, 5, 0.2), (5, 1, 0.2)]), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_cycle_of_the_flow_is_cut_at_its_weakest_link() {
    let cycle = [(0, 1, 0.9), (1, 2, 0.9), (2, 3, 0.1), (3, 4, 0.9), (4, 5, 0.9), (5, 0, 0.9)];
    assert_eq!(order_of(&cycle), [3, 4, 5, 0, 1, 2]);
}

#[test]
fn a_pivot_that_is_not_positive_is_replaced_by_its_diagonal_entry() {
    let factor = IncompleteFactor::new(&rows(2, &[(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 1.0)]));
    let mut x = [1.0, 0.0];
    factor.solve(&mut x);
    assert_eq!(x, [5.0, -2.0]);
}

/// The fill at (1, 2) is −1/4, that at (2, 1) is 1/4 and leaves the diagonal.
#[test]
fn negative_fill_strengthens_the_diagonal() {
    let entries =
        [(0, 0, 1.0), (0, 1, 0.5), (0, 2, -0.5), (1, 0, 0.5), (1, 1, 1.0), (2, 0, 0.5), (2, 2, 0.75)];
    let product = [[1.0, 0.5, -0.5], [0.5, 1.25, -0.25], [0.5, 0.25, 0.75]];
    let mut x = product.map(|[first, second, third]: [f64; 3]| first + 2.0 * second + 3.0 * third);
    IncompleteFactor::new(&rows(3, &entries)).solve(&mut x);
    assert_eq!(x, [1.0, 2.0, 3.0]);
}

#[test]
fn the_coarsest_level_is_solved_with_pivoting() {
    let entries = [(0, 1, 2.0), (0, 2, 1.0), (1, 0, 1.0), (1, 1, 1e-20), (2, 0, 3.0), (2, 2, -4.0)];
    let mut x = [2.0 * 5.0 - 7.0, 3.0 + 5e-20, 3.0 * 3.0 + 4.0 * 7.0];
    DenseFactor::new(&rows(3, &entries)).solve(&mut x);
    assert!(x.iter().zip([3.0, 5.0, -7.0]).all(|(x, expected)| (x - expected).abs() < 1e-14), "{x:?}");
}

#[test]
fn a_singular_coarsest_level_has_a_finite_solution() {
    let mut x = [1.0, -1.0];
    DenseFactor::new(&rows(2, &[(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0)])).solve(&mut x);
    assert_eq!(x, [1.0, 0.0]);
}

fn apply(amg: &AggregationAmg, cpu: &Cpu, r: &[f64]) -> Vec<f64> {
    let mut z = Buffer::from_vec(cpu, vec![f64::NAN; r.len()]).unwrap();
    amg.apply(&mut z, &Buffer::from_host(cpu, r).unwrap()).unwrap();
    z.to_host().unwrap()
}

/// Solves with a right side of ones; returns the iterations.
fn iterations(a: &Csr<f64, Cpu>, config: &AggregationConfig) -> usize {
    let cpu = a.values().device();
    let amg = AggregationAmg::new(a, config).unwrap();
    let b = Buffer::from_vec(cpu, vec![1.0; a.n_rows()]).unwrap();
    let mut x = Buffer::zeros(cpu, a.n_rows()).unwrap();
    let settings = KrylovConfig { tolerance: 1e-8, max_iterations: 100, ..KrylovConfig::default() };
    let method = Gmres::new(GmresConfig { cg: settings, restart: 30 });
    let outcome = method.solve(&mut x, a, &amg, &b, &SingleRank, &mut ()).unwrap();
    assert_eq!(outcome.stop, Stop::Converged);
    assert!(outcome.true_relative_residual <= 2e-8, "{}", outcome.true_relative_residual);
    outcome.iterations
}

#[test]
fn streamline_diffusion_converges_at_all_peclet_numbers() {
    let cpu = Cpu::new(2).unwrap();
    for flow in [Flow::Through, Flow::Recirculating] {
        for peclet in [0.1, 1.0, 10.0, 100.0, 1000.0] {
            let n = iterations(&galerkin_supg(&cpu, 17, flow, peclet), &AggregationConfig::default());
            assert!(n <= 15, "{flow:?}, Péclet number {peclet}: {n} iterations");
        }
    }
}

/// ILU(0) without compensation, whose solves grow downstream, takes 14 to 79 iterations here.
#[test]
fn streamline_diffusion_on_tetrahedra_converges_where_fill_is_negative() {
    let cpu = Cpu::new(2).unwrap();
    for (flow, most) in [(Flow::Through, 11), (Flow::Recirculating, 24)] {
        for peclet in [100.0, 1000.0] {
            let n = iterations(&tetrahedra_supg(&cpu, 33, flow, peclet), &AggregationConfig::default());
            assert!(n <= most, "{flow:?}, Péclet number {peclet}: {n} iterations");
        }
    }
}

#[test]
fn upwind_volumes_converge_at_all_peclet_numbers() {
    let cpu = Cpu::new(2).unwrap();
    for flow in [Flow::Through, Flow::Recirculating] {
        for peclet in [0.1, 1.0, 10.0, 100.0, 1000.0] {
            let n = iterations(&upwind(&cpu, 17, flow, peclet), &AggregationConfig::default());
            assert!(n <= 15, "{flow:?}, Péclet number {peclet}: {n} iterations");
        }
    }
}

#[test]
fn three_passes_need_fewer_entries_than_two() {
    let a = galerkin_supg(&Cpu::new(2).unwrap(), 17, Flow::Through, 10.0);
    let complexity = [2, 3].map(|passes| {
        let config = AggregationConfig { passes, ..AggregationConfig::default() };
        assert!(iterations(&a, &config) <= 15);
        AggregationAmg::new(&a, &config).unwrap().operator_complexity()
    });
    assert!(complexity[1] < complexity[0] && complexity[0] < 1.5, "{complexity:?}");
}

#[test]
fn shapes_are_those_of_quarters() {
    let a = upwind(&Cpu::new(1).unwrap(), 17, Flow::Through, 1.0);
    let amg = AggregationAmg::new(&a, &AggregationConfig::default()).unwrap();
    assert!(!amg.is_fixed());
    let shapes = amg.shapes();
    assert_eq!((shapes[0].n_rows, shapes[0].n_nonzeros), (17 * 17 * 17, a.n_nonzeros()));
    for pair in shapes.windows(2) {
        assert_eq!(pair[1].n_rows, pair[0].n_aggregates);
        assert!(3 * pair[1].n_rows < pair[0].n_rows, "{shapes:?}");
    }
    assert!(shapes.last().is_some_and(|last| last.n_rows <= 200 && last.n_aggregates == 0), "{shapes:?}");
}

#[test]
fn the_bits_are_the_same_for_any_number_of_threads() {
    let results = [1, 2, 3].map(|threads| {
        let cpu = Cpu::new(threads).unwrap();
        let a = galerkin_supg(&cpu, 17, Flow::Recirculating, 100.0);
        let amg = AggregationAmg::new(&a, &AggregationConfig::default()).unwrap();
        let r: Vec<f64> = (0..a.n_rows()).map(|i| ((7 * i) as f64).sin()).collect();
        apply(&amg, &cpu, &r)
    });
    assert!(results[0] == results[1] && results[0] == results[2]);
}

/// A chain of five rows that flows from the last row to the first, eliminated in that order without fill: the factors
/// are exact, the coarse level changes nothing.
#[test]
fn a_chain_against_its_numbering_is_solved_exactly() {
    let cpu = Cpu::new(1).unwrap();
    let chain = (0..5).flat_map(|i| [(i, i, 3.0), (i, i + 1, -2.0), (i + 1, i, -0.5)]);
    let entries: Vec<_> = chain.filter(|&(i, j, _)| i.max(j) < 5).collect();
    let a = matrix(&cpu, 5, &entries);
    let config = AggregationConfig { coarse_rows: 2, ..AggregationConfig::default() };
    let amg = AggregationAmg::new(&a, &config).unwrap();
    assert_eq!(amg.shapes().len(), 2);
    assert!(amg.is_fixed());
    let x = [1.0, -2.0, 3.0, 0.5, 4.0];
    let mut b = Buffer::zeros(&cpu, 5).unwrap();
    a.apply(&mut b, &Buffer::from_host(&cpu, &x).unwrap()).unwrap();
    let z = apply(&amg, &cpu, b.as_slice());
    assert!(z.iter().zip(x).all(|(z, x)| (z - x).abs() < 1e-14), "{z:?}");
}

mod dense {
    //! Two levels by dense matrices: incomplete factors by their definition, aggregates from the shapes of the result.
    pub type Dense = Vec<Vec<f64>>;

    pub fn product(a: &Dense, b: &Dense) -> Dense {
        let entry = |row: &[f64], j: usize| row.iter().zip(b).map(|(x, b)| x * b[j]).sum();
        a.iter().map(|row| (0..b[0].len()).map(|j| entry(row, j)).collect()).collect()
    }

    pub fn inverse(a: &Dense) -> Dense {
        let n = a.len();
        let mut work: Dense = a.clone();
        work.iter_mut().enumerate().for_each(|(i, row)| row.extend((0..n).map(|j| f64::from(i == j))));
        for k in 0..n {
            let pivot = work[k][k];
            work[k].iter_mut().for_each(|value| *value /= pivot);
            let own = work[k].clone();
            for row in work.iter_mut().enumerate().filter(|(i, _)| *i != k).map(|(_, row)| row) {
                let factor = row[k];
                row.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
            }
        }
        work.into_iter().map(|row| row[n..].to_vec()).collect()
    }

    /// The product of the incomplete factors for rows in the given order, from the definition of ILU(0) with compensation.
    pub fn incomplete(a: &Dense, order: &[usize]) -> Dense {
        let n = a.len();
        let mut f: Dense = order.iter().map(|&i| order.iter().map(|&j| a[i][j]).collect()).collect();
        let pattern: Vec<Vec<bool>> =
            f.iter().map(|row| row.iter().map(|&value| value != 0.0).collect()).collect();
        let mut dropped = vec![0.0; n];
        for k in 0..n {
            f[k][k] -= f64::min(dropped[k], 0.0);
            for i in k + 1..n {
                if !pattern[i][k] {
                    continue;
                }
                f[i][k] /= f[k][k];
                for j in k + 1..n {
                    let fill = f[i][k] * f[k][j];
                    if pattern[i][j] {
                        f[i][j] -= fill;
                    } else {
                        dropped[i] += fill;
                    }
                }
            }
        }
        let mut m = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..n {
                let l = |k: usize| if k == i { 1.0 } else { f[i][k] };
                m[order[i]][order[j]] = (0..=i.min(j)).map(|k| l(k) * f[k][j]).sum();
            }
        }
        m
    }
}

/// Nine points of a square through which a flow passes from corner to corner, with positive entries against it in the middle, so
/// that fill is negative. The first row is dominant.
#[test]
fn two_levels_equal_the_cycle_of_dense_matrices() {
    use dense::{incomplete, inverse, product};
    let cpu = Cpu::new(2).unwrap();
    let mut entries = Vec::new();
    for i in 0..9 {
        entries.push((i, i, if i == 0 { 9.0 } else { 4.5 + 0.01 * i as f64 }));
        for (step, has) in [(1, i % 3 < 2), (3, i < 6)] {
            if has {
                let upstream = if step == 3 && i % 3 == 1 { 0.2 } else { -1.0 } + 0.01 * i as f64;
                entries.extend([(i + step, i, -2.0 - 0.1 * step as f64), (i, i + step, upstream)]);
            }
        }
    }
    let a = matrix(&cpu, 9, &entries);
    let config = AggregationConfig { coarse_rows: 4, ..AggregationConfig::default() };
    let amg = AggregationAmg::new(&a, &config).unwrap();
    let mut full = vec![vec![0.0; 9]; 9];
    entries.iter().for_each(|&(i, j, value)| full[i][j] = value);
    let order: Vec<usize> = amg.order.iter().map(|&row| row as usize).collect();
    let transfer = amg.levels.smoothed[0].transfer.as_ref().unwrap();
    let p = transfer.to_dense(&amg.order);
    let n_aggregates: Vec<f64> = p.iter().map(|row| row.iter().sum()).collect();
    assert_eq!(n_aggregates, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let transposed: dense::Dense = (0..p[0].len()).map(|j| p.iter().map(|row| row[j]).collect()).collect();
    let coarse = inverse(&product(&transposed, &product(&full, &p)));
    let correction = product(&p, &product(&coarse, &transposed));
    let smoother = inverse(&incomplete(&full, &order));
    // x ← x + B (b − A x) for smoother, correction, smoother: I − (I − B A)(I − C A)(I − B A) = Z A.
    let reduced = |b: &dense::Dense| -> dense::Dense {
        let ba = product(b, &full);
        (0..9).map(|i| (0..9).map(|j| f64::from(i == j) - ba[i][j]).collect()).collect()
    };
    let error = product(&reduced(&smoother), &product(&reduced(&correction), &reduced(&smoother)));
    for j in 0..9 {
        let b: Vec<f64> = full.iter().map(|row| row[j]).collect();
        let z = apply(&amg, &cpu, &b);
        for i in 0..9 {
            let expected = f64::from(i == j) - error[i][j];
            assert!((z[i] - expected).abs() < 1e-13, "row {i}, column {j}: {} for {expected}", z[i]);
        }
    }
}

#[test]
fn one_row_and_no_row_are_solved() {
    let cpu = Cpu::new(1).unwrap();
    let amg = AggregationAmg::new(&matrix(&cpu, 1, &[(0, 0, 4.0)]), &AggregationConfig::default()).unwrap();
    assert_eq!(apply(&amg, &cpu, &[2.0]), [0.5]);
    let amg = AggregationAmg::new(&matrix(&cpu, 0, &[]), &AggregationConfig::default()).unwrap();
    assert!(apply(&amg, &cpu, &[]).is_empty());
}

#[test]
fn a_diagonal_matrix_has_one_level_and_is_solved_exactly() {
    let cpu = Cpu::new(2).unwrap();
    let entries: Vec<_> = (0..1000).map(|i| (i, i, (1 + i % 4) as f64)).collect();
    let amg = AggregationAmg::new(&matrix(&cpu, 1000, &entries), &AggregationConfig::default()).unwrap();
    assert_eq!(amg.shapes().len(), 1);
    assert_eq!(amg.operator_complexity(), 1.0);
    let r: Vec<f64> = entries.iter().map(|&(i, _, d)| i as f64 * d).collect();
    assert!(apply(&amg, &cpu, &r).iter().enumerate().all(|(i, &z)| (z - i as f64).abs() <= 1e-13 * i as f64));
}

/// The pattern differs from that of the transpose in every entry beside the diagonal.
#[test]
fn a_triangular_matrix_is_solved_exactly() {
    let cpu = Cpu::new(2).unwrap();
    let n = 600;
    let entries: Vec<_> =
        (0..n).flat_map(|i| [(i, i, 1.0), (i, (i + 7) % n, -0.9)]).filter(|e| e.0 <= e.1).collect();
    let a = matrix(&cpu, n, &entries);
    let amg = AggregationAmg::new(&a, &AggregationConfig::default()).unwrap();
    let mut b = Buffer::zeros(&cpu, n).unwrap();
    a.apply(&mut b, &Buffer::from_vec(&cpu, vec![1.0; n]).unwrap()).unwrap();
    assert!(apply(&amg, &cpu, b.as_slice()).iter().all(|z| (z - 1.0).abs() < 1e-12));
}

#[test]
fn invalid_matrices_and_settings_are_refused_with_their_place() {
    let cpu = Cpu::new(2).unwrap();
    let set_up = |entries: &[(usize, usize, f64)]| {
        AggregationAmg::new(&matrix(&cpu, 3, entries), &AggregationConfig::default()).unwrap_err()
    };
    let zeros = set_up(&[(0, 0, 1.0), (2, 2, 1.0), (1, 0, 1.0)]);
    assert_eq!(zeros, AmgError::Diagonal { row: 1, value: 0.0 });
    let negative = set_up(&[(0, 0, 1.0), (1, 1, 1.0), (2, 2, -3.0)]);
    assert_eq!(negative, AmgError::Diagonal { row: 2, value: -3.0 });
    let not_finite = set_up(&[(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 2, f64::INFINITY)]);
    assert_eq!(not_finite, AmgError::NotFinite { row: 1, column: 2, value: f64::INFINITY });
    assert!(matches!(
        set_up(&[(0, 0, 1.0), (1, 1, f64::NAN), (2, 2, 1.0)]),
        AmgError::NotFinite { row: 1, column: 1, .. }
    ));
    let wide = Triplets::new(2, 3).into_csr(&cpu).unwrap().matrix;
    let error = AggregationAmg::new(&wide, &AggregationConfig::default()).unwrap_err();
    assert_eq!(error, AmgError::NotSquare { n_rows: 2, n_cols: 3 });
    for (field, config) in [
        ("passes", AggregationConfig { passes: 1, ..AggregationConfig::default() }),
        ("coarse_rows", AggregationConfig { coarse_rows: 5000, ..AggregationConfig::default() }),
    ] {
        let error = AggregationAmg::new(&matrix(&cpu, 1, &[(0, 0, 1.0)]), &config).unwrap_err();
        assert!(matches!(error, AmgError::Setting { field: found, .. } if found == field), "{error}");
    }
}

/// Neighbours of different sign cancel on the next level: 4 rows of diagonal 1 with entries −2 sum to a negative diagonal.
#[test]
fn an_indefinite_matrix_is_refused_with_its_level() {
    let cpu = Cpu::new(1).unwrap();
    let entries: Vec<_> =
        (0..600).flat_map(|i| [(i, i, 1.0), (i, (i + 1) % 600, -2.0), ((i + 1) % 600, i, -2.0)]).collect();
    let error = AggregationAmg::new(&matrix(&cpu, 600, &entries), &AggregationConfig::default()).unwrap_err();
    assert!(matches!(error, AmgError::Indefinite { pivot, .. } if pivot < 0.0), "{error}");
}

#[test]
fn vectors_of_another_length_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let amg = AggregationAmg::new(&matrix(&cpu, 1, &[(0, 0, 4.0)]), &AggregationConfig::default()).unwrap();
    let (mut z, r) = (Buffer::zeros(&cpu, 2).unwrap(), Buffer::zeros(&cpu, 1).unwrap());
    assert!(amg.apply(&mut z, &r).is_err());
}
