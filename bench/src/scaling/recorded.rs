//! The model beside the runs of `bench/results/ranks-*.json`.

use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::mesh::partition::Partitioner;
use serde::Deserialize;
use serde_json::Value;

use super::{Busiest, HaloGraph, Machine, Method, Problem, Settings, estimate, simulate};
use crate::BenchError;

const XEON: &str = include_str!("../../results/ranks-xeon-avx512-16-cores.json");
const H100: &str = include_str!("../../results/ranks-h100-4-gpus.json");

/// Cubes along the longest side of the meshes whose partitions are taken: finer ones differ in size alone.
const MOST_CUBES: usize = 24;

/// These take 2 to 19 times as long as the same solve on two GPUs, which came later.
const FIRST: &str = "a first solve, which seems to load its kernels";

/// The use of a recorded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its time is predicted.
    Predicted,
    /// One number was fitted to it, and perhaps to others.
    Fitted,
    /// Its time has parts that the model leaves out, which are named.
    Outside(&'static str),
}

/// A recorded run beside the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The problem of the record.
    pub problem: String,
    /// Ranks, threads or GPUs.
    pub ranks: String,
    /// Name of the machine.
    pub machine: &'static str,
    /// Seconds of an iteration in the record.
    pub measured: f64,
    /// Seconds of an iteration by simulation.
    pub simulated: f64,
    /// Seconds of an iteration by the closed form.
    pub closed_form: f64,
    /// Use of the run: compared, fitted or left out.
    pub role: Role,
}

#[derive(Deserialize)]
struct Run {
    problem: String,
    parameters: std::collections::BTreeMap<String, Value>,
    seconds_min: f64,
}

impl Run {
    fn count(&self, name: &str) -> usize {
        self.parameters.get(name).and_then(Value::as_u64).unwrap_or(0) as usize
    }

