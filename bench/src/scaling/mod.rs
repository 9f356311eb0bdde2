//! A model of the time of an iteration on 1 to 131,072 ranks, in closed form for the rank that has most to do.
//!
//! $$ T = \frac{V}{B} + m\, o + \max(\text{work meanwhile},\ \alpha + \beta S) + \lceil \log_2 P \rceil (\alpha + o) $$
//!
//! with V bytes of work at B bytes a second, S bytes sent in m messages of o seconds each, and a term of each kind for
//! each step of a method. `bench/results/scaling-model.json` has the times of a simulation with a clock for each rank,
//! which a test compares. The page is docs/scaling.md.

mod method;

pub use method::Method;

/// The cost of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Link {
    /// Seconds from the last byte sent to its arrival.
    latency: f64,
    /// Reciprocal of the bandwidth of a rank while all ranks of its node send.
    seconds_per_byte: f64,
}

/// Nodes of 16 cores of a Xeon with AVX-512 and a network between them.
///
/// Bandwidths are the medians of `bench/results/threads-xeon-avx512-16-cores.json`. Messages within a node are those of
/// docs/ranks.md: 1 µs for a sum of two ranks, 6 µs for 8 KB. The network is assumed, typical of InfiniBand at 200 Gbit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    between: Link,
}

/// Ranks of a node, which share its memory and its network.
pub const RANKS_PER_NODE: usize = 16;
/// Numbers of ranks of a node, with the bytes a second that they reach together.
const BANDWIDTH: [(usize, f64); 5] =
    [(1, 15.95e9), (2, 30.3e9), (4, 54.0e9), (8, 103.9e9), (RANKS_PER_NODE, 135.7e9)];
/// Seconds to send or receive a message, during which the rank does nothing else.
const SEND: f64 = 0.3e-6;
/// Messages within a node.
const INSIDE: Link = Link { latency: 0.7e-6, seconds_per_byte: 5e-6 / 8192.0 };

impl Default for Cluster {
    /// 1.5 µs and 25 GB/s a node.
    fn default() -> Self {
        Self::with_latency(1.5e-6)
    }
}

impl Cluster {
    /// Returns the cluster with another latency between nodes, in seconds.
    pub fn with_latency(latency: f64) -> Self {
        Self { between: Link { latency, seconds_per_byte: RANKS_PER_NODE as f64 / 25e9 } }
    }

    /// Returns the bytes a second of each rank if `n_ranks`, a power of two up to those of a node or more, are in use.
    pub fn bytes_per_second(n_ranks: usize) -> f64 {
        let known = BANDWIDTH.iter().rev().find(|(ranks, _)| *ranks <= n_ranks).unwrap_or(&BANDWIDTH[0]);
        known.1 / known.0 as f64
    }

    /// Returns the link that messages of a rank take to another one `distance` ranks away.
    fn link(&self, distance: usize) -> Link {
        if distance < RANKS_PER_NODE { INSIDE } else { self.between }
    }

    /// Returns the seconds of a sum over ranks by recursive doubling.
    fn sum(&self, n_ranks: usize, bytes: f64) -> f64 {
        let round = |distance: usize| {
            let link = self.link(distance);
            SEND + link.latency + bytes * link.seconds_per_byte
        };
        let rounds: f64 = (0..n_ranks.ilog2()).map(|bit| round(1 << bit)).sum();
        // Ranks beyond a power of two hand their values to another one first.
        rounds + if n_ranks.is_power_of_two() { 0.0 } else { 2.0 * round(1 << n_ranks.ilog2()) }
    }
}

/// The part of the rank that has most to do.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    n_ranks: usize,
    /// Its unknowns.
    owned: f64,
    /// Messages of an exchange, and their values together.
    messages: f64,
    values: f64,
}

impl Part {
    /// A box of `n` unknowns divided into boxes.
    fn of_boxes(n: f64, n_ranks: usize) -> Self {
        let owned = n / n_ranks as f64;
        let side = owned.cbrt();
        // Neighbours along each axis.
        let around = near_cube(n_ranks).map(|ranks| ranks.min(3) as f64 - 1.0);
        let messages = around.map(|around| 1.0 + around).iter().product::<f64>() - 1.0;
        let values = around.map(|around| side + around).iter().product::<f64>() - owned;
        Self { n_ranks, owned, messages, values }
    }

    /// A cube of `n` unknowns of elements of some degree divided into layers of cells.
    fn of_layers(n: f64, degree: f64, n_ranks: usize) -> Self {
        // The lower of two ranks imports whole cells, the higher one faces.
        let per_plane = [0.0, 0.0, degree, degree + 1.0][n_ranks.min(3)];
        let messages = n_ranks.min(3) as f64 - 1.0;
        Self { n_ranks, owned: n / n_ranks as f64, messages, values: per_plane * n.powf(2.0 / 3.0) }
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

/// The time of the busiest rank.
#[derive(Debug, Clone, Copy)]
struct Clock<'a> {
    cluster: &'a Cluster,
    part: Part,
    seconds: f64,
    /// Bytes moved so far.
    bytes: f64,
}

impl Clock<'_> {
    /// Moves `bytes`.
    fn work(&mut self, bytes: f64) {
        self.bytes += bytes;
        self.seconds += bytes / Cluster::bytes_per_second(self.part.n_ranks);
    }

