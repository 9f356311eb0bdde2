//! Levels of several ranks with GPUs: the GPU of each does the work on its rows, hosts exchange those at borders.
//!
//! A GPU assembles the rows of its rank and divides them by columns (`RankKernels::divide`). The kernels of one GPU
//! then take the rows of all columns, owned ones first, with ghosts appended to their vectors. The host exchanges
//! rows of prolongators and of the next matrix at borders and adds up the latter (`distributed/exchange.rs`).

use std::sync::Arc;

use femtile_comm::{Comm, Halo, OwnedRows};
use femtile_device::cpu::zeroed_vec;
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::{Csr, Offsets};

use super::setup::ranks::{
    Grouped, LocalRows, OwnedAndGhosts, at, followed_by, galerkin, rows_of, tentative, transpose, values_at,
    values_followed_by,
};
use super::{largest, scaled};
use crate::builder::{FEW, LEAST_GAIN, thresholds_of};
use crate::distributed::RankCoarse;
use crate::distributed::exchange::{Id, Places, WideRow, sent_to_ghosts, sent_to_owners, summed, wide};
use crate::distributed::level::{self, RankLevel, RankMatrix, RankTransfer};
use crate::distributed::totals;
use crate::kernels::{DeviceAggregates, Nodes};
use crate::setup::graph::NONE;
use crate::setup::rows::{Pieces, Rows, to_unit};
use crate::setup::tentative::NearNullspace;
use crate::{AmgConfig, AmgError};

/// As [`crate::kernels::AmgKernels::amg_first_of_ranks`].
#[allow(clippy::type_complexity)]
pub(super) fn first<H: Scalar>(
    device: &Cuda,
    a: &OwnedRows<f64, Cuda>,
    halo: &Arc<Halo>,
    config: &AmgConfig,
) -> Result<Option<(RankCoarse<H, Cuda>, f64)>, AmgError> {
    let comm = halo.comm();
    let [own, border] = [largest::<H, _>(a.own.values())?, largest::<H, _>(a.border.values())?];
    if !on_all(comm, is_for_device(a) && own.is_finite() && border.is_finite())? {
        return Ok(None);
    }
    let here = own.max(border);
    let scale = to_unit(level::largest(halo, here)?);
    let in_precision = |part: &Csr<f64, Cuda>| part.with_values::<H>(scaled(part.values(), scale)?);
    let rows = OwnedRows { own: in_precision(&a.own)?, border: in_precision(&a.border)? };
    let made = coarsen(device, (rows, halo), None, (0, config))?;
    Ok(made.map(|made| (made, scale)))
}

/// As [`crate::kernels::AmgKernels::amg_next_of_ranks`].
pub(super) fn next<H: Scalar>(
    device: &Cuda,
    matrix: &RankMatrix<H>,
    b: &[f64],
    (number, config): (usize, &AmgConfig),
) -> Result<Option<RankCoarse<H, Cuda>>, AmgError> {
    let halo = &matrix.halo;
    let weights = NearNullspace { n_vectors: 1, values: b.to_vec() }.weights();
    let fits = u32::try_from(matrix.n_nonzeros()).is_ok();
    if !on_all(halo.comm(), fits && weights.is_some())? {
        return Ok(None);
    }
    coarsen(device, (matrix.split(device)?, halo), weights, (number, config))
}

/// Whether a matrix is worth the launches of kernels, and not beyond their numbers.
fn is_for_device(a: &OwnedRows<f64, Cuda>) -> bool {
    let [few_rows, few_entries] = FEW;
    let n = a.own.n_nonzeros() + a.border.n_nonzeros();
    let is_narrow = [&a.own, &a.border].iter().all(|part| matches!(part.offsets(), Offsets::Narrow(_)));
    is_narrow && u32::try_from(n).is_ok() && (a.own.n_rows() > few_rows || n > few_entries)
}

/// Whether something is true on all ranks.
fn on_all(comm: &Comm, is_so: bool) -> Result<bool, LinalgError> {
    let [n] = totals(comm, [usize::from(is_so)])?;
    Ok(n == comm.n_ranks())
}

