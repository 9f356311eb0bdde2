//! Conjugate gradients that keep their vectors: every solve has the bits of a solve alone.

use std::ops::ControlFlow;
use std::sync::Arc;

use femtile::device::{Buffer, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{
    CgExtrapolate, CgKernels, CgOutcome, CgSolver, ConjugateGradient, KrylovConfig, Target,
};
use femtile::linalg::krylov::{Monitor, Stop};
use femtile::linalg::precondition::{Diagonal, Jacobi};
use femtile::linalg::sparse::csr::CsrKernels;
use femtile::linalg::{LinalgError, Preconditioner};

use super::cg::config;
use super::problems::{CsrArrays, Random, laplacian};
use super::{LinearDevice, Scope};

/// The ways that a preconditioner presents itself.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Jacobi's, as a diagonal.
    Diagonal,
    /// None.
    Identity,
    /// Jacobi's, applied by a pass of its own.
    Hidden,
    /// The same, which does not say that it is always the same.
    Unfixed,
}

const KINDS: [Kind; 4] = [Kind::Diagonal, Kind::Identity, Kind::Hidden, Kind::Unfixed];

struct Applied<T: Scalar, D: CgKernels<T>>(Jacobi<T, D>, bool);

impl<T: Scalar, D: CgKernels<T>> Preconditioner<T, D> for Applied<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.0.apply(z, r)
    }

    fn is_fixed(&self) -> bool {
        self.1
    }
}

/// A solver with a matrix and a preconditioner of some kind.
pub fn solver<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(
    device: &D,
    parts: &CsrArrays<T>,
    kind: Kind,
) -> CgSolver<T, D> {
    let a = parts.on(device);
    let jacobi = |a| Jacobi::new(a).unwrap();
    let m: Arc<dyn Preconditioner<T, D>> = match kind {
        Kind::Diagonal => Arc::new(jacobi(&a)),
        Kind::Identity => Arc::new(Diagonal::identity(device, a.n_rows()).unwrap()),
        Kind::Hidden => Arc::new(Applied(jacobi(&a), true)),
        Kind::Unfixed => Arc::new(Applied(jacobi(&a), false)),
    };
    CgSolver::new(Arc::new(a), m).unwrap()
}

/// Solves by the solver and, with the same operator, alone; both have to agree to the last bit.
fn compare<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(
    solver: &mut CgSolver<T, D>,
    (x, b): (&[T], &[T]),
    config: &KrylovConfig,
) -> CgOutcome {
    let device = solver.x().device().clone();
    let (right, mut alone) = (Buffer::from_host(&device, b).unwrap(), Buffer::from_host(&device, x).unwrap());
    let (a, m) = (Arc::clone(solver.operator()), Arc::clone(solver.preconditioner()));
    let cg = ConjugateGradient::new(config.clone());
    let expected = cg.solve(&mut alone, a.as_ref(), m.as_ref(), &right, &SingleRank, &mut ()).unwrap();
    solver.x_mut().upload(x).unwrap();
    solver.b_mut().upload(b).unwrap();
    let found = solver.solve(config, Target::RightSide, &SingleRank, &mut ()).unwrap();
    assert_eq!((found.stop, found.iterations), (expected.stop, expected.iterations));
    assert_eq!(found.residuals, expected.residuals);
    assert_eq!(found.true_relative_residual, expected.true_relative_residual);
    assert_eq!(solver.x().to_host().unwrap(), alone.to_host().unwrap());
    assert_eq!(solver.b().to_host().unwrap(), b);
    found
}

fn many_solves<T: Scalar, D: CgKernels<T> + CsrKernels<T>>(
    device: &D,
    side: usize,
    tolerances: &[f64],
    kind: Kind,
) {
    let (n, mut random) = (side * side, Random::new(5));
    let parts = laplacian::<T>(side, &mut random);
    let mut solver = solver(device, &parts, kind);
    let mut guess = vec![T::ZERO; n];
    for round in 0..3 {
        for &tolerance in tolerances {
            let b = random.vector::<T>(n);
            let outcome = compare(&mut solver, (&guess, &b), &config(tolerance));
            assert_eq!(outcome.stop, Stop::Converged, "{kind:?}");
            assert!(round == 0 || solver.smallest_ritz_value().is_some() || matches!(kind, Kind::Identity));
            guess = random.vector(n);
        }
    }
}

