//! The second of two partitions: aggregates are grouped to patches on the graph that they make.

use std::sync::Arc;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::{VectorKernels, scan};
use femtile_sparse::csr::{Csr, Offsets};

use crate::cuda::copy;
use crate::cuda::setup::aggregate::{Linked, weigh};
use crate::cuda::setup::graph::{Lists, gather};
use crate::cuda::setup::product::product;
use crate::cuda::setup::prolong::{sorted, transpose};
use crate::cuda::setup::{LANES, Numbers, Rows, THREADS, by_lanes};
use crate::kernels::DeviceAggregates;
use crate::patches::partition::{LEAST_ROWS, MOST_DISTANCE, MOST_ROWS, ROUNDS, in_order};
use crate::patches::{DoublePartition, PatchOrder, RowOrder};
use crate::setup::graph::{Aggregates, Graph};

pub(super) static PATCHES: Program =
    Program { name: "amg_patch_setup", source: include_str!("partition.cu"), headers: &[LANES] };
/// Rounds of exchange that are launched before the host checks whether any unit has moved.
const AT_ONCE: usize = 8;
/// Lanes of a unit.
pub(super) const UNIT: usize = 32;

type Alone = (Write<u32>, Read<u32>, u64);
type Units<H> = (Write<u32>, Write<u32>, Write<H>, Read<u32>, Read<u32>, u32, u64);
type Wish =
    (Write<u64>, Write<u32>, Write<u64>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, u32, u64);
type Offer = (Write<u64>, Read<u64>, Read<u64>, Read<u32>, Read<u32>, u64);
type Move = (Write<u32>, Write<u32>, Write<u32>, Read<u64>, Read<u64>, Read<u64>, Read<u32>, Read<u32>, u64);
type Place = (Write<u32>, Write<u32>, Read<u32>, Structure);

fn program<H: Scalar>() -> Specialisation {
    by_lanes::<H>(&PATCHES, UNIT)
}

/// Groups aggregates to patches, as [`Patches`](crate::patches::Patches) does with the same aggregates in
/// rounds. None if an aggregate has to be cut or a row of the graph of aggregates is too long.
pub(crate) fn order<H: Scalar>(
    graph: &Linked<'_>,
    parts: &DeviceAggregates<Cuda>,
) -> Result<Option<PatchOrder<Cuda>>, LinalgError> {
    let device = graph.device;
    let incidence = units::<H>(parts)?;
    let Some(members) = transpose(&incidence)? else { return Ok(None) };
    let Offsets::Narrow(offsets) = members.offsets() else { return Ok(None) };
    let ends = offsets.to_host()?;
    let weights: Vec<u32> = ends.windows(2).map(|ends| ends[1] - ends[0]).collect();
    if weights.iter().any(|&weight| weight > MOST_ROWS) {
        return Ok(None);
    }
    let Some(lists) = induced(graph, &incidence, &members)? else { return Ok(None) };
    let linked = Linked::new::<H>(device, lists, None);
    let on_device = Buffer::from_host(device, &weights)?;
    let around = around_roots(&linked, &on_device)?;
    let of_unit = exchanged(&linked, &on_device, &around)?;
    let grouped = Aggregates { n: around.n, of_node: of_unit.to_host()? };
    let is_heavy = grouped.weights(|unit| weights[unit]).iter().any(|&size| size > MOST_ROWS);
    let walked = if is_heavy { linked.to_host()? } else { Graph { offsets: vec![0], neighbours: vec![] } };
    let first_nodes = gather(members.columns(), offsets, weights.len())?.to_host()?;
    let (patches, starts) = in_order(&weights, |unit| first_nodes[unit as usize], &grouped, &walked);
    let (mut first, mut place) = (vec![0; weights.len()], 0);
    for unit in patches.into_iter().flatten() {
        first[unit as usize] = place;
        place += weights[unit as usize];
    }
    placed(&members, first, starts).map(Some)
}

/// A matrix with a one for each node in the column of its unit.
fn units<H: Scalar>(parts: &DeviceAggregates<Cuda>) -> Result<Csr<H, Cuda>, LinalgError> {
    let (device, n) = (parts.of_node.device(), parts.of_node.len());
    let mut marks = Buffer::zeros(device, n)?;
    let kernel = Kernel::<Alone>::new("amg_units_alone");
    let arguments = (marks.write(), parts.of_node.read(), n as u64);
    // SAFETY: each node has a mark.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n, THREADS), arguments) }?;
    let mut total = Buffer::zeros(device, 1)?;
    let numbers = scan::starts(device, &marks, &mut total, 0)?;
    let n_units = parts.n + total.to_host()?[0] as usize;
    let (mut unit, mut offsets) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n + 1)?);
    let mut ones = Buffer::zeros(device, n)?;
    let to = (unit.write(), offsets.write(), ones.write());
    let arguments = (to.0, to.1, to.2, parts.of_node.read(), numbers.read(), parts.n as u32, n as u64);
    let kernel = Kernel::<Units<H>>::new("amg_units");
    // SAFETY: each node has a part or a number, and there is an offset more.
    unsafe { device.launch(&program::<H>(), &kernel, Launch::over(n + 1, THREADS), arguments) }?;
    // SAFETY: each row has one entry, in the column of a unit.
    unsafe { Csr::from_kernels(n_units, offsets, unit, ones) }
}

