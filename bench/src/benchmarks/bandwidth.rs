//! Memory bandwidth, the bound of all other records.

use super::VECTOR_BYTES;
use crate::Samples;
use crate::{BenchError, Options, Record, Work};

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        let runs: Vec<_> =
            (0..options.repeats(5)).map(|_| cpu.measure_bandwidth(VECTOR_BYTES)).collect::<Result<_, _>>()?;
        let n = (VECTOR_BYTES / 8) as f64;
        let read: Vec<f64> = runs.iter().map(|run| run.read_gb_per_s).collect();
        let triad: Vec<f64> = runs.iter().map(|run| run.triad_gb_per_s).collect();
        for (problem, bytes_each, rates) in
            [("dot product of two long vectors", 16.0, read), ("triad of three long vectors", 24.0, triad)]
        {
            let work = Work { bytes: bytes_each * n, flops: 2.0 * n };
            let mut samples = Samples::default();
            rates.iter().for_each(|rate| samples.push(1e-9 * work.bytes / rate));
            let best = rates.iter().copied().fold(0.0, f64::max);
            let mut record = Record::against_bandwidth(problem, &cpu, &samples, work, ("itself", best));
            record.set("threads", cpu.threads());
            record.set("vector_bytes", VECTOR_BYTES);
            records.push(record);
        }
    }
    Ok(records)
}
