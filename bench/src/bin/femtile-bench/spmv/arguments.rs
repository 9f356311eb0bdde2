use std::path::PathBuf;

use clap::{Args, Parser};

/// Measure how long products with a sparse matrix take in several storage formats.
#[derive(Debug, Parser)]
#[command(
    name = "femtile spmv",
    bin_name = "femtile spmv",
    version,
    after_help = "Examples:\n  femtile spmv matrix.mtx.gz --all\n  \
    femtile spmv --profile cant --device cpu --threads 2 --histogram rows.svg"
)]
pub struct SpmvOptions {
    /// The Matrix Market file, plain or compressed with gzip.
    #[arg(required_unless_present = "profile", conflicts_with = "profile")]
    pub file: Option<PathBuf>,
    /// Time all formats, not only CSR and the chosen one.
    #[arg(long)]
    pub all: bool,
    /// Write a histogram of row lengths as SVG to this file.
    #[arg(long, value_name = "FILE")]
    pub histogram: Option<PathBuf>,
    /// Also time MKL (CPU) and cuSPARSE (GPU).
    #[arg(long)]
    pub peers: bool,
    /// Common options.
    #[command(flatten)]
    pub products: ProductOptions,
}

/// Find the storage format in which products with a sparse matrix are fastest here, and remember it.
#[derive(Debug, Parser)]
#[command(
    name = "femtile tune",
    bin_name = "femtile tune",
    version,
    after_help = "Examples:\n  femtile tune matrix.mtx --device cuda\n  femtile tune --forget"
)]
pub struct TuneOptions {
    /// The Matrix Market file, plain or compressed with gzip.
    #[arg(required_unless_present_any = ["profile", "forget"], conflicts_with = "profile")]
    pub file: Option<PathBuf>,
    /// Remove all stored results instead of searching.
    #[arg(long, conflicts_with_all = ["file", "profile"])]
    pub forget: bool,
    /// Common options.
    #[command(flatten)]
    pub products: ProductOptions,
}

/// Common options of `spmv` and `tune`.
#[derive(Debug, Args)]
pub struct ProductOptions {
    /// A synthetic matrix with the row lengths of a well-known one, such as cant or webbase-1M, instead of a file.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Divide the number of rows of the profile by N.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "profile")]
    pub scale: usize,
    /// The device: auto (the CPU, and a GPU where there is one), cpu, cuda, cuda:N.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of the processor; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Number of timed runs of each product.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print errors only, no progress and no summary.
    #[arg(short, long)]
    pub quiet: bool,
}