/// Solves with changing right sides, guesses and tolerances have the bits of solves alone.
pub fn kept_solves_have_the_bits_of_single_ones<D: LinearDevice>(device: &D, scope: &Scope) {
    for kind in KINDS {
        many_solves::<f64, _>(device, scope.side, &[1e-3, 1e-10, 0.5, 1e-6], kind);
        many_solves::<f32, _>(device, 7, &[1e-3, 0.4], kind);
    }
}

fn tridiagonal(n: usize) -> CsrArrays<f64> {
    let row = |i: usize| {
        let near = [(i.wrapping_sub(1), -1.0), (i, 2.5 + (i % 3) as f64), (i + 1, -1.0)];
        near.into_iter().filter(|(column, _)| *column < n).collect()
    };
    CsrArrays::from_rows(n, (0..n).map(row).collect())
}

/// No unknowns, one, two, and numbers that no tile divides.
pub fn kept_solves_take_any_number_of_unknowns<D: LinearDevice>(device: &D, scope: &Scope) {
    for &n in scope.sizes.iter().filter(|n| **n <= 4096 + 1) {
        let mut random = Random::new(n as u64);
        for kind in [Kind::Diagonal, Kind::Hidden] {
            let mut solver = solver(device, &tridiagonal(n), kind);
            for _ in 0..3 {
                let (x, b) = (random.vector(n), random.vector(n));
                let outcome = compare(&mut solver, (&x, &b), &config(1e-8));
                assert_eq!(outcome.stop, Stop::Converged, "{n} unknowns");
            }
        }
    }
}

/// Right sides of zeros, of numbers near the ends of the range and of no numbers, and exact guesses, between usual solves.
pub fn unusual_right_sides_leave_a_solver_as_it_was<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(8));
    let parts = laplacian::<f64>(scope.side, &mut random);
    for kind in [Kind::Diagonal, Kind::Hidden] {
        let mut solver = solver(device, &parts, kind);
        let b = random.vector::<f64>(n);
        let scaled = |exponent: i32| b.iter().map(|b| b * 2f64.powi(exponent)).collect::<Vec<_>>();
        let usual = compare(&mut solver, (&vec![0.0; n], &b), &config(1e-9));
        let exact = solver.x().to_host().unwrap();
        let at_once = compare(&mut solver, (&exact, &b), &config(1e-7));
        assert_eq!((at_once.stop, at_once.iterations), (Stop::Converged, 0));
        let zero = compare(&mut solver, (&b, &vec![0.0; n]), &config(1e-9));
        assert_eq!((zero.stop, zero.iterations), (Stop::Converged, 0));
        for exponent in [-900, 90, 600] {
            let outcome = compare(&mut solver, (&vec![0.0; n], &scaled(exponent)), &config(1e-9));
            assert_eq!(outcome.stop, Stop::Converged, "2^{exponent}");
        }
        solver.x_mut().upload(&vec![0.0; n]).unwrap();
        solver.b_mut().upload(&vec![f64::NAN; n]).unwrap();
        let broken = solver.solve(&config(1e-9), Target::RightSide, &SingleRank, &mut ()).unwrap();
        assert!(matches!(broken.stop, Stop::Breakdown { quantity: "r·r", .. }), "{:?}", broken.stop);
        assert_eq!(solver.x().to_host().unwrap(), vec![0.0; n]);
        assert_eq!(compare(&mut solver, (&vec![0.0; n], &b), &config(1e-9)), usual);
    }
}

/// A solve that ends badly leaves what a solve alone leaves, at any point.
pub fn kept_solves_end_as_single_ones<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(2));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let mut usual = solver(device, &parts, Kind::Diagonal);
    for max_iterations in [0, 1, 5] {
        let config = KrylovConfig { max_iterations, ..config(1e-12) };
        let outcome = compare(&mut usual, (&vec![0.0; n], &b), &config);
        assert_eq!((outcome.stop, outcome.iterations), (Stop::MaxIterations, max_iterations));
    }
    // How soon this limit is heard depends on when the host looks.
    let impatient = KrylovConfig { stagnation_window: 3, look_every: Some(1), ..config(1e-12) };
    usual.x_mut().upload(&vec![0.0; n]).unwrap();
    usual.b_mut().upload(&vec![1.0; n]).unwrap();
    let outcome = usual.solve(&impatient, Target::RightSide, &SingleRank, &mut ()).unwrap();
    assert_eq!(outcome.stop, Stop::Stagnated);
    assert!((outcome.true_relative_residual - outcome.relative_residual).abs() < 1e-11);
    let matrix = CsrArrays::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]]);
    let mut indefinite = solver(device, &matrix, Kind::Diagonal);
    for _ in 0..3 {
        let outcome = compare(&mut indefinite, (&[0.0; 2], &[1.0, -1.0]), &config(1e-10));
        assert_eq!(outcome.stop, Stop::Breakdown { quantity: "p·Ap", value: -4.0 });
    }
}

