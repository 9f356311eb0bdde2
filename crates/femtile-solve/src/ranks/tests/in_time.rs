//! Equations in time on several ranks.

use femtile_time::implicit::{Checkpoint, Scheme, Steps, Tolerance};

use super::parts::Setup;
use super::*;
use crate::{CheckpointInterval, Frame, Observer, Transient};

/// Keeps frames and states.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub frames: Vec<(f64, Vec<f64>)>,
    pub states: Vec<Checkpoint>,
}

impl Observer for Kept {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), SolveError> {
        self.frames.push((frame.time(), frame.values().to_vec()));
        Ok(())
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        self.states.push(state.clone());
        Ok(())
    }
}

/// Problems in time: data that depend on it, that do not, and that leave a constant open.
pub(super) const IN_TIME: [Setup<'static>; 4] = [
    &|of| {
        let of = of.sigma("1 + x").source("sin(3*t)*y").dirichlet("xmin", "t*y")?;
        of.robin("xmax", 1.0, "cos(t)")
    },
    &|of| of.sigma("1 + x").source("x*y").dirichlet("xmin", 1.0),
    &|of| of.sigma("1 + x").source("x*y").lambda(0.5).neumann("ymax", "x"),
    &|of| Ok(of.sigma("1 + x").source("x*y")),
];

fn in_time(mesh: &Mesh) -> Vec<Poisson<'_>> {
    IN_TIME.iter().map(|set| set(Poisson::new(mesh)).unwrap()).collect()
}

#[test]
fn a_run_in_time_does_not_depend_on_the_number_of_ranks() {
    let schemes = [Scheme::ImplicitEuler, Scheme::Bdf2, Scheme::CrankNicolson, Scheme::Sdirk2];
    for (mesh, degree) in [(plane(), 1), (squares(), 2)] {
        for (number, problem) in in_time(&mesh).into_iter().enumerate() {
            let run = |ranks: Ranks, steps: Steps| {
                let transient = Transient::new(problem.clone().degree(degree), "x + y*y");
                let transient = transient.capacity(["1 + 0.5*x", "2"][number % 2]);
                let transient = transient.times(0.0, 0.5).steps(steps).scheme(schemes[number]);
                let mut kept = Kept::default();
                let config = SolverConfig { ranks, tolerance: 1e-11, ..config(1) };
                let transient = transient.frames([0.0, 0.2, 0.5]);
                let done = transient.solve_with(&config, &mut kept, &mut Silent).unwrap();
                (done.at_end().values().to_vec(), kept.frames, done.outcome().steps)
            };
            let tolerance = Tolerance { relative: 1e-2, absolute: 1e-3 };
            let adaptive = Steps::Adaptive { tolerance, first: None, shortest: 1e-6, longest: 0.1 };
            let chosen = if number % 2 == 1 { vec![adaptive] } else { vec![Steps::Fixed(7)] };
            for steps in chosen {
                let alone = run(Ranks::One, steps);
                for n in [2, 3] {
                    let found = run(Ranks::Threads(n), steps);
                    let name = format!("problem {number} of degree {degree}, {n} ranks, {steps:?}");
                    assert_eq!(found.2, alone.2, "{name}");
                    assert_same(&found.0, &alone.0, 1e-7, &name);
                    assert_eq!(found.1.len(), 3, "{name}");
                    for (found, alone) in found.1.iter().zip(&alone.1) {
                        assert_eq!(found.0, alone.0, "{name}");
                        assert_same(&found.1, &alone.1, 1e-7, &name);
                    }
                }
            }
        }
    }
}

/// A state has the unknowns of all ranks, so any number of them can go on from it.
#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let mesh = cubes();
    let problem = &in_time(&mesh)[0];
    let of = |ranks| SolverConfig { ranks, tolerance: 1e-11, ..config(1) };
    let transient = || {
        let transient = Transient::new(problem.clone().degree(2), "y").times(0.0, 0.5).steps(Steps::Fixed(8));
        transient.checkpoints(CheckpointInterval::Steps(3), [7; 32])
    };
    let mut kept = Kept::default();
    let whole = transient().solve_with(&of(Ranks::Threads(3)), &mut kept, &mut Silent).unwrap();
    assert_eq!(kept.states.iter().map(|state| state.step).collect::<Vec<_>>(), [3, 6]);
    for ranks in [Ranks::One, Ranks::Threads(2), Ranks::Threads(5)] {
        let rest = transient().resume(kept.states[0].clone()).solve(&of(ranks)).unwrap();
        assert_eq!(rest.outcome().steps, 8);
        assert_same(rest.at_end().values(), whole.at_end().values(), 1e-8, "the rest");
    }
}

