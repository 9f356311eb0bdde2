//! Time of an iteration from 1 to 131,072 ranks by the model of [`crate::scaling`].
//!
//! Nothing is timed. The bound is the memory bandwidth of all ranks.

use std::collections::BTreeMap;

use crate::scaling::{Cluster, Method, RANKS_PER_NODE, crossover};
use crate::{BenchError, Options, Record};

/// Unknowns in all of strong scaling, and of a rank of weak scaling.
const STRONG: usize = 100_000_000;
const WEAK: usize = 1_000_000;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let total = options.unknowns.unwrap_or(STRONG) as f64;
    let mut n_ranks: Vec<usize> = (0..=17).map(|doubling| 1 << doubling).collect();
    n_ranks.insert(17, 100_000);
    let mut records = Vec::new();
    for is_weak in [false, true] {
        for &n_ranks in &n_ranks {
            let n = if is_weak { (WEAK * n_ranks) as f64 } else { total };
            records.extend(Method::ALL.into_iter().filter_map(|method| record(method, is_weak, n, n_ranks)));
        }
    }
    Ok(records)
}

/// Returns the record of a method; none if the method does not support this number of ranks.
fn record(method: Method, is_weak: bool, n: f64, n_ranks: usize) -> Option<Record> {
    let found = method.predict(&Cluster::default(), n, n_ranks)?;
    let (scaling, bytes) = (if is_weak { "weak" } else { "strong" }, found.bytes * n_ranks as f64);
    let (rate, bound) = (bytes / found.seconds, Cluster::bytes_per_second(n_ranks) * n_ranks as f64);
    let mut record = Record {
        problem: format!("scaling, {scaling}: {}, {n_ranks} ranks", method.name()),
        device: "cluster of Xeons, 16 ranks a node (network assumed)".into(),
        precision: "f64".into(),
        parameters: BTreeMap::new(),
        seconds_median: found.seconds,
        seconds_min: found.seconds,
        bytes,
        flops: 0.0,
        gb_per_s: 1e-9 * rate,
        gflop_per_s: 0.0,
        bound: format!("memory bandwidth, {:.2} GB/s", 1e-9 * bound),
        fraction_of_bound: rate / bound,
    };
    record.set("n_ranks", n_ranks);
    record.set("unknowns", n);
    record.set("method", method.name());
    record.set("scaling", scaling);
    if matches!(method, Method::PipelinedCg | Method::SStepCg)
        && n_ranks > RANKS_PER_NODE
        && let Some(latency) = crossover(method, Method::MergedCg, n, n_ranks)
    {
        record.set("wins_from_latency", latency);
    }
    Some(record)
}
