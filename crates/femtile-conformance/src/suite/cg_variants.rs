//! Pipelined and s-step conjugate gradients: held to plain ones and to those of the processor.

use femtile::device::{Buffer, Cpu, Reference, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgKernels, CgOutcome, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::pipelined_cg::{PipelinedCg, PipelinedCgKernels};
use femtile::linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig, SStepCgKernels, SStepGram, SmallMatrix};
use femtile::linalg::precondition::{Diagonal, Jacobi};
use femtile::linalg::sparse::csr::CsrKernels;
use femtile::linalg::{LinalgError, Preconditioner};

use super::Scope;
use super::cg::config;
use super::problems::{CsrArrays, Random, laplacian};

/// A device that solves by these methods.
pub trait Solving<T: Scalar>:
    CgKernels<T> + PipelinedCgKernels<T> + SStepCgKernels<T> + CsrKernels<T>
{
}

impl<T: Scalar, D> Solving<T> for D where
    D: CgKernels<T> + PipelinedCgKernels<T> + SStepCgKernels<T> + CsrKernels<T>
{
}

/// A device that solves by these methods in both precisions.
pub trait VariantDevice: Solving<f64> + Solving<f32> {}

impl<D: Solving<f64> + Solving<f32>> VariantDevice for D {}

/// Methods, with the steps of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Plain,
    Pipelined,
    SStep(usize),
}

/// Preconditioners.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Nothing,
    Jacobi,
    /// Jacobi's, which does not say that it is a diagonal.
    Hidden,
}

/// Every kind of pass: with one and another preconditioner, with few and many steps.
const PASSES: [(Method, By); 9] = [
    (Method::Pipelined, By::Nothing),
    (Method::Pipelined, By::Jacobi),
    (Method::Pipelined, By::Hidden),
    (Method::SStep(1), By::Jacobi),
    (Method::SStep(2), By::Nothing),
    (Method::SStep(3), By::Nothing),
    (Method::SStep(3), By::Jacobi),
    (Method::SStep(4), By::Jacobi),
    (Method::SStep(6), By::Nothing),
];

struct Hidden<T: Scalar, D: Solving<T>>(Jacobi<T, D>);

impl<T: Scalar, D: Solving<T>> Preconditioner<T, D> for Hidden<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.0.apply(z, r)
    }
}

/// Solves from zero.
fn solve<T: Scalar, D: Solving<T>>(
    device: &D,
    (parts, b): (&CsrArrays<T>, &[T]),
    (method, by): (Method, By),
    config: KrylovConfig,
) -> (CgOutcome, Vec<T>) {
    let a = &parts.on(device);
    let m: Box<dyn Preconditioner<T, D>> = match by {
        By::Nothing => Box::new(Diagonal::identity(device, b.len()).unwrap()),
        By::Jacobi => Box::new(Jacobi::new(a).unwrap()),
        By::Hidden => Box::new(Hidden(Jacobi::new(a).unwrap())),
    };
    let (b, m) = (&Buffer::from_host(device, b).unwrap(), m.as_ref());
    let mut x = Buffer::zeros(device, b.len()).unwrap();
    let outcome = match method {
        Method::Plain => ConjugateGradient::new(config).solve(&mut x, a, m, b, &SingleRank, &mut ()),
        Method::Pipelined => PipelinedCg::new(config).solve(&mut x, a, m, b, &SingleRank, &mut ()),
        Method::SStep(steps) => {
            SStepCg::new(SStepCgConfig { cg: config, steps }).solve(&mut x, a, m, b, &SingleRank, &mut ())
        }
    };
    (outcome.unwrap(), x.to_host().unwrap())
}

fn bits<T: Scalar>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.to_f64().to_bits()).collect()
}

