//! Setup of a level on a GPU: aggregates, prolongator and Galerkin product.
//!
//! The host reads sizes, numbers of undecided nodes, the checks of the matrix, two numbers for each step of Lanczos' method, and with
//! patch smoothers the weights and patches of aggregates. For levels whose nodes have several rows it also reads aggregates, sums
//! of rows and the diagonal, and orthonormalizes the near-nullspace. Floating-point sums have a fixed order, so levels have the same
//! bits in every run.

pub(crate) mod aggregate;
pub(crate) mod evolution;
pub(crate) mod graph;
pub(crate) mod known;
mod matrix;
pub(crate) mod nodes;
pub(crate) mod product;
pub(crate) mod prolong;
pub(super) mod ranks;

use femtile_device::cuda::{Header, LANES_HEADER, Program, Specialisation, Structure};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::scan;
use femtile_sparse::csr::{Csr, Offsets};

use super::address;
use crate::AmgConfig;
use crate::kernels::{Coarsened, DeviceAggregates, Grouping, Nodes};
use crate::patches::cuda as patches;
use crate::setup::spectrum::share;
use aggregate::Neighbours;
use evolution::Evolution;
use ranks::LocalRows;

pub(crate) const LANES: Header = LANES_HEADER;
/// Threads of a block.
pub(crate) const THREADS: u32 = 256;
/// Lanes of short and of long rows.
const FEW_LANES: usize = 4;
const MANY_LANES: usize = 32;
/// The average number of entries per row above which several lanes share a row.
const LONG: usize = 24;
/// A matrix with a longer row is set up on the host, as a thread visits all pairs of entries of a row.
const LONGEST: u32 = 1_024;

/// Numbers of 32 bits on the device.
pub(crate) type Numbers = Buffer<u32, Cuda>;

/// Specialises a program for the lanes of a row.
pub(crate) fn by_lanes<H: Scalar>(program: &'static Program, lanes: usize) -> Specialisation {
    program.of::<H>().define("FEMTILE_LANES", lanes)
}

/// Returns the lanes of a row for this number of entries and rows.
fn lanes_for(n_entries: usize, n_rows: usize) -> usize {
    if n_entries < LONG * n_rows { FEW_LANES } else { MANY_LANES }
}

/// Returns the programs that set up levels of a matrix with short rows on the finest level, those needed first first; if nodes have
/// several rows, those for the rigid motions of as many directions.
pub(super) fn programs<H: Scalar>(config: &AmgConfig) -> Vec<Specialisation> {
    let [few, many] = [FEW_LANES, MANY_LANES].map(|lanes| move |program| by_lanes::<H>(program, lanes));
    let mut programs = vec![
        few(&matrix::MATRIX),
        evolution::program::<H>(),
        few(&aggregate::AGGREGATE),
        // Marks and weights of nodes are counted in any precision.
        evolution::program::<f32>(),
        by_lanes::<f32>(&aggregate::AGGREGATE, FEW_LANES),
        scan::cuda_program(),
        prolong::program::<H>(),
        product::program::<H>(FEW_LANES, 1),
        product::program::<H>(MANY_LANES, 1),
        many(&matrix::MATRIX),
        many(&aggregate::AGGREGATE),
    ];
    if config.block_size > 1 {
        let n_motions = config.block_size * (config.block_size + 1) / 2;
        let of_lanes = [FEW_LANES, MANY_LANES].map(|lanes| product::program::<H>(lanes, n_motions));
        programs.extend(of_lanes.into_iter().chain([nodes::program::<H>()]));
    }
    programs
}

/// The programs of this folder, for checks that compile all of them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_lanes = |lanes: usize| {
        let programs = [&matrix::MATRIX, &aggregate::AGGREGATE].into_iter();
        let products =
            move |block| [product::program::<f32>(lanes, block), product::program::<f64>(lanes, block)];
        programs
            .flat_map(move |program| [by_lanes::<f32>(program, lanes), by_lanes::<f64>(program, lanes)])
            .chain([1, 3, 6].into_iter().flat_map(products))
    };
    let of_one = |(program, lanes)| [by_lanes::<f32>(program, lanes), by_lanes::<f64>(program, lanes)];
    let others = [(&prolong::PROLONG, 32), (&nodes::NODES, 32), (&graph::GRAPH, 4), (&ranks::RANKS, 4)];
    let of_lanes =
        [FEW_LANES, MANY_LANES].into_iter().flat_map(of_lanes).chain(others.into_iter().flat_map(of_one));
    of_lanes.chain(evolution::specialisations()).collect()
}

/// A matrix of a level as kernels see it.
pub(crate) struct Rows<'a, H: Scalar> {
    pub device: &'a Cuda,
    a: &'a Csr<H, Cuda>,
    offsets: &'a Numbers,
    /// Lanes per row.
    lanes: usize,
}

impl<'a, H: Scalar> Rows<'a, H> {
    /// None if its offsets have 64 bits.
    pub fn new(a: &'a Csr<H, Cuda>) -> Option<Self> {
        let Offsets::Narrow(offsets) = a.offsets() else { return None };
        let lanes = lanes_for(a.n_nonzeros(), a.n_rows());
        Some(Self { device: a.values().device(), a, offsets, lanes })
    }

    pub fn n(&self) -> usize {
        self.a.n_rows()
    }

    pub fn structure(&self) -> Structure {
        let arrays = [address(self.offsets), address(self.a.columns()), address(self.a.values())];
        Structure(arrays.into_iter().chain([self.n() as u64]).collect())
    }
}

