//! Hearts on several ranks, held to one.

use femtile::Mesh;
use femtile::mesh::generate::{BoxConfig, box_mesh};
use femtile::solve::{MassMatrix, Partitioner, Ranks, Silent};
use femtile::{AmgOptions, PreconditionerConfig, SolverConfig};
use femtile_cardiac::ionic::{GatePrecision, Model};
use femtile_cardiac::monodomain::{
    Checkpoint, CheckpointInterval, Frame, MonodomainSolution, Observer, Scheme, Splitting, Stop,
};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{CardiacError, Monodomain, Stimulus};

use crate::{on_cpu, strip};

#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub frames: Vec<(f64, Vec<f64>, Vec<f64>)>,
    pub states: Vec<Checkpoint>,
}

impl Observer for Kept {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), CardiacError> {
        self.frames.push((frame.time, frame.potential.clone(), frame.electrodes.clone()));
        Ok(())
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), CardiacError> {
        self.states.push(state.clone());
        Ok(())
    }
}

/// A block with a scar of other cells at one end.
pub(crate) fn block() -> Mesh {
    let config = BoxConfig { cells: [9, 4, 3], upper: [6.0, 2.0, 1.5], ..BoxConfig::default() };
    let mut mesh = box_mesh(&config).unwrap();
    let is_scar = |cell: usize| mesh.cell(cell).iter().all(|&node| mesh.points[node as usize][0] > 4.1);
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(is_scar(cell))).collect();
    mesh
}

/// A paced block with two kinds of tissue and an electrode.
fn problem(mesh: &Mesh) -> Monodomain<'_> {
    with_data(Monodomain::new(mesh, first_model()))
}

pub(crate) fn first_model() -> Model {
    Model::named("ten-tusscher-panfilov-2006:epi").unwrap()
}

pub(crate) fn with_data(problem: Monodomain<'_>) -> Monodomain<'_> {
    let stimulus =
        Stimulus { place: Place::Where("x < 1.1".into()), strength: 50.0, pulses: Pulses::single(0.0, 2.0) };
    problem
        .tissue("1", Model::named("ten-tusscher-panfilov-2006:endo").unwrap())
        .conductivity(0.1334)
        .membrane(140.0, 0.01)
        .stimulus(stimulus)
        .electrode("V1", [20.0, 1.0, 0.5])
        .frames([0.0, 2.0, 6.0])
        .checkpoints(CheckpointInterval::Steps(50), [3; 32])
        .times(0.0, 8.0, 0.05)
        .solve_error(1e-9)
}

pub(crate) fn on(n: usize) -> SolverConfig {
    let ranks = if n == 1 { Ranks::One } else { Ranks::Threads(n) };
    SolverConfig { ranks, ..on_cpu(n) }
}

pub(crate) fn run(problem: &Monodomain<'_>, config: &SolverConfig) -> (MonodomainSolution, Kept) {
    let mut kept = Kept::default();
    let solution = problem.solve_with(config, &mut kept, &mut Silent).unwrap();
    (solution, kept)
}

/// Asserts that values agree; times without an event are NaN in both.
pub(crate) fn near(found: &[f64], expected: &[f64], most: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_near = (found - expected).abs() <= most || found.is_nan() && expected.is_nan();
        assert!(is_near, "{what}, {i}: {found} and {expected}");
    }
}

pub(crate) fn compare(
    (found, kept): &(MonodomainSolution, Kept),
    (alone, of_one): &(MonodomainSolution, Kept),
    what: &str,
) {
    near(&found.potential, &alone.potential, 1e-6, what);
    let times = |solution: &MonodomainSolution| {
        let of = solution.activation.clone();
        [of.first, of.last, of.repolarisation, of.duration]
    };
    for (found, expected) in times(found).iter().zip(times(alone)) {
        near(found, &expected, 1e-7, what);
    }
    assert!(alone.activation.first.iter().any(|time| time.is_finite()));
    assert_eq!(kept.frames.len(), of_one.frames.len(), "{what}");
    for (found, expected) in kept.frames.iter().zip(&of_one.frames) {
        assert_eq!(found.0, expected.0, "{what}");
        near(&found.1, &expected.1, 1e-6, what);
        near(&found.2, &expected.2, 1e-8, what);
    }
    assert_eq!(kept.states.len(), of_one.states.len(), "{what}");
    for (found, expected) in kept.states.iter().zip(&of_one.states) {
        let lengths = |state: &Checkpoint| state.arrays.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(found), lengths(expected), "{what}");
        near(&found.arrays[0], &expected.arrays[0], 1e-6, what);
    }
    assert_eq!(found.outcome.steps, alone.outcome.steps, "{what}");
}

