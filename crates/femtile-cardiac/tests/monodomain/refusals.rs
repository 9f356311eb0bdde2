//! Input that is refused, and runs that end early.

use femtile::Mesh;
use femtile_cardiac::ionic::{LocalScheme, Model};
use femtile_cardiac::monodomain::{AdaptiveSteps, Scheme, Stop};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, Stimulus};

use crate::{on_cpu, strip};

fn problem(mesh: &Mesh) -> Monodomain<'_> {
    Monodomain::new(mesh, Model::named("aliev-panfilov").unwrap()).times(0.0, 1.0, 0.1)
}

fn stimulus(place: Place) -> Stimulus {
    Stimulus { place, strength: 1.0, pulses: Pulses::single(0.0, 1.0) }
}

fn refusal(problem: &Monodomain<'_>) -> String {
    problem.solve(&on_cpu(1)).unwrap_err().to_string()
}

#[test]
fn settings_out_of_range_are_named() {
    let mesh = strip(4, 1.0);
    let steps = AdaptiveSteps { tolerance: 1e-3, shortest: 1e-6, longest: 1.0 };
    for (problem, words) in [
        (problem(&mesh).times(0.0, 1.0, 0.0), "step: 0 is not positive"),
        (problem(&mesh).times(0.0, 1.0, f64::NAN), "step: NaN"),
        (problem(&mesh).times(1.0, 1.0, 0.1), "end: 1 has to lie after"),
        (problem(&mesh).membrane(-1.0, 1.0), "surface_to_volume"),
        (problem(&mesh).theta(0.3), "theta"),
        (problem(&mesh).adaptive(steps), "tolerance: splitting"),
        (problem(&mesh).stimulus(stimulus(Place::Where("x > 9".into()))), "touches no node"),
        (problem(&mesh).stimulus(stimulus(Place::Tag("apex".into()))), "`apex`"),
        (problem(&mesh).tissue("scar", Model::named("aliev-panfilov").unwrap()), "`scar`"),
        (problem(&mesh).electrode("V1", [1.0, 0.0, 0.0]), "`V1` lies at node"),
        (problem(&mesh).conductivity(-1.0), "sigma"),
    ] {
        let found = refusal(&problem);
        assert!(found.contains(words), "{found} does not have {words}");
    }
}

#[test]
fn models_with_many_states_have_no_implicit_scheme() {
    let mesh = strip(4, 1.0);
    let model = Model::named("ten-tusscher-panfilov-2006:epi").unwrap();
    let found = refusal(&Monodomain::new(&mesh, model).times(0.0, 1.0, 0.1).scheme(Scheme::Implicit));
    assert!(found.contains("states"), "{found}");
}

#[test]
fn an_unstable_run_ends_and_names_the_node() {
    let mesh = strip(20, 1.0);
    let model = Model::named("ten-tusscher-panfilov-2006:epi").unwrap();
    let solution = Monodomain::new(&mesh, model)
        .local_scheme(LocalScheme::Explicit)
        .stimulus(Stimulus { place: Place::All, strength: 1e6, pulses: Pulses::single(0.0, 90.0) })
        .times(0.0, 100.0, 1.0)
        .solve(&on_cpu(1))
        .unwrap();
    let Stop::Unstable { node, potential } = solution.outcome.stop else { panic!("{:?}", solution.outcome) };
    assert!(node < mesh.n_nodes() && (potential.is_nan() || potential.abs() > 100.0));
}

#[test]
fn newtons_method_halves_steps_before_the_run_ends() {
    let mesh = strip(20, 1.0);
    let run = |strength: f64| {
        problem(&mesh)
            .times(0.0, 40.0, 8.0)
            .stimulus(Stimulus {
                place: Place::Where("x < 3".into()),
                strength,
                pulses: Pulses::single(0.0, 2.0),
            })
            .scheme(Scheme::Implicit)
            .solve(&on_cpu(1))
            .unwrap()
            .outcome
    };
    let outcome = run(1.0);
    assert_eq!(outcome.stop, Stop::Finished);
    let outcome = run(f64::MAX);
    assert!(matches!(outcome.stop, Stop::NewtonFailed { .. }), "{outcome:?}");
    assert!(outcome.rejected > 1 && outcome.time == 0.0, "{outcome:?}");
}
