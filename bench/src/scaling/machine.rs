//! Speeds of memories and networks.

/// The cost of a message: `latency` and `seconds_per_byte` for each byte of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Seconds from the last byte sent to its arrival.
    pub latency: f64,
    /// Reciprocal of the bandwidth of a rank while all ranks of its node send.
    pub seconds_per_byte: f64,
}

/// Ways to sum over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Recursive doubling, in which ranks beyond a power of two hand their values to another one first.
    Doubling,
    /// Each rank reads the values of all others, as GPUs that reach each other's memory do.
    Flat,
}

/// Processors and the network between them, as one rank sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The name in records.
    pub name: &'static str,
    /// Ranks of a node, which share its memory and its network.
    pub ranks_per_node: usize,
    /// Numbers of ranks of a node, increasing, with the bytes a second that they reach together.
    pub bandwidth: Vec<(usize, f64)>,
    /// Seconds to start a kernel.
    pub launch: f64,
    /// Seconds of an exchange or a sum over ranks that do not depend on the number of messages.
    pub call: f64,
    /// Seconds to send or receive a message, during which the rank does nothing else.
    pub send: f64,
    /// Messages within a node.
    pub inside: Link,
    /// Messages between nodes.
    pub between: Link,
    /// How sums over ranks are formed.
    pub reduction: Reduction,
}

/// The bandwidth of an H100 with HBM3, 0.87 of the nominal 3.35 TB/s: chosen so that the run of merged conjugate gradients for
/// tetrahedra on one GPU takes the counted bytes at it.
const H100_BYTES_PER_SECOND: f64 = 2.9e12;

impl Machine {
    /// 16 cores of a Xeon with AVX-512, whose ranks are threads.
    ///
    /// Bandwidths are the medians of `bench/results/threads-xeon-avx512-16-cores.json` for 1, 2, 4, 8 and 16 threads, which
    /// differ by 20 % and more from run to run. Latency and bandwidth of messages are those of docs/ranks.md: 1 µs for a sum
    /// of two ranks, 6 µs for 8 KB.
    pub fn xeon() -> Self {
        let link = Link { latency: 0.7e-6, seconds_per_byte: 5e-6 / 8192.0 };
        Self {
            name: "Xeon, 16 cores",
            ranks_per_node: 16,
            bandwidth: vec![(1, 15.95e9), (2, 30.3e9), (4, 54.0e9), (8, 103.9e9), (16, 135.7e9)],
            launch: 0.0,
            call: 0.0,
            send: 0.3e-6,
            inside: link,
            between: link,
            reduction: Reduction::Doubling,
        }
    }

    /// Four H100 of one machine, joined by NVLink.
    ///
    /// A launch takes 3.5 µs (`bench/results/cuda-h200.json`). `call` and `send` are fitted to the three runs of `small merged-cg`
    /// on 2, 3 and 4 GPUs in `bench/results/ranks-h100-4-gpus.json`, by least squares: 95 + 58 (P − 1) µs, of which 15
    /// launches are known, and the rest belongs to one exchange and one sum. The bandwidth of NVLink is the nominal one; the
    /// latency is part of what is fitted.
    pub fn h100s() -> Self {
        let link = Link { latency: 0.0, seconds_per_byte: 1.0 / 450e9 };
        Self {
            name: "4 H100, NVLink",
            ranks_per_node: 4,
            bandwidth: (1..=4).map(|n| (n, n as f64 * H100_BYTES_PER_SECOND)).collect(),
            launch: 3.5e-6,
            call: 21e-6,
            send: 29e-6,
            inside: link,
            between: link,
            reduction: Reduction::Flat,
        }
    }

    /// The same where all ranks share one of the GPUs.
    pub fn one_h100() -> Self {
        let bandwidth = vec![(1, H100_BYTES_PER_SECOND), (4, H100_BYTES_PER_SECOND)];
        Self { name: "one H100", bandwidth, ..Self::h100s() }
    }

    /// Nodes of 16 such cores and a network of 1.5 µs and 25 GB/s a node, typical of InfiniBand at 200 Gbit/s: assumed, not
    /// measured.
    pub fn cluster() -> Self {
        Self {
            name: "cluster of Xeons, 16 ranks a node (network assumed)",
            between: Link { latency: 1.5e-6, seconds_per_byte: 16.0 / 25e9 },
            ..Self::xeon()
        }
    }

    /// Returns the bytes a second of each rank where `n_ranks` are in use, between the known numbers of ranks by
    /// interpolation.
    pub fn bytes_per_second(&self, n_ranks: usize) -> f64 {
        let n = n_ranks.clamp(1, self.ranks_per_node);
        let above = self.bandwidth.iter().position(|(ranks, _)| *ranks >= n);
        let above = above.unwrap_or(self.bandwidth.len() - 1);
        let ((x1, y1), (x0, y0)) = (self.bandwidth[above], self.bandwidth[above.saturating_sub(1)]);
        if x1 <= n || x1 == x0 {
            return y1 / n as f64;
        }
        (y0 + (y1 - y0) * (n - x0) as f64 / (x1 - x0) as f64) / n as f64
    }

    /// Returns the link between two ranks, which are numbered from node to node.
    pub fn link(&self, one: usize, other: usize) -> Link {
        if one / self.ranks_per_node == other / self.ranks_per_node { self.inside } else { self.between }
    }

    /// Returns the link that most messages of `n_ranks` ranks take.
    pub fn widest_link(&self, n_ranks: usize) -> Link {
        if n_ranks <= self.ranks_per_node { self.inside } else { self.between }
    }
}
