//! `femtile-research`: regenerates tables and figures of papers; `femtile reproduce` runs it.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use comfy_table::{Table, presets};
use femtile::mesh::io::write_atomically;
use femtile_bench::Failure;
use femtile_research::reproduce::{
    Cell, Figure, Item, Paper, Power, Quantity, Session, Settings, papers, svg,
};
use femtile_terminal::{is_stdout, print, print_data, to_json};

/// Regenerate tables and figures of the papers that Femtile implements, with published and measured values.
#[derive(Debug, Parser)]
#[command(name = "femtile-research", bin_name = "femtile reproduce", version)]
#[command(after_help = "Examples:\n  femtile reproduce laszlo2016 figure-11 --threads 1\n  \
    femtile reproduce laszlo2016 --step 4 --output figures")]
struct ReproduceOptions {
    /// Key of the paper, as in references.bib; without it the papers and what can be reproduced are listed.
    key: Option<String>,
    /// Tables and figures, such as figure-10; without them all of the paper. What several of them show is measured once.
    items: Vec<String>,
    /// Folder for each figure as text, JSON and SVG.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Write all figures as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A size that takes seconds, to test that everything runs: its figures are meaningless.
    #[arg(long)]
    small: bool,
    /// Systems in a batch, as the paper's; blocks of 7 and 8 rows have half of them.
    #[arg(long, default_value_t = 65_536, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    systems: u32,
    /// From one length of systems to the next; the paper's is 4.
    #[arg(long, default_value_t = 64, value_name = "N")]
    step: usize,
    /// The most sparse products that are timed in a row, as the paper's.
    #[arg(long, default_value_t = 1200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    products: u32,
    /// The most unknowns of operators without a matrix; the paper's are 100 million.
    #[arg(long, default_value_t = 4_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..))]
    unknowns: u32,
    /// Ranks of figures on several; 0 for as many as threads.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    ranks: u32,
    /// Take processes of MPI for ranks, by this command, such as "mpirun -n {ranks} femtile-mpi"; without it threads.
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// The finest level of multigrid, if its unknowns are not too many; level L has 2^(L − 1) cells a side.
    #[arg(long, default_value_t = 12, value_name = "L", value_parser = clap::value_parser!(u32).range(4..=20))]
    max_level: u32,
    /// Threads of the CPU, of ours and of other libraries; 0 for all.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Number of timed runs of each solve.
    #[arg(long, default_value_t = 5, value_name = "N")]
    repeats: usize,
    /// Leave out other libraries.
    #[arg(long)]
    no_peers: bool,
    /// Leave out the GPU.
    #[arg(long)]
    no_gpu: bool,
    /// Nominal power of the GPU, for figures by power.
    #[arg(long, default_value_t = 700, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    gpu_watts: u32,
    /// Nominal power of a package of the CPU, for figures by power.
    #[arg(long, default_value_t = 350, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    package_watts: u32,
    /// Cores of that package.
    #[arg(long, default_value_t = 56, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    package_cores: u32,
}

fn main() -> ExitCode {
    let options = ReproduceOptions::parse();
    Failure::exit_code(|| run(&options))
}

