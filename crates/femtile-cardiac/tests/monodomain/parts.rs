//! Hearts on ranks that have parts of a mesh, held to one that has the whole.

use femtile::Mesh;
use femtile::comm::{Comm, threads};
use femtile::mesh::check::boundary_facets;
use femtile::solve::{Partitioner, Ranks, Silent, scatter};
use femtile::{SolverConfig, Value};
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::{Checkpoint, MonodomainSolution, Scheme, Splitting, Stop};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{CardiacError, Monodomain, Stimulus};

use crate::on_cpu;
use crate::ranks::{Kept, block, compare, first_model, near, on, run, with_data};

/// Sets a problem on a rank, which may be the first.
type Set<'s> = &'s (dyn for<'m> Fn(Monodomain<'m>, bool) -> Monodomain<'m> + Sync);

/// Runs on ranks of which the first has the whole mesh as well, and returns what that one finds.
fn on_parts(
    n: usize,
    mesh: &Mesh,
    model: &Model,
    set: Set<'_>,
) -> Result<(MonodomainSolution, Kept), CardiacError> {
    let boundary = boundary_facets(mesh);
    let work = |comm: Comm| {
        let whole = (comm.rank() == 0).then_some(mesh);
        let given = whole.map(|mesh| (mesh, &boundary));
        let part = scatter(&comm, given, Partitioner::Bisection)?.unwrap();
        let problem = set(Monodomain::distributed(&part, &comm, whole, model.clone()), comm.rank() == 0);
        let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..on_cpu(1) };
        let mut kept = Kept::default();
        let solution = problem.solve_with(&config, &mut kept, &mut Silent)?;
        assert_eq!(solution.potential.is_empty(), comm.rank() > 0);
        Ok((solution, kept))
    };
    threads::run(n, work, |comm| work(comm).map(drop))
}

fn resumed<'m>(problem: Monodomain<'m>, state: Option<&Checkpoint>) -> Monodomain<'m> {
    match state {
        Some(state) => problem.resume(state.clone()),
        None => problem,
    }
}

#[test]
fn a_heart_in_parts_is_that_of_one_rank() {
    let mesh = block();
    for splitting in [Splitting::Godunov, Splitting::Strang] {
        let scheme = Scheme::Splitting(splitting);
        let alone = run(&with_data(Monodomain::new(&mesh, first_model())).scheme(scheme), &on(1));
        for n in [2, 3, 5] {
            let set: Set<'_> = &|problem, _| with_data(problem).scheme(scheme);
            let found = on_parts(n, &mesh, &first_model(), set).unwrap();
            compare(&found, &alone, &format!("{splitting:?} on {n} ranks"));
            assert_eq!(found.0.ranks.as_ref().map(|used| used.n_ranks), Some(n));
        }
    }
}

#[test]
fn a_heart_in_parts_goes_on_from_the_state_of_the_first_rank() {
    let mesh = block();
    let alone = run(&with_data(Monodomain::new(&mesh, first_model())), &on(1));
    let of_parts = on_parts(3, &mesh, &first_model(), &|problem, _| with_data(problem)).unwrap();
    for (from, state) in [(1, &alone.1.states[1]), (3, &of_parts.1.states[1])] {
        let set: Set<'_> = &|problem, is_first| resumed(with_data(problem), is_first.then_some(state));
        for to in [2, 4] {
            let (found, _) = on_parts(to, &mesh, &first_model(), set).unwrap();
            near(&found.potential, &alone.0.potential, 1e-6, &format!("from {from} on {to} ranks"));
            near(&found.activation.first, &alone.0.activation.first, 1e-7, "activation");
            assert_eq!(found.outcome.steps, alone.0.outcome.steps);
        }
        let (found, _) = run(&set(Monodomain::new(&mesh, first_model()), true), &on(1));
        near(&found.potential, &alone.0.potential, 1e-6, "on one rank");
    }
    for pop in [0, 1] {
        let mut state = alone.1.states[0].clone();
        state.arrays[pop].pop();
        let set: Set<'_> = &|problem, is_first| resumed(with_data(problem), is_first.then_some(&state));
        let error = on_parts(2, &mesh, &first_model(), set).unwrap_err().to_string();
        assert!(error.contains("another mesh"), "{error}");
    }
}