/// Makes the level with this number of rows whose nodes have these weights, none of the first level.
fn coarsen<H: Scalar>(
    device: &Cuda,
    (rows, halo): (OwnedRows<H, Cuda>, &Arc<Halo>),
    weights: Option<Vec<u32>>,
    (number, config): (usize, &AmgConfig),
) -> Result<Option<RankCoarse<H, Cuda>>, AmgError> {
    let comm = halo.comm();
    let thresholds = thresholds_of(config.strength, number);
    let nodes = match weights {
        Some(weights) => {
            let weights = Buffer::from_vec(device, weights).map_err(LinalgError::from)?;
            Some(Nodes { weights, from_doubtful: None })
        }
        None => None,
    };
    let of_rank = LocalRows::new(&rows.own, &rows.border);
    let grouped =
        of_rank.as_ref().map(|rows| rows.grouped(nodes.as_ref(), thresholds, config)).transpose()?.flatten();
    if !on_all(comm, grouped.is_some())? {
        return Ok(None);
    }
    let (Some(of_rank), Some(grouped)) = (of_rank, grouped) else { return Ok(None) };
    let [n, n_coarse] = totals(comm, [halo.n_owned(), grouped.parts.n()])?;
    if n_coarse as f64 > LEAST_GAIN * n as f64 {
        return Ok(None);
    }
    let largest = level::largest(halo, grouped.largest)?;
    let (places, of_all) = seen(halo, &grouped, nodes.as_ref())?;
    let coarse_halo = places.halo(comm)?;
    let all = of_rank.joined()?;
    let [is_doubtful] = comm.any([grouped.is_doubtful])?;
    if is_doubtful {
        // Each rank has looked at its own columns alone.
        let [is_opposed] = comm.any([of_rank.has_opposed(&all, &of_all)?])?;
        if is_opposed {
            return Ok(None);
        }
    }
    let smoothed = of_rank.smoothed(&all, &grouped, &of_all, (largest, thresholds[1]))?;
    let transposed = match smoothed {
        Some((inverse, p)) => transpose(&p)?.map(|r| (inverse, p, r)),
        None => None,
    };
    if !on_all(comm, transposed.is_some())? {
        return Ok(None);
    }
    let Some((inverse, p, r)) = transposed else { return Ok(None) };
    let Some(matrix) = product((&all, halo), [&p, &r], &places, &coarse_halo)? else { return Ok(None) };
    drop(all);
    let weights = grouped.weights.to_host().map_err(LinalgError::from)?;
    let b = NearNullspace { n_vectors: 1, values: weights.into_iter().map(length).collect() };
    let n_aggregates = grouped.parts.n();
    let transfer = RankTransfer::new(device, [p, r], coarse_halo)?;
    let level = RankLevel::new((rows, halo), config, (largest, inverse), transfer)?;
    Ok(Some(RankCoarse { level, matrix, b, n_aggregates }))
}

/// The length of the constant on an aggregate of some nodes.
fn length(n: u32) -> f64 {
    f64::from(n).sqrt()
}

/// Collects aggregates, tentative entries, diagonal and weights of own nodes and ghosts, and the nodes of the next level that these are in.
fn seen<H: Scalar>(
    halo: &Halo,
    grouped: &Grouped<H>,
    nodes: Option<&Nodes<Cuda>>,
) -> Result<(Places, OwnedAndGhosts<H>), LinalgError> {
    let device = grouped.diagonal.device();
    let exports = halo.exports().iter().flat_map(|(_, places)| places).copied().collect();
    let exports = Exports { halo, places: Buffer::from_vec(device, exports)? };
    let parts_of_ghosts = exports.of_ghosts(&at(grouped.parts.of_node(), &exports.places)?)?;
    let owners = halo.imports().iter().flat_map(|(owner, range)| range.clone().map(|_| *owner as u32));
    let id = |(owner, part): (u32, u32)| (part != NONE).then_some((owner, u64::from(part)));
    let ids: Vec<Option<Id>> = owners.zip(parts_of_ghosts).map(id).collect();
    let places = Places::new(halo.comm(), [grouped.parts.n(), 1], ids.iter().flatten().copied());
    let of_ghosts: Vec<u32> = ids.into_iter().map(|id| id.map_or(NONE, |id| places.of(id))).collect();
    let of_node = Arc::new(followed_by(grouped.parts.of_node(), &of_ghosts)?);
    let parts = DeviceAggregates { n: places.len(), of_node, order: None };
    let q = exports.appended(&tentative(grouped, nodes.map(|nodes| &nodes.weights))?)?;
    let diagonal = exports.appended(&grouped.diagonal)?;
    let weights = match nodes {
        Some(Nodes { weights, .. }) => {
            let of_ghosts = exports.of_ghosts(&at(weights, &exports.places)?)?;
            Some(followed_by(weights, &of_ghosts)?)
        }
        None => None,
    };
    Ok((places, OwnedAndGhosts { parts, q, diagonal, weights }))
}

