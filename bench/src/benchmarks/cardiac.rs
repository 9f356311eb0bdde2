//! Steps of the monodomain equation on the slab of `[niederer2011]`, after the stimulus, while the front passes.
//!
//! Splitting of order 1 with θ = ½, the membrane by Rush and Larsen, Jacobi-CG to an error of 1e-3 mV. Bytes of a step are
//! those of the membrane (potential and states read and written), of the right side (a product), of each iteration (a product,
//! ten vectors), of the update and of the activation map.

use std::time::Instant;

use crate::Samples;
use femtile::device::Cuda;
use femtile::device::cuda::measure;
use femtile::{DeviceChoice, Mesh, PreconditionerConfig, SolverConfig};
use femtile_cardiac::CardiacError;
use femtile_cardiac::ionic::GatePrecision;
use femtile_cardiac::monodomain::{Frame, Observer};

use crate::problems::slab;
use crate::{BenchError, Options, Record, Work};

/// Length of a step, and the times between which steps are measured, ms.
const STEP: f64 = 0.05;
const FROM: f64 = 5.0;
const TO: f64 = 15.0;
/// States of the model besides the potential.
const N_STATES: usize = 18;
const N_GATES: usize = 12;
const VECTOR_BYTES: usize = 256 << 20;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    // 0.1 mm, and a coarser slab where there is no GPU.
    let has_gpu = options.device != DeviceChoice::Cpu && Cuda::new(0).is_ok();
    let nodes = options.nodes(if has_gpu { 201 } else { 68 })?;
    let mesh = slab::mesh(slab::SIDES[0] / (nodes - 1) as f64)?;
    let mut records = Vec::new();
    if has_gpu {
        let device = Cuda::new(0)?;
        let bandwidth = ("copy bandwidth", 1e-9 * measure(&device)?.copy_bytes_per_second);
        for gates in [GatePrecision::Double, GatePrecision::Single] {
            records.push(steps(&device, (DeviceChoice::Cuda(0), 0), (&mesh, gates), bandwidth, options)?);
        }
    }
    if options.device == DeviceChoice::Cpu || !has_gpu {
        for cpu in options.cpus()? {
            let found = cpu.measure_bandwidth(VECTOR_BYTES)?;
            let bound = ("read bandwidth", found.read_gb_per_s);
            let settings = (DeviceChoice::Cpu, cpu.threads());
            let mut record = steps(&cpu, settings, (&mesh, GatePrecision::Double), bound, options)?;
            record.set("threads", cpu.threads());
            records.push(record);
        }
    }
    Ok(records)
}

/// Notes when frames are reached.
#[derive(Default)]
struct Clock(Vec<Instant>);

impl Observer for Clock {
    fn frame(&mut self, _: &Frame<'_>) -> Result<(), CardiacError> {
        self.0.push(Instant::now());
        Ok(())
    }
}

fn steps(
    device: &impl femtile::device::Device,
    (choice, threads): (DeviceChoice, usize),
    (mesh, gates): (&Mesh, GatePrecision),
    bound: (&str, f64),
    options: &Options,
) -> Result<Record, BenchError> {
    let config = SolverConfig {
        device: choice,
        threads,
        preconditioner: PreconditionerConfig::Jacobi,
        ..SolverConfig::default()
    };
    let (mut samples, mut iterations) = (Samples::default(), 0.0);
    let n_steps = (TO - FROM) / STEP;
    for _ in 0..options.repeats(3) {
        let problem = slab::problem(mesh)?.gates(gates).times(0.0, TO, STEP).frames([FROM, TO]);
        let mut clock = Clock::default();
        let solution = problem.solve_with(&config, &mut clock, &mut femtile::solve::Silent)?;
        samples.push((clock.0[1] - clock.0[0]).as_secs_f64() / n_steps);
        iterations = solution.outcome.iterations as f64 / solution.outcome.steps as f64;
    }
    let n = mesh.n_nodes();
    let work = Work { bytes: bytes(mesh, gates, iterations), flops: 0.0 };
    let mut record = Record::against_bandwidth("monodomain step, slab", device, &samples, work, bound);
    record.set("nodes", n);
    record.set("iterations", iterations);
    record.set("step_ms", STEP);
    record.set("bits_of_gates", if gates == GatePrecision::Single { 32 } else { 64 });
    Ok(record)
}

/// Returns the bytes of a step.
fn bytes(mesh: &Mesh, gates: GatePrecision, iterations: f64) -> f64 {
    let n = mesh.n_nodes() as f64;
    // Kuhn tetrahedra: 15 entries in rows inside.
    let product = n * (15.0 * 12.0 + 16.0);
    let half = if gates == GatePrecision::Single { N_GATES as f64 / 2.0 } else { 0.0 };
    let membrane = 16.0 * n * (1.0 + N_STATES as f64 - half);
    membrane + product + iterations * (product + 80.0 * n) + 24.0 * n + 32.0 * n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_slab_gives_a_record_of_each_number_of_threads() {
        let options =
            Options { nodes: Some(14), repeats: Some(1), device: DeviceChoice::Cpu, ..Options::default() };
        let records = run(&options).unwrap();
        assert!(!records.is_empty() && records.iter().all(|record| record.seconds_min > 0.0));
    }
}
