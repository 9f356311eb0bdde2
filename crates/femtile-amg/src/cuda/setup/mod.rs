//! Setup of a level on a GPU: aggregates, prolongator and Galerkin product.
//!
//! The host reads sizes, numbers of undecided nodes, the checks of the matrix, eight numbers of Lanczos' method, and with
//! patch smoothers the weights and patches of aggregates. Floating-point sums have a fixed order, so levels have the same
//! bits in every run.

mod aggregate;
mod evolution;
mod graph;
mod layout;
mod matrix;
mod patches;
mod product;
mod prolong;
pub(super) mod ranks;

use std::sync::Arc;

use femtile_device::cuda::{Header, LANES_HEADER, Program, Specialisation, Structure};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;
use femtile_sparse::csr::{Csr, Offsets};

use super::address;
use crate::kernels::{Coarsened, Grouping, Nodes, Parts, Patched};
use crate::setup::spectrum::{DAMPING, share};
use crate::{AmgConfig, DoublePartition, Graph, Smoother};
use aggregate::Neighbours;
use evolution::Evolution;

const LANES: Header = LANES_HEADER;
/// Threads of a block.
const THREADS: u32 = 256;
/// The average number of entries per row above which several lanes share a row.
const LONG: usize = 24;
/// A matrix with a longer row is set up on the host, as a thread visits all pairs of entries of a row.
const LONGEST: u32 = 1_024;

/// Numbers of 32 bits on the device.
type Numbers = Buffer<u32, Cuda>;

/// Specialises a program for the lanes of a row.
fn by_lanes<H: Scalar>(program: &'static Program, lanes: usize) -> Specialisation {
    program.of::<H>().define("FEMTILE_LANES", lanes)
}

/// Returns the lanes of a row for this number of entries and rows.
fn lanes_for(n_entries: usize, n_rows: usize) -> usize {
    if n_entries < LONG * n_rows { 4 } else { 32 }
}

/// The programs of this folder, for checks that compile all of them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_lanes = |lanes: usize| {
        let programs = [&matrix::MATRIX, &aggregate::AGGREGATE, &product::PRODUCT];
        programs
            .into_iter()
            .flat_map(move |program| [by_lanes::<f32>(program, lanes), by_lanes::<f64>(program, lanes)])
    };
    let of_one = |(program, lanes)| [by_lanes::<f32>(program, lanes), by_lanes::<f64>(program, lanes)];
    let others = [
        (&prolong::PROLONG, 32),
        (&graph::GRAPH, 4),
        (&patches::PATCHES, 32),
        (&layout::LAYOUT, 4),
        (&ranks::RANKS, 4),
    ];
    let of_lanes = [4, 32].into_iter().flat_map(of_lanes).chain(others.into_iter().flat_map(of_one));
    of_lanes.chain(evolution::specialisations()).collect()
}

/// A matrix of a level as kernels see it.
struct Rows<'a, H: Scalar> {
    device: &'a Cuda,
    a: &'a Csr<H, Cuda>,
    offsets: &'a Numbers,
    /// Lanes per row.
    lanes: usize,
}

impl<'a, H: Scalar> Rows<'a, H> {
    /// None if its offsets have 64 bits.
    fn new(a: &'a Csr<H, Cuda>) -> Option<Self> {
        let Offsets::Narrow(offsets) = a.offsets() else { return None };
        let lanes = lanes_for(a.n_nonzeros(), a.n_rows());
        Some(Self { device: a.values().device(), a, offsets, lanes })
    }

    fn n(&self) -> usize {
        self.a.n_rows()
    }

    fn structure(&self) -> Structure {
        let arrays = [address(self.offsets), address(self.a.columns()), address(self.a.values())];
        Structure(arrays.into_iter().chain([self.n() as u64]).collect())
    }
}

