use femtile::device::{Cpu, Reference, Scalar};
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::KrylovConfig;
use femtile_conformance::suite::problems::Random;

use super::{By, Host, Method, System, config, outliers, spectrum};

#[test]
fn too_many_steps_at_once_break_down_and_the_message_says_so() {
    let cpu = Cpu::new(2).unwrap();
    for seed in 64..68 {
        let system = System::<f64>::new(outliers(200, 1e9), &mut Random::new(seed));
        let solve = |method| system.solve(&cpu, method, By::Nothing, config(1e-8));
        let (plain, _) = solve(Method::Plain);
        assert_eq!(plain.stop, Stop::Converged);
        let (outcome, x) = solve(Method::SStep(6));
        let Stop::Breakdown { quantity, .. } = outcome.stop else { panic!("{:?}", outcome.stop) };
        assert_eq!(quantity, "a pivot of PᵀAP");
        assert!(outcome.stop.to_string().contains("take fewer"), "{}", outcome.stop);
        assert!((outcome.true_relative_residual / system.relative_residual(&x) - 1.0).abs() < 1e-6);
        assert_eq!(solve(Method::SStep(2)).0.stop, Stop::Converged);
    }
}

#[test]
fn recurrences_that_rounding_overtakes_are_not_blamed_on_the_matrix_alone() {
    let systems = (64..70).map(|seed| System::<f64>::new(outliers(200, 1e9), &mut Random::new(seed)));
    let mut n_broken = 0;
    for system in systems {
        let (outcome, _) = system.solve(&Reference, Method::Pipelined, By::Nothing, config(1e-8));
        if let Stop::Breakdown { .. } = outcome.stop {
            assert!(outcome.stop.to_string().contains("rounding has overtaken"), "{}", outcome.stop);
            n_broken += 1;
        }
        // Jacobi's preconditioner makes the same system harmless.
        let (outcome, _) = system.solve(&Reference, Method::Pipelined, By::Jacobi, config(1e-8));
        assert_eq!(outcome.stop, Stop::Converged);
    }
    assert!(n_broken > 0);
}

/// Ill-conditioning costs iterations: blocks of more steps lose the previous directions sooner.
#[test]
fn ill_conditioned_systems_take_the_variants_more_iterations_than_plain_conjugate_gradients() {
    let system = System::<f64>::new(spectrum(500, 1e5), &mut Random::new(62));
    let iterations = |method| {
        let (outcome, _) = system.solve(&Reference, method, By::Nothing, config(1e-10));
        assert_eq!(outcome.stop, Stop::Converged, "{method:?}");
        outcome.iterations
    };
    let plain = iterations(Method::Plain);
    assert!(iterations(Method::SStep(4)) > plain && iterations(Method::Pipelined) > plain);
}

fn never_claims_what_is_not_so<T: Scalar, D: Host<T>>(device: &D, tolerances: &[f64]) {
    let mut random = Random::new(63);
    for condition in [1e1, 1e3, 1e6, 1e9] {
        let system = System::<T>::new(spectrum(150, condition), &mut random);
        for &tolerance in tolerances {
            for method in Method::VARIANTS {
                let config =
                    KrylovConfig { max_iterations: 3000, stagnation_window: 500, ..config(tolerance) };
                let (outcome, x) = system.solve(device, method, By::Nothing, config);
                let truth = system.relative_residual(&x);
                let slack = 10.0 * T::EPSILON.to_f64();
                let holds = outcome.stop != Stop::Converged || truth <= 2.0 * tolerance + slack;
                assert!(holds, "{method:?}, {condition:e}, {tolerance:e}: {truth:e} is called converged");
                let reported = outcome.true_relative_residual;
                let agrees = (reported - truth).abs() <= 1e-2 * truth + 100.0 * T::EPSILON.to_f64();
                assert!(agrees, "{method:?}, {condition:e}: {reported:e} is reported, {truth:e} is true");
            }
        }
    }
}

/// Down to tolerances that rounding does not allow.
#[test]
fn no_variant_claims_a_convergence_that_the_true_residual_does_not_support() {
    never_claims_what_is_not_so::<f64, _>(&Cpu::new(2).unwrap(), &[1e-4, 1e-8, 1e-12, 1e-17]);
    never_claims_what_is_not_so::<f32, _>(&Cpu::new(1).unwrap(), &[1e-3, 1e-5, 1e-9]);
    never_claims_what_is_not_so::<f64, _>(&Reference, &[1e-6, 1e-14]);
}
