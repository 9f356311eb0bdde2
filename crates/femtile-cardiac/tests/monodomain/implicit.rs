//! The fully implicit scheme: formats of its tangent and times of its parts.

use femtile::solve::{MatrixFormat, SolverConfig};
use femtile_cardiac::activation::ActivationConfig;
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::{AdaptiveSteps, Scheme};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, MonodomainSolution, Stimulus};

use crate::{on_cpu, strip};

/// A front that travels along a strip.
fn front(config: &SolverConfig, timed: bool) -> MonodomainSolution {
    let mesh = strip(53, 0.5);
    let stimulus =
        Stimulus { place: Place::Where("x < 1.1".into()), strength: 1.0, pulses: Pulses::single(0.0, 1.0) };
    Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
        .stimulus(stimulus)
        .scheme(Scheme::Implicit)
        .times(0.0, 8.0, 0.1)
        .timed(timed)
        .solve(config)
        .unwrap()
}

#[test]
fn slices_of_rows_change_implicit_steps_by_rounding_only() {
    let [rows, slices] = [MatrixFormat::Csr, MatrixFormat::EllWarp]
        .map(|format| front(&SolverConfig { format, ..on_cpu(1) }, false));
    assert_eq!(rows.format, "CSR");
    assert!(slices.format.starts_with("K1"), "{}", slices.format);
    assert_eq!(rows.outcome.newton, slices.outcome.newton);
    let difference = rows.potential.iter().zip(&slices.potential).map(|(a, b)| (a - b).abs());
    assert!(difference.fold(0.0, f64::max) < 1e-9);
    assert!(rows.potential.iter().any(|v| *v > 0.5) && rows.potential.iter().any(|v| *v < 0.1));
}

#[test]
fn measuring_parts_of_steps_leaves_the_solution_as_it_is() {
    let [plain, timed] = [false, true].map(|timed| front(&on_cpu(1), timed));
    assert_eq!(plain.potential, timed.potential);
    assert!(plain.outcome.parts.is_none());
    let (parts, whole) = (timed.outcome.parts.unwrap(), timed.outcome.seconds);
    let all = [parts.membrane, parts.assembly_products, parts.assembly_rest, parts.solver];
    assert!(all.iter().all(|seconds| *seconds > 0.0), "{parts:?}");
    assert!(all.iter().sum::<f64>() <= whole, "{parts:?} {whole}");
    assert!((parts.assembly() + parts.solver - all.iter().sum::<f64>()).abs() < 1e-12);
}

/// A patch that is stimulated as a whole, so that it behaves as one cell.
fn one_cell<'m>(
    mesh: &'m femtile::Mesh,
    model: &str,
    strength: f64,
    [start, duration, end]: [f64; 3],
) -> Monodomain<'m> {
    let place = Place::Where("x < 1e9".into());
    let stimulus = Stimulus { place, strength, pulses: Pulses::single(start, duration) };
    Monodomain::new(mesh, Model::named(model).unwrap()).stimulus(stimulus).scheme(Scheme::Implicit).times(
        0.0,
        end,
        1e-4 * end,
    )
}

fn adaptive(tolerance: f64, end: f64) -> AdaptiveSteps {
    AdaptiveSteps { tolerance, shortest: 1e-9 * end, longest: 0.1 * end }
}

#[test]
fn smaller_tolerances_and_steps_come_nearer_to_the_solution() {
    let mesh = strip(2, 0.5);
    let of = |problem: Monodomain<'_>| problem.solve(&on_cpu(1)).unwrap().potential[0];
    let problem = || one_cell(&mesh, "fitzhugh-nagumo", 0.8, [1.0, 2.0, 6.0]);
    // By the classical Runge–Kutta method with steps of 0.001.
    let exact = 1.70926;
    let errors =
        [1e-3, 1e-5, 3e-6, 2e-6].map(|tolerance| of(problem().adaptive(adaptive(tolerance, 6.0))) - exact);
    assert!(errors.is_sorted_by(|a, b| a.abs() > b.abs()) && errors[3].abs() < 1e-3, "{errors:?}");
    // A solve may leave more than a step changes.
    let errors = [4e-3, 2e-3, 1e-3].map(|step| of(problem().times(0.0, 6.0, step).solve_error(1e-2)) - exact);
    assert!(errors.is_sorted_by(|a, b| a.abs() > b.abs()) && errors[2].abs() < 2e-3, "{errors:?}");
}

#[test]
fn action_potentials_last_as_long_as_those_of_small_steps() {
    let mesh = strip(2, 0.5);
    let levels = ActivationConfig { threshold: 0.5, rest: 0.0, repolarised: 0.5 };
    let duration = |problem: Monodomain<'_>| problem.solve(&on_cpu(1)).unwrap().activation.duration[0];
    let aliev = || one_cell(&mesh, "aliev-panfilov", 0.5, [1.0, 1.0, 45.0]).activation(levels);
    for tolerance in [2e-3, 1e-3] {
        let found = duration(aliev().adaptive(adaptive(tolerance, 45.0)));
        assert!((found / 28.09 - 1.0).abs() < 0.01, "tolerance {tolerance}: {found}");
    }
    for (model, strength, times) in
        [("fitzhugh-nagumo", 0.8, [1.0, 2.0, 60.0]), ("mitchell-schaeffer", 0.2, [1.0, 2.0, 500.0])]
    {
        let problem = || one_cell(&mesh, model, strength, times);
        let [found, fine] =
            [1e-3, 1e-5].map(|tolerance| duration(problem().adaptive(adaptive(tolerance, times[2]))));
        assert!((found / fine - 1.0).abs() < 0.01, "{model}: {found} instead of {fine}");
    }
}