/// The graph of units, which are neighbours if nodes of them are.
fn induced<H: Scalar>(
    graph: &Linked<'_>,
    incidence: &Csr<H, Cuda>,
    members: &Csr<H, Cuda>,
) -> Result<Option<Lists>, LinalgError> {
    let device = graph.device;
    let mut ones = Buffer::zeros(device, graph.lists.near.len())?;
    device.fill(&mut ones, H::ONE)?;
    let (offsets, near) = (copy(device, &graph.lists.offsets)?, copy(device, &graph.lists.near)?);
    // SAFETY: offsets are running sums; neighbours of a node are nodes, all different.
    let joined = unsafe { Csr::from_kernels(graph.n, offsets, near, ones) }?;
    let Some(to_units) = product(&joined, incidence, 1)? else { return Ok(None) };
    let Some(all) = product(members, &to_units, 1)? else { return Ok(None) };
    let all = sorted(all)?;
    let Offsets::Narrow(offsets) = all.offsets() else { return Ok(None) };
    let lists = Lists { offsets: copy(device, offsets)?, near: copy(device, all.columns())? };
    lists.without::<H>(None).map(Some)
}

/// Units around roots, as [`crate::patches::partition`] has them.
fn around_roots(units: &Linked<'_>, weights: &Numbers) -> Result<DeviceAggregates<Cuda>, LinalgError> {
    let mut parts = units.parts(1, LEAST_ROWS, weights)?;
    for k in 2..=MOST_DISTANCE {
        let held: u32 = weigh(&parts, Some(weights))?.to_host()?.iter().sum();
        if held >= parts.n as u32 * LEAST_ROWS {
            break;
        }
        parts = units.parts(k, LEAST_ROWS, weights)?;
    }
    Ok(parts)
}

/// The part of each unit after rounds of exchange.
fn exchanged(
    units: &Linked<'_>,
    weights: &Numbers,
    parts: &DeviceAggregates<Cuda>,
) -> Result<Numbers, LinalgError> {
    let (device, n, n_parts, program) = (units.device, units.n, parts.n, program::<f32>());
    let mut part = copy(device, &parts.of_node)?;
    if n_parts == 0 {
        return Ok(part);
    }
    let mut sizes = weigh(parts, Some(weights))?;
    let (mut keys, mut targets) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    let (offsets, near) = (&units.lists.offsets, &units.lists.near);
    for _ in 0..ROUNDS / AT_ONCE {
        let mut n_moved = Buffer::zeros(device, AT_ONCE)?;
        let mut best = Buffer::zeros(device, AT_ONCE * n_parts)?;
        let mut taken = Buffer::zeros(device, AT_ONCE * n_parts)?;
        for round in 0..AT_ONCE {
            let at = round * n_parts;
            let to = (keys.write(), targets.write(), Write::from(&mut best, at));
            let of = (part.read(), sizes.read(), weights.read(), offsets.read(), near.read());
            let arguments = (to.0, to.1, to.2, of.0, of.1, of.2, of.3, of.4, MOST_ROWS, n as u64);
            let kernel = Kernel::<Wish>::new("amg_exchange_wish");
            // SAFETY: each unit has a part or none, a weight, a key and a target, each part a size and a best key in
            // every round; neighbours are units.
            unsafe { device.launch(&program, &kernel, Launch::over(n * UNIT, THREADS), arguments) }?;
            let made = (keys.read(), Read::from(&best, at), targets.read());
            let offered = Write::from(&mut taken, at);
            let arguments = (offered, made.0, made.1, made.2, part.read(), n as u64);
            let kernel = Kernel::<Offer>::new("amg_exchange_offer");
            // SAFETY: as above; targets of moves that are made are parts, each of which has an offer.
            unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
            let to = (part.write(), sizes.write(), Write::from(&mut n_moved, round));
            let made = (keys.read(), Read::from(&best, at), Read::from(&taken, at), targets.read());
            let arguments = (to.0, to.1, to.2, made.0, made.1, made.2, made.3, weights.read(), n as u64);
            let kernel = Kernel::<Move>::new("amg_exchange_move");
            // SAFETY: as above; each round has a number of moves.
            unsafe { device.launch(&program, &kernel, Launch::over(n, THREADS), arguments) }?;
        }
        if n_moved.to_host()?[AT_ONCE - 1] == 0 {
            break;
        }
    }
    Ok(part)
}

/// The order of nodes in which units begin at the given places.
fn placed<H: Scalar>(
    members: &Csr<H, Cuda>,
    first: Vec<u32>,
    starts: Vec<u32>,
) -> Result<PatchOrder<Cuda>, LinalgError> {
    let (device, n) = (members.values().device(), members.n_cols());
    let first = Buffer::from_vec(device, first)?;
    let (mut rows, mut places) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    if let Some(of_units) = Rows::new(members) {
        let arguments = (rows.write(), places.write(), first.read(), of_units.structure());
        let kernel = Kernel::<Place>::new("amg_units_place");
        let launch = Launch::over(of_units.n() * UNIT, THREADS);
        // SAFETY: units have each node once, and as many places as nodes.
        unsafe { device.launch(&program::<H>(), &kernel, launch, arguments) }?;
    }
    Ok(PatchOrder { order: Arc::new(RowOrder { rows, places }), starts: starts.into() })
}

/// [`DoublePartition::of`] on the GPU.
pub(super) fn double_partition(
    device: &Cuda,
    graph: &Graph,
    least: u32,
) -> Result<Option<DoublePartition>, LinalgError> {
    let Some(lists) = Lists::new(device, graph)? else { return Ok(None) };
    let linked = Linked::new::<f32>(device, lists.without::<f32>(None)?, None);
    let parts = linked.aggregates(least)?;
    let Some(PatchOrder { order, starts }) = order::<f32>(&linked, &parts)? else { return Ok(None) };
    Ok(Some(DoublePartition {
        n_aggregates: parts.n,
        of_node: parts.of_node.to_host()?,
        nodes: order.rows.to_host()?,
        starts: starts.to_vec(),
    }))
}