/// Aggregates of the rows of a rank, and the data that they were found from.
pub(super) struct Grouped<H: Scalar> {
    pub parts: DeviceAggregates<Cuda>,
    pub diagonal: Buffer<H, Cuda>,
    /// As [`aggregate::strong`], for the owned columns.
    strong: Numbers,
    /// As [`matrix::Matrix::is_doubtful`].
    pub is_doubtful: Option<Numbers>,
    /// The largest eigenvalue of the block of owned columns.
    pub largest: f64,
}

impl<H: Scalar> Grouped<H> {
    /// Groups nodes, none for those of the finest level; `border` if the rank has ghosts. None if the host has to do it.
    fn new(
        own: &Rows<'_, H>,
        border: Option<&LocalRows<'_, H>>,
        nodes: Option<&Nodes<Cuda>>,
        (thresholds, config): ([f64; 2], &AmgConfig),
        by: &Grouping<'_, Cuda>,
    ) -> Result<Option<Self>, LinalgError> {
        let found = matrix::look(own, nodes, 1)?.filter(|found| found.longest <= LONGEST);
        let Some(matrix::Matrix { diagonal, lanczos, is_doubtful, .. }) = found else { return Ok(None) };
        if nodes.is_none() && is_doubtful.is_some() && evolution::has_opposed(own, &diagonal)? {
            return Ok(None);
        }
        let lumped = border.filter(|_| is_doubtful.is_some()).map(LocalRows::lumped).transpose()?;
        let Some(rows) = Rows::new(lumped.as_ref().unwrap_or(own.a)) else { return Ok(None) };
        let on_graph = match by {
            Grouping::Graph(graph) => Neighbours::on_graph(&rows, &diagonal, thresholds, graph)?,
            _ => {
                let (weights, marks) = (nodes.map(|nodes| &nodes.weights), is_doubtful.as_ref());
                let evolution = Evolution::of(&rows, &diagonal, marks, weights, thresholds[0])?;
                Some(Neighbours::new(&rows, &diagonal, evolution.as_ref(), thresholds)?)
            }
        };
        let Some(graph) = on_graph else { return Ok(None) };
        let Some(parts) = aggregates::<H>(&graph, config, by)? else { return Ok(None) };
        let (strong, largest) = (graph.strong, lanczos.end()?);
        Ok(Some(Self { parts, diagonal, strong, is_doubtful, largest }))
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
    by: &Grouping<'_, Cuda>,
) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
    let Some(rows) = Rows::new(a) else { return Ok(None) };
    let Some(grouped) = Grouped::new(&rows, None, nodes, (thresholds, config), by)? else { return Ok(None) };
    let Grouped { parts, diagonal, strong, is_doubtful, largest } = grouped;
    let marks = nodes.map_or(is_doubtful.as_ref(), |nodes| nodes.from_doubtful.as_ref());
    let from_doubtful = marks.map(|marks| evolution::inherited(marks, &parts)).transpose()?;
    let weights = nodes.map(|nodes| &nodes.weights);
    let level = Numbered { rows, diagonal: &diagonal, strong: &strong, parts, weights, from_doubtful };
    if config.smoother.has_patches() {
        let evolved = is_doubtful.as_ref().filter(|_| !matches!(by, Grouping::Graph(_)));
        return patches::coarsen(level, evolved, (thresholds, largest), config.smoother);
    }
    level.coarsen(largest)
}

/// Returns the aggregates of a level, with patches for patch smoothers; none if there are none, or the host must form patches.
fn aggregates<H: Scalar>(
    graph: &Neighbours<'_>,
    config: &AmgConfig,
    by: &Grouping<'_, Cuda>,
) -> Result<Option<DeviceAggregates<Cuda>>, LinalgError> {
    let has_patches = config.smoother.has_patches();
    if let Grouping::Known(known) = by
        && known.of_node.len() == graph.linked.n
        && known.order.is_some() == has_patches
    {
        return Ok(Some(DeviceAggregates::clone(known)));
    }
    let mut parts = graph.linked.aggregates(config.least_aggregate)?;
    if parts.n == 0 {
        return Ok(None);
    }
    if has_patches {
        let Some(order) = patches::order::<H>(&graph.linked, &parts)? else { return Ok(None) };
        parts.order = Some(order);
    }
    Ok(Some(parts))
}

/// A level in the order in which it is smoothed.
pub(crate) struct Numbered<'a, H: Scalar> {
    pub rows: Rows<'a, H>,
    pub diagonal: &'a Buffer<H, Cuda>,
    pub strong: &'a Numbers,
    pub parts: DeviceAggregates<Cuda>,
    pub weights: Option<&'a Numbers>,
    /// As [`Nodes::from_doubtful`] of the next level.
    pub from_doubtful: Option<Numbers>,
}

impl<H: Scalar> Numbered<'_, H> {
    /// Sets up the next level; `largest` is the largest eigenvalue. None if a row is too long.
    pub fn coarsen(self, largest: f64) -> Result<Option<Coarsened<H, Cuda>>, LinalgError> {
        let Self { rows, diagonal, strong, parts, weights, from_doubtful } = self;
        let inverse_diagonal = matrix::raise(&rows, diagonal, share(largest))?;
        let coarse_weights = aggregate::weigh(&parts, weights)?;
        let q = prolong::tentative::<H>(&parts, weights, &coarse_weights)?;
        let p = prolong::prolongator(&rows, strong, &parts, &q, weights, largest)?;
        let Some(r) = prolong::transpose(&p)? else { return Ok(None) };
        let Some(ap) = product::product(rows.a, &p, 1)? else { return Ok(None) };
        let Some(coarse) = product::product(&r, &ap, 1)? else { return Ok(None) };
        let coarse = prolong::sorted(coarse)?;
        let nodes = Nodes { weights: coarse_weights, from_doubtful };
        let (patched, halo) = (None, None);
        Ok(Some(Coarsened { inverse_diagonal, patched, largest, p, r, coarse, halo, parts, nodes }))
    }
}
