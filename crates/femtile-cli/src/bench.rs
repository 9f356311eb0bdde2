use std::process::{Command, ExitCode};

use comfy_table::{Table, presets};
use femtile::fem::matrix_free::Geometry;
use femtile::{DeviceChoice, SolveError};
use femtile_bench::problems::Elliptic;
use femtile_bench::problems::bake_off::{Method, Shape};
use femtile_bench::{Options, Record};

use crate::arguments::BenchOptions;
use crate::failure::Failure;
use crate::output::{check_target, is_stdout, print, print_data, to_json};

/// `femtile bench`.
pub fn run(options: &BenchOptions) -> Result<ExitCode, Failure> {
    let Some(name) = &options.name else {
        let lines = femtile_bench::list().into_iter().map(|b| format!("{:<18} {}\n", b.name, b.summary));
        return print(&lines.collect::<String>());
    };
    options.json.as_deref().map_or(Ok(()), |path| check_target("--json", path))?;
    let chosen = Options {
        threads: options.threads,
        nodes: options.nodes,
        degree: options.degree.map(usize::from),
        geometry: named(&Shape::ALL, Shape::name, options.geometry.as_deref()),
        metric: named(&Geometry::ALL, Geometry::name, options.metric.as_deref()),
        methods: options
            .method
            .iter()
            .filter_map(|name| named(&Method::ALL, Method::name, Some(name)))
            .collect(),
        problem: named(&Elliptic::ALL, Elliptic::name, options.problem.as_deref()),
        peers: options.peers,
        device: options
            .device
            .as_deref()
            .map_or(Ok(DeviceChoice::Auto), str::parse)
            .map_err(|error: SolveError| Failure::message(error.to_string()))?,
        unknowns: options.unknowns,
        systems: options.systems,
        repeats: options.repeats,
        commit: commit(),
    };
    let records = femtile_bench::run(name, &chosen).map_err(|e| Failure::message(e.to_string()))?;
    let json = to_json(&records)?;
    match &options.json {
        Some(path) if is_stdout(path) => print_data(&format!("{json}\n")),
        Some(path) => {
            femtile::mesh::io::write_atomically(path, |out| writeln!(out, "{json}"))?;
            print(&table(&records))
        }
        None => print(&table(&records)),
    }
}

fn named<T: Copy>(all: &[T], name_of: impl Fn(T) -> &'static str, name: Option<&str>) -> Option<T> {
    all.iter().copied().find(|&one| Some(name_of(one)) == name)
}

fn table(records: &[Record]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["problem", "device", "seconds", "GB/s", "GFLOP/s", "of the bound", "bound"]);
    for record in records {
        table.add_row([
            record.problem.clone(),
            record.device.clone(),
            format!("{:.3e}", record.seconds_median),
            format!("{:.1}", record.gb_per_s),
            format!("{:.2}", record.gflop_per_s),
            format!("{:.2}", record.fraction_of_bound),
            record.bound.clone(),
        ]);
    }
    format!("{table}\n")
}

/// The commit of the folder the program is run in, where git knows one.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