fn paced<'m>(problem: Monodomain<'m>, place: &Place, strength: f64) -> Monodomain<'m> {
    problem.stimulus(Stimulus { place: place.clone(), strength, pulses: Pulses::single(0.0, 1.0) })
}

fn at<'m>(problem: Monodomain<'m>, place: &Place) -> Monodomain<'m> {
    let conductivity = Value::by_tag([("0", 0.2), ("1", 0.1)]);
    paced(problem.conductivity(conductivity), place, 1.0).times(0.0, 1.0, 0.1)
}

/// A block with tagged facets on one side.
fn with_facets() -> Mesh {
    let mut mesh = block();
    let bounds = boundary_facets(&mesh);
    let corners = |facet: &usize| bounds.nodes[3 * facet..3 * facet + 3].to_vec();
    let is_low = |facet: &usize| corners(facet).iter().all(|&node| mesh.points[node as usize][0] < 1e-9);
    let low: Vec<u32> = (0..bounds.len()).filter(is_low).flat_map(|facet| corners(&facet)).collect();
    mesh.facets.tags = vec![77; low.len() / 3];
    mesh.facets.nodes = low;
    mesh
}

/// Places on one side of the mesh, which most ranks do not touch.
#[test]
fn stimuli_are_found_where_one_rank_has_them() {
    let (mesh, model) = (with_facets(), Model::named("aliev-panfilov").unwrap());
    for place in [
        Place::All,
        Place::Box { lower: [5.0, 0.0, 0.0], upper: [6.0, 1.0, 1.0] },
        Place::Sphere { centre: [0.0; 3], radius: 0.7 },
        Place::Tag("1".into()),
        Place::Tag("77".into()),
        Place::Where("x > 5.5 && y < 0.6".into()),
        Place::Nodes(vec![3, 1, 3, 100]),
    ] {
        let alone = at(Monodomain::new(&mesh, model.clone()), &place).solve(&on(1)).unwrap();
        let rest = model.rest_voltage();
        assert!(alone.potential.iter().any(|v| (v - rest).abs() > 1e-3), "{place:?}");
        let (found, _) = on_parts(4, &mesh, &model, &|problem, _| at(problem, &place)).unwrap();
        near(&found.potential, &alone.potential, 1e-6, &format!("{place:?}"));
    }
}

#[test]
fn what_no_rank_has_is_refused_as_on_one() {
    let (mesh, model) = (with_facets(), Model::named("aliev-panfilov").unwrap());
    let said = |set: Set<'_>| {
        let alone = set(Monodomain::new(&mesh, model.clone()), true).solve(&on(1)).unwrap_err();
        let found = on_parts(3, &mesh, &model, set).unwrap_err();
        assert_eq!(found.to_string(), alone.to_string());
    };
    for place in [
        Place::Sphere { centre: [99.0; 3], radius: 0.7 },
        Place::Tag("scar".into()),
        Place::Where("x >".into()),
        Place::Nodes(vec![4000]),
    ] {
        said(&|problem, _| at(problem, &place));
    }
    said(&|problem, _| problem.times(0.0, 1.0, 0.1).electrode("V1", mesh.points[7]));
    said(&|problem, _| problem.times(0.0, 1.0, 0.1).tissue("scar", Model::named("aliev-panfilov").unwrap()));
}

#[test]
fn an_unstable_heart_in_parts_names_the_node_of_the_whole_mesh() {
    let (mesh, model) = (block(), Model::named("fitzhugh-nagumo").unwrap());
    let set: Set<'_> =
        &|problem, _| paced(problem, &Place::Where("x > 5".into()), 1e6).times(0.0, 100.0, 1.0);
    let node = |stop| match stop {
        Stop::Unstable { node, .. } => node,
        other => panic!("{other:?}"),
    };
    let alone = set(Monodomain::new(&mesh, model.clone()), true).solve(&on(1)).unwrap().outcome.stop;
    let (found, _) = on_parts(3, &mesh, &model, set).unwrap();
    assert_eq!(node(found.outcome.stop), node(alone));
}
