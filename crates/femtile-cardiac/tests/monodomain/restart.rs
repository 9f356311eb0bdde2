//! Runs that go on from checkpoints.

use femtile::Mesh;
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::{
    AdaptiveSteps, Checkpoint, CheckpointInterval, Observer, Scheme, Splitting,
};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{CardiacError, Monodomain, MonodomainSolution, Stimulus};

use crate::{on_cpu, strip};

/// Keeps all checkpoints.
#[derive(Default)]
struct Kept(Vec<Checkpoint>);

impl Observer for Kept {
    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), CardiacError> {
        // Through bytes, as a file has it.
        let mut bytes = Vec::new();
        state
            .write(&mut bytes)
            .map_err(|_| CardiacError::Setting { field: "checkpoint", message: String::new() })?;
        self.0.extend(Checkpoint::read(&mut bytes.as_slice()));
        Ok(())
    }
}

fn problem(mesh: &Mesh, scheme: Scheme, adaptive: bool) -> Monodomain<'_> {
    let stimulus = Stimulus {
        place: Place::Where("x < 1.1".into()),
        strength: 1.0,
        pulses: Pulses::train(0.0, 1.0, 9.0, 2),
    };
    let problem = Monodomain::new(mesh, Model::named("aliev-panfilov").unwrap())
        .stimulus(stimulus)
        .scheme(scheme)
        .checkpoints(CheckpointInterval::Steps(13), [3; 32])
        .times(0.0, 12.0, 0.1);
    let steps = AdaptiveSteps { tolerance: 1e-3, shortest: 1e-6, longest: 1.0 };
    if adaptive { problem.adaptive(steps) } else { problem }
}

fn same_bits(a: &MonodomainSolution, b: &MonodomainSolution) -> bool {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let of = |solution: &MonodomainSolution| {
        let times = &solution.activation;
        [&solution.potential, &times.first, &times.last, &times.repolarisation, &times.duration]
            .map(|values| bits(values))
    };
    of(a) == of(b) && (a.outcome.steps, a.outcome.iterations) == (b.outcome.steps, b.outcome.iterations)
}

#[test]
fn a_run_goes_on_from_any_checkpoint_with_the_same_bits() {
    let mesh = strip(30, 0.5);
    let (godunov, strang) = (Scheme::Splitting(Splitting::Godunov), Scheme::Splitting(Splitting::Strang));
    for (scheme, adaptive) in
        [(godunov, false), (strang, false), (Scheme::Implicit, false), (Scheme::Implicit, true)]
    {
        let mut kept = Kept::default();
        let whole = problem(&mesh, scheme, adaptive);
        let whole = whole.solve_with(&on_cpu(2), &mut kept, &mut femtile::solve::Silent).unwrap();
        assert!(kept.0.len() > 2, "{scheme:?}");
        for checkpoint in kept.0 {
            let resumed = problem(&mesh, scheme, adaptive).resume(checkpoint);
            assert!(same_bits(&resumed.solve(&on_cpu(1)).unwrap(), &whole), "{scheme:?}");
        }
    }
}

#[test]
fn results_have_the_same_bits_for_any_number_of_threads() {
    let mesh = strip(5000, 0.5);
    for scheme in [Scheme::Splitting(Splitting::Godunov), Scheme::Implicit] {
        let of =
            |threads| problem(&mesh, scheme, false).times(0.0, 1.0, 0.1).solve(&on_cpu(threads)).unwrap();
        let one = of(1);
        assert!([2, 3].iter().all(|&threads| same_bits(&of(threads), &one)), "{scheme:?}");
    }
}

#[test]
fn a_checkpoint_of_another_mesh_is_refused() {
    let (mesh, other) = (strip(30, 0.5), strip(31, 0.5));
    let scheme = Scheme::Splitting(Splitting::Godunov);
    let mut kept = Kept::default();
    let _ =
        problem(&mesh, scheme, false).solve_with(&on_cpu(1), &mut kept, &mut femtile::solve::Silent).unwrap();
    let error = problem(&other, scheme, false).resume(kept.0.remove(0)).solve(&on_cpu(1)).unwrap_err();
    assert!(error.to_string().contains("another mesh"), "{error}");
}
