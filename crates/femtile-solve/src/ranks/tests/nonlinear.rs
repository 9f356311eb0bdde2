//! Coefficients that depend on u, steady and in time, on several ranks.

use femtile_mesh::generate::{BoxPartition, part_of_box};
use femtile_time::implicit::{Scheme, Steps};

use super::in_time::Kept;
use super::parts::{Setup, with};
use super::*;
use crate::{
    CheckpointInterval, Entry, MassMatrix, NonlinearConfig, NonlinearMethod, OperatorKind, Transient, Value,
};

/// Equations whose σ, λ or f depends on u, with every kind of condition.
const EQUATIONS: [Setup<'static>; 4] = [
    &|of| {
        let of = of.sigma("1 + u^2").source("10*x").dirichlet("xmin", "y*y")?;
        of.neumann("ymax", "x")?.robin("xmax", "1 + y", 2.0)
    },
    &|of| of.sigma("1 + x").lambda("1 + u^2").source("5*exp(-u)").neumann("ymax", "x"),
    &|of| of.sigma("exp(u/4)").source("x*y").dirichlet_at_nodes("x < 1e-9 && y < 0.5", 1.0),
    &|of| of.sigma(tensor([["1 + u^2", "0.1*u"], ["0.1*u", "2"]])).source("1").dirichlet("all", "x - y"),
];

/// A conductivity in the plane.
fn tensor(rows: [[&str; 2]; 2]) -> Value {
    Value::Tensor(rows.map(|row| row.map(|entry| Entry::Text(entry.into())).to_vec()).to_vec())
}

fn settings(ranks: Ranks, preconditioner: PreconditionerConfig) -> SolverConfig {
    let nonlinear = NonlinearConfig { tolerance: 1e-11, ..NonlinearConfig::default() };
    SolverConfig { ranks, preconditioner, nonlinear, tolerance: 1e-10, ..config(1) }
}

#[test]
fn a_root_does_not_depend_on_the_number_of_ranks() {
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    for (mesh, degree) in [(plane(), 1), (squares(), 1), (squares(), 2), (solid(), 1), (turned(cubes()), 2)] {
        for (number, set) in EQUATIONS.iter().enumerate() {
            if number == 3 && mesh.dimension() == 3 {
                continue;
            }
            let problem = set(Poisson::new(&mesh)).unwrap().degree(degree);
            let preconditioners = [PreconditionerConfig::Jacobi, amg.clone(), PreconditionerConfig::Auto];
            for preconditioner in preconditioners.into_iter().take(if degree == 1 { 3 } else { 1 }) {
                let alone = problem.solve(&settings(Ranks::One, preconditioner.clone())).unwrap();
                for n in [1, 2, 3] {
                    let found = problem.solve(&settings(Ranks::Threads(n), preconditioner.clone())).unwrap();
                    let name = format!(
                        "equation {number} of degree {degree}, {n} ranks, {}, {}",
                        mesh.kind,
                        found.preconditioner()
                    );
                    assert!(found.has_converged() && alone.has_converged(), "{name}: {:?}", found.warnings());
                    assert_same(found.values(), alone.values(), 1e-8, &name);
                    let [found_its, expected_its] =
                        [&found, &alone].map(|solution| solution.nonlinear().unwrap().iterations);
                    assert!(found_its.abs_diff(expected_its) <= 1, "{name}: {found_its} and {expected_its}");
                    assert_eq!(found.ranks().unwrap().n_ranks, n);
                    assert_eq!(found.preconditioner(), alone.preconditioner());
                }
            }
        }
    }
}