/// Sets up the next level of a matrix with these nodes, none for the finest level. Returns none for a matrix
/// that is invalid, has too long a row or has modes of slivers, and if patches cannot consist of whole
/// aggregates. The host then does the work or reports the error.
///
/// # Source
/// `[fu2014]`, section 5.2.1; parallel independent sets: `[bell2012]`, section 3.2.
pub(super) fn coarsen<H: Scalar>(
    (a, nodes): (&Csr<H, Cuda>, Option<&Nodes<Cuda>>),
    thresholds: [f64; 2],
    config: &AmgConfig,
    by: Grouping<'_, Cuda>,
) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
    let Some(rows) = Rows::new(a) else { return Ok(None) };
    let weights = nodes.map(|nodes| &nodes.weights);
    let Some(matrix) = matrix::look(&rows, nodes)? else { return Ok(None) };
    let (diagonal, is_doubtful) = (&matrix.diagonal, matrix.is_doubtful.as_ref());
    if nodes.is_none() && is_doubtful.is_some() && evolution::has_opposed(&rows, diagonal)? {
        return Ok(None);
    }
    let evolved = is_doubtful.filter(|_| !matches!(by, Grouping::Graph(_)));
    let on_graph = match by {
        Grouping::Graph(graph) => Neighbours::on_graph(&rows, diagonal, thresholds, graph)?,
        _ => {
            let evolution = Evolution::of(&rows, diagonal, evolved, weights, thresholds[0])?;
            Some(Neighbours::new(&rows, diagonal, evolution.as_ref(), thresholds)?)
        }
    };
    let Some(graph) = on_graph else { return Ok(None) };
    let Some(parts) = grouped::<H>(&graph, config, by)? else { return Ok(None) };
    let marks = nodes.map_or(is_doubtful, |nodes| nodes.from_doubtful.as_ref());
    let from_doubtful = marks.map(|marks| evolution::inherited(marks, &parts)).transpose()?;
    let largest = matrix.lanczos.end()?;
    let Some(order) = &parts.order else {
        let (strong, parts) = (&graph.strong, parts.clone());
        return Numbered { rows, diagonal, strong, parts, weights, from_doubtful }.coarsen(largest);
    };
    let in_order = |numbers: &Numbers| graph::gather(numbers, &order.rows, numbers.len());
    let a = graph::permuted(&rows, order)?;
    let Some(rows) = Rows::new(&a) else { return Ok(None) };
    let diagonal = graph::gather_values(diagonal, &order.rows)?;
    let weights = weights.map(in_order).transpose()?;
    let evolved = evolved.map(in_order).transpose()?;
    let evolution = Evolution::of(&rows, &diagonal, evolved.as_ref(), weights.as_ref(), thresholds[0])?;
    let (strong, ..) = aggregate::strong(&rows, &diagonal, evolution.as_ref(), thresholds)?;
    let of_node = Arc::new(graph::gather(&parts.of_node, &order.rows, order.rows.len())?);
    let numbered = Numbered {
        rows,
        diagonal: &diagonal,
        strong: &strong,
        parts: Parts { n: parts.n, of_node, order: None },
        weights: weights.as_ref(),
        from_doubtful,
    };
    let Some(made) = numbered.coarsen(largest)? else { return Ok(None) };
    smoothed((a, diagonal), Coarsened { parts: parts.clone(), ..made }, config.smoother, &order.starts)
}

/// Returns the aggregates of a level, with patches for patch smoothers; none if there are none, or the host must form patches.
fn grouped<H: Scalar>(
    graph: &Neighbours<'_>,
    config: &AmgConfig,
    by: Grouping<'_, Cuda>,
) -> Result<Option<Parts<Cuda>>, LinalgError> {
    let has_patches = matches!(config.smoother, Smoother::Patch { .. });
    if let Grouping::Known(known) = by
        && known.of_node.len() == graph.linked.n
        && known.order.is_some() == has_patches
    {
        return Ok(Some(known.clone()));
    }
    let mut parts = graph.linked.aggregates(config.least_aggregate)?;
    if parts.n == 0 {
        return Ok(None);
    }
    if has_patches {
        let Some(order) = patches::order::<H>(&graph.linked, &parts)? else { return Ok(None) };
        parts.order = Some(Arc::new(order));
    }
    Ok(Some(parts))
}

