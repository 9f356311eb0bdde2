//! From the mesh of the box to matrix and right side, pattern included.
//!
//! Bytes: cells and points read once, matrix and right side written once. The work is bound by
//! arithmetic and by finding places in rows rather than by these.

use femtile::device::Cpu;

use super::between_bandwidths;
use crate::Samples;
use crate::problems::kuhn_box;
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records: Vec<Record> =
        options.cpus()?.iter().map(|cpu| assembly(cpu, options)).collect::<Result<_, _>>()?;
    if let [one, many] = records.as_mut_slice() {
        many.set("speedup_over_one_thread", one.seconds_min / many.seconds_min);
    }
    Ok(records)
}

fn assembly(cpu: &Cpu, options: &Options) -> Result<Record, BenchError> {
    let nodes = options.nodes(65)?;
    let mesh = kuhn_box::mesh(nodes)?;
    let (n_rows, n_nonzeros) = {
        let matrix = kuhn_box::system::<f64, _>(cpu, &mesh)?.matrix;
        (matrix.n_rows(), matrix.n_nonzeros())
    };
    let mut samples = Samples::default();
    let bandwidth = between_bandwidths(cpu, || {
        for _ in 0..options.repeats(9).div_ceil(super::ROUNDS) {
            let system = samples.time(|| kuhn_box::system::<f64, _>(cpu, &mesh))?;
            drop(system);
        }
        Ok(())
    })?;
    let read = 16 * mesh.n_cells() + 24 * mesh.n_nodes();
    let written = 12 * n_nonzeros + 12 * n_rows;
    let work = Work { bytes: (read + written) as f64, flops: 0.0 };
    let bound = ("read bandwidth", bandwidth.read_gb_per_s);
    let mut record = Record::against_bandwidth("assembly, box", cpu, &samples, work, bound);
    record.set("nodes", nodes);
    record.set("n_cells", mesh.n_cells());
    record.set("n_nonzeros", n_nonzeros);
    record.set("threads", cpu.threads());
    record.set("cells_per_second", mesh.n_cells() as f64 / record.seconds_min);
    Ok(record)
}
