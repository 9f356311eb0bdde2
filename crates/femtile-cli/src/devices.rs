use std::process::ExitCode;

use comfy_table::{Table, presets};
use femtile::device::Cpu;
use femtile::device::cpu::SimdLevel;

use crate::arguments::DevicesOptions;
use crate::failure::Failure;
use crate::print;

/// Bytes of each vector that the bandwidth is measured with: longer than common last-level caches.
const VECTOR_BYTES: usize = 128 << 20;

/// `femtile devices`.
pub fn run(options: &DevicesOptions) -> Result<ExitCode, Failure> {
    let cpu = Cpu::new(options.threads)?;
    let bandwidth = cpu.measure_bandwidth(VECTOR_BYTES)?;
    let levels: Vec<String> = SimdLevel::available().iter().map(ToString::to_string).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if options.json {
        let json = serde_json::json!([{
            "device": "cpu",
            "model": model(),
            "cores": cores,
            "threads": cpu.threads(),
            "simd": cpu.simd().to_string(),
            "simd_available": levels,
            "read_gb_per_s": bandwidth.read_gb_per_s,
            "triad_gb_per_s": bandwidth.triad_gb_per_s,
        }]);
        return print(&format!("{json:#}\n"));
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["device", "what", "value"]);
    let rows = [
        ("model", model()),
        ("cores", format!("{cores}, {} threads used", cpu.threads())),
        ("SIMD", format!("{} (of {}; FEMTILE_SIMD forces one)", cpu.simd(), levels.join(", "))),
        ("read", format!("{:.1} GB/s", bandwidth.read_gb_per_s)),
        ("triad", format!("{:.1} GB/s", bandwidth.triad_gb_per_s)),
    ];
    for (what, value) in rows {
        table.add_row(["cpu", what, &value]);
    }
    print(&format!("{table}\nGPUs are not used by this version.\n"))
}

/// The processor's name, where the system tells it.
fn model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split(':').nth(1)).map_or("unknown".into(), |name| name.trim().into())
}
