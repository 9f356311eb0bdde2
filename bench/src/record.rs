//! Records of benchmarks.

use std::collections::BTreeMap;

use femtile::device::Cpu;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Samples;

/// One measured number and its bound.
///
/// Rates and the fraction of the bound are those of the fastest run: bandwidth, too, is the best of
/// several runs, and slow single runs on a shared machine are not due to the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The computation, such as `csr product, box`.
    pub problem: String,
    /// On which device.
    pub device: String,
    /// `f64` or `f32`.
    pub precision: String,
    /// Sizes, threads, iterations and other parameters of the run.
    pub parameters: BTreeMap<String, Value>,
    /// Median time of one run.
    pub seconds_median: f64,
    /// Time of the fastest run.
    pub seconds_min: f64,
    /// Bytes that the method must move, as defined in the benchmark's documentation.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// `bytes` over `seconds_min`, in 10⁹.
    pub gb_per_s: f64,
    /// `flops` over `seconds_min`, in 10⁹.
    pub gflop_per_s: f64,
    /// The bound of this work, with its measured value.
    pub bound: String,
    /// Share of that bound that was reached: 1 is all.
    pub fraction_of_bound: f64,
}

/// Bytes moved and operations of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Bytes moved.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
}

impl Record {
    /// A record relative to a bandwidth in 10⁹ bytes a second.
    pub fn against_bandwidth(
        problem: &str,
        device: &impl femtile::device::Device,
        samples: &Samples,
        work: Work,
        (bound, gb_per_s): (&str, f64),
    ) -> Self {
        let seconds = (samples.median(), samples.min());
        let mut record = Self::of_seconds(problem, device, seconds, work, (bound, gb_per_s));
        record.set("runs", samples.count());
        record
    }

    /// The same from the median and the least of the times.
    pub fn of_seconds(
        problem: &str,
        device: &impl femtile::device::Device,
        (seconds_median, seconds_min): (f64, f64),
        work: Work,
        (bound, gb_per_s): (&str, f64),
    ) -> Self {
        let rate = 1e-9 * work.bytes / seconds_min;
        let mut record = Self {
            problem: problem.into(),
            device: device.description(),
            precision: "f64".into(),
            parameters: BTreeMap::new(),
            seconds_median,
            seconds_min,
            bytes: work.bytes,
            flops: work.flops,
            gb_per_s: rate,
            gflop_per_s: 1e-9 * work.flops / seconds_min,
            bound: format!("{bound}, {gb_per_s:.2} GB/s"),
            fraction_of_bound: rate / gb_per_s,
        };
        record.set("processor", femtile_terminal::processor());
        record
    }

    /// The times of another library on the processor, of which neither bytes nor a bound are known.
    pub fn of_peer(problem: &str, cpu: &Cpu, library: &str, samples: &Samples) -> Self {
        let nothing = Work { bytes: 0.0, flops: 0.0 };
        let mut record = Self::against_bandwidth(problem, cpu, samples, nothing, ("none", 0.0));
        record.device = format!("cpu ({} threads, {library})", cpu.threads());
        record.bound = "none".into();
        record.fraction_of_bound = 0.0;
        record.set("threads", cpu.threads());
        record
    }

    /// Notes a parameter.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.parameters.insert(name.into(), value.into());
    }
}
