//! Tables and figures of papers: published and measured values, with the peers of this machine in the same run.

mod cui2024;
mod figure;
mod fu2014;
mod kronbichler2022;
mod laszlo2016;
mod niederer2011;
mod plot;
mod session;
mod table;
mod timing;
mod wong2015;

pub use femtile_bench::Absent;
pub use figure::{Claim, Cycles, Figure, Quantity, Rates, Row, Rows, Series};
use figure::{INTENSITY, UNKNOWNS};
pub use plot::svg;
pub use session::Session;
pub use table::{Cell, Column, Table};

use femtile_bench::BenchError;

/// Settings of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// A size that takes seconds, for tests.
    pub small: bool,
    /// Threads of the CPU; 0 for all.
    pub threads: usize,
    /// Systems in a batch; the paper's are 65,536, of large blocks fewer.
    pub systems: usize,
    /// From one length of systems to the next.
    pub step: usize,
    /// The most sparse products that are timed in a row; the paper's are 1,200.
    pub products: usize,
    /// The most unknowns of an operator without a matrix; the paper's are 100 million.
    pub unknowns: usize,
    /// Ranks of figures on several; 0 for as many as threads.
    pub ranks: usize,
    /// The command that runs `femtile-mpi` on `{ranks}` ranks; without it ranks are threads.
    pub launcher: Option<String>,
    /// The finest level of multigrid; level L has 2^(L − 1) cells a side.
    pub max_level: usize,
    /// Number of timed runs of each solve.
    pub repeats: usize,
    /// True if other libraries are measured.
    pub peers: bool,
    /// True if a GPU is measured, if there is one.
    pub gpu: bool,
    /// Nominal power of the devices.
    pub power: Power,
}

/// Nominal power of the devices, by which speed is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// The GPU, in watts.
    pub gpu_watts: u32,
    /// A package of the CPU, in watts.
    pub package_watts: u32,
    /// The cores of a package.
    pub package_cores: u32,
}

impl Default for Power {
    /// An H100 or H200 (SXM), and 56 cores of a current server processor.
    fn default() -> Self {
        Self { gpu_watts: 700, package_watts: 350, package_cores: 56 }
    }
}

impl Power {
    /// Returns the share of a core, in watts.
    pub fn core_watts(&self) -> f64 {
        f64::from(self.package_watts) / f64::from(self.package_cores.max(1))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            small: false,
            threads: 0,
            systems: 65_536,
            step: 64,
            products: 1200,
            unknowns: 4_000_000,
            ranks: 0,
            launcher: None,
            max_level: 12,
            repeats: 5,
            peers: true,
            gpu: true,
            power: Power::default(),
        }
    }
}

/// A table or figure that can be regenerated.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its content, in one line.
    pub summary: &'static str,
    run: fn(&Session) -> Result<Figure, BenchError>,
}

/// A paper whose methods Femtile implements or will implement.
#[derive(Debug, Clone)]
pub struct Paper {
    /// Its key in `references.bib`.
    pub key: &'static str,
    /// The methods that Femtile takes from it.
    pub summary: &'static str,
    /// Its items that can be reproduced.
    pub items: Vec<Item>,
}

/// All papers.
pub fn papers() -> Vec<Paper> {
    let paper = |key, summary, items| Paper { key, summary, items };
    vec![
        paper("cui2024", "multigrid with vertex-patch smoothers", cui2024::items()),
        paper(
            "kronbichler2022",
            "conjugate gradients merged into matrix-free operators",
            kronbichler2022::items(),
        ),
        paper("laszlo2016", "batched tridiagonal and block-tridiagonal solvers", laszlo2016::items()),
        paper("fu2014", "the pipeline of finite elements with algebraic multigrid", fu2014::items()),
        paper("niederer2011", "the N-version benchmark of cardiac solvers", niederer2011::items()),
        paper("wong2015", "ELL-WARP sparse products and cardiac simulation", wong2015::items()),
    ]
}

impl Item {
    /// Measures.
    ///
    /// # Errors
    /// Errors of our own solvers; peers that do not run are named in the figure.
    pub fn run(&self, session: &Session) -> Result<Figure, BenchError> {
        (self.run)(session)
    }
}
