use femtile::device::{Cpu, Reference, Scalar};
use femtile::linalg::krylov::Stop;
use femtile_conformance::suite::problems::{CsrArrays, Random, laplacian};

use super::{By, Host, Method, System, chain, config, dense};
use crate::cpus;

/// The solution by a dense Cholesky factorisation in f64.
fn direct<T: Scalar>(system: &System<T>) -> Vec<f64> {
    let n = system.b.len();
    let (mut l, mut x) = (vec![0.0; n * n], Vec::with_capacity(n));
    for i in 0..n {
        for k in system.a.offsets[i] as usize..system.a.offsets[i + 1] as usize {
            l[i * n + system.a.columns[k] as usize] = system.a.values[k].to_f64();
        }
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = l[i * n + j] - known;
            l[i * n + j] = if j < i { rest / l[j * n + j] } else { rest.sqrt() };
        }
    }
    for i in 0..n {
        let known: f64 = (0..i).map(|k| l[i * n + k] * x[k]).sum();
        x.push((system.b[i].to_f64() - known) / l[i * n + i]);
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| l[k * n + i] * x[k]).sum();
        x[i] = (x[i] - known) / l[i * n + i];
    }
    x
}

fn finds_the_direct_solution<T: Scalar, D: Host<T>>(
    device: &D,
    a: CsrArrays<T>,
    random: &mut Random,
    [tolerance, slack]: [f64; 2],
) {
    let system = System::new(a, random);
    let expected = direct(&system);
    let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
    for method in [Method::Plain].into_iter().chain(Method::VARIANTS) {
        for &by in method.preconditioners() {
            let (outcome, x) = system.solve(device, method, by, config(tolerance));
            let n = expected.len();
            assert_eq!(outcome.stop, Stop::Converged, "{method:?} {by:?} of {n}: {outcome:?}");
            assert_eq!(outcome.residuals.len(), outcome.iterations + 1);
            for (x, expected) in x.iter().zip(&expected) {
                let error = (x.to_f64() - expected).abs();
                assert!(error <= slack * size, "{method:?} {by:?} of {n}: {x} is not {expected}");
            }
        }
    }
}

#[test]
fn every_variant_finds_the_solution_of_a_direct_solve() {
    let mut random = Random::new(41);
    for n in [1, 2, 3, 5, 13, 31, 61] {
        for cpu in [Cpu::new(1).unwrap(), Cpu::new(2).unwrap()] {
            finds_the_direct_solution::<f64, _>(&cpu, dense(n, &mut random), &mut random, [1e-12, 1e-10]);
            finds_the_direct_solution::<f64, _>(&cpu, chain(n, &mut random), &mut random, [1e-12, 1e-9]);
        }
        finds_the_direct_solution::<f64, _>(&Reference, dense(n, &mut random), &mut random, [1e-12, 1e-10]);
    }
    finds_the_direct_solution::<f64, _>(&Reference, laplacian(9, &mut random), &mut random, [1e-12, 1e-9]);
}

