//! deal.II beside ours: with as many lanes, on the same cells, a rank of MPI for each thread.

use std::collections::BTreeMap;
use std::fs;

use femtile::device::cpu::SimdLevel;
use femtile::device::{Buffer, Cpu};
use femtile::linalg::LinearOperator;
use femtile::matrix_free::MatrixFree;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::Samples;
use crate::problems::bake_off::Shape;
use crate::problems::cube::Cube;
use crate::python::ask;
use crate::{Absent, BenchError, Record};

const SCRIPT: &str = include_str!("../peers/dealii.py");

/// Sources that the script compiles.
const SOURCES: [(&str, &str); 4] = [
    ("dealii_laplace.h", include_str!("../peers/dealii_laplace.h")),
    ("dealii_lanes.cc", include_str!("../peers/dealii_lanes.cc")),
    ("dealii_products.cc", include_str!("../peers/dealii_products.cc")),
    ("dealii_multigrid.cc", include_str!("../peers/dealii_multigrid.cc")),
];

const INSTALL: &str = "apt-get install libdeal.ii-dev g++ python3";

/// deal.II with the programs that time it.
#[derive(Debug)]
pub struct DealII {
    folder: TempDir,
    absent: Option<Absent>,
}

/// Products, or iterations of conjugate gradients, with the Laplacian on a cube.
#[derive(Debug, Clone, Copy)]
pub struct Products {
    /// `gauss` or `lobatto`, p + 1 points.
    pub rule: &'static str,
    /// The shape of the cells.
    pub shape: Shape,
    /// Cells a side.
    pub cells: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Number of timed products, or of solves.
    pub runs: usize,
    /// Iterations of a solve, of which the first is not timed; none for products.
    pub iterations: Option<usize>,
}

/// Products of deal.II beside those of an operator of ours.
#[derive(Debug)]
pub struct Beside<'a> {
    peer: &'a mut DealII,
    what: Products,
    ours: Invariants,
    library: String,
    lanes: usize,
    seconds: BTreeMap<String, Vec<f64>>,
}

/// Numbers of an operator $A$ that do not depend on the order of unknowns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Invariants {
    n_dofs: usize,
    /// $\sum_i A_{ii}$.
    trace: f64,
    /// $d^\mathsf{T} A d$ for the diagonal $d$.
    energy: f64,
}

/// Times and outcome of solves with geometric multigrid of deal.II.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MultigridSolves {
    library: String,
    lanes: usize,
    n_dofs: usize,
    /// Iterations of conjugate gradients.
    pub iterations: usize,
    residual: f64,
    /// The largest value of the solution.
    largest: f64,
    /// Seconds of each set-up, that of the mesh included.
    pub seconds_setup: Vec<f64>,
    /// Seconds of each solve.
    pub seconds_solve: Vec<f64>,
}

/// Output of `dealii_products`.
#[derive(Deserialize)]
struct Answer {
    library: String,
    lanes: usize,
    n_dofs: usize,
    trace: f64,
    energy: f64,
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    name: String,
    seconds: Vec<f64>,
}

impl DealII {
    /// Writes the sources into a temporary folder; nothing is run.
    ///
    /// # Errors
    /// [`BenchError::File`] where the folder cannot be written.
    pub fn new() -> Result<Self, BenchError> {
        let failed = |source| BenchError::File { what: "temporary folder", source };
        let folder = tempfile::tempdir().map_err(failed)?;
        for (name, text) in SOURCES {
            fs::write(folder.path().join(name), text).map_err(failed)?;
        }
        Ok(Self { folder, absent: None })
    }

    /// Times a set-up and solves with geometric multigrid, unless deal.II is missing or has another solution than ours.
    pub fn multigrid(
        &mut self,
        cpu: &Cpu,
        (cube, tolerance, runs): (&Cube, f64, usize),
        largest: f64,
    ) -> Option<MultigridSolves> {
        let arguments = [
            cube.coarsest.to_string(),
            cube.refinements.to_string(),
            runs.to_string(),
            tolerance.to_string(),
        ];
        let solves = self.run::<MultigridSolves>(cpu, ("dealii_multigrid", cube.degree), &arguments);
        self.kept(solves.and_then(|solves| solves.checked(cube, (tolerance, largest))))
    }

    /// Says why deal.II was not measured.
    pub fn report(&self) {
        if let Some(Absent { peer, reason, install }) = &self.absent {
            crate::skipped(format_args!("{peer}: {reason}; {install}"));
        }
    }

    fn run<R: DeserializeOwned>(
        &self,
        cpu: &Cpu,
        (program, degree): (&str, usize),
        arguments: &[String],
    ) -> Result<R, String> {
        if let Some(absent) = &self.absent {
            return Err(absent.reason.clone());
        }
        let bits = match cpu.simd() {
            SimdLevel::Avx512 => "512",
            SimdLevel::Avx2 => "256",
            level => return Err(format!("it is compiled for AVX2 and AVX-512, not for {level}")),
        };
        let folder = self.folder.path().display().to_string();
        let [degree, ranks] = [degree, cpu.threads()].map(|n| n.to_string());
        let mut all = vec![folder, program.to_string(), bits.to_string(), degree, ranks];
        all.extend_from_slice(arguments);
        ask(SCRIPT, &all, &[])
    }

    /// Returns the result; keeps the reason of a failure, after which nothing more is run.
    fn kept<R>(&mut self, result: Result<R, String>) -> Option<R> {
        result.map_err(|reason| self.absent = Some(Absent { peer: "deal.II", reason, install: INSTALL })).ok()
    }
}