#[test]
fn a_heart_does_not_depend_on_the_number_of_ranks() {
    let mesh = block();
    for splitting in [Splitting::Godunov, Splitting::Strang] {
        let problem = problem(&mesh).scheme(Scheme::Splitting(splitting));
        let alone = run(&problem, &on(1));
        for n in [2, 3, 5] {
            let partitioner = if n == 3 { Partitioner::Hilbert } else { Partitioner::Bisection };
            let found = run(&problem, &SolverConfig { partitioner, ..on(n) });
            compare(&found, &alone, &format!("{splitting:?} on {n} ranks"));
            assert_eq!(found.0.ranks.map(|used| used.n_ranks), Some(n));
            let [iterations, of_one] = [&found, &alone].map(|(solution, _)| solution.outcome.iterations);
            assert!(iterations.abs_diff(of_one) <= alone.0.outcome.steps / 10, "{iterations} and {of_one}");
        }
    }
}

#[test]
fn options_are_those_of_one_rank() {
    let mesh = block();
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    for (problem, preconditioner) in [
        (problem(&mesh).mass(MassMatrix::Lumped), PreconditionerConfig::Jacobi),
        (problem(&mesh).gates(GatePrecision::Single), PreconditionerConfig::None),
        (problem(&mesh).theta(1.0), amg),
    ] {
        let config = |n| SolverConfig { preconditioner: preconditioner.clone(), ..on(n) };
        let what = preconditioner.name();
        compare(&run(&problem, &config(3)), &run(&problem, &config(1)), what);
    }
}

#[test]
fn a_run_goes_on_from_a_checkpoint_on_another_number_of_ranks() {
    let mesh = block();
    let alone = run(&problem(&mesh), &on(1));
    let of_three = run(&problem(&mesh), &on(3));
    for (from, state) in [(1, &alone.1.states[1]), (3, &of_three.1.states[1])] {
        for to in [1, 2, 3] {
            let (found, _) = run(&problem(&mesh).resume(state.clone()), &on(to));
            near(&found.potential, &alone.0.potential, 1e-6, &format!("from {from} on {to} ranks"));
            near(&found.activation.first, &alone.0.activation.first, 1e-7, "activation");
            assert_eq!(found.outcome.steps, alone.0.outcome.steps);
        }
    }
    // The states of both tissues count, not only that there are some.
    for tissue in 1..=2 {
        let mut state = alone.1.states[1].clone();
        let place = state.arrays.len() - tissue;
        state.arrays[place].iter_mut().for_each(|value| *value *= 0.9);
        let [of_one, of_three] =
            [1, 3].map(|n| run(&problem(&mesh).resume(state.clone()), &on(n)).0.potential);
        near(&of_three, &of_one, 1e-6, "from other states");
        let changed = of_one.iter().zip(&alone.0.potential).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(changed > 0.01, "tissue {tissue}: {changed}");
    }
    let mut state = alone.1.states[0].clone();
    state.arrays.pop();
    let error = problem(&mesh).resume(state).solve(&on(2)).unwrap_err();
    assert!(error.to_string().contains("another mesh"), "{error}");
}

#[test]
fn ranks_without_nodes_and_more_ranks_than_nodes_of_a_kind_run() {
    let mesh = strip(3, 0.5);
    let model = || Model::named("aliev-panfilov").unwrap();
    let stimulus = Stimulus { place: Place::Nodes(vec![0]), strength: 1.0, pulses: Pulses::single(0.0, 1.0) };
    let problem = Monodomain::new(&mesh, model()).stimulus(stimulus).times(0.0, 1.0, 0.1);
    for preconditioner in [PreconditionerConfig::Jacobi, PreconditionerConfig::None] {
        let config = |n| SolverConfig { preconditioner: preconditioner.clone(), ..on(n) };
        let alone = problem.solve(&config(1)).unwrap();
        let mut kept = Kept::default();
        let with_states = problem.clone().checkpoints(CheckpointInterval::Steps(5), [0; 32]);
        let found = with_states.solve_with(&config(9), &mut kept, &mut Silent).unwrap();
        near(&found.potential, &alone.potential, 1e-6, "9 ranks");
        let resumed = problem.clone().resume(kept.states.remove(0)).solve(&config(7)).unwrap();
        near(&resumed.potential, &alone.potential, 1e-6, "from 9 ranks on 7");
    }
}

#[test]
fn an_unstable_run_ends_at_the_same_node_on_all_ranks() {
    let mesh = strip(40, 0.5);
    let stimulus =
        Stimulus { place: Place::Where("x > 15".into()), strength: 1e6, pulses: Pulses::single(0.0, 1.0) };
    let problem = Monodomain::new(&mesh, Model::named("fitzhugh-nagumo").unwrap())
        .stimulus(stimulus)
        .times(0.0, 100.0, 1.0);
    let stop = |n| problem.solve(&on(n)).unwrap().outcome.stop;
    let node = |stop| match stop {
        Stop::Unstable { node, .. } => node,
        other => panic!("{other:?}"),
    };
    assert_eq!(node(stop(3)), node(stop(1)));
}

#[test]
fn what_ranks_cannot_do_is_refused() {
    let mesh = strip(8, 0.5);
    let implicit = Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
        .times(0.0, 1.0, 0.1)
        .scheme(Scheme::Implicit);
    let error = implicit.solve(&on(2)).unwrap_err().to_string();
    assert!(error.contains("solver.ranks") && error.contains("godunov"), "{error}");
}
