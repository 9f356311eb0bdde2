//! Input that is refused, and runs that end early.

use femtile::Mesh;
use femtile_cardiac::ionic::{LocalScheme, Model};
use femtile_cardiac::monodomain::{AdaptiveSteps, Checkpoint, CheckpointInterval, Observer, Scheme, Stop};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{CardiacError, Monodomain, Stimulus};

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
        (problem(&mesh).stimulus(stimulus(Place::Where("x > 9".into()))), "stimulus 0: it touches no node"),
        (
            problem(&mesh).stimulus(stimulus(Place::Tag("apex".into()))),
            "stimulus 0: no cell or facet has the tag `apex`",
        ),
        (problem(&mesh).stimulus(stimulus(Place::Where("x".into()))), "stimulus 0: `x` is no comparison"),
        (problem(&mesh).stimulus(stimulus(Place::Nodes(vec![10]))), "there is no node 10, the mesh has 10"),
        (
            problem(&mesh).tissue("scar", Model::named("aliev-panfilov").unwrap()),
            "tissue 1: no cell or facet has the tag `scar`",
        ),
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

/// Keeps the last checkpoint.
#[derive(Default)]
struct Last(Option<Checkpoint>);

impl Observer for Last {
    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), CardiacError> {
        self.0 = Some(state.clone());
        Ok(())
    }
}

/// The stimulus without a solution begins within the third step, so that parts of it are carried out before it fails.
#[test]
fn a_step_without_a_solution_leaves_the_state_before_it() {
    let mesh = strip(20, 1.0);
    let pulse = |strength, start| Stimulus {
        place: Place::Where("x < 3".into()),
        strength,
        pulses: Pulses::single(start, 2.0),
    };
    let run = |end| {
        let mut last = Last::default();
        let problem = problem(&mesh).times(0.0, end, 2.0).scheme(Scheme::Implicit);
        let problem = problem.stimulus(pulse(1.0, 0.0)).stimulus(pulse(f64::MAX, 5.5));
        let problem = problem.checkpoints(CheckpointInterval::Steps(2), [5; 32]);
        let done = problem.solve_with(&on_cpu(1), &mut last, &mut femtile::solve::Silent).unwrap();
        (done, last.0.unwrap())
    };
    let (before, expected) = run(4.0);
    assert_eq!(before.outcome.stop, Stop::Finished);
    let (failed, kept) = run(8.0);
    assert!(matches!(failed.outcome.stop, Stop::NewtonFailed { .. }), "{:?}", failed.outcome);
    assert_eq!((failed.outcome.time, failed.outcome.steps), (4.0, 2));
    assert_eq!((kept.time, kept.length), (4.0, expected.length));
    // The numbers of the linear solver, two in an array, are those of its last solve.
    let bits = |state: &Checkpoint| -> Vec<u64> {
        let of_mesh = state.arrays.iter().filter(|array| array.len() > 2);
        of_mesh.flatten().map(|x| x.to_bits()).collect()
    };
    assert!(bits(&kept) == bits(&expected), "the state is another one");
    assert_eq!(failed.potential, before.potential);
}
