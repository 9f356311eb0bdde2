use std::path::PathBuf;

use femtile::DeviceChoice;
use femtile::device::Cpu;
use femtile::matrix_free::MetricEvaluation;

use crate::problems::Elliptic;
use crate::problems::bake_off::{Method, Shape};
use crate::{BenchError, Record, write_json};

/// Settings of a benchmark; `None` leaves the choice to the benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Number of threads; by default one, then all.
    pub threads: Option<usize>,
    /// Nodes along a side of the box; each benchmark states its default in its records.
    pub nodes: Option<usize>,
    /// Degree of the elements, for benchmarks of several.
    pub degree: Option<usize>,
    /// Whether bake-off problems on a GPU have three components instead of one.
    pub has_vector_fields: bool,
    /// Shape of the cells, for bake-off problems; by default every one.
    pub geometry: Option<Shape>,
    /// Metric evaluation of bake-off problems; by default the cheapest.
    pub metric: Option<MetricEvaluation>,
    /// Methods of which an iteration is timed, for bake-off problems; none for the product.
    pub methods: Vec<Method>,
    /// The problem, for benchmarks of solvers.
    pub problem: Option<Elliptic>,
    /// True if other libraries are measured as well, in benchmarks where that is optional.
    pub peers: bool,
    /// Ranks that divide a problem among themselves, for benchmarks of geometric multigrid and of systems along a split axis.
    pub ranks: Option<usize>,
    /// The device, for benchmarks of whole solves.
    pub device: DeviceChoice,
    /// The preconditioner, for benchmarks of several.
    pub preconditioner: Option<String>,
    /// Unknowns of the largest problem, about, for benchmarks of whole solves and of geometric multigrid; of all ranks for
    /// strong scaling.
    pub unknowns: Option<usize>,
    /// Systems of a batch, for benchmarks of batches.
    pub systems: Option<usize>,
    /// Number of timed runs.
    pub repeats: Option<usize>,
    /// The commit to write into the records.
    pub commit: Option<String>,
    /// The file that long benchmarks write their records to as they go.
    pub json: Option<PathBuf>,
}

impl Options {
    /// The CPU devices to measure: with the chosen number of threads, or with one and with all.
    pub(crate) fn cpus(&self) -> Result<Vec<Cpu>, BenchError> {
        if let Some(threads) = self.threads {
            return Ok(vec![Cpu::new(threads)?]);
        }
        let (one, all) = (Cpu::new(1)?, Cpu::new(0)?);
        Ok(if all.threads() > 1 { vec![one, all] } else { vec![one] })
    }

    /// Nodes along a side of the box.
    pub(crate) fn nodes(&self, default: usize) -> Result<usize, BenchError> {
        match self.nodes.unwrap_or(default) {
            nodes @ 2..=1024 => Ok(nodes),
            nodes => Err(BenchError::Setting {
                field: "nodes",
                message: format!("{nodes} nodes a side; choose 2 to 1024"),
            }),
        }
    }

    /// Writes the records so far, if there is a file for them.
    pub(crate) fn keep(&self, records: &[Record]) -> Result<(), BenchError> {
        let Some(path) = &self.json else { return Ok(()) };
        write_json(path, records)
    }

    /// Returns the number of timed runs.
    pub(crate) fn repeats(&self, default: usize) -> usize {
        self.repeats.unwrap_or(default).max(1)
    }
}
