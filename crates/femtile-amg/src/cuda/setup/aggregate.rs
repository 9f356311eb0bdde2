use std::sync::Arc;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;

use super::evolution::{EVOLUTION_HEADER, Evolution};
use super::graph::Lists;
use super::{FEW_LANES, LANES, Numbers, Rows, THREADS, by_lanes, lanes_for};
use crate::Graph;
use crate::kernels::DeviceAggregates;
use crate::setup::graph::distance;
use crate::setup::independent_set::LEAST_FREE;

pub(super) static AGGREGATE: Program = Program {
    name: "amg_aggregate",
    source: include_str!("aggregate.cu"),
    headers: &[LANES, EVOLUTION_HEADER],
};
/// Rounds that are launched before the host checks whether nodes are undecided.
const ROUNDS: usize = 4;
/// The most rounds: priorities are pseudorandom, so the number of rounds grows with the logarithm of the number of nodes.
const MOST_ROUNDS: usize = 400;

type Strong<H> = (Write<u32>, Write<u32>, Write<u64>, Read<H>, Structure, Structure, H, H);
type Near<H> = (Write<u32>, Read<u32>, Read<H>, Structure, Structure, H);
type RootsStart = (Write<u64>, Read<u32>, Read<u32>, u64);
type Copy = (Write<u64>, Read<u64>, u64);
type Spread = (Write<u64>, Read<u64>, Read<u32>, Read<u32>, u64);
type Decide = (Write<u64>, Write<u32>, Read<u64>, Read<u32>, Read<u32>, u64);
type WalksStart = (Write<u64>, Read<u64>, Read<u32>, Read<u32>, u64);
type GapsOpen = (Write<u64>, Read<u64>, Read<u32>, Read<u32>, u32, u32, u64);
type Mark = (Write<u32>, Read<u64>, u64);
type PartsStart = (Write<u32>, Read<u64>, Read<u32>, Read<u32>, Read<u32>, u64);
type Join = (Write<u32>, Read<u32>, Read<u32>, Read<u32>, u64);
type Weigh = (Write<u32>, Read<u32>, Read<u32>, u64);
type Drop = (Write<u32>, Read<u32>, Read<u32>, u32, u64);
type Restore = (Write<u32>, Write<u32>, Read<u32>, u64);
type Number = (Write<u32>, Read<u32>, u64);

/// Two numbers for each node.
type Scratch = [Buffer<u64, Cuda>; 2];

/// The entries of a matrix that smooth prolongators, and the graph of its aggregates.
pub(super) struct Neighbours<'a> {
    /// As [`strong`].
    pub strong: Numbers,
    pub linked: Linked<'a>,
}

/// A graph whose nodes are grouped.
pub(crate) struct Linked<'a> {
    pub device: &'a Cuda,
    program: Specialisation,
    pub lists: Lists,
    pub n: usize,
    lanes: usize,
    /// Nodes with neighbours, if their number is known.
    pub(super) n_connected: Option<usize>,
}

/// Returns three arrays. For each entry of a matrix its column, or all bits if it does not smooth
/// prolongators. The number of connections of each row. The number of rows with connections, in a buffer with
/// room for one more number. In doubtful rows, the entries that evolution finds near count.
pub(crate) fn strong<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: &Buffer<H, Cuda>,
    evolution: Option<&Evolution<'_, H>>,
    thresholds: [f64; 2],
) -> Result<(Numbers, Numbers, Buffer<u64, Cuda>), LinalgError> {
    let (device, n, program) = (rows.device, rows.n(), by_lanes::<H>(&AGGREGATE, rows.lanes));
    let mut strong = Buffer::zeros(device, rows.a.n_nonzeros())?;
    let mut lengths = Buffer::zeros(device, n)?;
    let mut counts = Buffer::zeros(device, 2)?;
    let [of_graph, of_smoothing] = thresholds.map(|theta| H::from_f64(theta * theta));
    let (structure, evolution) = (rows.structure(), Evolution::structure(evolution));
    let made = (strong.write(), lengths.write(), counts.write(), diagonal.read());
    let arguments = (made.0, made.1, made.2, made.3, structure, evolution, of_graph, of_smoothing);
    let kernel = Kernel::<Strong<H>>::new("amg_strong");
    // SAFETY: the matrix is square, with a mark for each entry.
    unsafe { device.launch(&program, &kernel, Launch::over(n * rows.lanes, THREADS), arguments) }?;
    Ok((strong, lengths, counts))
}