#[test]
fn picard_and_indefinite_linearizations_run_on_several_ranks() {
    let mesh = plane();
    let picard = |ranks| SolverConfig {
        nonlinear: NonlinearConfig { method: NonlinearMethod::Picard, tolerance: 1e-11, max_iterations: 100 },
        ..settings(ranks, PreconditionerConfig::Jacobi)
    };
    let conducting = EQUATIONS[0](Poisson::new(&mesh)).unwrap();
    // The linearization at zero has the negative eigenvalue 2π² − 30.
    let indefinite = Poisson::new(&mesh).lambda("-30 + 0*u").source("1 - u^3").dirichlet("all", 0.0).unwrap();
    for (problem, of) in [
        (conducting, &picard as &dyn Fn(Ranks) -> SolverConfig),
        (indefinite, &|ranks| settings(ranks, PreconditionerConfig::Amg(AmgOptions::default()))),
    ] {
        let alone = problem.solve(&of(Ranks::One)).unwrap();
        let found = problem.solve(&of(Ranks::Threads(3))).unwrap();
        assert!(
            found.has_converged() && alone.has_converged(),
            "{:?} {:?}",
            found.warnings(),
            alone.warnings()
        );
        assert_same(found.values(), alone.values(), 1e-8, "root");
    }
}

#[test]
fn what_ends_an_iteration_is_said_by_all_ranks() {
    let mesh = plane();
    let said = |problem: &Poisson<'_>, n| {
        let of = settings(n, PreconditionerConfig::Jacobi);
        problem.solve(&of).map(|found| found.warnings().join("; ")).unwrap_or_else(|error| error.to_string())
    };
    // A conductivity that is negative at the first iterate in a corner that one rank has.
    let negative = Poisson::new(&mesh).sigma("1 + u - if(x > 0.9, 3, 0)").dirichlet("xmin", 0.0).unwrap();
    let open = Poisson::new(&mesh).sigma("1 + u^2").source("x - 0.5");
    let slow = NonlinearConfig { max_iterations: 1, ..NonlinearConfig::default() };
    for (problem, word) in [(&negative, "sigma is"), (&open, "nothing fixes the level")] {
        let alone = said(problem, Ranks::One);
        assert!(alone.contains(word), "{alone}");
        assert!(said(problem, Ranks::Threads(3)).contains(word), "{}", said(problem, Ranks::Threads(3)));
    }
    for (mesh, degree) in [(plane(), 1), (squares(), 2)] {
        let problem = EQUATIONS[0](Poisson::new(&mesh)).unwrap().degree(degree);
        let ended = |ranks| {
            let of = SolverConfig { nonlinear: slow, ..settings(ranks, PreconditionerConfig::Jacobi) };
            problem.solve(&of).unwrap().warnings().join("; ")
        };
        let place =
            |text: &str| text.split("at unknown").nth(1).unwrap().split(", where").next().unwrap().to_owned();
        assert_eq!(place(&ended(Ranks::Threads(3))), place(&ended(Ranks::One)));
    }
    let few = square(&SquareConfig { cells: [1, 1], ..SquareConfig::default() }).unwrap();
    let few = EQUATIONS[0](Poisson::new(&few)).unwrap();
    assert!(said(&few, Ranks::Threads(9)).contains("take fewer ranks"));
}

#[test]
fn a_root_on_parts_is_that_of_one_rank() {
    for (split, degree) in [(BoxSplit::Kuhn, 1), (BoxSplit::Hexahedron, 1), (BoxSplit::Hexahedron, 2)] {
        let of = BoxConfig { cells: [4, 3, 6], split, ..BoxConfig::default() };
        let whole = box_mesh(&of).unwrap();
        let parts = BoxPartition::bisected(of.cells, 3).unwrap();
        for set in &EQUATIONS[..3] {
            let solver = settings(Ranks::One, PreconditionerConfig::Jacobi);
            let alone = set(Poisson::new(&whole)).unwrap().degree(degree).solve(&solver).unwrap();
            let work = |comm: Comm| -> Result<(), SolveError> {
                let mesh = part_of_box(&of, None, (&parts, comm.rank()), None)?;
                let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..solver.clone() };
                let found = set(Poisson::distributed(&mesh, &comm)?)?.degree(degree).solve(&config)?;
                assert!(found.has_converged());
                let numbers = |solution: &Solution<'_>| {
                    let u = solution.component(0);
                    [u.max(), u.min(), u.integral().unwrap(), solution.flux(0, "xmin").unwrap()]
                };
                assert_same(&numbers(&found), &numbers(&alone), 1e-8, "functionals");
                Ok(())
            };
            threads::run(3, work, work).unwrap();
        }
    }
}

