use std::process::ExitCode;

use comfy_table::{Table, presets};
use femtile::comm::{LinkCosts, measure_link};
use femtile::device::cpu::SimdLevel;
use femtile::device::cuda::{self, CudaCosts, Properties};
use femtile::device::{Cpu, Cuda, DeviceError};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::choice::{self, AxisKind, ChoiceRow, DeviceKind};
use serde_json::{Value, json};

use crate::arguments::DevicesOptions;
use crate::failure::Failure;
use femtile_terminal::{print, print_data, processor};

/// Bytes of each vector that the bandwidth is measured with: longer than common last-level caches.
const VECTOR_BYTES: usize = 64 << 20;

/// `femtile devices`.
pub fn run(options: &DevicesOptions) -> Result<ExitCode, Failure> {
    if options.kernels {
        return Ok(print(&kernels(options.json))?);
    }
    let processor = Processor::measure(options)?;
    let gpus = gpus();
    let links = gpus.as_deref().map(links).unwrap_or_default();
    if options.json {
        let mut all = vec![processor.json()];
        all.extend(gpus.iter().flatten().map(|gpu| gpu.json(&links)));
        return Ok(print_data(&format!("{:#}\n", Value::from(all)))?);
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["device", "what", "value"]);
    for (what, value) in processor.rows() {
        table.add_row(["cpu", what, &value]);
    }
    let mut notes = Vec::new();
    match &gpus {
        Ok(gpus) => {
            for gpu in gpus {
                for (what, value) in gpu.rows() {
                    table.add_row([&gpu.name(), what, &value]);
                }
                for link in links.iter().filter(|link| link.between[0] == gpu.name()) {
                    table.add_row([gpu.name(), format!("link to {}", link.between[1]), link.text()]);
                }
            }
        }
        Err(error) => notes.push(format!("No GPU: {error}.")),
    }
    notes.push(
        cuda::compiler()
            .map_or_else(|advice| format!("No kernels: {advice}."), |found| format!("Kernels: {found}.")),
    );
    notes.push(cache());
    Ok(print(&format!("{table}\n{}\n", notes.join("\n")))?)
}

/// The default algorithm for tridiagonal systems by device, axis, precision and length.
fn kernels(as_json: bool) -> String {
    let devices = [("cpu", DeviceKind::Cpu), ("cuda", DeviceKind::Cuda)];
    let rows = devices
        .into_iter()
        .flat_map(|(name, kind)| choice::table(kind).into_iter().map(move |row| (name, row)));
    let axis = |row: &ChoiceRow| match row.axis {
        AxisKind::Contiguous => "contiguous",
        AxisKind::Strided => "strided",
    };
    // The last row of a table has no upper end.
    let longest = |row: &ChoiceRow| Some(*row.lengths.end()).filter(|end| *end < usize::MAX);
    if as_json {
        let all: Vec<_> = rows
            .map(|(device, row)| {
                json!({
                    "device": device,
                    "axis": axis(&row),
                    "precision": row.precision,
                    "shortest": row.lengths.start(),
                    "longest": longest(&row),
                    "algorithm": row.algorithm.name(),
                })
            })
            .collect();
        return format!("{:#}\n", Value::from(all));
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["device", "axis", "precision", "rows of a system", "algorithm"]);
    for (device, row) in rows {
        let lengths = match longest(&row) {
            Some(end) => format!("{} to {end}", row.lengths.start()),
            None => format!("{} and more", row.lengths.start()),
        };
        table.add_row([device, axis(&row), row.precision, &lengths, row.algorithm.name()]);
    }
    format!("{table}\nFor batches of any size without pivoting; with it, `thomas`.\n")
}

/// The processor and its measured bandwidth.
struct Processor {
    cores: usize,
    cpu: Cpu,
    levels: Vec<String>,
    read_gb_per_s: f64,
    triad_gb_per_s: f64,
}

impl Processor {
    fn measure(options: &DevicesOptions) -> Result<Self, DeviceError> {
        let cpu = Cpu::new(options.threads)?;
        let bandwidth = cpu.measure_bandwidth(VECTOR_BYTES)?;
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            cpu,
            levels: SimdLevel::available().iter().map(ToString::to_string).collect(),
            read_gb_per_s: bandwidth.read_gb_per_s,
            triad_gb_per_s: bandwidth.triad_gb_per_s,
        })
    }

    fn json(&self) -> Value {
        json!({
            "device": "cpu",
            "model": processor(),
            "cores": self.cores,
            "threads": self.cpu.threads(),
            "simd": self.cpu.simd().to_string(),
            "simd_available": self.levels,
            "read_gb_per_s": self.read_gb_per_s,
            "triad_gb_per_s": self.triad_gb_per_s,
        })
    }

    fn rows(&self) -> [(&'static str, String); 5] {
        let levels = self.levels.join(", ");
        [
            ("model", processor()),
            ("cores", format!("{}, {} threads used", self.cores, self.cpu.threads())),
            ("SIMD", format!("{} (of {levels}; FEMTILE_SIMD forces one)", self.cpu.simd())),
            ("read", format!("{:.1} GB/s", self.read_gb_per_s)),
            ("triad", format!("{:.1} GB/s", self.triad_gb_per_s)),
        ]
    }
}