impl<'a> Neighbours<'a> {
    /// As [`crate::setup::strength::Strength`].
    pub fn new<H: Scalar>(
        rows: &Rows<'a, H>,
        diagonal: &Buffer<H, Cuda>,
        evolution: Option<&Evolution<'_, H>>,
        thresholds: [f64; 2],
    ) -> Result<Self, LinalgError> {
        let (device, n) = (rows.device, rows.n());
        let (strong, lengths, mut counts) = strong(rows, diagonal, evolution, thresholds)?;
        let offsets = scan::starts(device, &lengths, &mut counts, 1)?;
        let counts: Vec<u64> = counts.to_host()?;
        let [n_connected, n_strong] = [counts[0] as usize, counts[1] as usize];
        let mut near = Buffer::zeros(device, n_strong)?;
        let of_graph = H::from_f64(thresholds[0] * thresholds[0]);
        let (structure, evolution) = (rows.structure(), Evolution::structure(evolution));
        let arguments = (near.write(), offsets.read(), diagonal.read(), structure, evolution, of_graph);
        let (program, kernel) = (by_lanes::<H>(&AGGREGATE, rows.lanes), Kernel::<Near<H>>::new("amg_near"));
        // SAFETY: offsets are running sums of the numbers of entries that are counted in the same way.
        unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
        Ok(Self { strong, linked: Linked::new::<H>(device, Lists { offsets, near }, Some(n_connected)) })
    }

    /// Uses a given graph; none if its offsets need 64 bits.
    pub fn on_graph<H: Scalar>(
        rows: &Rows<'a, H>,
        diagonal: &Buffer<H, Cuda>,
        thresholds: [f64; 2],
        graph: &Graph,
    ) -> Result<Option<Self>, LinalgError> {
        let Some(lists) = Lists::of_graph(rows, graph)? else { return Ok(None) };
        let (strong, ..) = strong(rows, diagonal, None, thresholds)?;
        Ok(Some(Self { strong, linked: Linked::new::<H>(rows.device, lists, None) }))
    }
}

impl<'a> Linked<'a> {
    /// With the number of nodes that have neighbours, if it is known.
    pub fn new<H: Scalar>(device: &'a Cuda, lists: Lists, n_connected: Option<usize>) -> Self {
        let n = lists.offsets.len() - 1;
        let lanes = lanes_for(lists.near.len(), n);
        Self { device, program: by_lanes::<H>(&AGGREGATE, lanes), lists, n, lanes, n_connected }
    }

    /// The graph on the host.
    pub fn to_host(&self) -> Result<Graph, LinalgError> {
        let offsets = self.lists.offsets.to_host()?.into_iter().map(|offset| offset as usize).collect();
        Ok(Graph { offsets, neighbours: self.lists.near.to_host()? })
    }

    fn by_rows(&self) -> Launch {
        Launch::over(self.n * self.lanes, THREADS)
    }

    fn by_nodes(&self) -> Launch {
        Launch::over(self.n, THREADS)
    }

    /// Distance of roots, in connections, that [`crate::setup::aggregate`] uses on a level.
    fn distance(&self) -> usize {
        distance(self.lists.near.len(), self.n)
    }

    /// Groups of the nodes around roots, with further ones in gaps, as [`crate::setup::aggregate::aggregate`] makes them with
    /// `Visit::Filling`; groups of fewer than `least` nodes are dissolved.
    pub fn aggregates(&self, least: u32) -> Result<DeviceAggregates<Cuda>, LinalgError> {
        let (k, mut scratch) = (self.distance(), self.scratch()?);
        let mut standing = self.start()?;
        self.decide(k, &mut standing, &mut scratch)?;
        self.open_gaps(k, &mut standing, &mut scratch)?;
        self.decide(k - 1, &mut standing, &mut scratch)?;
        self.grouped(&standing, k, least, None)
    }

    /// Groups of the nodes around roots that are more than `k` connections apart, as [`crate::setup::aggregate::aggregate`]
    /// makes them in rounds; groups below the weight `least` are dissolved.
    pub fn parts(
        &self,
        k: usize,
        least: u32,
        weights: &Numbers,
    ) -> Result<DeviceAggregates<Cuda>, LinalgError> {
        let mut standing = self.start()?;
        self.decide(k, &mut standing, &mut self.scratch()?)?;
        self.grouped(&standing, k, least, Some(weights))
    }