fn agree<T: Scalar, D: Solving<T>>(device: &D, n: usize, tolerance: f64, of_x: f64) {
    let mut random = Random::new(3 + n as u64);
    let (parts, b) = (laplacian::<T>(n, &mut random), random.vector::<T>(n * n));
    for (method, by) in PASSES {
        let (plain, expected) = solve(&Reference, (&parts, &b), (Method::Plain, by), config(tolerance));
        let (cpu, _) = solve(&Cpu::new(1).unwrap(), (&parts, &b), (method, by), config(tolerance));
        let (found, x) = solve(device, (&parts, &b), (method, by), config(tolerance));
        let case = format!(
            "{method:?}, {by:?}, side {n}: {} {} {}",
            found.iterations, cpu.iterations, plain.iterations
        );
        if matches!(method, Method::SStep(3..)) && matches!(cpu.stop, Stop::Breakdown { .. }) {
            assert!(matches!(found.stop, Stop::Breakdown { .. }), "{case}: {:?}", found.stop);
            continue;
        }
        assert_eq!((found.stop, cpu.stop), (Stop::Converged, Stop::Converged), "{case}");
        assert!(found.true_relative_residual <= 2.0 * tolerance, "{case}: {found:?}");
        let block = if let Method::SStep(steps) = method { steps } else { 1 };
        let slack = block.max(cpu.iterations / 20);
        assert!(found.iterations.abs_diff(cpu.iterations) <= slack, "{case}");
        for (x, expected) in x.iter().zip(&expected) {
            assert!((*x - *expected).to_f64().abs() < of_x, "{case}: {x} {expected}");
        }
        for (found, expected) in found.residuals.iter().zip(&cpu.residuals).take(12) {
            let close = (found - expected).abs() <= tolerance + of_x * expected;
            assert!(close || found.is_nan() && expected.is_nan(), "{case}: {found:e} {expected:e}");
        }
    }
}

/// Solutions are those of plain conjugate gradients, counts and first residuals those of the processor, in both precisions;
/// where many steps at once break down on the processor, they do here.
pub fn variants_agree_with_plain_cg_and_the_processor<D: VariantDevice>(device: &D, scope: &Scope) {
    for side in [1, 2, 3, scope.side] {
        agree::<f64, _>(device, side, 1e-9, 1e-6);
        agree::<f32, _>(device, side, 1e-4, 5e-2);
    }
}

/// A solve has the same bits each time, where several blocks end in a sum too.
pub fn variants_give_the_same_bits_twice<D: VariantDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(5);
    let (parts, b) = (laplacian::<f64>(67, &mut random), random.vector::<f64>(67 * 67));
    let few = KrylovConfig { max_iterations: 6, ..config(1e-12) };
    for pass in [(Method::Pipelined, By::Jacobi), (Method::SStep(3), By::Jacobi)] {
        let ((first, x), (again, y)) =
            (solve(device, (&parts, &b), pass, few.clone()), solve(device, (&parts, &b), pass, few.clone()));
        assert_eq!(bits(&first.residuals), bits(&again.residuals), "{pass:?}");
        assert_eq!(bits(&x), bits(&y), "{pass:?}");
    }
}

/// Right sides of zeros, matrices that are not positive definite, data that are not finite and limits all end with a name.
pub fn variants_end_with_an_outcome<D: VariantDevice>(device: &D, _: &Scope) {
    let indefinite = CsrArrays::from_rows(2, vec![vec![(0, 1.0), (1, 3.0)], vec![(0, 3.0), (1, 1.0)]]);
    let mut random = Random::new(1);
    let (parts, b) = (laplacian::<f64>(5, &mut random), random.vector::<f64>(25));
    for pass in PASSES {
        let (outcome, x) = solve(device, (&indefinite, &[1.0, -1.0]), pass, config(1e-10));
        assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{pass:?}: {:?}", outcome.stop);
        assert_eq!(x, [0.0, 0.0], "{pass:?}");
        let (outcome, x) = solve(device, (&parts, &[0.0; 25]), pass, config(1e-10));
        assert_eq!((outcome.stop, outcome.iterations, x), (Stop::Converged, 0, vec![0.0; 25]), "{pass:?}");
        for bad in [f64::NAN, f64::INFINITY] {
            let mut b = b.clone();
            b[7] = bad;
            let (outcome, x) = solve(device, (&parts, &b), pass, config(1e-10));
            assert!(matches!(outcome.stop, Stop::Breakdown { .. }), "{pass:?}: {:?}", outcome.stop);
            assert_eq!(x, [0.0; 25], "{pass:?}");
        }
        let limit = KrylovConfig { max_iterations: 4, ..config(1e-14) };
        let (outcome, _) = solve(device, (&parts, &b), pass, limit);
        assert_eq!((outcome.stop, outcome.iterations), (Stop::MaxIterations, 4), "{pass:?}");
        assert!((outcome.true_relative_residual - outcome.relative_residual).abs() < 1e-12, "{pass:?}");
    }
}