    fn text(&self, name: &str) -> &str {
        self.parameters.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Runs of one problem and method.
struct Series {
    /// The problem of its records.
    name: &'static str,
    method: Method,
    problem: Problem,
    /// Cubes along the sides of the box of one rank.
    cubes: [usize; 3],
    /// Whether the box of several ranks is longer, first along x, then y, z and x again.
    grows: bool,
    /// Whether the run on one rank determines the work of an unknown; else it is counted.
    is_fitted: bool,
}

const fn series(name: &'static str, method: Method, problem: Problem, side: usize) -> Series {
    Series { name, method, problem, cubes: [side; 3], grows: false, is_fitted: true }
}

impl Series {
    const fn counted(self) -> Self {
        Self { is_fitted: false, ..self }
    }

    const fn growing(self) -> Self {
        Self { grows: true, ..self }
    }

    const fn of(self, cubes: [usize; 3]) -> Self {
        Self { cubes, ..self }
    }

    fn all() -> Vec<Self> {
        use Method::{Amg, Cg, MergedCg, Pmg};
        const TETS: Problem = Problem::TETRAHEDRA;
        const HEX: Problem = Problem::hexahedra(3);
        const HEX_3: Problem = Problem::hexahedra_on_gpus(3);
        const HEX_5: Problem = Problem::hexahedra_on_gpus(5);
        const SMALL: [usize; 3] = [20, 21, 22];
        const SMALL_HEX: [usize; 3] = [7, 8, 9];
        vec![
            series("ranks, strong: conjugate gradients, jacobi, degree 1", Cg, TETS, 100).counted(),
            series("ranks, strong: merged, jacobi, degree 1", MergedCg, TETS, 100).counted(),
            series("ranks, strong: amg, degree 1", Amg, TETS, 100),
            series("ranks, strong: merged, jacobi, degree 3", MergedCg, HEX, 40),
            series("ranks, strong: pmg, degree 3", Pmg, HEX, 40),
            series("ranks, weak: merged, jacobi, degree 3", MergedCg, HEX, 40).growing(),
            series("ranks, weak: pmg, degree 3", Pmg, HEX, 40).growing(),
            series("ranks on GPUs, strong: small cg jacobi", Cg, TETS, 0).of(SMALL).counted(),
            series("ranks on GPUs, strong: small merged-cg jacobi", MergedCg, TETS, 0).of(SMALL).counted(),
            series("ranks on GPUs, strong: small cg amg", Amg, TETS, 0).of(SMALL).counted(),
            series("ranks on GPUs, strong: small hex 3 merged-cg jacobi", MergedCg, HEX_3, 0)
                .of(SMALL_HEX)
                .counted(),
            series("ranks on GPUs, strong: small hex 3 cg pmg", Pmg, HEX_3, 0).of(SMALL_HEX).counted(),
            series("ranks on GPUs, strong: tets merged", MergedCg, TETS, 160).counted(),
            series("ranks on GPUs, strong: tets cg amg", Amg, TETS, 160),
            series("ranks on GPUs, strong: hex5 merged", MergedCg, HEX_5, 54),
            series("ranks on GPUs, strong: hex3 pmg", Pmg, HEX_3, 90),
            series("ranks on GPUs, weak: hex5 merged", MergedCg, HEX_5, 74).growing(),
            series("ranks on GPUs, weak: hex3 pmg", Pmg, HEX_3, 90).growing(),
            series("ranks on GPUs, weak: tets amg", Amg, TETS, 160).growing(),
        ]
    }

    /// The cubes of the box of `n_ranks` ranks.
    fn cubes(&self, n_ranks: usize) -> [usize; 3] {
        let mut cubes = self.cubes;
        if self.grows {
            (0..n_ranks.ilog2() as usize).for_each(|doubling| cubes[doubling % 3] *= 2);
        }
        cubes
    }

    fn unknowns(&self, n_ranks: usize) -> f64 {
        self.cubes(n_ranks).into_iter().map(|n| (n * self.problem.degree + 1) as f64).product()
    }

    /// Simulation and closed form for `n_ranks` ranks of a machine.
    fn predict(&self, machine: &Machine, scale: f64, n_ranks: usize) -> Result<[f64; 2], BenchError> {
        let n = self.unknowns(n_ranks);
        let problem = Problem { scale, ..self.problem };
        let iteration = self.method.iteration(&problem, n, n_ranks);
        let graph = match n_ranks {
            1 => HaloGraph::alone(n),
            _ => of_box(self.cubes(n_ranks), &problem, n, n_ranks)?,
        };
        let simulated = simulate(machine, &graph, &iteration, Settings::default()).seconds;
        Ok([simulated, estimate(machine, &Busiest::of(&graph), &iteration)])
    }

    /// The factor of all work with which the model of one rank has the measured time.
    fn scale(&self, machine: &Machine, measured: f64) -> Result<f64, BenchError> {
        let [one, _] = self.predict(machine, 1.0, 1)?;
        let [two, _] = self.predict(machine, 2.0, 1)?;
        Ok(1.0 + (measured - one) / (two - one))
    }
}

/// The graph of a box of cubes, as bisection divides it.
///
/// # Errors
/// [`BenchError::Mesh`].
pub fn of_box(cubes: [usize; 3], problem: &Problem, n: f64, n_ranks: usize) -> Result<HaloGraph, BenchError> {
    let longest = cubes.into_iter().max().unwrap_or(1).max(1);
    let most = MOST_CUBES.max((6.0 * (n_ranks as f64).cbrt()).round() as usize);
    let of_side = |n: usize| if longest > most { (n * most).div_ceil(longest) } else { n.max(1) };
    let split = if problem.is_assembled { BoxSplit::Kuhn } else { BoxSplit::Hexahedron };
    let upper = cubes.map(|n| n as f64);
    let mesh = box_mesh(&BoxConfig { cells: cubes.map(of_side), upper, split, ..BoxConfig::default() })?;
    let partition = Partitioner::Bisection.divide(&mesh, n_ranks);
    Ok(HaloGraph::of_partition(&mesh, &partition, problem.degree, n))
}

/// Returns every recorded run that the model describes beside its prediction, and the number of those on processors of another
/// machine without ranks, which it does not.
///
/// # Errors
/// [`BenchError::Mesh`]; [`BenchError::Setting`] where the records cannot be read.
pub fn comparisons() -> Result<(Vec<Comparison>, usize), BenchError> {
    let unreadable =
        |error: serde_json::Error| BenchError::Setting { field: "records", message: error.to_string() };
    let mut runs: Vec<Run> = serde_json::from_str(XEON).map_err(unreadable)?;
    runs.extend(serde_json::from_str::<Vec<Run>>(H100).map_err(unreadable)?);
    let mut all = Vec::new();
    let mut n_outside = 0;
    for series in Series::all() {
        let runs = || runs.iter().filter(|run| run.problem == series.name);
        let per_iteration = |run: &Run| run.seconds_min / run.count("iterations").max(1) as f64;
        let reference = runs().find(|run| configuration(run).is_some_and(|found| found.n == 1));
        let reference = reference.filter(|_| series.is_fitted);
        let scale = match reference {
            Some(run) => {
                let machine = configuration(run).map_or_else(Machine::xeon, |found| found.machine);
                series.scale(&machine, per_iteration(run))?
            }
            None => 1.0,
        };
        for run in runs() {
            let Some(Configuration { machine, n, ranks }) = configuration(run) else {
                n_outside += 1;
                continue;
            };
            let name = machine.name;
            let [simulated, closed_form] = series.predict(&machine, scale, n)?;
            let measured = per_iteration(run);
            let role = role(run, reference.is_some_and(|reference| std::ptr::eq(reference, run)));
            all.push(Comparison {
                problem: series.name.into(),
                ranks,
                machine: name,
                measured,
                simulated,
                closed_form,
                role,
            });
        }
    }
    Ok((all, n_outside))
}

/// Machine and ranks of a run.
struct Configuration {
    machine: Machine,
    n: usize,
    ranks: String,
}

/// None for the processor beside the GPUs, whose bandwidth is not recorded.
fn configuration(run: &Run) -> Option<Configuration> {
    let n = run.count("n");
    match (run.text("mode"), run.text("ranks")) {
        ("ranks", _) => Some(Configuration { machine: Machine::xeon(), n, ranks: format!("{n} ranks") }),
        // One rank that has the bandwidth of all its threads.
        ("threads", _) => {
            let machine = Machine::xeon();
            let together = n as f64 * machine.bytes_per_second(n);
            let machine = Machine { bandwidth: vec![(1, together)], ..machine };
            Some(Configuration { machine, n: 1, ranks: format!("1 rank, threads: {n}") })
        }
        (_, "2 on 1") => {
            Some(Configuration { machine: Machine::one_h100(), n: 2, ranks: "2 ranks on one GPU".into() })
        }
        (_, gpus) => {
            let n = gpus.parse().ok()?;
            Some(Configuration { machine: Machine::h100s(), n, ranks: format!("GPUs: {n}") })
        }
    }
}

fn role(run: &Run, is_reference: bool) -> Role {
    let (is_small, ranks) = (run.problem.contains("small"), run.text("ranks"));
    let fits_messages = run.problem.contains("small merged-cg") && matches!(ranks, "2" | "3" | "4");
    let fits_bandwidth = run.problem.contains("strong: tets merged") && ranks == "1";
    if is_reference || fits_messages || fits_bandwidth {
        return Role::Fitted;
    }
    match ranks {
        "1" if is_small && !run.problem.contains("small cg amg") => Role::Outside(FIRST),
        "2 on 1" if is_small && !run.problem.contains("small merged-cg") => Role::Outside(FIRST),
        _ => Role::Predicted,
    }
}
