//! Whole solves with the preconditioner chosen by `auto`, and with every named one.
//!
//! Timed is everything but the mesh: space, operator, preconditioner, iterations. Nothing is counted in bytes; the bound
//! of a solve is the time of the best named preconditioner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use femtile::device::cuda::Opening;
use femtile::device::{Cpu, Cuda};
use femtile::solve::{Silent, Stages};
use femtile::{
    AmgOptions, GmgOptions, Mesh, PmgOptions, Poisson, PreconditionerConfig, Solution, SolveError,
    SolverConfig,
};

use crate::Samples;
use crate::problems::solves::{Solve, solves};
use crate::{BenchError, Options, Record, Work};

/// Unknowns of the largest problems, about.
const MOST: usize = 3_000_000;

/// Ratio to the fastest preconditioner so far beyond which, after half a second more, a preconditioner is given up.
const HOPELESS: f64 = 4.0;

/// Unless the number of unknowns is asked for, the benchmark takes a selection of the problems, and begins none after this time.
const LIMIT: Duration = Duration::from_secs(90);

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let samples = std::env::var_os("FEMTILE_SAMPLES").map(|folder| Path::new(&folder).join("meshes"));
    if samples.is_none() {
        crate::skipped(format_args!("sample meshes: FEMTILE_SAMPLES names no folder"));
    }
    on(options, samples)
}

fn on(options: &Options, samples: Option<PathBuf>) -> Result<Vec<Record>, BenchError> {
    let devices = Devices { cpu: Cpu::new(options.threads.unwrap_or(0))?, opened: options.device.open()? };
    let config = SolverConfig {
        threads: options.threads.unwrap_or(0),
        device: options.device,
        ..SolverConfig::default()
    };
    let mut records = Vec::new();
    let begun = Instant::now();
    let all = solves(options.unknowns.unwrap_or(MOST), samples.as_deref());
    let chosen = all.iter().filter(|solve| options.unknowns.is_some() || solve.is_in_selection());
    for solve in chosen {
        if options.unknowns.is_none() && begun.elapsed() > LIMIT {
            let seconds = LIMIT.as_secs();
            crate::skipped(format_args!(
                "{}: {seconds} s are over; `--unknowns {MOST}` takes the time that all need",
                solve.name()
            ));
            continue;
        }
        match solve.mesh()? {
            Some(mesh) => match Timed::of(solve, &mesh, (&devices, &config), options.repeats(3)) {
                Ok(timed) => {
                    let record = timed.record(&devices.cpu, solve);
                    crate::told(format_args!(
                        "{}: {:.3} s, {:.2} × {}",
                        record.problem,
                        record.seconds_min,
                        1.0 / record.fraction_of_bound,
                        record.bound
                    ));
                    records.push(record);
                    options.keep(&records)?;
                }
                // A device that is asked for may not take all cells.
                Err(BenchError::Solve(error)) if matches!(*error, SolveError::Setting { .. }) => {
                    crate::skipped(format_args!("{}: {error}", solve.name()));
                }
                Err(error) => return Err(error),
            },
            None => crate::skipped(format_args!("{}: not solved on, or too large", solve.name())),
        }
    }
    records.extend(worst(&records));
    Ok(records)
}

/// The preconditioners that can be named.
fn named() -> [PreconditionerConfig; 4] {
    [
        PreconditionerConfig::Jacobi,
        PreconditionerConfig::Amg(AmgOptions::default()),
        PreconditionerConfig::Gmg(GmgOptions::default()),
        PreconditionerConfig::Pmg(PmgOptions::default()),
    ]
}

/// A processor, and a GPU that stays open from solve to solve.
struct Devices {
    cpu: Cpu,
    opened: Option<Cuda>,
}

impl Devices {
    /// Discretizes and solves a problem.
    fn solve<'m>(&self, problem: &Poisson<'m>, config: &SolverConfig) -> Result<Solution<'m>, SolveError> {
        self.cpu.install(|| {
            let mut silent = Silent;
            let mut stages = Stages::new(&mut silent);
            problem.discretize()?.solve(
                &self.cpu,
                config,
                self.opened.clone().map(Opening::from),
                &mut stages,
            )
        })
    }

    /// Times a solve: seconds, whether it has converged, iterations.
    fn time(&self, problem: &Poisson<'_>, config: &SolverConfig) -> Result<(f64, bool, usize), SolveError> {
        let mut samples = Samples::default();
        let solution = samples.time(|| self.solve(problem, config))?;
        Ok((samples.min(), solution.has_converged(), solution.outcome().iterations))
    }
}

/// Times of one problem.
struct Timed {
    auto: Samples,
    chosen: &'static str,
    reason: String,
    device: String,
    n_dofs: usize,
    /// By name, with the iterations.
    named: BTreeMap<&'static str, (Samples, usize)>,
}