#[test]
fn a_level_that_nothing_fixes_is_refused_on_parts() {
    let of = BoxConfig { cells: [2, 2, 6], ..BoxConfig::default() };
    let parts = BoxPartition::bisected(of.cells, 3).unwrap();
    let work = |comm: Comm| -> Result<String, SolveError> {
        let mesh = part_of_box(&of, None, (&parts, comm.rank()), None)?;
        let config = SolverConfig {
            ranks: Ranks::Of(comm.clone()),
            ..settings(Ranks::One, PreconditionerConfig::Jacobi)
        };
        let open = Poisson::distributed(&mesh, &comm)?.sigma("1 + u^2").source("x - 0.5");
        Ok(open.solve(&config).err().map(|error| error.to_string()).unwrap_or_default())
    };
    let says = |said: String| assert!(said.contains("nothing fixes the level"), "{said}");
    threads::run(3, |comm| work(comm).map(says), |comm| work(comm).map(says)).unwrap();
}

/// Equations in time whose matrices are reassembled: by u, by the time, with a capacity of u.
const IN_TIME: [Setup<'static>; 4] = [
    &|of| of.sigma("0.1*(1 + u^2)").source("sin(3*t)*y").dirichlet("xmin", "t*y"),
    &|of| of.sigma("0.1").lambda("u - 1").neumann("ymax", "0.1*x"),
    &|of| of.sigma("0.1*(1 + t)").source("x").robin("xmax", "1 + t", 0.5),
    &|of| of.sigma("0.1").source("x*y").dirichlet("xmin", "1 + t"),
];

#[test]
fn reassembled_runs_do_not_depend_on_the_number_of_ranks() {
    let schemes = [Scheme::Bdf2, Scheme::CrankNicolson, Scheme::Sdirk2, Scheme::ImplicitEuler];
    for (mesh, degree) in [(plane(), 1), (squares(), 2)] {
        for (number, set) in IN_TIME.iter().enumerate() {
            let masses = if degree == 1 && number < 3 {
                &[MassMatrix::Consistent, MassMatrix::Lumped][..]
            } else {
                &[MassMatrix::Consistent]
            };
            for mass in masses {
                let run = |ranks: Ranks| {
                    let problem = set(Poisson::new(&mesh)).unwrap().degree(degree);
                    let transient =
                        Transient::new(problem, "0.5 + x*y").times(0.0, 0.5).steps(Steps::Fixed(6));
                    let transient = transient.scheme(schemes[number]).mass(*mass).frames([0.2]);
                    let transient =
                        if number == 3 { transient.capacity("1 + u^2") } else { transient.capacity("1 + x") };
                    let (mut kept, of) = (Kept::default(), settings(ranks, PreconditionerConfig::Jacobi));
                    let done = transient.solve_with(&of, &mut kept, &mut Silent).unwrap();
                    (done.at_end().values().to_vec(), kept.frames, done.at_end().nonlinear().is_some())
                };
                let alone = run(Ranks::One);
                for n in [2, 3] {
                    let found = run(Ranks::Threads(n));
                    let name = format!("problem {number} of degree {degree}, {n} ranks, {}", mass.name());
                    assert_same(&found.0, &alone.0, 1e-8, &name);
                    assert_eq!((found.1.len(), found.2), (1, alone.2), "{name}");
                    assert_same(&found.1[0].1, &alone.1[0].1, 1e-8, &name);
                }
            }
        }
    }
}

