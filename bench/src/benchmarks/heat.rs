//! Steps of u_t = Δu + 1 on the unit cube of Kuhn tetrahedra, u = 0 on its sides and at the start, by BDF2 with steps of one
//! mesh width.
//!
//! Bytes of a step with k iterations: one product with the mass matrix, k + 2 with the operator, ten values a row in each
//! iteration and 28 in the rest of the step; with multigrid, k + 1 cycles of at least four products with the matrix of each
//! level in f32 and 27 values in f32 a row of it.

use std::time::Instant;

use crate::Samples;
use femtile::device::cuda::measure;
use femtile::device::{Cuda, Device};
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::solve::{Level, Observer, Progress};
use femtile::time::implicit::{Scheme, Steps, Stop};
use femtile::{
    AmgOptions, DeviceChoice, Mesh, Poisson, PreconditionerConfig, Solution, SolverConfig, Transient,
};

use crate::{BenchError, Options, Record, Work};

const VECTOR_BYTES: usize = 256 << 20;
/// The relative residual of the solves.
const TOLERANCE: f64 = 1e-8;
/// Steps before those that are timed: the start of the scheme, and what the first solves prepare.
const BEFORE: usize = 5;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let has_gpu = options.device != DeviceChoice::Cpu && Cuda::new(0).is_ok();
    let nodes = options.nodes(if has_gpu { 128 } else { 37 })?;
    let cells = [nodes - 1; 3];
    let mesh = box_mesh(&BoxConfig { cells, split: BoxSplit::Kuhn, ..BoxConfig::default() })?;
    let mut records = Vec::new();
    if has_gpu {
        let device = Cuda::new(0)?;
        let bound = ("copy bandwidth", 1e-9 * measure(&device)?.copy_bytes_per_second);
        let config = SolverConfig { device: DeviceChoice::Cuda(0), ..SolverConfig::default() };
        records.extend(all(&device, &config, (&mesh, nodes), bound, options)?);
    }
    if options.device == DeviceChoice::Cpu || !has_gpu {
        for cpu in options.cpus()? {
            let bound = ("read bandwidth", cpu.measure_bandwidth(VECTOR_BYTES)?.read_gb_per_s);
            let threads = cpu.threads();
            let config = SolverConfig { device: DeviceChoice::Cpu, threads, ..SolverConfig::default() };
            let of_cpu = all(&cpu, &config, (&mesh, nodes), bound, options)?;
            records.extend(of_cpu.into_iter().map(|mut record| {
                record.set("threads", threads);
                record
            }));
        }
    }
    Ok(records)
}

/// With the preconditioner that is asked for, or with each.
fn all(
    device: &impl Device,
    config: &SolverConfig,
    (mesh, nodes): (&Mesh, usize),
    bound: (&str, f64),
    options: &Options,
) -> Result<Vec<Record>, BenchError> {
    let amg = PreconditionerConfig::Amg(AmgOptions::default());
    let named = [PreconditionerConfig::Auto, PreconditionerConfig::Jacobi, amg];
    let asked =
        |of: &PreconditionerConfig| options.preconditioner.as_deref().is_none_or(|name| name == of.name());
    let mut records = Vec::new();
    for preconditioner in named.into_iter().filter(asked) {
        let name = preconditioner.name();
        let config = SolverConfig { preconditioner, tolerance: TOLERANCE, ..config.clone() };
        let mut record = steps(device, &config, (mesh, nodes), bound, options)?;
        record.problem = format!("heat step, Kuhn box, {name}");
        records.push(record);
    }
    if records.is_empty() {
        let message = "choose auto, jacobi or amg".into();
        return Err(BenchError::Setting { field: "preconditioner", message });
    }
    Ok(records)
}

/// Notes when steps are done.
#[derive(Default)]
struct Clock(Vec<Instant>);

impl Progress for Clock {
    fn time(&mut self, _: f64, _: f64) {
        self.0.push(Instant::now());
    }
}

/// Observes nothing.
struct Blind;

impl Observer for Blind {}

fn steps(
    device: &impl Device,
    config: &SolverConfig,
    (mesh, nodes): (&Mesh, usize),
    bound: (&str, f64),
    options: &Options,
) -> Result<Record, BenchError> {
    let (n_timed, step) = (options.repeats(60), 1.0 / (nodes - 1) as f64);
    let problem = Poisson::new(mesh).source(1.0).dirichlet("all", 0.0)?;
    let run = |n_steps: usize| {
        let run = Transient::new(problem.clone(), 0.0).times(0.0, step * n_steps as f64);
        let run = run.scheme(Scheme::Bdf2).steps(Steps::Fixed(n_steps));
        let mut clock = Clock::default();
        let solution = run.solve_with(config, &mut Blind, &mut clock)?;
        if solution.outcome().stop != Stop::Finished {
            let message = format!("a solve with {} did not converge", config.preconditioner.name());
            return Err(BenchError::Setting { field: "preconditioner", message });
        }
        Ok((solution, clock))
    };
    let before = run(BEFORE)?.0.outcome().iterations;
    let (solution, clock) = run(BEFORE + n_timed)?;
    // Solves need fewer iterations the nearer the steady state is: the mean of time and iterations belong together.
    let seconds = clock.0[BEFORE - 1 + n_timed].duration_since(clock.0[BEFORE - 1]).as_secs_f64();
    let mut samples = Samples::default();
    samples.push(seconds / n_timed as f64);
    let iterations = (solution.outcome().iterations - before) as f64 / n_timed as f64;
    let work = Work { bytes: bytes(nodes, iterations, solution.at_end()), flops: 0.0 };
    let mut record = Record::against_bandwidth("", device, &samples, work, bound);
    record.set("nodes", mesh.n_nodes());
    record.set("steps", n_timed);
    record.set("step", step);
    record.set("iterations", iterations);
    record.set("tolerance", TOLERANCE);
    record.set("preconditioner", solution.at_end().preconditioner());
    record.set("format", solution.at_end().operator());
    Ok(record)
}

/// Bytes of a step.
fn bytes(nodes: usize, iterations: f64, solution: &Solution<'_>) -> f64 {
    let (n, m) = (nodes as f64, (nodes - 1) as f64);
    let rows = n.powi(3);
    let entries = rows + 2.0 * (3.0 * n * n * m + 3.0 * n * m * m + m.powi(3));
    let product = 12.0 * entries + 20.0 * rows;
    let of_level = |level: &Level| 32.0 * level.n_nonzeros.unwrap_or(0) as f64 + 108.0 * level.n_rows as f64;
    let cycle: f64 = solution.levels().iter().map(of_level).sum();
    (3.0 + iterations) * product + (80.0 * iterations + 224.0) * rows + (1.0 + iterations) * cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_box_has_a_record_for_each_preconditioner() {
        let options = Options {
            threads: Some(1),
            nodes: Some(6),
            repeats: Some(4),
            device: DeviceChoice::Cpu,
            ..Options::default()
        };
        let records = run(&options).unwrap();
        let names: Vec<_> = records.iter().map(|record| record.problem.as_str()).collect();
        let expected = ["auto", "jacobi", "amg"].map(|name| format!("heat step, Kuhn box, {name}"));
        assert_eq!(names, expected);
        assert!(records.iter().all(|record| record.seconds_min > 0.0 && record.parameters["nodes"] == 216));
        let one = Options { preconditioner: Some("jacobi".into()), ..options.clone() };
        assert_eq!(run(&one).unwrap().len(), 1);
        let none = Options { preconditioner: Some("gmg".into()), ..options };
        assert!(run(&none).unwrap_err().to_string().contains("preconditioner"));
    }
}