    /// Exchanges ghosts of a level with `share` of the unknowns, `size` bytes a value, while the rank moves `meanwhile` bytes.
    fn exchange(&mut self, share: f64, size: f64, meanwhile: f64) {
        let Part { n_ranks, messages, values, .. } = self.part;
        let begun = self.seconds;
        self.seconds += SEND * messages;
        self.work(meanwhile);
        if n_ranks > 1 {
            let link = self.cluster.link(if n_ranks > RANKS_PER_NODE { n_ranks } else { 1 });
            let of_message = (values / messages * share.powf(2.0 / 3.0)).max(1.0);
            let transfer = size * messages * of_message * link.seconds_per_byte;
            self.seconds = self.seconds.max(begun + transfer.max(SEND * messages) + link.latency);
        }
    }

    /// Returns when a sum of `n` values that begins now is there.
    fn end_of_sum(&self, n: f64) -> f64 {
        self.seconds + self.cluster.sum(self.part.n_ranks, 8.0 * n)
    }

    fn sum(&mut self, n: f64) {
        self.seconds = self.end_of_sum(n);
    }

    /// Gives every rank `n` values of 4 bytes, of all ranks together.
    fn gather(&mut self, n: f64) {
        let n_ranks = self.part.n_ranks;
        if n_ranks > 1 {
            let link = self.cluster.link(if n_ranks > RANKS_PER_NODE { n_ranks } else { 1 });
            self.seconds += self.cluster.sum(n_ranks, 0.0) + 4.0 * n * link.seconds_per_byte;
        }
    }
}

/// The time of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Seconds.
    pub seconds: f64,
    /// Bytes that the busiest rank moves.
    pub bytes: f64,
}

/// Returns the latency between nodes above which an iteration of `one` is faster than one of `other`; none if it never is
/// below a second.
pub fn crossover(one: Method, other: Method, n: f64, n_ranks: usize) -> Option<f64> {
    let is_faster = |latency: f64| {
        let cluster = Cluster::with_latency(latency);
        let seconds = |method: Method| method.predict(&cluster, n, n_ranks).map(|found| found.seconds);
        seconds(one) < seconds(other)
    };
    let (mut low, mut high) = (1e-9, 1.0);
    if !is_faster(high) {
        return None;
    }
    if is_faster(low) {
        return Some(0.0);
    }
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        if is_faster(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const RECORDED: &str = include_str!("../../results/scaling-model.json");

    /// The closed form has the times of the recorded simulation. Up to 2,048 ranks its parts are those of a partition by
    /// bisection, the largest of which has up to 11 % more than an even share.
    #[test]
    fn predictions_are_those_of_the_recorded_simulation() {
        let records: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
        let mut n_compared = 0;
        for record in records {
            let of = |name: &str| record["parameters"][name].as_f64();
            let name = record["parameters"]["method"].as_str().unwrap_or_default();
            let Some(method) = Method::ALL.into_iter().find(|method| method.name() == name) else { continue };
            let n_ranks = of("n_ranks").unwrap() as usize;
            let found = method.predict(&Cluster::default(), of("unknowns").unwrap(), n_ranks).unwrap();
            let ratio = found.seconds / record["seconds_min"].as_f64().unwrap();
            let least = if record["parameters"]["has_partition"] == true { 0.89 } else { 0.98 };
            assert!(
                (least..1.02).contains(&ratio),
                "{name}, {n_ranks} ranks, {}: {ratio}",
                record["problem"]
            );
            n_compared += 1;
        }
        assert_eq!(n_compared, 4 * 38 + 16);
    }

    #[test]
    fn sums_take_a_round_for_each_doubling() {
        let cluster = Cluster::default();
        let (inside, between) = (SEND + INSIDE.latency, SEND + cluster.between.latency);
        for (n_ranks, seconds) in
            [(1, 0.0), (2, inside), (16, 4.0 * inside), (1024, 4.0 * inside + 6.0 * between)]
        {
            assert!((cluster.sum(n_ranks, 0.0) - seconds).abs() < 1e-12, "{n_ranks} ranks");
        }
        assert!((cluster.sum(20, 0.0) - 4.0 * inside - 2.0 * between).abs() < 1e-12);
    }

    #[test]
    fn a_rank_within_a_box_of_boxes_has_26_neighbours() {
        for (n_ranks, messages) in [(1, 0.0), (2, 1.0), (8, 7.0), (27, 26.0), (131_072, 26.0)] {
            assert_eq!(Part::of_boxes(1e9, n_ranks).messages, messages);
        }
        // 10 unknowns along a side: six faces, twelve edges and eight corners.
        assert!((Part::of_boxes(27e3, 27).values - 728.0).abs() < 1e-6);
    }

    #[test]
    fn one_rank_waits_for_nothing() {
        for method in Method::ALL {
            let found = method.predict(&Cluster::default(), 1e6, 1).unwrap();
            assert!(
                (found.seconds * Cluster::bytes_per_second(1) / found.bytes - 1.0).abs() < 1e-9,
                "{method:?}"
            );
        }
    }
}