/// A level in the order in which it is smoothed.
struct Numbered<'a, H: Scalar> {
    rows: Rows<'a, H>,
    diagonal: &'a Buffer<H, Cuda>,
    strong: &'a Numbers,
    parts: Parts<Cuda>,
    weights: Option<&'a Numbers>,
    /// As [`Nodes::from_doubtful`] of the next level.
    from_doubtful: Option<Numbers>,
}

impl<H: Scalar> Numbered<'_, H> {
    /// Sets up the next level; `largest` is the largest eigenvalue. None if a row is too long.
    fn coarsen(self, largest: f64) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
        let Self { rows, diagonal, strong, parts, weights, from_doubtful } = self;
        let inverse_diagonal = matrix::raise(&rows, diagonal, share(largest))?;
        let coarse_weights = aggregate::weigh(&parts, weights)?;
        let q = prolong::tentative::<H>(&parts, weights, &coarse_weights)?;
        let p = prolong::prolongator(&rows, strong, &parts, &q, weights, largest)?;
        let Some(r) = prolong::transpose(&p)? else { return Ok(None) };
        let Some(ap) = product::product(rows.a, &p)? else { return Ok(None) };
        let Some(coarse) = product::product(&r, &ap)? else { return Ok(None) };
        let coarse = prolong::sorted(coarse)?;
        let nodes = Nodes { weights: coarse_weights, from_doubtful };
        Ok(Some(Coarsened { inverse_diagonal, patched: None, largest, p, r, coarse, parts, nodes }))
    }
}

/// A level with its smoother by patches; none if the matrix is not positive definite or too large.
fn smoothed<H: Scalar>(
    (a, diagonal): (Csr<H, Cuda>, Buffer<H, Cuda>),
    made: Coarsened<H, Cuda>,
    smoother: Smoother,
    starts: &[u32],
) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
    let Smoother::Patch { inner, format } = smoother else { return Ok(Some(made)) };
    let Some(rows) = Rows::new(&a) else { return Ok(None) };
    let Some(matrix) = layout::patch_matrix(&rows, diagonal, starts, format)? else { return Ok(None) };
    let (device, inverse) = (rows.device, &made.inverse_diagonal);
    let mut scale = Buffer::zeros(device, rows.n())?;
    device.axpby(&mut scale, H::from_f64(DAMPING / made.largest), inverse, H::ZERO)?;
    let Some(omega) = layout::outer_damping(&a, &matrix, &scale, inner)? else { return Ok(None) };
    let patched = Some(Patched { a, matrix, omega });
    Ok(Some(Coarsened { inverse_diagonal: scale, patched, ..made }))
}

/// The rows of a restriction in another order, and its transpose.
#[allow(clippy::type_complexity)]
pub(super) fn reordered<H: Scalar>(
    r: &Csr<H, Cuda>,
    order: &Numbers,
) -> Result<(Csr<H, Cuda>, Csr<H, Cuda>), LinalgError> {
    let too_many = || {
        let message = "2³² entries or more do not fit patches: choose Chebyshev".into();
        LinalgError::Setting { field: "smoother", message }
    };
    let r = graph::with_rows_of(r, order)?.ok_or_else(too_many)?;
    let p = prolong::transpose(&r)?.ok_or_else(too_many)?;
    Ok((r, p))
}

/// [`DoublePartition::of`] on the GPU.
pub(super) fn double_partition(
    device: &Cuda,
    graph: &Graph,
    least: u32,
) -> Result<Option<DoublePartition>, LinalgError> {
    let Some(lists) = graph::Lists::new(device, graph)? else { return Ok(None) };
    let linked = aggregate::Linked::new::<f32>(device, lists.without::<f32>(None)?, None);
    let parts = linked.aggregates(least)?;
    let Some(order) = patches::order::<f32>(&linked, &parts)? else { return Ok(None) };
    Ok(Some(DoublePartition {
        n_aggregates: parts.n,
        of_node: parts.of_node.to_host()?,
        nodes: order.rows.to_host()?,
        starts: order.starts,
    }))
}
