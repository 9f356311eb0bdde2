//! $y = A x$ on the box: 12 bytes a non-zero (8 value, 4 column) and 20 a row (4 offset, 8 x, 8 y).
//!
//! Not counted: that the cache reads y before it writes it (8 bytes a row, 4 % here).

use femtile::device::{Buffer, Cpu};
use femtile::linalg::LinearOperator;

use super::{ROUNDS, between_bandwidths};
use crate::Samples;
use crate::problems::kuhn_box;
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    options.cpus()?.iter().map(|cpu| product(cpu, options)).collect()
}

fn product(cpu: &Cpu, options: &Options) -> Result<Record, BenchError> {
    let nodes = options.nodes(129)?;
    let a = kuhn_box::matrix::<f64, _>(cpu, nodes)?;
    let x = kuhn_box::ones(cpu, nodes)?;
    let mut y = Buffer::zeros(cpu, x.len())?;
    a.apply(&mut y, &x)?;
    let mut samples = Samples::default();
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(30).div_ceil(ROUNDS) {
            samples.time(|| cpu.install(|| a.apply(&mut y, &x)))?;
        }
        Ok(())
    })?;
    let work = Work { bytes: a.product_bytes() as f64, flops: 2.0 * a.n_nonzeros() as f64 };
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let mut record = Record::against_bandwidth("csr product, box", cpu, &samples, work, bound);
    record.set("nodes", nodes);
    record.set("n_rows", a.n_rows());
    record.set("n_nonzeros", a.n_nonzeros());
    record.set("threads", cpu.threads());
    record.set("read_gb_per_s", bandwidth.read_gb_per_s);
    Ok(record)
}
