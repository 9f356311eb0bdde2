//! Time of an iteration from 1 to 131,072 ranks by the model of [`crate::scaling`], and that model beside recorded runs.
//!
//! Nothing is timed: `seconds` are those of the simulation, the bound is the closed form, or the measured time of a recorded
//! run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::scaling::recorded::{Comparison, Role, comparisons, of_box};
use crate::scaling::{
    Busiest, HaloGraph, Iteration, Machine, Method, Noise, Problem, Settings, crossover, estimate, simulate,
};
use crate::{BenchError, Options, Record};

/// Ranks above which the graph is that of a box of boxes.
const REAL_RANKS: usize = 2048;
/// Unknowns in all of strong scaling, and of a rank of weak scaling.
const STRONG: usize = 100_000_000;
const WEAK: usize = 1_000_000;
/// Mean delay of work, as a share of it, in the simulation with noise.
const NOISE: Noise = Noise { share: 0.01, seed: 1 };

const METHODS: [Method; 7] = [
    Method::MergedCg,
    Method::PipelinedCg,
    Method::PipelinedCgWaiting,
    Method::SStepCg(3),
    Method::Amg,
    Method::VertexPatches,
    Method::VertexPatchesOfBoxes,
];

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let (compared, n_outside) = comparisons()?;
    let mut records: Vec<Record> = compared.iter().map(of_comparison).collect();
    if n_outside > 0 {
        crate::skipped(format_args!(
            "{n_outside} records of one rank on a processor that the model has no bandwidth of"
        ));
    }
    let machine = Machine::cluster();
    for is_weak in [false, true] {
        let mut n_ranks: Vec<usize> = (0..=17).map(|doubling| 1 << doubling).collect();
        n_ranks.insert(17, 100_000);
        for n_ranks in n_ranks {
            let total = options.unknowns.unwrap_or(STRONG) as f64;
            let n = if is_weak { (WEAK * n_ranks) as f64 } else { total };
            records.extend(of_ranks(&machine, is_weak, n, n_ranks)?);
        }
    }
    Ok(records)
}

/// Ways to divide the cells, with the problem of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Division {
    /// Tetrahedra, of most methods.
    Tetrahedra,
    /// Hexahedra of degree 3 by layers.
    Layers,
    /// Hexahedra of degree 3.
    Hexahedra,
}

impl Division {
    fn of(method: Method) -> Self {
        match method {
            Method::VertexPatches => Self::Layers,
            Method::VertexPatchesOfBoxes => Self::Hexahedra,
            _ => Self::Tetrahedra,
        }
    }

    fn problem(self) -> Problem {
        if self == Self::Tetrahedra { Problem::TETRAHEDRA } else { Problem::hexahedra(3) }
    }

    /// Returns whether each rank has a part.
    fn is_possible(self, n: f64, n_ranks: usize) -> bool {
        self != Self::Layers || n.cbrt() / self.problem().degree as f64 >= n_ranks as f64
    }
}

fn graph_of(division: Division, n: f64, n_ranks: usize) -> Result<HaloGraph, BenchError> {
    let problem = &division.problem();
    match n_ranks {
        1 => Ok(HaloGraph::alone(n)),
        _ if division == Division::Layers => Ok(HaloGraph::of_layers(n_ranks, problem.degree, n)),
        2..=REAL_RANKS => {
            let side = (n.cbrt() / problem.degree as f64).ceil() as usize;
            of_box([side; 3], problem, n, n_ranks)
        }
        _ => Ok(HaloGraph::of_boxes(near_cube(n_ranks), problem.degree, n / n_ranks as f64)),
    }
}

/// The factors of a number that are closest to each other.
fn near_cube(n: usize) -> [usize; 3] {
    let below = |n: usize, root: f64| {
        (1..=root.round() as usize).rev().find(|side| n.is_multiple_of(*side)).unwrap_or(1)
    };
    let first = below(n, (n as f64).cbrt());
    let second = below(n / first, ((n / first) as f64).sqrt());
    [first, second, n / first / second]
}

