//! Orders of convergence in time.

use femtile_cardiac::ionic::{LocalScheme, Model};
use femtile_cardiac::monodomain::{AdaptiveSteps, Scheme, Splitting};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, Stimulus};

use crate::{on_cpu, strip};

/// The potentials after 6 units of an excited strip.
fn potentials(scheme: Scheme, local: LocalScheme, theta: f64, steps: usize) -> Vec<f64> {
    let mesh = strip(20, 0.5);
    let stimulus =
        Stimulus { place: Place::Where("x < 1.1".into()), strength: 0.6, pulses: Pulses::single(0.0, 6.0) };
    let problem = Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
        .stimulus(stimulus)
        .scheme(scheme)
        .local_scheme(local)
        .theta(theta)
        .solve_error(1e-10)
        .times(0.0, 6.0, 6.0 / steps as f64);
    problem.solve(&on_cpu(1)).unwrap().potential
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt() / (a.len() as f64).sqrt()
}

#[test]
fn schemes_converge_with_their_orders_in_time() {
    let (godunov, strang) = (Scheme::Splitting(Splitting::Godunov), Scheme::Splitting(Splitting::Strang));
    let exact = potentials(strang, LocalScheme::RushLarsen2, 0.5, 6400);
    for (scheme, local, theta, order) in
        [(godunov, LocalScheme::RushLarsen, 1.0, 1.0), (strang, LocalScheme::RushLarsen2, 0.5, 2.0)]
    {
        let errors = [200, 400, 800].map(|steps| distance(&potentials(scheme, local, theta, steps), &exact));
        for pair in errors.windows(2) {
            let found = (pair[0] / pair[1]).log2();
            assert!((found - order).abs() < 0.25, "{scheme:?}: {errors:?}");
        }
    }
}

#[test]
fn the_implicit_scheme_converges_with_order_one() {
    let local = LocalScheme::RushLarsen;
    let exact = potentials(Scheme::Implicit, local, 1.0, 3200);
    let errors =
        [100, 200, 400].map(|steps| distance(&potentials(Scheme::Implicit, local, 1.0, steps), &exact));
    // Relative to a result with an eighth to a thirty-second of the step.
    assert!(errors[0] / errors[1] > 1.7 && errors[1] / errors[2] > 1.7, "{errors:?}");
}

#[test]
fn adaptive_steps_are_fewer_for_a_larger_tolerance() {
    let mesh = strip(20, 0.5);
    let run = |tolerance: f64| {
        let stimulus = Stimulus {
            place: Place::Where("x < 1.1".into()),
            strength: 1.0,
            pulses: Pulses::single(0.0, 1.0),
        };
        let steps = AdaptiveSteps { tolerance, shortest: 1e-6, longest: 5.0 };
        let problem = Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
            .stimulus(stimulus)
            .scheme(Scheme::Implicit)
            .adaptive(steps)
            .times(0.0, 25.0, 0.01);
        problem.solve(&on_cpu(1)).unwrap()
    };
    let [coarse, fine, finer] = [1e-2, 1e-3, 1e-5].map(run);
    let counts = [&coarse, &fine, &finer].map(|solution| solution.outcome.steps);
    assert!(counts[0] < counts[1] && 3 * counts[1] < counts[2], "{counts:?}");
    let distances = [&coarse, &fine].map(|solution| distance(&solution.potential, &finer.potential));
    assert!(distances[1] < distances[0] && distances[1] < 0.05, "{distances:?}");
}
