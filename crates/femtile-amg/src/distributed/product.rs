//! Unknowns of the next level on several ranks, and the matrix of that level.

use std::iter::{empty, repeat_n};

use femtile_comm::Halo;
use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use super::exchange::{Id, Places, sent_to_ghosts, sent_to_owners, summed, wide};
use super::modes::RankModes;
use crate::coarsen::Fine;
use crate::setup::galerkin::galerkin;
use crate::setup::graph::{Aggregates, NONE};
use crate::setup::rank_matrix::RankMatrix;
use crate::setup::rows::{Pieces, RowAccess, Rows, sort_row};

/// The unknowns of the next level in the columns of a prolongator: those of the rank, then ghosts.
pub(crate) struct NextUnknowns {
    pub places: Places,
    /// Of the nodes of the rank and of ghosts.
    pub aggregates: Aggregates,
    /// The places of [`RankModes::others_behind`].
    pub others: Vec<u32>,
}

impl NextUnknowns {
    /// Numbers them from the aggregates of the rank, which owns `n` unknowns of the next level. Collective.
    pub fn new<H: Scalar>(
        Fine { matrix, block, b, .. }: &Fine<H>,
        mut aggregates: Aggregates,
        n: usize,
        modes: Option<&RankModes<H>>,
    ) -> Result<Self, LinalgError> {
        let (halo, block, k) = (&matrix.halo, *block, b.n_vectors);
        let comm = halo.comm();
        if matrix.is_whole() {
            aggregates.n = n / k;
            return Ok(Self { places: Places::new(comm, [n, k], empty()), aggregates, others: Vec::new() });
        }
        let of_modes = match modes {
            Some(modes) => modes.others_behind(comm, aggregates.n)?,
            None => Vec::new(),
        };
        let of_rows = aggregates.of_node.iter().flat_map(|&part| repeat_n(part, block)).collect();
        let of_rows: Vec<u32> = matrix.with_ghosts(of_rows, 1)?;
        let (places, of_ghosts) =
            numbered(halo, &of_rows[halo.n_owned()..], ([n, k], block), of_modes.iter().copied());
        aggregates.n = places.len() / k;
        aggregates.of_node.extend(of_ghosts);
        let others = of_modes.into_iter().map(|id| places.of(id)).collect();
        Ok(Self { places, aggregates, others })
    }
}

/// Numbers the unknowns of the next level, of which the rank owns `n`, with `k` for each node, from the aggregate of each
/// ghost row and further unknowns; nodes have `block` rows. Returns the aggregate of each ghost node in this numbering as well.
pub(crate) fn numbered(
    halo: &Halo,
    parts: &[u32],
    ([n, k], block): ([usize; 2], usize),
    others: impl Iterator<Item = Id>,
) -> (Places, Vec<u32>) {
    let owners = halo.imports().iter().flat_map(|(owner, range)| range.clone().map(|_| *owner as u32));
    // The first unknown of the aggregate.
    let id = |(owner, &part): (u32, &u32)| (part != NONE).then_some((owner, u64::from(part) * k as u64));
    let ids: Vec<Option<Id>> = owners.zip(parts).step_by(block).map(id).collect();
    let places = Places::new(halo.comm(), [n, k], ids.iter().flatten().copied().chain(others));
    let of_ghosts = ids.iter().map(|id| id.map_or(NONE, |id| places.of(id) / k as u32)).collect();
    (places, of_ghosts)
}

/// The prolongator with modes of slivers in the columns behind the rank's aggregates; those of other ranks have these places.
pub(crate) fn with_modes<H: Scalar>(
    p: &Rows<H>,
    modes: &RankModes<H>,
    n_aggregates: usize,
    others: &[u32],
) -> Rows<H> {
    let dimensions = [p.n_rows(), p.n_cols];
    let scratch = || (Vec::new(), Vec::new(), Vec::new());
    let place = |&mode: &u32| match (mode as usize).checked_sub(modes.n) {
        None => n_aggregates as u32 + mode,
        Some(other) => others[other],
    };
    let pieces = Pieces::build(dimensions, scratch, |(columns, values, pairs), row, out| {
        let (of_row, values_of_row) = p.row(row);
        let (of_modes, values_of_modes) = modes.rows.row(row);
        (*columns, *values) = (of_row.to_vec(), values_of_row.to_vec());
        columns.extend(of_modes.iter().map(place));
        values.extend_from_slice(values_of_modes);
        sort_row(columns, values, pairs);
        out.extend(columns, values);
    });
    pieces.join()
}

/// The Galerkin product $P^\mathsf{T} A P$. Rows of P that belong to ghosts come from their owners; entries of
/// rows of others go to theirs, and are added there in the order of ranks.
pub(crate) fn product<H: Scalar>(
    matrix: &RankMatrix<H>,
    [p, r]: [&Rows<H>; 2],
    seen: &Places,
    coarse_halo: &Halo,
) -> Result<RankMatrix<H>, LinalgError> {
    let (halo, comm) = (&matrix.halo, coarse_halo.comm());
    let (n, n_coarse) = (matrix.n_owned(), coarse_halo.n_owned());
    let exported = halo.exports().iter().flat_map(|(_, places)| places);
    let of_ghosts = sent_to_ghosts(halo, exported.map(|&row| wide(p, row as usize, seen)))?;
    let places = seen.with(comm, of_ghosts.iter());
    let numbers = seen.ghosts_in(&places);
    let number = |column: u32| (column as usize).checked_sub(n_coarse).map_or(column, |ghost| numbers[ghost]);
    let all = Pieces::build([n + of_ghosts.len(), places.len()], Vec::new, |entries, row, out| {
        match row.checked_sub(n) {
            None => {
                let (columns, values) = p.row(row);
                columns.iter().zip(values).for_each(|(&column, &value)| out.push(number(column), value));
            }
            Some(ghost) => {
                places.numbered(&of_ghosts[ghost], entries);
                entries.iter().for_each(|&(column, value)| out.push(column, value));
            }
        }
    });
    let local = galerkin(&matrix.rows, &all.join(), r);
    let received = sent_to_owners(coarse_halo, &local, &places)?;
    summed(comm, (&local, &places), n_coarse, received)
}
