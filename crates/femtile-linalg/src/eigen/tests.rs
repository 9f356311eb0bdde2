use femtile_device::{Buffer, Cpu, Reference};

use super::*;
use crate::comm::SingleRank;
use crate::krylov::Stop;
use crate::precondition::Diagonal;
use crate::{ClosureOperator, LinearOperator};

/// A fixed random number in (−1, 1).
fn random(i: usize, j: usize) -> f64 {
    let mut state = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..3 {
        state ^= state >> 29;
        state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A symmetric positive definite matrix.
fn definite(n: usize) -> Dense {
    let b = Dense::of([n, n], random);
    let square = b.transpose().times(&b);
    Dense::of([n, n], |i, j| square[(i, j)] / n as f64 + f64::from(u8::from(i == j)))
}

fn operator(cpu: &Cpu, a: &Dense) -> impl LinearOperator<f64, Cpu> + use<> {
    let a = a.clone();
    ClosureOperator::new(cpu, a.n_columns(), move |y: &mut [f64], x: &[f64]| {
        y.iter_mut().enumerate().for_each(|(i, y)| *y = (0..x.len()).map(|j| a[(i, j)] * x[j]).sum());
    })
}

/// The smallest eigenvalues of a pencil by the method, without a preconditioner.
fn smallest(a: &Dense, m: &Dense, count: usize) -> Eigenpairs<Cpu> {
    let (cpu, n) = (Cpu::new(1).unwrap(), a.n_columns());
    let (a, m) = (operator(&cpu, a), operator(&cpu, m));
    let start =
        (0..count + 2).map(|j| Buffer::from_vec(&cpu, (0..n).map(|i| random(i, j + 77)).collect()).unwrap());
    let preconditioner = Diagonal::identity(&cpu, n).unwrap();
    let config = LobpcgConfig { count, tolerance: 1e-9, max_iterations: 500, time_limit: None };
    let pencil = Pencil { a: &a, m: &m, preconditioner: &preconditioner, comm: &SingleRank };
    Lobpcg::new(config).solve(start.collect(), pencil, &mut ()).unwrap()
}

/// All eigenvalues of a pencil by the dense method, through the square root of M.
fn all_values(a: &Dense, m: &Dense) -> Vec<f64> {
    let (n, (values, vectors)) = (a.n_columns(), symmetric_eigen(m));
    let inverse_root = Dense::of([n, n], |i, j| vectors[(i, j)] / values[j].sqrt());
    symmetric_eigen(&inverse_root.transpose().times(&a.times(&inverse_root))).0
}

#[test]
fn small_symmetric_matrices_have_their_known_eigenvalues() {
    assert_eq!(symmetric_eigen(&Dense::of([1, 1], |_, _| -3.0)).0, [-3.0]);
    let (values, vectors) = symmetric_eigen(&Dense::of([2, 2], |i, j| if i == j { 2.0 } else { -1.0 }));
    assert!((values[0] - 1.0).abs() < 1e-15 && (values[1] - 3.0).abs() < 1e-15, "{values:?}");
    assert!((vectors[(0, 0)] - vectors[(1, 0)]).abs() < 1e-15);
    // The second difference, with 2 − 2 cos(k π/(n + 1)).
    let n = 40;
    let a = Dense::of([n, n], |i, j| match i.abs_diff(j) {
        0 => 2.0,
        1 => -1.0,
        _ => 0.0,
    });
    let (values, vectors) = symmetric_eigen(&a);
    for (k, value) in values.iter().enumerate() {
        let exact = 2.0 - 2.0 * ((k + 1) as f64 * std::f64::consts::PI / (n + 1) as f64).cos();
        assert!((value - exact).abs() < 1e-13, "{k}: {value} {exact}");
    }
    let product = vectors.transpose().times(&vectors);
    let identity = Dense::of([n, n], |i, j| f64::from(u8::from(i == j)));
    assert!(product.values().iter().zip(identity.values()).all(|(a, b)| (a - b).abs() < 1e-13));
}

#[test]
fn graded_matrices_keep_the_digits_of_small_eigenvalues() {
    let (values, _) = symmetric_eigen(&Dense::of([2, 2], |i, j| [[1.0, 1e-9], [1e-9, 3e-18]][i][j]));
    assert!((values[0] - 2e-18).abs() < 1e-30, "{values:?}");
}

#[test]
fn the_smallest_eigenvalues_are_those_of_a_dense_method() {
    for (n, count) in [(1, 1), (2, 1), (2, 2), (7, 3), (7, 7), (40, 6)] {
        let a = Dense::of([n, n], |i, j| definite(n)[(i, j)] + if i == j { 3.0 * i as f64 } else { 0.0 });
        let m = definite(n);
        let (found, exact) = (smallest(&a, &m, count), all_values(&a, &m));
        assert_eq!(
            (found.stop, found.values.len()),
            (Stop::Converged, count),
            "{n} {count}: {:?}",
            found.history
        );
        for (value, exact) in found.values.iter().zip(&exact) {
            assert!((value - exact).abs() < 1e-12 * exact, "{n} {count}: {value} {exact}");
        }
        for (i, x) in found.vectors.iter().enumerate() {
            let x = x.as_slice();
            let product =
                |a: &Dense| -> Vec<f64> { (0..n).map(|i| (0..n).map(|j| a[(i, j)] * x[j]).sum()).collect() };
            let (ax, mx) = (product(&a), product(&m));
            let residual: Vec<f64> = ax.iter().zip(&mx).map(|(a, m)| a - found.values[i] * m).collect();
            assert!(dot(&residual, &residual).sqrt() < 1e-8 * exact[count - 1] * dot(&mx, &mx).sqrt());
            for (j, y) in found.vectors.iter().enumerate() {
                let expected = f64::from(u8::from(i == j));
                assert!((dot(&mx, y.as_slice()) - expected).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn multiple_and_zero_eigenvalues_are_all_found() {
    // Eigenvalues 0, 0, 0, 1, 1, 1, 1, 2, 2, … in a random basis.
    let n = 40;
    let (_, q) = symmetric_eigen(&definite(n));
    let value = |k: usize| match k {
        0..3 => 0.0,
        3..7 => 1.0,
        k => 2.0 + (k / 2) as f64,
    };
    let scaled = Dense::of([n, n], |i, k| q[(i, k)] * value(k));
    let a = scaled.times(&q.transpose());
    let identity = Dense::of([n, n], |i, j| f64::from(u8::from(i == j)));
    let found = smallest(&a, &identity, 9);
    assert_eq!(found.stop, Stop::Converged);
    for (k, found) in found.values.iter().enumerate() {
        assert!((found - value(k)).abs() < 1e-12, "{k}: {found}");
    }
    // Of the null space alone, where no eigenvalue gives a size.
    let found = smallest(&a, &identity, 3);
    assert_eq!(found.stop, Stop::Converged, "{:?}", found.history);
    assert!(found.values.iter().all(|value| value.abs() < 16.0 * f64::EPSILON * found.size));
}

#[test]
fn an_indefinite_mass_breaks_down_and_limits_end_the_method() {
    let n = 7;
    let a = definite(n);
    let m = Dense::of([n, n], |i, j| if i == j { 1.0 - 2.0 * f64::from(u8::from(i == 3)) } else { 0.0 });
    assert!(matches!(smallest(&a, &m, 5).stop, Stop::Breakdown { quantity: "xᵀMx", .. }));
    let cpu = Cpu::new(1).unwrap();
    let identity = Diagonal::identity(&cpu, n).unwrap();
    let (a, m) = (
        operator(&cpu, &Dense::of([n, n], |i, j| if i == j { 1.0 + i as f64 } else { 0.0 })),
        operator(&cpu, &a),
    );
    let pencil = Pencil { a: &a, m: &m, preconditioner: &identity, comm: &SingleRank };
    let config = LobpcgConfig { count: 1, tolerance: 1e-9, max_iterations: 1, time_limit: None };
    let start = vec![Buffer::from_vec(&cpu, (0..n).map(|i| random(i, 5)).collect()).unwrap()];
    let found = Lobpcg::new(config).solve(start, pencil, &mut ()).unwrap();
    assert_eq!((found.stop, found.history.len()), (Stop::MaxIterations, 2));
}

/// Compares the kernels of a device with sums in plain loops.
fn kernels_of<D: BlockKernels>(device: &D) {
    for n in [0, 1, 5, 257, 4099, 9001] {
        let set = |k: usize, seed: usize| -> Vec<Vec<f64>> {
            (0..k).map(|j| (0..n).map(|i| random(i, j + seed)).collect()).collect()
        };
        let upload = |set: &[Vec<f64>]| -> Vec<Buffer<f64, D>> {
            set.iter().map(|x| Buffer::from_host(device, x).unwrap()).collect()
        };
        let (x, y) = (set(6, 0), set(3, 50));
        let (on_x, on_y) = (upload(&x), upload(&y));
        let (on_x, on_y): (Vec<_>, Vec<_>) = (on_x.iter().collect(), on_y.iter().collect());
        let gram = device.gram(&on_x, &on_y).unwrap();
        for (i, x) in x.iter().enumerate() {
            for (j, y) in y.iter().enumerate() {
                assert!((gram[(i, j)] - dot(x, y)).abs() <= 1e-13 * n as f64, "{n}");
            }
        }
        let c = Dense::of([6, 4], random);
        for (j, y) in device.multiply(&on_x, &c).unwrap().iter().enumerate() {
            for (i, y) in y.to_host().unwrap().into_iter().enumerate() {
                let exact: f64 = (0..6).map(|k| x[k][i] * c[(k, j)]).sum();
                assert!((y - exact).abs() < 1e-14, "{n}");
            }
        }
        if n > 0 {
            let short = Buffer::from_vec(device, vec![0.0; n - 1]).unwrap();
            assert!(device.gram(&on_x, &[&short]).is_err());
            assert!(device.multiply(&[on_x[0], &short], &Dense::of([2, 1], random)).is_err());
        }
    }
}

#[test]
fn kernels_agree_with_plain_loops_on_each_device() {
    kernels_of(&Reference);
    let [one, three] = [1, 3].map(|threads| Cpu::new(threads).unwrap());
    kernels_of(&one);
    let x: Vec<Vec<f64>> = (0..5).map(|j| (0..40_000).map(|i| random(i, j)).collect()).collect();
    let gram = |cpu: &Cpu| {
        let x: Vec<_> = x.iter().map(|x| Buffer::from_host(cpu, x).unwrap()).collect();
        cpu.install(|| cpu.gram(&x.iter().collect::<Vec<_>>(), &x.iter().collect::<Vec<_>>())).unwrap()
    };
    assert_eq!(gram(&one), gram(&three));
}