/// Asks for the end after an iteration.
struct After(usize, usize);

impl Monitor for After {
    fn iteration(&mut self, iteration: usize, _: f64) -> ControlFlow<Stop> {
        assert_eq!(iteration, self.1, "iterations come in order, once each");
        self.1 += 1;
        if iteration >= self.0 { ControlFlow::Break(Stop::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

/// A monitor sees every iteration once, and x is that of the iteration which the outcome names.
pub fn a_monitor_ends_a_kept_solve<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(3));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let mut solver = solver(device, &parts, Kind::Diagonal);
    for after in [4, usize::MAX, 4] {
        let config = KrylovConfig { look_every: Some(2), ..config(1e-10) };
        solver.x_mut().upload(&vec![0.0; n]).unwrap();
        solver.b_mut().upload(&b).unwrap();
        let outcome = solver.solve(&config, Target::RightSide, &SingleRank, &mut After(after, 0)).unwrap();
        let expected = if after == 4 { Stop::Interrupted } else { Stop::Converged };
        assert_eq!(outcome.stop, expected);
        assert!(outcome.iterations >= after.min(5));
        assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
        assert!((outcome.true_relative_residual - outcome.relative_residual).abs() < 1e-11);
    }
}

/// A tolerance relative to a given norm, or to the first residual, is the same as one relative to the right side.
pub fn targets_are_tolerances_of_the_right_side<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(4));
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let mut solver = solver(device, &parts, Kind::Diagonal);
    let first = compare(&mut solver, (&vec![0.0; n], &b), &config(1e-3));
    let guess = solver.x().to_host().unwrap();
    let b_norm = b.iter().map(|b| b * b).sum::<f64>().sqrt();
    let mut solve = |tolerance: f64, target| {
        solver.x_mut().upload(&guess).unwrap();
        solver.b_mut().upload(&b).unwrap();
        solver.solve(&config(tolerance), target, &SingleRank, &mut ()).unwrap()
    };
    let plain = solve(1e-7, Target::RightSide);
    assert_eq!(solve(1e-3, Target::Norm(1e-4 * b_norm)).iterations, plain.iterations);
    let reduction = 1e-7 / first.true_relative_residual;
    assert_eq!(solve(1e-3, Target::Reduction(reduction)).iterations, plain.iterations);
    assert_eq!(solve(1e-7, Target::Reduction(0.9)).iterations, plain.iterations);
    assert_eq!(solve(1e-1, Target::Norm(b_norm)).iterations, 0);
    let exact = solve(1e-1, Target::Reduction(1e-200));
    assert!(exact.true_relative_residual < 1e-12, "{}", exact.true_relative_residual);
    for target in [Target::Norm(0.0), Target::Norm(f64::NAN), Target::Reduction(-1.0)] {
        let error = solver.solve(&config(1e-3), target, &SingleRank, &mut ()).unwrap_err();
        assert!(error.to_string().starts_with("target"), "{error}");
    }
}

/// Another operator or another kind of preconditioner leaves nothing of the one before.
pub fn a_solver_takes_other_operators<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(10));
    let matrices = [(); 2].map(|()| laplacian::<f64>(scope.side, &mut random));
    let mut kept = solver(device, &matrices[0], Kind::Diagonal);
    for (round, kind) in KINDS.into_iter().chain(KINDS).enumerate() {
        let other = solver(device, &matrices[round % 2], kind);
        kept.set_operator(Arc::clone(other.operator()), Arc::clone(other.preconditioner()), &SingleRank)
            .unwrap();
        assert_eq!(kept.smallest_ritz_value(), None);
        for _ in 0..2 {
            let b = random.vector::<f64>(n);
            let _ = compare(&mut kept, (&vec![0.0; n], &b), &config(1e-7));
        }
    }
    let smaller = solver(device, &laplacian::<f64>(2, &mut random), Kind::Diagonal);
    let (a, m) = (Arc::clone(smaller.operator()), Arc::clone(smaller.preconditioner()));
    assert!(kept.set_operator(a, m, &SingleRank).is_err());
}