/// Blocks of up to four steps fit into single precision.
#[test]
fn single_precision_finds_the_solution_to_its_digits() {
    let mut random = Random::new(42);
    let cpu = Cpu::new(2).unwrap();
    for n in [1, 2, 7, 31] {
        let system = System::<f32>::new(dense(n, &mut random), &mut random);
        let expected = direct(&system);
        for method in
            [Method::Pipelined, Method::SStep(1), Method::SStep(2), Method::SStep(3), Method::SStep(4)]
        {
            for &by in method.preconditioners() {
                let (outcome, x) = system.solve(&cpu, method, by, config(1e-5));
                assert_eq!(outcome.stop, Stop::Converged, "{method:?} {by:?} of {n}: {outcome:?}");
                assert!(system.relative_residual(&x) <= 3e-5);
                for (x, expected) in x.iter().zip(&expected) {
                    assert!((f64::from(*x) - expected).abs() <= 1e-3, "{x} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn pipelined_residuals_are_those_of_plain_conjugate_gradients() {
    let mut random = Random::new(43);
    for a in [laplacian(37, &mut random), dense(61, &mut random), chain(4097, &mut random)] {
        let system = System::<f64>::new(a, &mut random);
        for by in [By::Nothing, By::Jacobi, By::Hidden] {
            let (plain, _) = system.solve(&Reference, Method::Plain, by, config(1e-10));
            let on_cpus =
                cpus().into_iter().map(|cpu| system.solve(&cpu, Method::Pipelined, by, config(1e-10)));
            let on_reference = system.solve(&Reference, Method::Pipelined, by, config(1e-10));
            for (outcome, _) in on_cpus.chain([on_reference]) {
                for (found, expected) in outcome.residuals.iter().zip(&plain.residuals).take(20) {
                    // A residual far below that of the start is known to the rounding of the latter.
                    let slack = 1e-8 * expected + f64::EPSILON;
                    assert!((found - expected).abs() <= slack, "{by:?}: {found} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn residuals_of_blocks_are_those_of_every_sth_plain_step() {
    let mut random = Random::new(44);
    let system = System::<f64>::new(laplacian(37, &mut random), &mut random);
    for by in [By::Nothing, By::Jacobi] {
        let (plain, _) = system.solve(&Reference, Method::Plain, by, config(1e-10));
        for steps in 1..=6 {
            let cpu = Cpu::new(2).unwrap();
            let (found, _) = system.solve(&cpu, Method::SStep(steps), by, config(1e-10));
            for (i, (found, expected)) in found.residuals.iter().zip(&plain.residuals).take(25).enumerate() {
                let is_known = i % steps == 0;
                assert_eq!(found.is_nan(), !is_known, "{steps} steps, {i}");
                let agrees = (found - expected).abs() <= 1e-6 * expected;
                assert!(!is_known || agrees, "{steps} steps, {i}: {found} is not {expected}");
            }
        }
    }
}

#[test]
fn variants_need_as_many_iterations_as_plain_conjugate_gradients() {
    let mut random = Random::new(45);
    let stable = [Method::Pipelined, Method::SStep(1), Method::SStep(2), Method::SStep(3)];
    for a in [laplacian(37, &mut random), dense(61, &mut random), chain(4097, &mut random)] {
        let system = System::<f64>::new(a, &mut random);
        for method in stable {
            for &by in method.preconditioners() {
                let cpu = Cpu::new(2).unwrap();
                let (plain, _) = system.solve(&cpu, Method::Plain, by, config(1e-10));
                let (found, x) = system.solve(&cpu, method, by, config(1e-10));
                let steps = if let Method::SStep(steps) = method { steps } else { 1 };
                let expected = plain.iterations.next_multiple_of(steps);
                let allowed = (expected / 50).max(1);
                assert_eq!(found.stop, Stop::Converged);
                assert!(
                    found.iterations.abs_diff(expected) <= allowed,
                    "{method:?} {by:?}: {} iterations, not {expected}",
                    found.iterations
                );
                assert!(
                    found.true_relative_residual <= 2.0 * plain.true_relative_residual,
                    "{method:?} {by:?}"
                );
                assert!((found.true_relative_residual - system.relative_residual(&x)).abs() < 1e-14);
            }
        }
    }
}

fn agree_with_the_reference<T: Scalar>(random: &mut Random, tolerance: f64, slack: f64)
where
    Cpu: Host<T>,
    Reference: Host<T>,
{
    let cpu = Cpu::new(3).unwrap();
    for n in [0, 1, 2, 3, 17, 257, 4095, 4096, 4097, 8191, 10_007] {
        let system = System::<T>::new(chain(n, random), random);
        for method in [Method::Pipelined, Method::SStep(1), Method::SStep(3), Method::SStep(4)] {
            for &by in method.preconditioners() {
                let settings = config(tolerance);
                let (expected, solution) = system.solve(&Reference, method, by, settings.clone());
                let (found, x) = system.solve(&cpu, method, by, settings);
                assert_eq!((found.stop, expected.stop), (Stop::Converged, Stop::Converged), "{method:?} {n}");
                for (x, expected) in x.iter().zip(&solution) {
                    assert!(
                        (*x - *expected).to_f64().abs() <= slack,
                        "{method:?} {by:?} of {n}: {x} {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_size_of_vector_agrees_with_the_reference() {
    agree_with_the_reference::<f64>(&mut Random::new(46), 1e-12, 1e-9);
    agree_with_the_reference::<f32>(&mut Random::new(47), 1e-5, 1e-3);
}

#[test]
fn variants_give_the_same_bits_for_any_threads_and_any_simd() {
    let mut random = Random::new(48);
    // Fewer unknowns than these are left to one thread.
    for a in [laplacian(13, &mut random), chain(50_001, &mut random)] {
        let system = System::<f64>::new(a, &mut random);
        for method in [Method::Pipelined, Method::SStep(1), Method::SStep(3), Method::SStep(6)] {
            for &by in method.preconditioners() {
                let first = system.solve(&cpus()[0], method, by, config(1e-4)).1;
                for cpu in cpus() {
                    assert_eq!(system.solve(&cpu, method, by, config(1e-4)).1, first, "{method:?} {cpu:?}");
                }
            }
        }
    }
}
