//! Equations in time on ranks that have parts of a mesh.

use femtile_time::implicit::{Checkpoint, Scheme, Steps, Tolerance};

use super::in_time::{IN_TIME, Kept};
use super::parts::Setup;
use super::scattered::sent;
use super::*;
use crate::{CheckpointInterval, PmgOptions, Transient};

/// The end of a run: the values on the whole mesh, integral, largest value and inflow of all ranks, and steps.
type End = (Vec<f64>, [f64; 3], usize);

fn end_of(solution: &Solution<'_>) -> Result<[f64; 3], SolveError> {
    Ok([solution.component(0).integral()?, solution.max(), solution.flux(0, "xmax")?])
}

/// A problem and its run.
struct Run<'a> {
    set: Setup<'a>,
    degree: usize,
    scheme: Scheme,
    steps: Steps,
    preconditioner: PreconditionerConfig,
}

impl Run<'_> {
    fn of<'m>(&self, problem: Poisson<'m>) -> Result<Transient<'m>, SolveError> {
        let problem = (self.set)(problem.degree(self.degree))?;
        Ok(Transient::new(problem, "x + y*y")
            .capacity("1 + 0.5*x*y")
            .times(0.0, 0.5)
            .steps(self.steps)
            .scheme(self.scheme))
    }

    fn config(&self, ranks: Ranks) -> SolverConfig {
        SolverConfig { ranks, tolerance: 1e-11, preconditioner: self.preconditioner.clone(), ..config(1) }
    }

    fn alone(&self, mesh: &Mesh, resume: Option<&Checkpoint>) -> (End, Kept) {
        let mut kept = Kept::default();
        let transient = watched(self.of(Poisson::new(mesh)).unwrap(), resume);
        let done = transient.solve_with(&self.config(Ranks::One), &mut kept, &mut Silent).unwrap();
        let (numbers, steps) = (end_of(done.at_end()).unwrap(), done.outcome().steps);
        ((done.into_end().values().to_vec(), numbers, steps), kept)
    }

    /// Runs on ranks of which the first has the whole mesh too; returns what that one has.
    fn on_parts(
        &self,
        n: usize,
        mesh: &Mesh,
        resume: Option<&Checkpoint>,
    ) -> Result<(End, Kept), SolveError> {
        let work = |comm: Comm| {
            let (part, is_first) = (sent(&comm, mesh, Partitioner::Bisection)?, comm.rank() == 0);
            let transient = self.of(Poisson::distributed(&part, &comm)?)?;
            let transient = watched(transient, resume.filter(|_| is_first));
            let whole = is_first.then(|| self.of(Poisson::new(mesh))?.discretize()).transpose()?;
            let (mut kept, config) = (Kept::default(), self.config(Ranks::Of(comm.clone())));
            let cpu = Cpu::new(1)?;
            let problem = transient.discretize()?;
            let mut silent = Silent;
            let mut stages = Stages::new(&mut silent);
            let of = (problem, whole);
            let done = cpu.install(|| {
                transient.run_on_parts(of.0, of.1, (&cpu, None), &config, &mut kept, &mut stages)
            })?;
            let (numbers, steps) = (end_of(done.at_end())?, done.outcome().steps);
            let (_, whole) = done.into_both();
            assert_eq!((whole.is_some(), kept.frames.is_empty()), (is_first, !is_first));
            Ok(((whole.map_or(Vec::new(), |whole| whole.values().to_vec()), numbers, steps), kept))
        };
        threads::run(n, work, |comm| work(comm).map(drop))
    }
}

fn watched<'m>(transient: Transient<'m>, resume: Option<&Checkpoint>) -> Transient<'m> {
    let transient = transient.frames([0.2, 0.5]).checkpoints(CheckpointInterval::Steps(3), [7; 32]);
    match resume {
        Some(state) => transient.resume(state.clone()),
        None => transient,
    }
}

fn assert_end((found, alone): (&(End, Kept), &(End, Kept)), tolerance: f64, name: &str) {
    assert_eq!(found.0.2, alone.0.2, "{name}");
    assert_same(&found.0.0, &alone.0.0, tolerance, name);
    assert_same(&found.0.1, &alone.0.1, tolerance, name);
    assert_eq!(found.1.frames.len(), alone.1.frames.len(), "{name}");
    for (found, alone) in found.1.frames.iter().zip(&alone.1.frames) {
        assert_eq!(found.0, alone.0, "{name}");
        assert_same(&found.1, &alone.1, tolerance, name);
    }
    assert_eq!(found.1.states.len(), alone.1.states.len(), "{name}");
    for (found, alone) in found.1.states.iter().zip(&alone.1.states) {
        assert_eq!((found.step, found.history.len()), (alone.step, alone.history.len()), "{name}");
        for (found, alone) in found.history.iter().zip(&alone.history) {
            assert_same(&found.1, &alone.1, tolerance, name);
        }
    }
}

