//! An iteration run with a clock for each rank.

use super::{HaloGraph, Iteration, Machine, Reduction, Step, Work};

/// Random delays of work, as other programs on a node cause them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Mean delay over the time of the work; delays are distributed exponentially.
    pub share: f64,
    /// Chooses the sequence.
    pub seed: u64,
}

/// How long a simulation goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Rounds before time is taken.
    pub warm_up: usize,
    /// Rounds whose mean is taken.
    pub rounds: usize,
    /// Random delays.
    pub noise: Option<Noise>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { warm_up: 1, rounds: 2, noise: None }
    }
}

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Seconds of an iteration.
    pub seconds: f64,
    /// Messages sent by all ranks in an iteration.
    pub sent: f64,
}

/// Runs an iteration on all ranks of a graph; returns the mean time of some rounds.
///
/// Messages that a rank waits for are known beforehand, so events need no queue: a step is done for all ranks before the next one, in
/// which each has its own clock. A message leaves when its sender has reached it, one after another, and arrives after
/// latency and bytes; its receiver goes on once all of them are there. A sum that goes on in the background makes progress
/// without its rank.
///
/// # Cost
/// Rounds times steps times messages of an exchange.
pub fn simulate(
    machine: &Machine,
    graph: &HaloGraph,
    iteration: &Iteration,
    settings: Settings,
) -> Prediction {
    let mut ranks = Ranks::new(machine, graph, iteration, settings.noise);
    for _ in 0..settings.warm_up {
        ranks.run();
    }
    let (begun, sent) = (ranks.latest(), ranks.sent);
    for _ in 0..settings.rounds {
        ranks.run();
    }
    let n = settings.rounds as f64 * iteration.n_iterations;
    Prediction { seconds: (ranks.latest() - begun) / n, sent: (ranks.sent - sent) as f64 / n }
}

struct Ranks<'a> {
    machine: &'a Machine,
    graph: &'a HaloGraph,
    iteration: &'a Iteration,
    bytes_per_second: f64,
    noise: Option<(f64, Random)>,
    clocks: Vec<f64>,
    /// When a sum that was begun is there.
    sums: Vec<f64>,
    arrivals: Vec<f64>,
    sent: usize,
}

impl<'a> Ranks<'a> {
    fn new(
        machine: &'a Machine,
        graph: &'a HaloGraph,
        iteration: &'a Iteration,
        noise: Option<Noise>,
    ) -> Self {
        let n = graph.n_ranks();
        Self {
            machine,
            graph,
            iteration,
            bytes_per_second: machine.bytes_per_second(n),
            noise: noise.map(|noise| (noise.share, Random(noise.seed))),
            clocks: vec![0.0; n],
            sums: vec![0.0; n],
            arrivals: vec![0.0; n],
            sent: 0,
        }
    }

    fn latest(&self) -> f64 {
        self.clocks.iter().copied().fold(0.0, f64::max)
    }

    fn run(&mut self) {
        let iteration = self.iteration;
        for step in &iteration.steps {
            match *step {
                Step::Work(work) => self.work(&work),
                Step::Whole { bytes, launches } => {
                    let seconds = bytes / self.bytes_per_second + launches * self.machine.launch;
                    (0..self.clocks.len()).for_each(|rank| self.busy(rank, seconds));
                }
                Step::Exchange { level, bytes, meanwhile } => self.exchange(level, bytes, &meanwhile),
                Step::Sum { bytes } => {
                    self.call();
                    self.sum(bytes);
                }
                Step::BeginSum { bytes } => {
                    let clocks = self.clocks.clone();
                    self.sum(bytes);
                    self.sums = std::mem::replace(&mut self.clocks, clocks);
                }
                Step::EndSum => {
                    self.clocks.iter_mut().zip(&self.sums).for_each(|(clock, sum)| *clock = clock.max(*sum));
                }
                Step::Gather { bytes } => {
                    self.call();
                    self.sum(0.0);
                    let seconds = bytes * self.machine.widest_link(self.clocks.len()).seconds_per_byte;
                    self.clocks.iter_mut().for_each(|clock| *clock += seconds);
                }
            }
        }
    }

    fn busy(&mut self, rank: usize, seconds: f64) {
        let delay = self.noise.as_mut().map_or(0.0, |(share, random)| -*share * random.unit().ln());
        self.clocks[rank] += seconds * (1.0 + delay);
    }

    fn work(&mut self, work: &Work) {
        let level = self.iteration.levels[work.level];
        for rank in 0..self.clocks.len() {
            let cells = if work.is_by_cell { self.graph.cells()[rank] } else { 1.0 };
            let bytes = work.bytes * level.unknowns(self.graph.owned()[rank]) * cells;
            self.busy(rank, bytes / self.bytes_per_second + work.launches * self.machine.launch);
        }
    }

    /// The time of a call on each rank of several.
    fn call(&mut self) {
        if self.clocks.len() > 1 {
            self.clocks.iter_mut().for_each(|clock| *clock += self.machine.call);
        }
    }

    fn exchange(&mut self, level: usize, bytes: f64, meanwhile: &Work) {
        let (machine, graph, level) = (self.machine, self.graph, self.iteration.levels[level]);
        self.call();
        self.arrivals.fill(0.0);
        for rank in 0..self.clocks.len() {
            let mut wire = self.clocks[rank];
            for (to, values) in graph.exports(rank) {
                let link = machine.link(rank, to);
                self.clocks[rank] += machine.send;
                // A network sends one message of a rank after another.
                wire = wire.max(self.clocks[rank]) + bytes * level.values(values) * link.seconds_per_byte;
                self.arrivals[to] = self.arrivals[to].max(wire + link.latency);
                self.sent += 1;
            }
        }
        self.work(meanwhile);
        self.clocks.iter_mut().zip(&self.arrivals).for_each(|(clock, arrival)| *clock = clock.max(*arrival));
    }

    /// Each rank has the sum of the values of all.
    fn sum(&mut self, bytes: f64) {
        match self.machine.reduction {
            Reduction::Flat => {
                let n = self.clocks.len();
                let latest = self.latest() + (n - 1) as f64 * self.machine.send;
                self.clocks.fill(latest);
                self.sent += n * (n - 1);
            }
            Reduction::Doubling => self.double(bytes),
        }
    }

    fn double(&mut self, bytes: f64) {
        let n = self.clocks.len();
        let power = 1 << n.ilog2();
        for rank in power..n {
            self.message(rank, rank - power, bytes);
        }
        let mut distance = 1;
        while distance < power {
            for rank in (0..power).filter(|rank| rank & distance == 0) {
                let (one, other) = (self.clocks[rank], self.clocks[rank | distance]);
                let link = self.machine.link(rank, rank | distance);
                let both = one.max(other) + self.machine.send + link.latency + bytes * link.seconds_per_byte;
                (self.clocks[rank], self.clocks[rank | distance]) = (both, both);
                self.sent += 2;
            }
            distance *= 2;
        }
        for rank in power..n {
            self.message(rank - power, rank, bytes);
        }
    }

    /// A message that its receiver waits for.
    fn message(&mut self, from: usize, to: usize, bytes: f64) {
        let link = self.machine.link(from, to);
        self.clocks[from] += self.machine.send;
        let arrival = self.clocks[from] + link.latency + bytes * link.seconds_per_byte;
        self.clocks[to] = self.clocks[to].max(arrival);
        self.sent += 1;
    }
}

/// The SplitMix64 generator.
struct Random(u64);

impl Random {
    /// A number above 0 and up to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 2.0
    }
}