/// Each pass over a block agrees with its definition, for every number of directions and length of vectors.
pub fn passes_over_blocks_agree_with_the_reference<D: VariantDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(11);
    for (case, &n) in scope.sizes.iter().enumerate() {
        let (n_before, n_steps) = (1 + case % 6, 1 + (case * 4 + 1) % 6);
        let has_diagonal = case % 2 == 1;
        let n_p = n_before.max(n_steps);
        let p: Vec<Vec<f64>> = (0..n_p).map(|_| random.vector(n)).collect();
        let t: Vec<Vec<f64>> = (0..=n_steps).map(|_| random.vector(n)).collect();
        let d: Vec<f64> = (0..n).map(|_| 1.5 + random.unit()).collect();
        let mut b = SmallMatrix::default();
        for l in 0..n_before {
            (0..n_steps).for_each(|j| b[(l, j)] = random.unit());
        }
        let input = (p.as_slice(), t.as_slice(), has_diagonal.then_some(d.as_slice()));
        let (expected, found) =
            (passes(&Reference, input, (&b, n_before)), passes(device, input, (&b, n_before)));
        assert_eq!(expected.len(), found.len());
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let close = (found - expected).abs() <= 1e-12 * (1.0 + n as f64);
            assert!(close, "{n} {n_before} {n_steps} at {place}: {found} {expected}");
        }
    }
}

/// P, T and the diagonal of D⁻¹.
type Block<'a> = (&'a [Vec<f64>], &'a [Vec<f64>], Option<&'a [f64]>);

/// Returns all that the three passes find: r·r, sums, directions, x and t₀.
fn passes<D: SStepCgKernels<f64>>(
    device: &D,
    (p, t, d): Block<'_>,
    (b, n_before): (&SmallMatrix, usize),
) -> Vec<f64> {
    let on = |values: &[f64]| Buffer::from_host(device, values).unwrap();
    let mut p: Vec<_> = p.iter().map(|p| on(p)).collect();
    let mut t: Vec<_> = t.iter().map(|t| on(t)).collect();
    let (d, n_steps) = (d.map(on), t.len() - 1);
    let gram = device.s_step_gram(&p[..n_before], &t, d.as_ref()).unwrap();
    let (mut x, a) = (on(&t[1].to_host().unwrap()), [0.5, -1.0, 2.0, 0.25, 3.0, -0.125]);
    device.s_step_update(&mut x, &mut p, &t[..n_steps], b, &a[..n_steps], &a[6 - n_before..]).unwrap();
    let (v, rest) = t.split_first_mut().unwrap();
    let r_dot_r = device.s_step_residual(v, &x, &rest[0], d.as_ref()).unwrap();
    let mut found = vec![r_dot_r];
    found.extend(SStepGram::pairs_with_before(n_before, n_steps).map(|(i, k)| gram.before[i][k]));
    found.extend(SStepGram::pairs_of_basis(n_steps).map(|(i, k)| gram.basis[i][k]));
    for vector in p.iter().chain([&x, &*v]) {
        found.extend(vector.to_host().unwrap());
    }
    found
}

/// Vectors of other lengths, and more directions than there are, are refused.
pub fn blocks_that_do_not_fit_are_refused<D: VariantDevice>(device: &D, _: &Scope) {
    let vectors = |count: usize, n: usize| -> Vec<Buffer<f64, D>> {
        (0..count).map(|_| Buffer::zeros(device, n).unwrap()).collect()
    };
    let mut short = vectors(1, 4).remove(0);
    assert!(device.s_step_gram(&vectors(2, 5), &vectors(3, 4), None).is_err());
    assert!(device.s_step_gram(&vectors(2, 5), &vectors(3, 5), Some(&short)).is_err());
    assert!(device.s_step_gram(&vectors(7, 5), &vectors(3, 5), None).is_err());
    assert!(device.s_step_gram(&[], &vectors(8, 5), None).is_err());
    let update = |x: &mut Buffer<f64, D>, n_p: usize, r: &[Buffer<f64, D>], a: &[f64], a_before: &[f64]| {
        device.s_step_update(x, &mut vectors(n_p, 5), r, &SmallMatrix::default(), a, a_before)
    };
    let (mut x, ones) = (vectors(1, 5).remove(0), [1.0; 7]);
    assert!(update(&mut x, 2, &vectors(2, 5), &ones[..2], &ones[..2]).is_ok());
    assert!(update(&mut short, 2, &vectors(2, 5), &ones[..2], &ones[..2]).is_err());
    assert!(update(&mut x, 2, &vectors(2, 4), &ones[..2], &ones[..2]).is_err());
    assert!(update(&mut x, 1, &vectors(2, 5), &ones[..2], &ones[..1]).is_err());
    assert!(update(&mut x, 2, &vectors(2, 5), &ones[..2], &ones[..3]).is_err());
    assert!(update(&mut x, 2, &vectors(2, 5), &ones[..1], &ones[..2]).is_err());
    assert!(update(&mut x, 7, &vectors(7, 5), &ones, &ones).is_err());
    let five = &vectors(1, 5)[0];
    assert!(device.s_step_residual(&mut short, five, five, None).is_err());
}
