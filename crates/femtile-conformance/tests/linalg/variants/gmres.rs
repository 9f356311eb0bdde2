//! The generalized minimal residual method: symmetric and other systems, fixed and other preconditioners, its ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::{Buffer, Cpu, Reference, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgOutcome, KrylovConfig};
use femtile::linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile::linalg::precondition::{Diagonal, Jacobi};
use femtile::linalg::{LinalgError, Preconditioner};
use femtile_conformance::suite::problems::{CsrArrays, Random, laplacian};

use super::{Host, System, chain, config, dense};
use crate::cpus;

/// A grid of n × n with convection: far from symmetric.
fn convection<T: Scalar>(n: usize) -> CsrArrays<T> {
    let row = |i: usize| {
        let (x, y) = (i % n, i / n);
        let mut row = vec![(i, 4.5)];
        let mut next = |is_there: bool, j: usize, value: f64| {
            if is_there {
                row.push((j, value));
            }
        };
        next(x > 0, i.wrapping_sub(1), -1.9);
        next(x + 1 < n, i + 1, -0.2);
        next(y > 0, i.wrapping_sub(n), -1.4);
        next(y + 1 < n, i + n, -0.6);
        row.sort_unstable_by_key(|(column, _)| *column);
        row
    };
    CsrArrays::from_rows(n * n, (0..n * n).map(row).collect())
}

/// Jacobi's preconditioner, every application times another number.
struct Moody<T: Scalar, D: Host<T>> {
    diagonal: Diagonal<T, D>,
    applications: AtomicUsize,
}

impl<T: Scalar, D: Host<T>> Preconditioner<T, D> for Moody<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        let n = self.applications.fetch_add(1, Ordering::Relaxed);
        self.diagonal.apply(z, r)?;
        let old = Buffer::from_host(r.device(), &z.to_host()?)?;
        r.device().axpby(z, T::from_f64(1.0 + (n % 5) as f64), &old, T::ZERO)
    }

    fn is_fixed(&self) -> bool {
        false
    }
}

/// Solves from zero with at most `restart` directions, by the Jacobi preconditioner or the varying one.
fn solve<T: Scalar, D: Host<T>>(
    device: &D,
    system: &System<T>,
    (restart, is_moody): (usize, bool),
    cg: KrylovConfig,
) -> (CgOutcome, Vec<T>) {
    let a = system.a.on(device);
    let b = Buffer::from_host(device, &system.b).unwrap();
    let mut x = Buffer::zeros(device, b.len()).unwrap();
    let jacobi = Jacobi::new(&a).unwrap();
    let method = Gmres::new(GmresConfig { cg, restart });
    let outcome = if is_moody {
        let m = Moody { diagonal: jacobi, applications: AtomicUsize::new(0) };
        method.solve(&mut x, &a, &m, &b, &SingleRank, &mut ())
    } else {
        method.solve(&mut x, &a, &jacobi, &b, &SingleRank, &mut ())
    };
    (outcome.unwrap(), x.to_host().unwrap())
}

#[test]
fn systems_of_every_kind_are_solved_to_the_tolerance() {
    let mut random = Random::new(61);
    let mut systems: Vec<CsrArrays<f64>> = [1, 2, 3, 13, 61].map(|n| dense(n, &mut random)).into();
    systems.extend([chain(97, &mut random), laplacian(9, &mut random), convection(1), convection(13)]);
    for a in systems {
        let system = System::new(a, &mut random);
        for way in [(5, false), (30, false), (200, false), (30, true), (200, true)] {
            let of_cpus = cpus().into_iter().map(|cpu| solve(&cpu, &system, way, config(1e-10)));
            for (outcome, x) in of_cpus.chain([solve(&Reference, &system, way, config(1e-10))]) {
                assert_eq!(outcome.stop, Stop::Converged, "{way:?}: {outcome:?}");
                assert!(system.relative_residual(&x) <= 2.1e-10);
                assert!((outcome.true_relative_residual - system.relative_residual(&x)).abs() < 1e-13);
                assert!(outcome.residuals.windows(2).all(|pair| pair[1] <= 1.000001 * pair[0] + 1e-14));
            }
        }
    }
    let system = System::<f32>::new(convection(13), &mut random);
    for way in [(30, false), (30, true)] {
        let (outcome, x) = solve(&Cpu::new(2).unwrap(), &system, way, config(1e-5));
        assert_eq!(outcome.stop, Stop::Converged);
        assert!(system.relative_residual(&x) <= 3e-5);
    }
}

#[test]
fn as_many_iterations_as_unknowns_solve_without_a_restart() {
    let mut random = Random::new(62);
    for n in [1, 2, 5, 17] {
        let system = System::<f64>::new(dense(n, &mut random), &mut random);
        let (outcome, _) = solve(&Reference, &system, (n, false), config(1e-9));
        assert!(outcome.stop == Stop::Converged && outcome.iterations <= n, "{outcome:?}");
    }
}

#[test]
fn limits_and_what_cannot_be_solved_are_told() {
    let cpu = Cpu::new(2).unwrap();
    let system = System::<f64>::new(convection(13), &mut Random::new(63));
    let few = KrylovConfig { max_iterations: 7, ..config(1e-10) };
    let (outcome, x) = solve(&cpu, &system, (5, false), few);
    assert_eq!((outcome.stop, outcome.iterations), (Stop::MaxIterations, 7));
    assert!((outcome.true_relative_residual - system.relative_residual(&x)).abs() < 1e-13);
    assert!((outcome.relative_residual - outcome.true_relative_residual).abs() < 1e-10);
    // Far below rounding.
    let (outcome, _) = solve(&cpu, &system, (30, false), config(1e-30));
    assert_eq!(outcome.stop, Stop::Stagnated);
    assert!(outcome.true_relative_residual < 1e-13 && outcome.iterations < 200);
    // A matrix that takes b out of the reach of x.
    let a = CsrArrays::from_rows(2, vec![vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0), (1, 1.0)]]);
    let singular = System { a, b: vec![1.0, -1.0] };
    let (outcome, x) = solve(&cpu, &singular, (30, false), config(1e-10));
    assert!(matches!(outcome.stop, Stop::Breakdown { quantity: "a pivot of H", .. }), "{outcome:?}");
    assert_eq!(x, [0.0, 0.0]);
    let (outcome, x) = solve(&cpu, &System { b: vec![0.0; 169], ..system }, (30, false), config(1e-10));
    assert!(outcome.stop == Stop::Converged && outcome.iterations == 0 && x.iter().all(|x| *x == 0.0));
}

#[test]
fn no_directions_are_refused() {
    let (cpu, n) = (Cpu::new(1).unwrap(), 3);
    let m = Diagonal::<f64, Cpu>::identity(&cpu, n).unwrap();
    let a = chain::<f64>(n, &mut Random::new(64)).on(&cpu);
    let method = Gmres::new(GmresConfig { restart: 0, ..GmresConfig::default() });
    let [mut x, b] = [0, 1].map(|_| Buffer::<f64, Cpu>::zeros(&cpu, n).unwrap());
    let error = method.solve(&mut x, &a, &m, &b, &SingleRank, &mut ()).unwrap_err();
    assert!(matches!(error, LinalgError::Setting { field: "restart", .. }), "{error}");
}