impl<'a> Beside<'a> {
    /// Products to be timed beside those of an operator.
    ///
    /// # Errors
    /// Those of a product.
    pub fn new(peer: &'a mut DealII, what: Products, a: &MatrixFree<f64>) -> Result<Self, BenchError> {
        let ours = Invariants::of(a)?;
        Ok(Self { peer, what, ours, library: String::new(), lanes: 0, seconds: BTreeMap::new() })
    }

    /// Times one round, unless deal.II is missing or has another operator than ours.
    pub fn measure(&mut self, cpu: &Cpu) {
        let Products { rule, shape, cells, degree, runs, iterations } = self.what;
        let quantity = if iterations.is_some() { "iteration" } else { "product" };
        let [cells, runs, iterations] = [cells, runs, iterations.unwrap_or(0)].map(|n| n.to_string());
        let arguments = [rule.into(), shape.name().into(), cells, quantity.into(), runs, iterations];
        let answer = self.peer.run::<Answer>(cpu, ("dealii_products", degree), &arguments);
        let checked = answer.and_then(|answer| answer.checked(&self.ours));
        if let Some(answer) = self.peer.kept(checked) {
            (self.library, self.lanes) = (answer.library, answer.lanes);
            for Variant { name, seconds } in answer.variants {
                self.seconds.entry(name).or_default().extend(seconds);
            }
        }
    }

    /// Returns the times of each variant.
    fn variants(&self) -> impl Iterator<Item = (&str, Samples)> {
        self.seconds.iter().map(|(name, seconds)| (name.as_str(), Samples::from(seconds.clone())))
    }

    /// Notes in a record of ours its speed over that of the fastest variant, if any was timed.
    pub fn compare(&self, record: &mut Record) {
        let best = self.variants().min_by(|a, b| a.1.min().total_cmp(&b.1.min()));
        let median = self.variants().map(|(_, samples)| samples.median()).fold(f64::INFINITY, f64::min);
        if let Some((name, samples)) = best {
            record.set("best_dealii", name);
            record.set("over_dealii", samples.min() / record.seconds_min);
            record.set("over_dealii_median", median / record.seconds_median);
        }
    }

    /// Returns a record of each variant, named by `problem`.
    pub fn records(&self, cpu: &Cpu, problem: impl Fn(&str) -> String) -> Vec<Record> {
        let n_dofs = self.ours.n_dofs;
        let record = |(name, samples): (&str, Samples)| {
            let problem = format!("{}, deal.II", problem(name));
            let mut record = Record::of_peer(&problem, cpu, &self.library, &samples);
            record.set("degree", self.what.degree);
            record.set("n_dofs", n_dofs);
            record.set("lanes", self.lanes);
            record.set("ranks", cpu.threads());
            record.set("mdof_per_s", 1e-6 * n_dofs as f64 / record.seconds_min);
            record.set("mdof_per_s_median", 1e-6 * n_dofs as f64 / record.seconds_median);
            record
        };
        self.variants().map(record).collect()
    }
}

impl Invariants {
    fn of(a: &MatrixFree<f64>) -> Result<Self, BenchError> {
        let diagonal = Buffer::from_vec(a.device(), a.diagonal())?;
        let mut product = Buffer::zeros(a.device(), a.n_rows())?;
        a.device().install(|| a.apply(&mut product, &diagonal))?;
        let pairs = product.as_slice().iter().zip(diagonal.as_slice());
        Ok(Self {
            n_dofs: a.n_rows(),
            trace: diagonal.as_slice().iter().sum(),
            energy: pairs.map(|(x, y)| x * y).sum(),
        })
    }
}

impl Answer {
    /// Refuses times of another operator.
    fn checked(self, ours: &Invariants) -> Result<Self, String> {
        let Self { n_dofs, trace, energy, .. } = self;
        let agree = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs() + 1e-12 * ours.trace.abs();
        if n_dofs == ours.n_dofs && agree(trace, ours.trace) && agree(energy, ours.energy) {
            return Ok(self);
        }
        let theirs = Invariants { n_dofs, trace, energy };
        Err(format!("its operator differs from ours: {theirs:?}, not {ours:?}"))
    }
}

impl MultigridSolves {
    /// Refuses times of another problem or of a solution that is none.
    fn checked(self, cube: &Cube, (tolerance, largest): (f64, f64)) -> Result<Self, String> {
        let is_solved = self.residual <= 1.1 * tolerance && self.n_dofs == cube.n_dofs();
        let agree = (self.largest - largest).abs() <= 1e3 * tolerance * largest;
        if is_solved && agree {
            return Ok(self);
        }
        Err(format!("its solution differs from ours, whose largest value is {largest:e}: {self:?}"))
    }

    /// Adds the times of a further round.
    pub fn join(&mut self, other: &Self) {
        self.seconds_setup.extend_from_slice(&other.seconds_setup);
        self.seconds_solve.extend_from_slice(&other.seconds_solve);
    }

    /// Returns the times of the set-ups.
    pub fn setup(&self) -> Samples {
        Samples::from(self.seconds_setup.clone())
    }

    /// Returns the times of the solves.
    pub fn solve(&self) -> Samples {
        Samples::from(self.seconds_solve.clone())
    }

    /// Returns records of set-up and solve, named by `problem`.
    pub fn records(&self, cpu: &Cpu, problem: impl Fn(&str) -> String) -> Vec<Record> {
        let parts = [("set-up", self.setup()), ("solve", self.solve())];
        let record = |(part, samples): (&str, Samples)| {
            let mut record =
                Record::of_peer(&format!("{}, deal.II", problem(part)), cpu, &self.library, &samples);
            record.set("n_dofs", self.n_dofs);
            record.set("lanes", self.lanes);
            record.set("ranks", cpu.threads());
            record.set("iterations", self.iterations);
            record.set("mdof_per_s", 1e-6 * self.n_dofs as f64 / record.seconds_min);
            record
        };
        parts.into_iter().map(record).collect()
    }
}