/// The measured exchange between two GPUs.
struct Link {
    between: [String; 2],
    costs: Result<LinkCosts, LinalgError>,
}

/// Measures the exchange between all pairs of GPUs.
fn links(gpus: &[Gpu]) -> Vec<Link> {
    let usable: Vec<(String, &Cuda)> =
        gpus.iter().filter_map(|gpu| Some((gpu.name(), gpu.device.as_ref()?))).collect();
    let pairs = usable.iter().enumerate().flat_map(|(at, one)| {
        usable[at + 1..].iter().map(move |other| Link {
            between: [one.0.clone(), other.0.clone()],
            costs: measure_link([one.1, other.1]),
        })
    });
    pairs.collect()
}

impl Link {
    fn text(&self) -> String {
        match &self.costs {
            Ok(LinkCosts { has_peers, seconds, bytes_per_second }) => format!(
                "{:.1} GB/s each way, {:.1} µs a message{}",
                1e-9 * bytes_per_second,
                1e6 * seconds,
                if *has_peers { "" } else { ", through the host" }
            ),
            Err(error) => error.to_string(),
        }
    }

    fn json(&self) -> Value {
        let costs = self.costs.as_ref().ok();
        json!({
            "to": self.between[1],
            "reads_memory": costs.map(|costs| costs.has_peers),
            "gb_per_s_each_way": costs.map(|costs| 1e-9 * costs.bytes_per_second),
            "message_us": costs.map(|costs| 1e6 * costs.seconds),
            "trouble": self.costs.as_ref().err().map(ToString::to_string),
        })
    }
}

/// A GPU with its measured bandwidth, or the reason it cannot be used.
struct Gpu {
    properties: Properties,
    device: Option<Cuda>,
    free_bytes: usize,
    costs: Result<CudaCosts, DeviceError>,
}

fn gpus() -> Result<Vec<Gpu>, DeviceError> {
    let found = cuda::gpus()?;
    Ok(found
        .into_iter()
        .map(|properties| {
            let device = Cuda::new(properties.ordinal);
            let free_bytes = device.as_ref().ok().and_then(|device| device.driver().memory_bytes().ok());
            let costs = device.as_ref().map_err(Clone::clone).and_then(cuda::measure);
            let free_bytes = free_bytes.map_or(0, |(free, _)| free);
            Gpu { properties, device: device.ok(), free_bytes, costs }
        })
        .collect())
}

impl Gpu {
    fn name(&self) -> String {
        format!("cuda:{}", self.properties.ordinal)
    }

    fn json(&self, links: &[Link]) -> Value {
        let links = links.iter().filter(|link| link.between[0] == self.name());
        let p = &self.properties;
        let costs = self.costs.as_ref().ok();
        json!({
            "device": self.name(),
            "model": p.name,
            "compute_capability": format!("{}.{}", p.compute_capability.0, p.compute_capability.1),
            "multiprocessors": p.n_multiprocessors,
            "memory_bytes": p.memory_bytes,
            "memory_free_bytes": self.free_bytes,
            "cuda_version": format!("{}.{}", p.cuda_version.0, p.cuda_version.1),
            "compiler": cuda::compiler().ok(),
            "copy_gb_per_s": costs.map(|costs| 1e-9 * costs.copy_bytes_per_second),
            "launch_us": costs.map(|costs| 1e6 * costs.launch_seconds),
            "node_us": costs.map(|costs| 1e6 * costs.node_seconds),
            "links": links.map(Link::json).collect::<Vec<_>>(),
            "trouble": self.costs.as_ref().err().map(ToString::to_string),
        })
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let p = &self.properties;
        let gib = |bytes: usize| bytes as f64 / (1u64 << 30) as f64;
        let (major, minor) = p.compute_capability;
        let mut rows = vec![
            (
                "model",
                format!("{}, {} multiprocessors, capability {major}.{minor}", p.name, p.n_multiprocessors),
            ),
            ("memory", format!("{:.1} GiB, {:.1} GiB free", gib(p.memory_bytes), gib(self.free_bytes))),
            ("driver", format!("CUDA {}.{}", p.cuda_version.0, p.cuda_version.1)),
        ];
        match &self.costs {
            Ok(costs) => rows.extend([
                ("copy", format!("{:.0} GB/s", 1e-9 * costs.copy_bytes_per_second)),
                ("launch", format!("{:.2} µs", 1e6 * costs.launch_seconds)),
                ("graph node", format!("{:.2} µs", 1e6 * costs.node_seconds)),
            ]),
            Err(error) => rows.push(("trouble", error.to_string())),
        }
        rows
    }
}

/// Returns the content of the kernel cache.
fn cache() -> String {
    let report = cuda::report_cache();
    match report.folder {
        Some(folder) => {
            let mib = report.bytes as f64 / (1u64 << 20) as f64;
            format!("Cache: {} programs, {mib:.1} MiB, in {}.", report.n_entries, folder.display())
        }
        None => "Cache: none, kernels are compiled at every start.".into(),
    }
}