impl Timed {
    /// Solves with all in turn, `repeats` times after an uncounted warm-up round.
    fn of(
        solve: &Solve,
        mesh: &Mesh,
        (devices, config): (&Devices, &SolverConfig),
        repeats: usize,
    ) -> Result<Self, BenchError> {
        let problem = solve.problem(mesh)?;
        let first = devices.solve(&problem, config)?;
        let mut timed = Self {
            auto: Samples::default(),
            chosen: first.preconditioner(),
            reason: first.preconditioner_reason().into(),
            device: first.device().into(),
            n_dofs: first.values().len(),
            named: BTreeMap::new(),
        };
        let mut candidates = Vec::new();
        let mut best = devices.time(&problem, config)?.0;
        for preconditioner in named() {
            let limit = Duration::from_secs_f64(HOPELESS * best + 0.5);
            let config = SolverConfig { preconditioner, time_limit: Some(limit), ..config.clone() };
            match devices.time(&problem, &config) {
                Ok((seconds, true, _)) => {
                    best = best.min(seconds);
                    candidates.push(config);
                }
                Ok((_, false, _)) | Err(SolveError::Setting { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for _ in 0..repeats {
            timed.auto.push(devices.time(&problem, config)?.0);
            for candidate in &candidates {
                let entry = timed.named.entry(candidate.preconditioner.name()).or_default();
                let (seconds, _, iterations) = devices.time(&problem, candidate)?;
                entry.0.push(seconds);
                entry.1 = iterations;
            }
        }
        Ok(timed)
    }

    fn record(&self, device: &Cpu, solve: &Solve) -> Record {
        let best = self.named.iter().min_by(|a, b| a.1.0.min().total_cmp(&b.1.0.min()));
        let (name, seconds) =
            best.map_or(("none", f64::INFINITY), |(name, (samples, _))| (*name, samples.min()));
        let nothing = Work { bytes: 0.0, flops: 0.0 };
        let problem = format!("{}, {} unknowns: auto ({})", solve.name(), self.n_dofs, self.chosen);
        let mut record = Record::against_bandwidth(&problem, device, &self.auto, nothing, ("none", 1.0));
        record.device.clone_from(&self.device);
        record.bound = format!("{name}, {seconds:.3e} s");
        record.fraction_of_bound = seconds / self.auto.min();
        record.set("unknowns", self.n_dofs);
        record.set("chosen", self.chosen);
        record.set("reason", self.reason.clone());
        record.set("best", name);
        record.set("auto_over_best", self.auto.min() / seconds);
        for (name, (samples, iterations)) in &self.named {
            record.set(&format!("seconds_{name}"), samples.min());
            record.set(&format!("iterations_{name}"), *iterations);
        }
        record
    }
}

/// Repeats the solve in which `auto` is the slowest relative to the best.
fn worst(records: &[Record]) -> Option<Record> {
    let record = records.iter().min_by(|a, b| a.fraction_of_bound.total_cmp(&b.fraction_of_bound))?;
    let mut worst = record.clone();
    worst.problem = format!("worst of {}: {}", records.len(), record.problem);
    Some(worst)
}

#[cfg(test)]
mod tests {
    use femtile::DeviceChoice;

    use super::*;

    #[test]
    fn every_small_problem_is_solved_by_default_and_by_all_that_take_its_elements() {
        let options = Options {
            unknowns: Some(1_000),
            repeats: Some(1),
            device: DeviceChoice::Cpu,
            threads: Some(1),
            ..Options::default()
        };
        let records = on(&options, None).unwrap();
        let (worst, all) = records.split_last().unwrap();
        assert_eq!(all.len(), 26);
        for record in all {
            let of = |name: &str| record.parameters.get(name).cloned();
            let has = |name: &str| of(&format!("seconds_{name}")).is_some_and(|s| s.as_f64() > Some(0.0));
            let problem = &record.problem;
            let is_simplex = problem.contains("tetrahedra") || problem.contains("triangles");
            assert!(has("jacobi") && has("pmg") != is_simplex, "{record:?}");
            assert!(has("amg") == problem.contains("degree 1,"), "{record:?}");
            assert!(!has("gmg") || !problem.contains("ball"), "{record:?}");
            assert!(has(of("chosen").unwrap().as_str().unwrap()), "{record:?}");
            assert!(has(of("best").unwrap().as_str().unwrap()), "{record:?}");
            let unknowns = of("unknowns").unwrap().as_f64().unwrap();
            assert!((250.0..4_000.0).contains(&unknowns), "{record:?}");
            assert!(record.fraction_of_bound >= worst.fraction_of_bound);
        }
        assert!(all.iter().any(|record| worst.problem == format!("worst of 26: {}", record.problem)));
    }
}