fn of_ranks(machine: &Machine, is_weak: bool, n: f64, n_ranks: usize) -> Result<Vec<Record>, BenchError> {
    let mut graphs: BTreeMap<Division, (HaloGraph, Busiest)> = BTreeMap::new();
    let mut records = Vec::new();
    let scaling = if is_weak { "weak" } else { "strong" };
    for method in METHODS {
        let division = Division::of(method);
        if !division.is_possible(n, n_ranks) {
            continue;
        }
        let problem = division.problem();
        let (graph, busiest) = match graphs.entry(division) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(room) => {
                let graph = graph_of(division, n, n_ranks)?;
                let busiest = Busiest::of(&graph);
                room.insert((graph, busiest))
            }
        };
        let iteration = method.iteration(&problem, n, n_ranks);
        let predicted = simulate(machine, graph, &iteration, Settings::default());
        let noisy = Settings { noise: Some(NOISE), ..Settings::default() };
        let with_noise = simulate(machine, graph, &iteration, noisy).seconds;
        let closed_form = estimate(machine, busiest, &iteration);
        let name = format!("scaling, {scaling}: {}, {n_ranks} ranks", method.name());
        let bound = format!("closed form, {closed_form:.3e} s");
        let bytes = iteration.bytes(n, n_ranks);
        let mut record = predicted_record(name, machine, (predicted.seconds, bytes), (bound, closed_form));
        record.set("n_ranks", n_ranks);
        record.set("unknowns", n);
        record.set("method", method.name());
        record.set("scaling", scaling);
        record.set("seconds_with_noise", with_noise);
        record.set("messages", predicted.sent);
        let has_partition = (2..=REAL_RANKS).contains(&n_ranks) && division != Division::Layers;
        record.set("has_partition", has_partition);
        if let Some(latency) = latency_to_win(machine, busiest, (method, &iteration), n, n_ranks) {
            record.set("wins_from_latency", latency);
        }
        records.push(record);
    }
    Ok(records)
}

/// The latency between nodes from which a method of fewer waits is faster than merged conjugate gradients; none also for
/// other methods, and within a node.
fn latency_to_win(
    machine: &Machine,
    busiest: &Busiest,
    (method, iteration): (Method, &Iteration),
    n: f64,
    n_ranks: usize,
) -> Option<f64> {
    let has_fewer_waits =
        matches!(method, Method::PipelinedCg | Method::PipelinedCgWaiting | Method::SStepCg(_));
    if !has_fewer_waits || n_ranks <= machine.ranks_per_node {
        return None;
    }
    let merged = Method::MergedCg.iteration(&Problem::TETRAHEDRA, n, n_ranks);
    crossover(machine, busiest, iteration, &merged)
}

fn of_comparison(compared: &Comparison) -> Record {
    let name = format!("recorded: {}, {}", compared.problem, compared.ranks);
    let bound = format!("measured, {:.3e} s", compared.measured);
    let device = Machine { name: compared.machine, ..Machine::xeon() };
    let mut record = predicted_record(name, &device, (compared.simulated, 0.0), (bound, compared.measured));
    record.set("ranks", compared.ranks.clone());
    record.set("seconds_measured", compared.measured);
    record.set("seconds_closed_form", compared.closed_form);
    record.set("measured_over_predicted", compared.measured / compared.simulated);
    let (role, reason) = match compared.role {
        Role::Predicted => ("predicted", None),
        Role::Fitted => ("fitted", None),
        Role::Outside(reason) => ("not modelled", Some(reason)),
    };
    record.set("role", role);
    if let Some(reason) = reason {
        record.set("reason", reason);
    }
    record
}

/// A record of a prediction beside another time.
fn predicted_record(
    problem: String,
    machine: &Machine,
    (seconds, bytes): (f64, f64),
    (bound, beside): (String, f64),
) -> Record {
    Record {
        problem,
        device: machine.name.into(),
        precision: "f64".into(),
        parameters: BTreeMap::new(),
        seconds_median: seconds,
        seconds_min: seconds,
        bytes,
        flops: 0.0,
        gb_per_s: 1e-9 * bytes / seconds,
        gflop_per_s: 0.0,
        bound,
        fraction_of_bound: beside / seconds,
    }
}