    /// Groups nodes around roots; each node is within `k` connections of one.
    fn grouped(
        &self,
        standing: &Buffer<u64, Cuda>,
        k: usize,
        least: u32,
        weights: Option<&Numbers>,
    ) -> Result<DeviceAggregates<Cuda>, LinalgError> {
        let (n, mut of_node) = self.around(standing)?;
        for _ in 1..=k {
            of_node = self.join(&of_node)?;
        }
        self.without_small(DeviceAggregates { n, of_node: Arc::new(of_node), order: None }, least, k, weights)
    }

    /// Two numbers for each node.
    fn scratch(&self) -> Result<Scratch, LinalgError> {
        Ok([Buffer::zeros(self.device, self.n)?, Buffer::zeros(self.device, self.n)?])
    }

    /// The state of each node before there are roots.
    fn start(&self) -> Result<Buffer<u64, Cuda>, LinalgError> {
        let mut standing = Buffer::zeros(self.device, self.n)?;
        let arguments = (standing.write(), self.lists.offsets.read(), self.lists.near.read(), self.n as u64);
        let kernel = Kernel::<RootsStart>::new("amg_roots_start");
        // SAFETY: each node has a standing; strong neighbours are nodes.
        unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
        Ok(standing)
    }

    /// Adds roots until the set is complete: each open node becomes a root, or is within `k` connections of one.
    fn decide(
        &self,
        k: usize,
        standing: &mut Buffer<u64, Cuda>,
        seen: &mut Scratch,
    ) -> Result<(), LinalgError> {
        let n = self.n as u64;
        for _ in 0..MOST_ROUNDS / ROUNDS {
            let mut n_open = Buffer::zeros(self.device, ROUNDS)?;
            for round in 0..ROUNDS {
                if k == 1 {
                    let kernel = Kernel::<Copy>::new("amg_roots_copy");
                    let arguments = (seen[1].write(), standing.read(), n);
                    // SAFETY: both have an entry for each node.
                    unsafe { self.device.launch(&self.program, &kernel, self.by_nodes(), arguments) }?;
                }
                for step in 1..k {
                    let [to, last] = &mut *seen;
                    let from = if step == 1 { standing.read() } else { last.read() };
                    self.spread("amg_roots_spread", to, from)?;
                    seen.swap(0, 1);
                }
                let open = Write::from(&mut n_open, round);
                let (offsets, near) = (self.lists.offsets.read(), self.lists.near.read());
                let arguments = (standing.write(), open, seen[1].read(), offsets, near, n);
                let kernel = Kernel::<Decide>::new("amg_roots_decide");
                // SAFETY: as above; each round has a number of open nodes.
                unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
            }
            if n_open.to_host()?[ROUNDS - 1] == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Opens nodes in gaps between roots, as `gaps` of [`crate::setup::independent_set`].
    fn open_gaps(
        &self,
        k: usize,
        standing: &mut Buffer<u64, Cuda>,
        walks: &mut Scratch,
    ) -> Result<(), LinalgError> {
        let (offsets, near, n) = (self.lists.offsets.read(), self.lists.near.read(), self.n as u64);
        let kernel = Kernel::<WalksStart>::new("amg_walks_start");
        let arguments = (walks[1].write(), standing.read(), offsets, near, n);
        // SAFETY: each node has a standing and a number; strong neighbours are nodes.
        unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
        for _ in 2..k {
            let [to, last] = &mut *walks;
            self.spread("amg_walks_spread", to, last.read())?;
            walks.swap(0, 1);
        }
        let [share, of] = LEAST_FREE;
        let arguments = (standing.write(), walks[1].read(), offsets, near, share, of, n);
        let kernel = Kernel::<GapsOpen>::new("amg_gaps_open");
        // SAFETY: as above.
        unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
        Ok(())
    }

    /// Launches a kernel that gives each node a number from those of its neighbours.
    fn spread(
        &self,
        name: &'static str,
        to: &mut Buffer<u64, Cuda>,
        from: Read<u64>,
    ) -> Result<(), LinalgError> {
        let (offsets, near) = (self.lists.offsets.read(), self.lists.near.read());
        let arguments = (to.write(), from, offsets, near, self.n as u64);
        let kernel = Kernel::<Spread>::new(name);
        // SAFETY: each node has a number in both; strong neighbours are nodes.
        unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
        Ok(())
    }

    /// Roots with their neighbours: how many there are, and the root of each node.
    fn around(&self, standing: &Buffer<u64, Cuda>) -> Result<(usize, Numbers), LinalgError> {
        let mut is_root = Buffer::zeros(self.device, self.n)?;
        let arguments = (is_root.write(), standing.read(), self.n as u64);
        let kernel = Kernel::<Mark>::new("amg_roots_mark");
        // SAFETY: both have an entry for each node.
        unsafe { self.device.launch(&self.program, &kernel, self.by_nodes(), arguments) }?;
        let (numbers, n) = self.numbered(&is_root)?;
        let mut of_node = Buffer::zeros(self.device, self.n)?;
        let (offsets, near) = (self.lists.offsets.read(), self.lists.near.read());
        let arguments = (of_node.write(), standing.read(), numbers.read(), offsets, near, self.n as u64);
        let kernel = Kernel::<PartsStart>::new("amg_parts_start");
        // SAFETY: as above.
        unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
        Ok((n, of_node))
    }

    /// Numbers for those that are marked with 1, others with 0, and how many there are.
    fn numbered(&self, marks: &Numbers) -> Result<(Numbers, usize), LinalgError> {
        let mut total = Buffer::zeros(self.device, 1)?;
        let numbers = scan::starts(self.device, marks, &mut total, 0)?;
        Ok((numbers, total.to_host()?[0] as usize))
    }

    fn join(&self, before: &Numbers) -> Result<Numbers, LinalgError> {
        let mut after = Buffer::zeros(self.device, self.n)?;
        let arguments =
            (after.write(), before.read(), self.lists.offsets.read(), self.lists.near.read(), self.n as u64);
        let kernel = Kernel::<Join>::new("amg_parts_join");
        // SAFETY: both have an entry for each node.
        unsafe { self.device.launch(&self.program, &kernel, self.by_rows(), arguments) }?;
        Ok(after)
    }

    /// Dissolves parts of fewer than `least` nodes, or half of the average, into others.
    fn without_small(
        &self,
        parts: DeviceAggregates<Cuda>,
        least: u32,
        k: usize,
        weights: Option<&Numbers>,
    ) -> Result<DeviceAggregates<Cuda>, LinalgError> {
        let n = self.n as u64;
        let sizes = weigh(&parts, weights)?;
        let held = match (weights, self.n_connected) {
            (None, Some(n_connected)) => n_connected as u32,
            _ => sizes.to_host()?.into_iter().sum(),
        };
        let least = least.min(held / parts.n.max(1) as u32 / 2);
        let mut of_node = Buffer::zeros(self.device, self.n)?;
        let arguments = (of_node.write(), parts.of_node.read(), sizes.read(), least, n);
        let kernel = Kernel::<Drop>::new("amg_parts_drop");
        // SAFETY: each node has an entry, each part a size.
        unsafe { self.device.launch(&self.program, &kernel, self.by_nodes(), arguments) }?;
        for _ in 0..=k {
            of_node = self.join(&of_node)?;
        }
        let mut is_kept = Buffer::zeros(self.device, parts.n)?;
        let arguments = (of_node.write(), is_kept.write(), parts.of_node.read(), n);
        let kernel = Kernel::<Restore>::new("amg_parts_restore");
        // SAFETY: as above.
        unsafe { self.device.launch(&self.program, &kernel, self.by_nodes(), arguments) }?;
        let (numbers, n_kept) = self.numbered(&is_kept)?;
        let arguments = (of_node.write(), numbers.read(), n);
        let kernel = Kernel::<Number>::new("amg_parts_number");
        // SAFETY: as above.
        unsafe { self.device.launch(&self.program, &kernel, self.by_nodes(), arguments) }?;
        Ok(DeviceAggregates { n: n_kept, of_node: Arc::new(of_node), order: None })
    }
}

/// Returns the weight of each part: the sum of the weights of its nodes, by default one each.
pub(crate) fn weigh(
    parts: &DeviceAggregates<Cuda>,
    weights: Option<&Numbers>,
) -> Result<Numbers, LinalgError> {
    let (device, n) = (parts.of_node.device(), parts.of_node.len());
    let mut sums = Buffer::zeros(device, parts.n)?;
    let weights = weights.map_or(Read::none(), Buffer::read);
    let arguments = (sums.write(), parts.of_node.read(), weights, n as u64);
    let (program, kernel) = (by_lanes::<f32>(&AGGREGATE, FEW_LANES), Kernel::<Weigh>::new("amg_parts_weigh"));
    // SAFETY: each node has an entry, each part a sum.
    unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
    Ok(sums)
}