/// A vector of any values, and its buffer.
fn on<D: LinearDevice>(device: &D, values: &[f64]) -> Buffer<f64, D> {
    Buffer::from_host(device, values).unwrap()
}

/// The next guess and its product are those of plain loops, and the last solution takes the place of the one before.
pub fn two_solutions_are_extrapolated<D: LinearDevice>(device: &D, scope: &Scope) {
    for &n in scope.sizes {
        let mut random = Random::new(n as u64);
        let [x, before, q, q_before] = [(); 4].map(|()| random.vector::<f64>(n));
        for weight in [0.0, 1.0] {
            let (mut guess, mut previous_x) = (on(device, &x), on(device, &before));
            let (last, mut previous_q, mut r) =
                (on(device, &q), on(device, &q_before), on(device, &vec![f64::NAN; n]));
            let vectors = CgExtrapolate {
                x: &mut guess,
                previous_x: &mut previous_x,
                q: &last,
                previous_q: &mut previous_q,
                r: &mut r,
            };
            device.cg_extrapolate(vectors, weight).unwrap();
            let line = |last: &[f64], before: &[f64]| -> Vec<f64> {
                last.iter().zip(before).map(|(last, before)| last + weight * (last - before)).collect()
            };
            assert_eq!(guess.to_host().unwrap(), line(&x, &before), "{n}");
            assert_eq!(r.to_host().unwrap(), line(&q, &q_before), "{n}");
            assert_eq!(previous_x.to_host().unwrap(), x);
            assert_eq!(previous_q.to_host().unwrap(), q);
        }
    }
    let mut vectors = [3, 3, 3, 4].map(|n| on(device, &vec![1.0; n]));
    let [x, previous_x, previous_q, r] = &mut vectors;
    let q = on(device, &[1.0; 3]);
    let vectors = CgExtrapolate { x, previous_x, q: &q, previous_q, r };
    let error = device.cg_extrapolate(vectors, 1.0).unwrap_err();
    assert_eq!(error, LinalgError::Length { field: "r", expected: 3, found: 4 });
}

/// Right sides on a line: the third solve has nothing to do, and a solver that takes the solutions over goes on with the same
/// bits.
pub fn solves_begin_with_the_line_through_two_solutions<D: LinearDevice>(device: &D, scope: &Scope) {
    let side = scope.side.min(19);
    let (n, mut random) = (side * side, Random::new(13));
    let parts = laplacian::<f64>(side, &mut random);
    let [at_start, slope, bend] = [(); 3].map(|()| random.vector::<f64>(n));
    for kind in KINDS {
        let mut kept = solver(device, &parts, kind);
        assert!(kept.solutions().unwrap().is_empty());
        kept.extrapolate().unwrap();
        let solve = |solver: &mut CgSolver<f64, D>, step: f64, tolerance: f64| {
            let b = |i: usize| at_start[i] + step * slope[i] + 1e-4 * step * step * bend[i];
            solver.b_mut().upload(&(0..n).map(b).collect::<Vec<_>>()).unwrap();
            let outcome = solver.solve(&config(tolerance), Target::RightSide, &SingleRank, &mut ()).unwrap();
            assert_eq!(outcome.stop, Stop::Converged);
            assert!((outcome.true_relative_residual - outcome.relative_residual).abs() < 1e-12);
            outcome.iterations
        };
        let cold = solve(&mut kept, 0.0, 1e-9);
        assert_eq!(kept.solutions().unwrap().len(), 1);
        let _ = solve(&mut kept, 1.0, 1e-9);
        assert_eq!(solve(&mut kept, 2.0, 1e-2), 0, "{kind:?}");
        for step in 3..6 {
            let warm = solve(&mut kept, f64::from(step), 1e-9);
            assert!(warm > 0 && warm < cold, "{kind:?}: {warm} {cold}");
        }
        let solutions = kept.solutions().unwrap();
        // Short solves with a preconditioner that is no diagonal may be judged again; then the next one begins with x alone.
        let is_diagonal = kept.preconditioner().diagonal().is_some();
        assert!(solutions.len() == 2 || (solutions.is_empty() && !is_diagonal));
        if solutions.is_empty() {
            continue;
        }
        let mut other = solver(device, &parts, kind);
        other.extrapolate().unwrap();
        other.set_solutions(&solutions).unwrap();
        other.set_smallest_ritz_value(kept.smallest_ritz_value());
        assert_eq!(solve(&mut kept, 6.0, 1e-9), solve(&mut other, 6.0, 1e-9));
        assert_eq!(kept.x().to_host().unwrap(), other.x().to_host().unwrap());
        // A guess that is written comes first.
        let exact = kept.x().to_host().unwrap();
        kept.x_mut().upload(&exact).unwrap();
        assert_eq!(solve(&mut kept, 6.0, 1e-8), 0);
        assert!(kept.set_solutions(&[vec![0.0; n + 1]]).is_err());
        assert!(kept.set_solutions(&[(); 3].map(|()| vec![0.0; n])).is_err());
    }
}

