//! Conjugate gradients with algebraic multigrid on the box to 1e-8: set-up and solve, each on its own.
//!
//! Bytes of an iteration: the product in f64 and ten values a row, as for `cg` without its diagonal; the products of a
//! cycle with all its matrices in f32, and eleven values in f32 a row of each level.

use std::time::Instant;

use femtile::amg::{Amg, AmgConfig, AmgError, Hierarchy};
use femtile::device::{Buffer, Cpu};
use femtile::linalg::comm::Alone;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgConfig, ConjugateGradient};
use femtile::linalg::sparse::Csr;

use super::between_bandwidths;
use crate::problems::kuhn_box;
use crate::timing::Samples;
use crate::{BenchError, Options, Record, Work};

const TOLERANCE: f64 = 1e-8;
/// Bytes of an entry of a matrix in f32 with its column.
const ENTRY: f64 = 8.0;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        records.extend(solve(&cpu, options)?);
    }
    Ok(records)
}

fn solve(cpu: &Cpu, options: &Options) -> Result<[Record; 2], BenchError> {
    let nodes = options.nodes(65)?;
    let a = kuhn_box::matrix::<f64, _>(cpu, nodes)?;
    let b = kuhn_box::ones(cpu, nodes)?;
    let mut x = Buffer::zeros(cpu, b.len())?;
    let cg = ConjugateGradient::new(CgConfig { tolerance: TOLERANCE, ..CgConfig::default() });
    let repeats = options.repeats(9).div_ceil(super::ROUNDS);
    let (mut setups, mut solves) = (Samples::default(), Samples::default());
    let mut last = None;
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..repeats {
            let begin = Instant::now();
            let amg = Amg::<f32, _>::new(&a, None, &AmgConfig::default()).map_err(of_amg)?;
            setups.push(begin.elapsed().as_secs_f64());
            x.as_mut_slice().fill(0.0);
            let begin = Instant::now();
            let outcome = cg.solve(&mut x, &a, &amg, &b, &Alone, &mut ())?;
            solves.push(begin.elapsed().as_secs_f64());
            if outcome.stop != Stop::Converged {
                let message = format!("the solve {}", outcome.stop);
                return Err(BenchError::Setting { field: "nodes", message });
            }
            last = Some((amg, outcome.iterations));
        }
        Ok(())
    })?;
    let Some((amg, iterations)) = last else {
        return Err(BenchError::Setting { field: "repeats", message: "0 runs: choose one or more".into() });
    };
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let record = |problem: &str, samples: &Samples, work: Work| {
        let mut record = Record::against_bandwidth(problem, cpu, samples, work, bound);
        record.set("nodes", nodes);
        record.set("iterations", iterations);
        record.set("tolerance", TOLERANCE);
        record.set("threads", cpu.threads());
        record.set("operator_complexity", amg.hierarchy().operator_complexity());
        record
    };
    let work = work(&a, amg.hierarchy(), iterations);
    let read_once = Work { bytes: a.product_bytes() as f64, flops: 0.0 };
    Ok([record("amg set-up, box", &setups, read_once), record("amg-cg solve, box", &solves, work)])
}

fn of_amg(error: AmgError) -> BenchError {
    BenchError::Setting { field: "amg", message: error.to_string() }
}

/// What the iterations move and compute.
fn work(a: &Csr<f64, Cpu>, hierarchy: &Hierarchy<f32, Cpu>, iterations: usize) -> Work {
    let n = a.n_rows() as f64;
    let mut entries = 0.0;
    let mut rows = 0.0;
    for shape in hierarchy.shapes() {
        entries += 2.0 * (shape.n_nonzeros + shape.n_prolongator) as f64;
        rows += shape.n_rows as f64;
    }
    let cycle = ENTRY * entries + 11.0 * 4.0 * rows;
    let flops = 2.0 * (entries + a.n_nonzeros() as f64) + 14.0 * n;
    Work {
        bytes: iterations as f64 * (a.product_bytes() as f64 + 80.0 * n + cycle),
        flops: iterations as f64 * flops,
    }
}