#[test]
fn a_run_is_that_of_one_rank() {
    let fixed = Steps::Fixed(7);
    let tolerance = Tolerance { relative: 1e-2, absolute: 1e-3 };
    let adaptive = Steps::Adaptive { tolerance, first: None, shortest: 1e-6, longest: 0.1 };
    let jacobi = || PreconditionerConfig::Jacobi;
    let pmg = PreconditionerConfig::Pmg(PmgOptions::default());
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    for (mesh, degree, number, scheme, steps, preconditioner) in [
        (plane(), 1, 0, Scheme::Bdf2, fixed, jacobi()),
        (plane(), 1, 1, Scheme::Sdirk2, adaptive, amg),
        (solid(), 1, 3, Scheme::CrankNicolson, fixed, jacobi()),
        (squares(), 2, 0, Scheme::ImplicitEuler, fixed, jacobi()),
        (turned(cubes()), 2, 2, Scheme::Sdirk2, fixed, pmg),
        (cubes(), 3, 0, Scheme::Bdf2, fixed, jacobi()),
    ] {
        let run = Run { set: IN_TIME[number], degree, scheme, steps, preconditioner };
        let alone = run.alone(&mesh, None);
        for n in [2, 3] {
            let name = format!("problem {number} of degree {degree}, {}, {n} ranks", mesh.kind);
            assert_end((&run.on_parts(n, &mesh, None).unwrap(), &alone), 1e-7, &name);
        }
    }
}

#[test]
fn a_run_goes_on_from_a_state_of_any_number_of_ranks() {
    for (mesh, degree) in [(cubes(), 2), (solid(), 1)] {
        let (set, scheme, steps) = (IN_TIME[0], Scheme::Bdf2, Steps::Fixed(8));
        let run = Run { set, degree, scheme, steps, preconditioner: PreconditionerConfig::Jacobi };
        let (_, kept) = run.alone(&mesh, None);
        let (_, of_parts) = run.on_parts(3, &mesh, None).unwrap();
        let alone = run.alone(&mesh, Some(&kept.states[0]));
        for (n, state) in [(2, &kept.states[0]), (5, &of_parts.states[0])] {
            assert_end((&run.on_parts(n, &mesh, Some(state)).unwrap(), &alone), 1e-8, &format!("{n} ranks"));
        }
        assert_end((&run.alone(&mesh, Some(&of_parts.states[0])), &alone), 1e-8, "one rank");
        let mut other = kept.states[0].clone();
        other.history[0].1.pop();
        let said = run.on_parts(2, &mesh, Some(&other)).unwrap_err().to_string();
        assert!(said.contains("checkpoint"), "{said}");
    }
}

#[test]
fn ranks_without_the_whole_mesh_run_without_frames_and_states() {
    let mesh = solid();
    let (scheme, steps) = (Scheme::CrankNicolson, Steps::Fixed(5));
    let run = Run { set: IN_TIME[0], degree: 1, scheme, steps, preconditioner: PreconditionerConfig::Jacobi };
    let alone = run.of(Poisson::new(&mesh)).unwrap().solve(&run.config(Ranks::One)).unwrap();
    let alone = end_of(alone.at_end()).unwrap();
    let on_ranks = |has_frames: bool| {
        let work = |comm: Comm| {
            let part = sent(&comm, &mesh, Partitioner::Hilbert)?;
            let transient = run.of(Poisson::distributed(&part, &comm)?)?;
            let transient = if has_frames { transient.frames([0.1]) } else { transient };
            end_of(transient.solve(&run.config(Ranks::Of(comm.clone())))?.at_end())
        };
        threads::run(3, work, |comm| work(comm).map(drop))
    };
    assert_same(&on_ranks(false).unwrap(), &alone, 1e-8, "three ranks");
    let said = on_ranks(true).unwrap_err().to_string();
    assert!(said.contains("whole mesh on the first rank"), "{said}");
}