/// A lumped mass matrix with coefficients that do not change.
#[test]
fn lumped_mass_matrices_are_those_of_one_rank() {
    let mesh = solid();
    let problem = Poisson::new(&mesh).sigma("1 + x").source("y").dirichlet("xmin", "t").unwrap();
    let transient =
        Transient::new(problem, "x").times(0.0, 0.3).steps(Steps::Fixed(5)).mass(MassMatrix::Lumped);
    let of = |ranks| settings(ranks, PreconditionerConfig::Jacobi);
    let alone = transient.solve(&of(Ranks::One)).unwrap();
    for n in [2, 3] {
        let found = transient.solve(&of(Ranks::Threads(n))).unwrap();
        assert_same(found.at_end().values(), alone.at_end().values(), 1e-8, "lumped");
    }
}

#[test]
fn a_reassembled_run_goes_on_with_another_number_of_ranks() {
    let mesh = squares();
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    let transient = || {
        let problem = IN_TIME[0](Poisson::new(&mesh)).unwrap();
        let transient = Transient::new(problem, "y").times(0.0, 0.5).steps(Steps::Fixed(8));
        transient.checkpoints(CheckpointInterval::Steps(3), [7; 32])
    };
    let mut kept = Kept::default();
    let whole =
        transient().solve_with(&settings(Ranks::Threads(3), amg.clone()), &mut kept, &mut Silent).unwrap();
    assert_eq!(kept.states.iter().map(|state| state.step).collect::<Vec<_>>(), [3, 6]);
    for ranks in [Ranks::One, Ranks::Threads(2), Ranks::Threads(3)] {
        let rest = transient().resume(kept.states[0].clone()).solve(&settings(ranks, amg.clone())).unwrap();
        assert_eq!(rest.outcome().steps, 8);
        assert_same(rest.at_end().values(), whole.at_end().values(), 1e-8, "the rest");
    }
}

/// The whole mesh on the first rank receives frames of runs on parts.
#[test]
fn a_reassembled_run_on_parts_is_that_of_one_rank() {
    for (split, degree) in [(BoxSplit::Kuhn, 1), (BoxSplit::Hexahedron, 2)] {
        let of = BoxConfig { cells: [4, 3, 5], split, ..BoxConfig::default() };
        let whole = box_mesh(&of).unwrap();
        let parts = BoxPartition::bisected(of.cells, 3).unwrap();
        let solver = SolverConfig { operator: OperatorKind::Assembled, ..with(PreconditionerConfig::Jacobi) };
        let solver = SolverConfig {
            nonlinear: settings(Ranks::One, PreconditionerConfig::Jacobi).nonlinear,
            tolerance: 1e-10,
            ..solver
        };
        fn transient(problem: Poisson<'_>) -> Transient<'_> {
            Transient::new(problem, "0.5 + x*y").times(0.0, 0.4).steps(Steps::Fixed(4))
        }
        let problem = IN_TIME[0](Poisson::new(&whole)).unwrap().degree(degree);
        let alone = transient(problem).solve(&SolverConfig { ranks: Ranks::One, ..solver.clone() }).unwrap();
        let work = |comm: Comm| -> Result<(), SolveError> {
            let mesh = part_of_box(&of, None, (&parts, comm.rank()), None)?;
            let config = SolverConfig { ranks: Ranks::Of(comm.clone()), ..solver.clone() };
            let problem = IN_TIME[0](Poisson::distributed(&mesh, &comm)?)?.degree(degree);
            let found = transient(problem).solve(&config)?;
            let numbers = |solution: &Solution<'_>| {
                let u = solution.component(0);
                [u.max(), u.min(), u.integral().unwrap()]
            };
            assert_same(&numbers(found.at_end()), &numbers(alone.at_end()), 1e-8, "functionals");
            Ok(())
        };
        threads::run(3, work, work).unwrap();
    }
}
