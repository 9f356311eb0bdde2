//! The closed form.

use super::{HaloGraph, Iteration, Machine, Reduction, Step, Work};

/// The rank of a graph that has most to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busiest {
    /// Ranks of the graph.
    pub n_ranks: usize,
    /// The most unknowns of a rank.
    pub owned: f64,
    /// The most cells of a rank, over those of an even share.
    pub cells: f64,
    /// The most messages that a rank sends in an exchange.
    pub messages: f64,
    /// The most values that a rank sends in an exchange.
    pub values: f64,
}

impl Busiest {
    /// Takes the largest counts of a graph.
    pub fn of(graph: &HaloGraph) -> Self {
        let n_ranks = graph.n_ranks();
        let largest = |of_rank: &dyn Fn(usize) -> f64| (0..n_ranks).map(of_rank).fold(0.0, f64::max);
        Self {
            n_ranks,
            owned: largest(&|rank| graph.owned()[rank]),
            cells: largest(&|rank| graph.cells()[rank]),
            messages: largest(&|rank| graph.exports(rank).count() as f64),
            values: largest(&|rank| graph.exports(rank).map(|(_, values)| values).sum()),
        }
    }
}

/// Returns the seconds of an iteration of the busiest rank, in closed form.
///
/// $$ T = \frac{V}{B} + m\, o + \max(\text{work meanwhile},\ \alpha + \beta S) + \lceil \log_2 P \rceil (\alpha + o) $$
///
/// with V bytes of work at B bytes a second, S bytes sent in m messages of o seconds each, and a term of each kind for each
/// step.
pub fn estimate(machine: &Machine, busiest: &Busiest, iteration: &Iteration) -> f64 {
    let n_ranks = busiest.n_ranks;
    let several = if n_ranks > 1 { 1.0 } else { 0.0 };
    let link = machine.widest_link(n_ranks);
    let bandwidth = machine.bytes_per_second(n_ranks);
    let work = |work: &Work| {
        let cells = if work.is_by_cell { busiest.cells } else { 1.0 };
        let unknowns = iteration.levels[work.level].unknowns(busiest.owned);
        work.bytes * unknowns * cells / bandwidth + work.launches * machine.launch
    };
    let mut seconds = 0.0;
    // When the sum begun is there.
    let mut sum_end: f64 = 0.0;
    for step in &iteration.steps {
        match step {
            Step::Work(of_step) => seconds += work(of_step),
            Step::Whole { bytes, launches } => seconds += bytes / bandwidth + launches * machine.launch,
            Step::Exchange { level, bytes, meanwhile } => {
                let level = iteration.levels[*level];
                let mean = busiest.values / busiest.messages.max(1.0);
                let transfer = bytes * busiest.messages * level.values(mean) * link.seconds_per_byte;
                let sends = machine.send * busiest.messages;
                let arrival = if busiest.messages > 0.0 { transfer.max(sends) + link.latency } else { 0.0 };
                seconds += several * machine.call + arrival.max(sends + work(meanwhile));
            }
            Step::Sum { bytes } => seconds += several * machine.call + sum(machine, n_ranks, *bytes),
            Step::BeginSum { bytes } => sum_end = seconds + sum(machine, n_ranks, *bytes),
            Step::EndSum => seconds = seconds.max(sum_end),
            Step::Gather { bytes } => {
                seconds +=
                    several * machine.call + sum(machine, n_ranks, 0.0) + bytes * link.seconds_per_byte;
            }
        }
    }
    seconds / iteration.n_iterations
}

/// The seconds of a sum over ranks.
fn sum(machine: &Machine, n_ranks: usize, bytes: f64) -> f64 {
    if machine.reduction == Reduction::Flat {
        return (n_ranks - 1) as f64 * machine.send;
    }
    let round = |rank: usize| {
        let link = machine.link(0, rank);
        machine.send + link.latency + bytes * link.seconds_per_byte
    };
    let power = 1 << n_ranks.ilog2();
    let rounds: f64 = (0..n_ranks.ilog2()).map(|bit| round(1 << bit)).sum();
    rounds + if power < n_ranks { 2.0 * round(power) } else { 0.0 }
}

/// Returns the latency between nodes above which an iteration of `one` is faster than one of `other`, by the closed form;
/// none where it never is below a second.
pub fn crossover(machine: &Machine, busiest: &Busiest, one: &Iteration, other: &Iteration) -> Option<f64> {
    let is_faster = |latency: f64| {
        let mut machine = machine.clone();
        machine.between.latency = latency;
        estimate(&machine, busiest, one) < estimate(&machine, busiest, other)
    };
    let (mut low, mut high) = (1e-9, 1.0);
    if !is_faster(high) {
        return None;
    }
    if is_faster(low) {
        return Some(0.0);
    }
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if is_faster(middle) { high = middle } else { low = middle }
    }
    Some(high)
}