#[test]
fn ranks_that_own_nothing_take_part_in_a_run_in_time() {
    let mesh = square(&SquareConfig { cells: [2, 1], ..SquareConfig::default() }).unwrap();
    let problem = Poisson::new(&mesh).sigma(1e6).source("x").dirichlet("xmin", "t").unwrap();
    let transient = Transient::new(problem, 0.0).steps(Steps::Fixed(4)).scheme(Scheme::CrankNicolson);
    let alone = transient.solve(&SolverConfig { ranks: Ranks::One, ..config(1) }).unwrap();
    let found = transient.solve(&config(9)).unwrap();
    assert_same(found.at_end().values(), alone.at_end().values(), 1e-9, "four triangles");
}

/// Preconditioners are made again as steps grow, by all ranks.
#[test]
fn growing_steps_change_preconditioners_on_all_ranks() {
    let mesh = cubes();
    let problem = Poisson::new(&mesh).source("x").dirichlet("xmin", 0.0).unwrap().degree(2);
    let tolerance = Tolerance { relative: 1e-2, absolute: 1e-3 };
    let steps = Steps::Adaptive { tolerance, first: Some(1e-6), shortest: 1e-9, longest: 1.0 };
    let transient = Transient::new(problem, "1 - x").times(0.0, 2.0).steps(steps).scheme(Scheme::Sdirk2);
    let pmg = PreconditionerConfig::Pmg(crate::PmgOptions::default());
    for preconditioner in [PreconditionerConfig::Auto, pmg] {
        let of = |ranks| SolverConfig {
            ranks,
            preconditioner: preconditioner.clone(),
            tolerance: 1e-10,
            ..config(1)
        };
        let [alone, found] =
            [Ranks::One, Ranks::Threads(3)].map(|ranks| transient.solve(&of(ranks)).unwrap());
        assert_eq!(found.outcome().stop, femtile_time::implicit::Stop::Finished);
        assert!(found.outcome().steps.abs_diff(alone.outcome().steps) <= 1);
        assert_same(found.at_end().values(), alone.at_end().values(), 1e-4, "adaptive");
    }
}

/// Matrices without a shift are refused there, so those of each shift are assembled.
#[test]
fn growth_on_several_ranks_is_that_of_one() {
    let mesh = solid();
    let tolerance = Tolerance { relative: 1e-2, absolute: 1e-3 };
    let steps = Steps::Adaptive { tolerance, first: None, shortest: 1e-6, longest: 0.1 };
    let problem = Poisson::new(&mesh).lambda(-2.0).source("x").dirichlet("xmin", "y").unwrap();
    let transient = Transient::new(problem, "1 - x").times(0.0, 0.4).steps(steps).scheme(Scheme::Bdf2);
    let of = |ranks| SolverConfig { ranks, tolerance: 1e-11, ..config(1) };
    let alone = transient.solve(&of(Ranks::One)).unwrap();
    for n in [2, 3] {
        let found = transient.solve(&of(Ranks::Threads(n))).unwrap();
        assert_eq!(found.outcome().steps, alone.outcome().steps);
        assert_same(found.at_end().values(), alone.at_end().values(), 1e-7, "growth");
    }
}

#[test]
fn a_run_in_time_ends_on_all_ranks_where_its_time_is_over() {
    let mesh = plane();
    let problem = in_time(&mesh).remove(0);
    let over = SolverConfig { time_limit: Some(std::time::Duration::ZERO), ..config(3) };
    let ended = Transient::new(problem, 0.0).solve(&over).unwrap();
    assert_eq!(ended.outcome().stop, femtile_time::implicit::Stop::TimeLimit);
    assert_eq!(ended.outcome().steps, 1);
}
