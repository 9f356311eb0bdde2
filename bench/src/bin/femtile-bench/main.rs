//! `femtile-bench`: times Femtile on this machine; `femtile bench` runs it.

#![forbid(unsafe_code)]

mod spmv;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use comfy_table::{Table, presets};
use femtile::matrix_free::MetricEvaluation;
use femtile::{DeviceChoice, SolveError};
use femtile_bench::problems::Elliptic;
use femtile_bench::problems::bake_off::{Method, Shape};
use femtile_bench::{Failure, Options, Record, write_json};
use femtile_terminal::{check_target, escape, is_stdout, print, print_data, say, to_json};
use spmv::{SpmvOptions, TuneOptions};

/// Time Femtile on this machine, each problem beside its bound.
#[derive(Debug, Parser)]
#[command(name = "femtile-bench", bin_name = "femtile bench", version)]
struct BenchOptions {
    /// The benchmark to run; without it all are listed.
    name: Option<String>,
    /// Threads of the CPU; by default one, then all.
    #[arg(long)]
    threads: Option<usize>,
    /// Nodes along a side of the box; each benchmark states its default in its records.
    #[arg(long)]
    nodes: Option<usize>,
    /// Degree of the elements of `laplace` and `bp1` to `bp6`, by default 3 to 8, and of `gmg`, by default 1 to 8.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=10))]
    degree: Option<u8>,
    /// Components of the fields of `bake-off-cuda`: 1 for BP1, BP3 and BP5, 3 for BP2, BP4 and BP6; by default 1.
    #[arg(long, value_name = "N", value_parser = ["1", "3"])]
    components: Option<String>,
    /// Shape of the cells of `laplace` and `bp1` to `bp6`; by default both.
    #[arg(long, value_name = "NAME", value_parser = Shape::ALL.map(Shape::name))]
    geometry: Option<String>,
    /// Way to obtain the cell metrics of `laplace` and `bp1` to `bp6`; by default the cheapest.
    #[arg(long, value_name = "NAME", value_parser = MetricEvaluation::ALL.map(MetricEvaluation::name))]
    metric: Option<String>,
    /// Methods of which `laplace` and `bp1` to `bp6` time an iteration, with commas between; without it the product.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Method::ALL.map(Method::name))]
    method: Vec<String>,
    /// Problem that `amg` solves.
    #[arg(long, value_name = "NAME", value_parser = Elliptic::ALL.map(Elliptic::name))]
    problem: Option<String>,
    /// Time other libraries on the same: several in `amg`; deal.II in `laplace`, `bp5` and `gmg`, on as many
    /// ranks of MPI as there are threads.
    #[arg(long)]
    peers: bool,
    /// Ranks that `gmg` and `tridiagonal-split` solve on, a thread each.
    #[arg(long, value_name = "N", conflicts_with = "threads")]
    ranks: Option<usize>,
    /// Device of `defaults`: auto, cpu, cuda or cuda:N.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Preconditioner of `heat`: auto, jacobi or amg; by default each.
    #[arg(long, value_name = "NAME")]
    preconditioner: Option<String>,
    /// Unknowns of the largest problems of `defaults` and, about, of `gmg`, by default 3,000,000; of all ranks in strong
    /// scaling of `scaling`, by default 100,000,000.
    #[arg(long, value_name = "N")]
    unknowns: Option<usize>,
    /// Systems of a batch; the default is that of each benchmark, given in its records.
    #[arg(long)]
    systems: Option<usize>,
    /// Number of timed runs.
    #[arg(long)]
    repeats: Option<usize>,
    /// Write the records as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    // `femtile spmv` and `femtile tune` pass their arguments on behind these words.
    match std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some("products") => with_options::<SpmvOptions>(1, spmv::run),
        Some("tune") => with_options::<TuneOptions>(1, spmv::tune),
        _ => with_options::<BenchOptions>(0, run),
    }
}

/// Runs a command with the options after the first `n` arguments; errors of options have no control characters.
fn with_options<P: Parser>(n: usize, run: impl FnOnce(&P) -> Result<ExitCode, Failure>) -> ExitCode {
    match P::try_parse_from(std::env::args_os().skip(n)) {
        Ok(options) => Failure::exit_code(|| run(&options)),
        Err(error)
            if std::env::args_os().any(|argument| argument.to_string_lossy().contains(char::is_control)) =>
        {
            say(&escape(&error.render().to_string()));
            ExitCode::from(2)
        }
        Err(error) => error.exit(),
    }
}

fn run(options: &BenchOptions) -> Result<ExitCode, Failure> {
    let Some(name) = &options.name else {
        let lines = femtile_bench::list().into_iter().map(|b| format!("{:<18} {}\n", b.name, b.summary));
        return Ok(print(&lines.collect::<String>())?);
    };
    options.json.as_deref().map_or(Ok(()), |path| check_target("--json", path))?;
    let chosen = Options {
        threads: options.threads,
        nodes: options.nodes,
        degree: options.degree.map(usize::from),
        has_vector_fields: options.components.as_deref() == Some("3"),
        geometry: named(&Shape::ALL, Shape::name, options.geometry.as_deref()),
        metric: named(&MetricEvaluation::ALL, MetricEvaluation::name, options.metric.as_deref()),
        methods: options
            .method
            .iter()
            .filter_map(|name| named(&Method::ALL, Method::name, Some(name)))
            .collect(),
        problem: named(&Elliptic::ALL, Elliptic::name, options.problem.as_deref()),
        peers: options.peers,
        ranks: options.ranks,
        device: options
            .device
            .as_deref()
            .map_or(Ok(DeviceChoice::Auto), str::parse)
            .map_err(|error: SolveError| Failure::Argument(error.to_string()))?,
        preconditioner: options.preconditioner.clone(),
        unknowns: options.unknowns,
        systems: options.systems,
        repeats: options.repeats,
        commit: commit(),
        json: options.json.clone().filter(|path| !is_stdout(path)),
    };
    let records = femtile_bench::run(name, &chosen)?;
    match &options.json {
        Some(path) if is_stdout(path) => return Ok(print_data(&format!("{}\n", to_json(&records)?))?),
        Some(path) => write_json(path, &records)?,
        None => {}
    }
    Ok(print(&table(&records))?)
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

/// Returns the git commit of the current folder, if there is one.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