/// Iterations with rounded values end with the residual of the exact ones, also where the tolerance is below the rounding; for
/// close guesses they are as many.
pub fn iterations_may_have_another_operator<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(14));
    let parts = laplacian::<f64>(scope.side, &mut random);
    let values = parts.values.iter().map(|&value| f64::from(value as f32)).collect();
    let rounded = CsrArrays { values, ..parts.clone() };
    assert_ne!(rounded.values, parts.values);
    for kind in KINDS {
        let [mut exact, mut mixed] = [(); 2].map(|()| solver(device, &parts, kind));
        mixed.iterate_with(Arc::new(rounded.on(device))).unwrap();
        for tolerance in [1e-2, 1e-4, 1e-11, 1e-3] {
            let (guess, b) = (random.vector::<f64>(n), random.vector::<f64>(n));
            let [of_exact, of_mixed] = [&mut exact, &mut mixed].map(|solver| {
                solver.x_mut().upload(&guess).unwrap();
                solver.b_mut().upload(&b).unwrap();
                solver.solve(&config(tolerance), Target::RightSide, &SingleRank, &mut ()).unwrap()
            });
            assert_eq!(of_mixed.stop, Stop::Converged, "{kind:?} {tolerance}");
            assert!(of_mixed.true_relative_residual <= 1.1 * tolerance, "{kind:?} {tolerance}: {of_mixed:?}");
            if tolerance > 1e-5 {
                assert!(of_mixed.iterations.abs_diff(of_exact.iterations) <= 1, "{kind:?} {tolerance}");
            }
        }
    }
    let smaller = laplacian::<f64>(2, &mut random).on(device);
    assert!(solver(device, &parts, Kind::Diagonal).iterate_with(Arc::new(smaller)).is_err());
}

/// Buffers that take the place of x and b are solved for, and those that were there before are left alone.
pub fn vectors_of_a_solver_may_be_replaced<D: LinearDevice>(device: &D, scope: &Scope) {
    let (n, mut random) = (scope.side * scope.side, Random::new(6));
    let parts = laplacian::<f64>(scope.side, &mut random);
    let mut solver = solver(device, &parts, Kind::Diagonal);
    let b = random.vector::<f64>(n);
    let expected = [(); 3].map(|()| {
        let _ = compare(&mut solver, (&vec![0.0; n], &b), &config(1e-9));
        solver.x().to_host().unwrap()
    });
    let fresh = Buffer::from_vec(device, vec![0.0; n]).unwrap();
    let before = std::mem::replace(solver.x_mut(), fresh);
    let _ = solver.solve(&config(1e-9), Target::RightSide, &SingleRank, &mut ()).unwrap();
    assert_eq!(solver.x().to_host().unwrap(), expected[0]);
    assert_eq!(before.to_host().unwrap(), expected[0]);
    drop(before);
    *solver.b_mut() = Buffer::zeros(device, n + 1).unwrap();
    let error = solver.solve(&config(1e-9), Target::RightSide, &SingleRank, &mut ()).unwrap_err();
    assert_eq!(error, LinalgError::Length { field: "b", expected: n, found: n + 1 });
}