fn run(options: &ReproduceOptions) -> Result<ExitCode, Failure> {
    let Some(key) = &options.key else { return Ok(print(&list(&papers()))?) };
    let items = chosen(key, &options.items)?;
    for folder in
        [&options.output, &options.json.as_ref().and_then(|file| file.parent().map(Path::to_path_buf))]
    {
        if let Some(folder) = folder.as_deref().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
    }
    let settings = Settings {
        small: options.small,
        threads: options.threads,
        systems: options.systems as usize,
        step: options.step,
        products: options.products as usize,
        unknowns: options.unknowns as usize,
        ranks: options.ranks as usize,
        launcher: options.launcher.clone(),
        max_level: options.max_level as usize,
        repeats: if options.small { 1 } else { options.repeats },
        peers: !options.no_peers,
        gpu: !options.no_gpu,
        power: Power {
            gpu_watts: options.gpu_watts,
            package_watts: options.package_watts,
            package_cores: options.package_cores,
        },
    };
    let session = Session::new(settings)?;
    let mut figures = Vec::new();
    for item in items {
        let figure = item.run(&session)?;
        if let Some(folder) = &options.output {
            write(folder, &figure)?;
        }
        if options.json.as_ref().is_none_or(|path| !is_stdout(path)) {
            print(&text(&figure))?;
        }
        figures.push(figure);
        // After each item, so that a run that is stopped keeps those that are done.
        if let Some(path) = options.json.as_deref().filter(|path| !is_stdout(path)) {
            let json = json(&figures)?;
            write_atomically(path, |out| out.write_all(json.as_bytes()))?;
        }
    }
    if options.json.as_deref().is_some_and(is_stdout) {
        return Ok(print_data(&json(&figures)?)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn list(papers: &[Paper]) -> String {
    let mut text = String::new();
    for paper in papers {
        text += &format!("{:<16} {}\n", paper.key, paper.summary);
        for item in &paper.items {
            text += &format!("    {:<12} {}\n", item.name, item.summary);
        }
    }
    text
}

/// Returns the requested items in the order of the paper.
fn chosen(key: &str, items: &[String]) -> Result<Vec<Item>, Failure> {
    let papers = papers();
    let Some(paper) = papers.iter().find(|paper| paper.key == key) else {
        return Err(Failure::Argument(format!(
            "there is no paper `{key}`; the papers are:\n{}",
            list(&papers)
        )));
    };
    let is_known = |item: &&String| paper.items.iter().any(|known| known.name == **item);
    if let Some(item) = items.iter().find(|item| !is_known(item)) {
        let names: Vec<_> = paper.items.iter().map(|item| item.name).collect();
        let names = names.join(", ");
        return Err(Failure::Argument(format!("{key} has no item `{item}`; choose one of: {names}")));
    }
    let is_requested = |known: &Item| items.is_empty() || items.iter().any(|item| item == known.name);
    Ok(paper.items.iter().copied().filter(is_requested).collect())
}

fn json(figures: &[Figure]) -> Result<String, Failure> {
    Ok(to_json(&figures)? + "\n")
}

/// The three files of a figure.
fn write(folder: &Path, figure: &Figure) -> Result<(), Failure> {
    let file = |extension: &str| folder.join(format!("{}.{extension}", figure.item));
    let contents =
        [("txt", text(figure)), ("json", json(std::slice::from_ref(figure))?), ("svg", svg(figure))];
    for (extension, content) in contents {
        write_atomically(&file(extension), |out| out.write_all(content.as_bytes()))?;
    }
    Ok(())
}

fn text(figure: &Figure) -> String {
    let mut text = format!("{}, {}: {}\n{}\n", figure.paper, figure.item, figure.title, figure.setting);
    for precision in figure.precisions() {
        text += &format!("\n{precision}, {}\n{}\n", figure.quantity.label(), table(figure, precision));
    }
    if let Some(matrices) = &figure.table {
        text += &format!("\n{}\n{}\n", figure.quantity.label(), words(figure.abscissa, matrices));
    }
    if figure.quantity == Quantity::Nanoseconds && figure.abscissa == "length" {
        text += &format!("\n{}\n", rates(figure));
    }
    if !figure.claims.is_empty() {
        let mut table = new_table();
        table.set_header(["claim", "place", "theirs", "ours"]);
        for claim in &figure.claims {
            let ours = claim.ours.as_deref().unwrap_or("not measured here");
            table.add_row([&claim.what, claim.place, &claim.theirs, ours]);
        }
        text += &format!("\n{table}\n");
    }
    for note in &figure.notes {
        text += &format!("\n{note}\n");
    }
    for absent in &figure.absent {
        text += &format!("\n{} was not measured: {}; {}\n", absent.peer, absent.reason, absent.install);
    }
    text + "\n"
}

/// A row for each abscissa, a column for each solver.
fn table(figure: &Figure, precision: &str) -> Table {
    let series = figure.series(precision);
    let mut table = new_table();
    let labels = series.iter().map(|series| series.label.clone());
    table.set_header([figure.abscissa.to_string()].into_iter().chain(labels));
    for abscissa in figure.abscissas(precision) {
        let value = |point: Option<&(String, f64)>| match point {
            Some((_, value)) if (0.01..1e4).contains(value) => format!("{value:.3}"),
            Some((_, value)) => format!("{value:.2e}"),
            None => "–".into(),
        };
        let values = series.iter().map(|s| value(s.points.iter().find(|point| point.0 == abscissa)));
        table.add_row([abscissa.clone()].into_iter().chain(values));
    }
    table
}

/// Returns a table as in the figure.
fn words(corner: &str, figures: &femtile_research::reproduce::Table) -> Table {
    let mut table = new_table();
    table.set_header([corner].into_iter().chain(figures.columns.iter().map(|column| column.name.as_str())));
    for (row, name) in figures.rows.iter().enumerate() {
        let cells = figures.columns.iter().map(|column| match &column.cells[row] {
            Cell::Count(count) => count.to_string(),
            Cell::Number(number) if number.abs() < 1e5 => format!("{number:.2}"),
            Cell::Number(number) => format!("{number:.2e}"),
            Cell::Words(words) => (*words).into(),
            Cell::Nothing => "–".into(),
        });
        table.add_row([name.clone()].into_iter().chain(cells));
    }
    table
}

/// Returns the smallest and largest rate of each solver over the sweep, and the share of the bandwidth.
fn rates(figure: &Figure) -> Table {
    let mut table = new_table();
    table.set_header(["GB/s", "least", "at", "most", "at", "most / least", "least of the bandwidth"]);
    for precision in figure.precisions() {
        for rates in figure.rates(precision) {
            table.add_row([
                format!("{precision} {}", rates.label),
                format!("{:.1}", rates.least.0),
                rates.least.1,
                format!("{:.1}", rates.most.0),
                rates.most.1,
                format!("{:.2}", rates.most.0 / rates.least.0),
                rates.least_of_bandwidth.map_or("–".into(), |share| format!("{share:.2}")),
            ]);
        }
    }
    table
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table
}
