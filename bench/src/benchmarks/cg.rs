//! One iteration of Jacobi-CG on the box: the bytes of the CSR product and 10 values a row besides.
//!
//! The ten: read r, q, d and write r for the residual; read x, p, r, d and write x, p for the direction.
//! (q is summed with p while the product has both in cache.) Not counted: that the cache reads q before
//! the product writes it.

use femtile::device::{Buffer, Cpu};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;

use super::{ROUNDS, between_bandwidths};
use crate::iterations::Stopwatch;
use crate::problems::kuhn_box;
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records: Vec<Record> =
        options.cpus()?.iter().map(|cpu| iteration(cpu, options)).collect::<Result<_, _>>()?;
    if let [one, many] = records.as_mut_slice() {
        let read = |record: &Record| record.parameters["read_gb_per_s"].as_f64();
        let bandwidth_over_one_thread = read(many).zip(read(one)).map(|(many, one)| many / one);
        many.set("speedup_over_one_thread", one.seconds_min / many.seconds_min);
        many.set("read_bandwidth_over_one_thread", bandwidth_over_one_thread);
    }
    Ok(records)
}

fn iteration(cpu: &Cpu, options: &Options) -> Result<Record, BenchError> {
    let nodes = options.nodes(129)?;
    let a = kuhn_box::matrix::<f64, _>(cpu, nodes)?;
    let b = kuhn_box::ones(cpu, nodes)?;
    let jacobi = Jacobi::new(&a)?;
    let mut x = Buffer::zeros(cpu, b.len())?;
    let max_iterations = options.repeats(60).div_ceil(ROUNDS) + 1;
    let cg =
        ConjugateGradient::new(KrylovConfig { tolerance: 1e-14, max_iterations, ..KrylovConfig::default() });
    let mut watch = Stopwatch::default();
    let bandwidth = between_bandwidths(cpu, || {
        watch.begin();
        x.as_mut_slice().fill(0.0);
        let outcome = cg.solve(&mut x, &a, &jacobi, &b, &SingleRank, &mut watch)?;
        match outcome.stop {
            Stop::MaxIterations | Stop::Converged => Ok(()),
            stop => Err(BenchError::Setting { field: "nodes", message: format!("the solve {stop}") }),
        }
    })?;
    let n = a.n_rows() as f64;
    let work =
        Work { bytes: a.product_bytes() as f64 + 80.0 * n, flops: 2.0 * a.n_nonzeros() as f64 + 14.0 * n };
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let mut record = Record::against_bandwidth("jacobi-cg iteration, box", cpu, &watch.samples, work, bound);
    record.set("nodes", nodes);
    record.set("n_rows", a.n_rows());
    record.set("n_nonzeros", a.n_nonzeros());
    record.set("threads", cpu.threads());
    record.set("read_gb_per_s", bandwidth.read_gb_per_s);
    record.set("triad_gb_per_s", bandwidth.triad_gb_per_s);
    Ok(record)
}
