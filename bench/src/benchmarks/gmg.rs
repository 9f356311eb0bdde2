//! Conjugate gradients with geometric multigrid to 1e-9 on a cube, as a case file runs them: set-up and solve, with the
//! defaults of `preconditioner = "gmg"` and with its full start, and deal.II beside them; with threads that share the work or,
//! by `ranks`, divide it.
//!
//! The set-up begins without a mesh. No bytes are counted: the bound of ours is the time of deal.II, where it was measured.

use std::time::Instant;

use femtile::device::Cpu;
use femtile::solve::{Ranks, Silent, Stages};
use femtile::{DeviceChoice, GmgOptions, GmgStart, PreconditionerConfig, SolverConfig};

use super::ROUNDS;
use crate::Samples;
use crate::dealii::{DealII, MultigridSolves};
use crate::problems::cube::Cube;
use crate::{BenchError, Options, Record, Work};

/// ‖r‖ / ‖b‖ at which solves end.
const TOLERANCE: f64 = 1e-9;

/// Unknowns, about.
const UNKNOWNS: usize = 3_000_000;

/// Starts of a solve with their names in records; several ranks have the first alone.
const STARTS: [(&str, GmgStart); 2] = [("gmg", GmgStart::None), ("gmg with full start", GmgStart::Full)];

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let degrees = options.degree.map_or(1..=8, |degree| degree..=degree);
    let mut peer = if options.peers { Some(DealII::new()?) } else { None };
    let mut records = Vec::new();
    let cpus = match options.ranks {
        Some(ranks) => vec![Cpu::new(ranks)?],
        None => options.cpus()?,
    };
    for cpu in cpus {
        for degree in degrees.clone() {
            let cube = Cube::of(degree, options.unknowns.unwrap_or(UNKNOWNS));
            records.extend(on(&cpu, &cube, options, peer.as_mut())?);
        }
    }
    peer.iter().for_each(DealII::report);
    Ok(records)
}

/// Times of ours with one start.
#[derive(Default)]
struct Solves {
    setup: Samples,
    solve: Samples,
    iterations: usize,
    /// The largest value of the solution.
    largest: f64,
}

fn on(
    cpu: &Cpu,
    cube: &Cube,
    options: &Options,
    mut peer: Option<&mut DealII>,
) -> Result<Vec<Record>, BenchError> {
    let runs = options.repeats(3).div_ceil(ROUNDS);
    let n_starts = if options.ranks.is_some_and(|n| n > 1) { 1 } else { STARTS.len() };
    let mut ours: Vec<Solves> = (0..n_starts).map(|_| Solves::default()).collect();
    let mut theirs = None::<MultigridSolves>;
    for _ in 0..ROUNDS {
        for (solves, (_, start)) in ours.iter_mut().zip(STARTS) {
            (0..runs).try_for_each(|_| solves.run(cpu, (cube, options.ranks), start))?;
        }
        let largest = ours[0].largest;
        let found = peer.as_mut().and_then(|peer| peer.multigrid(cpu, (cube, TOLERANCE, runs), largest));
        match (&mut theirs, found) {
            (Some(theirs), Some(found)) => theirs.join(&found),
            (theirs @ None, found) => *theirs = found,
            (Some(_), None) => {}
        }
    }
    let mut records = Vec::new();
    for (solves, (name, _)) in ours.iter().zip(STARTS) {
        records.extend(solves.records(cpu, cube, name, theirs.as_ref()));
    }
    let named = |part: &str| format!("gmg {part}, cube, degree {}", cube.degree);
    records.extend(theirs.iter().flat_map(|theirs| theirs.records(cpu, named)));
    records.iter_mut().for_each(|record| describe(record, cube));
    if let Some(ranks) = options.ranks {
        records.iter_mut().for_each(|record| record.set("ranks", ranks));
    }
    Ok(records)
}

fn describe(record: &mut Record, cube: &Cube) {
    record.set("degree", cube.degree);
    record.set("n_cells", cube.cells().pow(3));
    record.set("n_dofs", cube.n_dofs());
    record.set("tolerance", TOLERANCE);
    record.set("mdof_per_s", 1e-6 * cube.n_dofs() as f64 / record.seconds_min);
    record.set("mdof_per_s_median", 1e-6 * cube.n_dofs() as f64 / record.seconds_median);
}

impl Solves {
    /// Makes the mesh, sets up and solves once more.
    fn run(
        &mut self,
        cpu: &Cpu,
        (cube, ranks): (&Cube, Option<usize>),
        start: GmgStart,
    ) -> Result<(), BenchError> {
        let config = SolverConfig {
            device: DeviceChoice::Cpu,
            ranks: ranks.map_or(Ranks::One, Ranks::Threads),
            threads: cpu.threads(),
            preconditioner: PreconditionerConfig::Gmg(GmgOptions { start, ..GmgOptions::default() }),
            tolerance: TOLERANCE,
            ..SolverConfig::default()
        };
        cpu.install(|| {
            let mut silent = Silent;
            let mut stages = Stages::new(&mut silent);
            let begun = Instant::now();
            let (mesh, boundary) = cube.mesh()?;
            let discretization = cube.problem(&mesh, boundary)?.discretize()?;
            let solution = discretization.solve(cpu, &config, None, &mut stages)?;
            let seconds = begun.elapsed().as_secs_f64();
            if !solution.has_converged() {
                let message = format!("the solve {}", solution.outcome().stop);
                return Err(BenchError::Setting { field: "unknowns", message });
            }
            let seconds_solve = stages.timings().solve;
            self.setup.push(seconds - seconds_solve);
            self.solve.push(seconds_solve);
            (self.iterations, self.largest) = (solution.outcome().iterations, solution.max());
            Ok(())
        })
    }

    fn records(&self, cpu: &Cpu, cube: &Cube, name: &str, theirs: Option<&MultigridSolves>) -> [Record; 2] {
        let parts = [("set-up", &self.setup), ("solve", &self.solve)];
        let [setup, mut solve] = parts.map(|(part, samples)| {
            let problem = format!("{name} {part}, cube, degree {}", cube.degree);
            let nothing = Work { bytes: 0.0, flops: 0.0 };
            let mut record = Record::against_bandwidth(&problem, cpu, samples, nothing, ("none", 1.0));
            (record.bound, record.fraction_of_bound) = ("none".into(), 0.0);
            record.set("iterations", self.iterations);
            record.set("threads", cpu.threads());
            record
        });
        if let Some(theirs) = theirs {
            let seconds = theirs.solve().min();
            solve.bound = format!("deal.II, {seconds:.3e} s");
            solve.fraction_of_bound = seconds / self.solve.min();
            solve.set("over_dealii", seconds / self.solve.min());
            solve.set("over_dealii_median", theirs.solve().median() / self.solve.median());
            let with_setup = (theirs.setup().min() + seconds) / (self.setup.min() + self.solve.min());
            solve.set("over_dealii_with_setup", with_setup);
        }
        [setup, solve]
    }
}