/// The unknowns of a rank that others have copies of, neighbour by neighbour.
struct Exports<'a> {
    halo: &'a Halo,
    places: Buffer<u32, Cuda>,
}

impl Exports<'_> {
    /// Returns the values of ghosts; `exported` are the values that other ranks need.
    fn of_ghosts<E: Element>(&self, exported: &[E]) -> Result<Vec<E>, LinalgError> {
        let mut own: Vec<E> = zeroed_vec(self.halo.n_owned());
        let places = self.halo.exports().iter().flat_map(|(_, places)| places);
        places.zip(exported).for_each(|(&place, &value)| own[place as usize] = value);
        let mut ghosts = vec![E::zeroed(); self.halo.n_ghosts()];
        self.halo.import(&mut ghosts, &own, &mut || ())?;
        Ok(ghosts)
    }

    /// The values of own unknowns, then those of ghosts.
    fn appended<H: Scalar>(&self, own: &Buffer<H, Cuda>) -> Result<Buffer<H, Cuda>, LinalgError> {
        let ghosts = self.of_ghosts(&values_at(own, &self.places)?)?;
        values_followed_by(own, &ghosts)
    }
}

/// The Galerkin product, as [`crate::distributed`] computes it on hosts; none on all ranks if one of them
/// cannot.
fn product<H: Scalar>(
    (a, halo): (&Csr<H, Cuda>, &Halo),
    [p, r]: [&Csr<H, Cuda>; 2],
    seen: &Places,
    coarse_halo: &Halo,
) -> Result<Option<RankMatrix<H>>, LinalgError> {
    let (comm, n_coarse) = (halo.comm(), coarse_halo.n_owned());
    let places = halo.exports().iter().flat_map(|(_, places)| places);
    let exported = rows_of(p, places.copied().collect())?;
    if !on_all(comm, exported.is_some())? {
        return Ok(None);
    }
    let Some(exported) = exported else { return Ok(None) };
    let exported = Rows::as_is(&exported)?;
    let n_exported: usize = halo.exports().iter().map(|(_, places)| places.len()).sum();
    let of_ghosts = sent_to_ghosts(halo, (0..n_exported).map(|row| wide(&exported, row, seen)))?;
    let places = seen.with(comm, of_ghosts.iter());
    let more = rows_of_ghosts(&of_ghosts, &places).into_device(a.values().device())?;
    let local = galerkin((r, a), p, (n_coarse, seen.ghosts_in(&places)), &more)?;
    if !on_all(comm, local.is_some())? {
        return Ok(None);
    }
    let Some(local) = local else { return Ok(None) };
    let local = Rows::as_is(&local)?;
    let received = sent_to_owners(coarse_halo, &local, &places)?;
    summed(comm, (&local, &places), n_coarse, received).map(Some)
}

/// The rows of P that belong to ghosts.
fn rows_of_ghosts<H: Scalar>(rows: &[WideRow<H>], places: &Places) -> Rows<H> {
    let made = Pieces::build([rows.len(), places.len()], Vec::new, |entries, row, out| {
        places.numbered(&rows[row], entries);
        entries.iter().for_each(|&(column, value)| out.push(column, value));
    });
    made.join()
}
