//! Levels of several ranks with GPUs: the GPU of each does the work on its rows, hosts exchange those at borders.
//!
//! A GPU assembles the rows of its rank and divides them by columns (`RankKernels::divide`). The kernels of one GPU
//! then take the rows of all columns, owned ones first, with ghosts appended to their vectors. The host exchanges
//! rows of prolongators and of the next matrix at borders and adds up the latter (`distributed/exchange.rs`).

use std::iter::empty;
use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows};
use femtile_device::cpu::zeroed_vec;
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use super::setup::prolong::{tentative, transpose};
use super::setup::ranks::{
    LocalRows, OwnedAndGhosts, at, followed_by, galerkin, rows_of, values_at, values_followed_by,
};
use super::setup::{Grouped, Numbers};
use crate::AmgConfig;
use crate::builder::LEAST_GAIN;
use crate::distributed::exchange::{Places, WideRow, sent_to_ghosts, sent_to_owners, summed, wide};
use crate::distributed::product::numbered;
use crate::kernels::{Coarsened, DeviceAggregates, Nodes};
use crate::setup::rank_matrix::{RankMatrix, maxima, on_all, totals};
use crate::setup::rows::{Pieces, Rows};

/// As [`crate::kernels::AmgKernels::amg_coarsen_on_ranks`].
pub(super) fn coarsen<H: Scalar>(
    (rows, halo): (&OwnedRows<H, Cuda>, &Arc<Halo>),
    nodes: Option<&Nodes<Cuda>>,
    thresholds: [f64; 2],
    config: &AmgConfig,
) -> Result<Option<Coarsened<H, Cuda, RankMatrix<H>>>, LinalgError> {
    let comm = halo.comm();
    let of_rank = LocalRows::new(&rows.own, &rows.border);
    let grouped = of_rank.as_ref().map(|rows| rows.grouped(nodes, thresholds, config)).transpose()?.flatten();
    if !on_all(comm, grouped.is_some())? {
        return Ok(None);
    }
    let (Some(of_rank), Some((grouped, weights))) = (of_rank, grouped) else { return Ok(None) };
    let [n, n_coarse] = totals(comm, [halo.n_owned(), grouped.parts.n()])?;
    if n_coarse as f64 > LEAST_GAIN * n as f64 {
        return Ok(None);
    }
    let [largest] = maxima(comm, [grouped.largest])?;
    let (places, of_all) = seen(halo, (&grouped, &weights), nodes)?;
    let coarse_halo = places.halo(comm)?;
    let all = of_rank.joined()?;
    let [is_doubtful] = comm.any([grouped.is_doubtful.is_some()])?;
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
    let Some((inverse_diagonal, p, r)) = transposed else { return Ok(None) };
    let Some(coarse) = product((&all, halo), [&p, &r], &places, &coarse_halo)? else { return Ok(None) };
    let (patched, halo, parts) = (None, Some(coarse_halo), grouped.parts);
    let nodes = Nodes { weights, from_doubtful: None };
    Ok(Some(Coarsened { inverse_diagonal, patched, largest, p, r, coarse, halo, parts, nodes }))
}

/// Collects aggregates, tentative entries, diagonal and weights of own nodes and ghosts, and the nodes of the next level that these
/// are in.
fn seen<H: Scalar>(
    halo: &Halo,
    (grouped, sums): (&Grouped<H>, &Numbers),
    nodes: Option<&Nodes<Cuda>>,
) -> Result<(Places, OwnedAndGhosts<H>), LinalgError> {
    let device = grouped.diagonal.device();
    let exports = halo.exports().iter().flat_map(|(_, places)| places).copied().collect();
    let exports = Exports { halo, places: Buffer::from_vec(device, exports)? };
    let parts_of_ghosts = exports.of_ghosts(&at(grouped.parts.of_node(), &exports.places)?)?;
    let (places, of_ghosts) = numbered(halo, &parts_of_ghosts, ([grouped.parts.n(), 1], 1), empty());
    let of_node = Arc::new(followed_by(grouped.parts.of_node(), &of_ghosts)?);
    let parts = DeviceAggregates { n: places.len(), of_node, order: None };
    let q = exports.appended(&tentative(&grouped.parts, nodes.map(|nodes| &nodes.weights), sums)?)?;
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
