//! From a level that is divided among ranks to the next one.

use std::sync::Arc;

use femtile_comm::{Halo, RankKernels};
use femtile_device::{Buffer, Element, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::Convert;

use super::exchange::{Id, Places, sent_to_ghosts, sent_to_owners, summed, wide};
use super::level::{RankLevel, RankMatrix, RankTransfer, largest};
use super::modes::{RankModes, modes_of_ranks};
use super::totals;
use crate::builder::{LEAST_GAIN, fill_zero_rows, thresholds_of};
use crate::kernels::AmgKernels;
use crate::setup::aggregate::aggregate;
use crate::setup::galerkin::galerkin;
use crate::setup::graph::{Aggregates, NONE, distance};
use crate::setup::independent_set::Visit;
use crate::setup::prolong::Smoothing;
use crate::setup::rows::{PIECE, Pieces, RowAccess, Rows, inverse, sort_row};
use crate::setup::spectrum::{HARMLESS, Scaling};
use crate::setup::strength::{Strength, flags};
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgConfig, AmgError, check};

/// A level of ranks with the matrix below it.
pub struct RankCoarse<H: Scalar, D: RankKernels<H>> {
    pub(crate) level: RankLevel<H, D>,
    pub(crate) matrix: RankMatrix<H>,
    /// The near-nullspace of that.
    pub(crate) b: Vec<f64>,
    pub(crate) n_aggregates: usize,
}

impl<H: Scalar, D: RankKernels<H>> RankCoarse<H, D> {
    /// Returns the matrix of the next level, and its near-nullspace.
    pub fn next(&self) -> (&RankMatrix<H>, &[f64]) {
        (&self.matrix, &self.b)
    }
}

/// The aggregates of a rank, with the tentative prolongator to its rows.
struct Grouped<H> {
    /// Unknowns of the next level that the rank owns: aggregates, then modes of slivers.
    n: usize,
    n_aggregates: usize,
    /// The aggregate of each row.
    of_row: Vec<u32>,
    tentative: Tentative<H>,
    /// On all ranks or on none.
    modes: Option<RankModes<H>>,
    /// As [`Strength::is_strong`] of the rank's own block.
    is_strong: Vec<bool>,
    /// The offset of each row of that block, and the end.
    own_offsets: Vec<usize>,
    has_zero: bool,
}

/// Values of the rows of a rank, then of its ghosts.
struct OwnedAndGhosts<H> {
    diagonal: Vec<H>,
    /// The near-nullspace.
    b: Vec<f64>,
}

/// A level with the next one, or the unchanged matrix if the next level would hardly be smaller.
pub(super) enum Coarsened<H: Scalar, D: RankKernels<H>> {
    Next(Box<RankCoarse<H, D>>),
    Kept(RankMatrix<H>),
}

/// Makes the level with this number, and the next one.
pub(super) fn coarsen<H: Scalar, D>(
    device: &D,
    matrix: RankMatrix<H>,
    b: &[f64],
    number: usize,
    config: &AmgConfig,
) -> Result<Coarsened<H, D>, AmgError>
where
    D: AmgKernels<H> + Convert<H, H> + RankKernels<H>,
{
    let halo = Arc::clone(&matrix.halo);
    let comm = halo.comm();
    let diagonal = check::diagonal(&matrix.rows, 1.0)?;
    if number == 0 {
        check::range(&diagonal)?;
    }
    let own = matrix.own();
    let scaling = scaling(&matrix, &own, &diagonal)?;
    let all = OwnedAndGhosts { diagonal: with_ghosts(&halo, diagonal)?, b: with_ghosts(&halo, b.to_vec())? };
    let grouped = grouped(&matrix, own, &all, (number, config))?;
    let [n, n_coarse] = totals(comm, [matrix.n_owned(), grouped.n])?;
    if n_coarse as f64 > LEAST_GAIN * n as f64 || n_coarse == 0 {
        return Ok(Coarsened::Kept(matrix));
    }
    let threshold = thresholds_of(config.strength, number)[1];
    let (p, places) = prolongator(&matrix, &grouped, &all, &scaling, threshold)?;
    let coarse_halo = places.halo(comm)?;
    let r = p.transpose();
    let mut next = product(&matrix, [&p, &r], &places, &coarse_halo)?;
    if grouped.has_zero {
        fill_zero_rows(&mut next.rows);
    }
    let inverse_diagonal = Buffer::from_vec(device, scaling.inverse_diagonal).map_err(LinalgError::from)?;
    let transfer = RankTransfer::new(device, [p.into_device(device)?, r.into_device(device)?], coarse_halo)?;
    let smoother = (scaling.largest, inverse_diagonal);
    let rows = matrix.split(device)?;
    // Before its rows are sorted into slices: both at once would be the most that a rank holds.
    drop(matrix);
    let level = RankLevel::new((rows, &halo), config, smoother, transfer)?;
    let b = grouped.tentative.coarse.values;
    let n_aggregates = grouped.n_aggregates;
    Ok(Coarsened::Next(Box::new(RankCoarse { level, matrix: next, b, n_aggregates })))
}

/// Appends the ghost values to the owned values of a rank.
pub(super) fn with_ghosts<E: Element>(halo: &Halo, mut own: Vec<E>) -> Result<Vec<E>, LinalgError> {
    let mut of_ghosts = vec![E::zeroed(); halo.n_ghosts()];
    halo.import(&mut of_ghosts, &own, &mut || ())?;
    own.append(&mut of_ghosts);
    Ok(own)
}

/// The scaling of a level. The estimate of the largest eigenvalue is the maximum over the diagonal blocks of
/// the ranks, whose eigenvalues are no larger than those of the global matrix. Rows are raised by their full
/// absolute sums.
fn scaling<H: Scalar>(
    matrix: &RankMatrix<H>,
    own: &Rows<H>,
    diagonal: &[H],
) -> Result<Scaling<H>, LinalgError> {
    let here = if diagonal.is_empty() { 0.0 } else { Scaling::new(own, diagonal).largest };
    let largest = largest(&matrix.halo, here)?;
    let most = HARMLESS * largest;
    let inverse = |row: usize| {
        let sum = matrix.rows.row(row).1.iter().map(|value| value.to_f64().abs()).sum::<f64>();
        H::ONE / H::from_f64(diagonal[row].to_f64().max(sum / most))
    };
    Ok(Scaling { inverse_diagonal: parallel::map(diagonal.len(), PIECE, inverse), largest, most })
}

/// Aggregates of the rows of a rank. The last ones contain rows beside ghosts, or neighbours of these rows.
fn grouped<H: Scalar>(
    matrix: &RankMatrix<H>,
    own: Rows<H>,
    all: &OwnedAndGhosts<H>,
    (number, config): (usize, &AmgConfig),
) -> Result<Grouped<H>, LinalgError> {
    let inherited = (number > 0).then_some(&[][..]);
    let modes = modes_of_ranks(matrix, &own, (&all.diagonal, &all.b))?;
    let n = matrix.n_owned();
    let (diagonal, (b, of_ghosts)) = (&all.diagonal[..n], all.b.split_at(n));
    let mut a = own;
    // Entries that reach others are on the diagonal, so that smooth vectors are smooth here too.
    matrix.lump(&mut a, b, of_ghosts);
    let thresholds = thresholds_of(config.strength, number);
    let Strength { graph, is_strong, .. } =
        Strength::of_scalars(&a, diagonal, b, modes.as_ref().map(|modes| &modes.rows), inherited, thresholds);
    let k = distance(graph.neighbours.len(), graph.n_nodes());
    let mut aggregates = aggregate(&graph, |_| 1, k, config.least_aggregate, Visit::ByNumber);
    add_single_nodes(matrix, all, thresholds[0], &mut aggregates);
    let numbers = inverse(&border_last(matrix, &aggregates, modes.as_ref()));
    let renumbered = aggregates.of_node.iter_mut().filter(|part| **part != NONE);
    renumbered.for_each(|part| *part = numbers[*part as usize]);
    let vector = NearNullspace { n_vectors: 1, values: b.to_vec() };
    let mut tentative = Tentative::new(&vector, &aggregates, 1);
    let n = aggregates.n + modes.as_ref().map_or(0, |modes| modes.n);
    tentative.coarse.values.resize(n, 0.0);
    let (n_aggregates, has_zero) = (aggregates.n, tentative.n_zero > 0);
    let (of_row, own_offsets) = (aggregates.of_node, a.offsets);
    Ok(Grouped { n, n_aggregates, of_row, tentative, modes, is_strong, own_offsets, has_zero })
}

/// Makes an aggregate of each node in none that has strong connections to ghosts: without one the next level would represent
/// no constant across the border.
fn add_single_nodes<H: Scalar>(
    matrix: &RankMatrix<H>,
    OwnedAndGhosts { diagonal, b }: &OwnedAndGhosts<H>,
    threshold: f64,
    aggregates: &mut Aggregates,
) {
    let (n, square) = (matrix.n_owned(), H::from_f64(threshold * threshold));
    for row in (0..n).filter(|&row| b[row] != 0.0) {
        let (columns, values) = matrix.rows.row(row);
        let is_strong = |(&column, &value): (&u32, &H)| {
            let ghost = column as usize;
            ghost >= n && b[ghost] != 0.0 && value * value > square * diagonal[row] * diagonal[ghost]
        };
        if aggregates.of_node[row] == NONE && columns.iter().zip(values).any(is_strong) {
            aggregates.of_node[row] = aggregates.n as u32;
            aggregates.n += 1;
        }
    }
}

/// The aggregates in an order in which those of rows beside ghosts, or beside rows with modes of other ranks, and of their
/// neighbours, are the last.
fn border_last<H: Scalar>(
    matrix: &RankMatrix<H>,
    aggregates: &Aggregates,
    modes: Option<&RankModes<H>>,
) -> Vec<u32> {
    let n = matrix.n_owned();
    let mut is_border = vec![false; aggregates.n];
    for row in 0..n {
        let columns = matrix.rows.row(row).0;
        let is_beside_modes = modes.is_some_and(|modes| {
            columns.iter().any(|&column| (column as usize) < n && modes.reaches_others(column as usize))
        });
        if is_beside_modes || columns.last().is_some_and(|&last| last as usize >= n) {
            let near = columns.iter().filter(|column| (**column as usize) < n);
            let parts = near.map(|&column| aggregates.of_node[column as usize]);
            parts.filter(|&part| part != NONE).for_each(|part| is_border[part as usize] = true);
        }
    }
    let all = || 0..aggregates.n as u32;
    let inner = all().filter(|&part| !is_border[part as usize]);
    inner.chain(all().filter(|&part| is_border[part as usize])).collect()
}

/// Returns the smoothed prolongator to the rows of a rank, from aggregates of its owned rows and its ghosts,
/// and modes.
fn prolongator<H: Scalar>(
    matrix: &RankMatrix<H>,
    grouped: &Grouped<H>,
    all: &OwnedAndGhosts<H>,
    scaling: &Scaling<H>,
    threshold: f64,
) -> Result<(Rows<H>, Places), LinalgError> {
    let halo = &matrix.halo;
    let of_modes = match &grouped.modes {
        Some(modes) => modes.others_behind(halo.comm(), grouped.n_aggregates)?,
        None => Vec::new(),
    };
    let mut parts_of_ghosts = vec![0; halo.n_ghosts()];
    halo.import(&mut parts_of_ghosts, &grouped.of_row, &mut || ())?;
    let owners = halo.imports().iter().flat_map(|(owner, range)| range.clone().map(|_| *owner as u32));
    let ids: Vec<Option<Id>> = owners
        .zip(&parts_of_ghosts)
        .map(|(owner, &part)| (part != NONE).then_some((owner, u64::from(part))))
        .collect();
    let others = ids.iter().flatten().chain(&of_modes).copied();
    let places = Places::new(halo.comm(), grouped.n, others);
    let values = with_ghosts(halo, grouped.tentative.values.clone())?;
    let of_ghosts = ids.iter().map(|id| id.map_or(NONE, |id| places.of(id)));
    let aggregates =
        Aggregates { n: places.len(), of_node: grouped.of_row.iter().copied().chain(of_ghosts).collect() };
    let coarse = NearNullspace { n_vectors: 1, values: Vec::new() };
    let smoothing = Smoothing {
        a: &matrix.rows,
        is_strong: &is_strong(matrix, grouped, &all.diagonal, threshold),
        is_dense: &[],
        aggregates: &aggregates,
        tentative: &Tentative { n_vectors: 1, values, coarse, n_zero: 0 },
        b: &all.b,
        block: 1,
        largest: scaling.largest,
        most: scaling.most,
    };
    let of_modes: Vec<u32> = of_modes.into_iter().map(|id| places.of(id)).collect();
    Ok((with_modes(smoothing.prolongator(), grouped, &of_modes), places))
}

/// Whether each entry counts in smoothing: those of the rank's own block as there, those that reach ghosts by their size.
fn is_strong<H: Scalar>(
    matrix: &RankMatrix<H>,
    grouped: &Grouped<H>,
    diagonal: &[H],
    threshold: f64,
) -> Vec<bool> {
    let square = H::from_f64(threshold * threshold);
    let begin_of = |row: usize| matrix.rows.offsets[row];
    flags(&matrix.rows, |rows, flags| {
        let begin = begin_of(rows.start);
        for row in rows {
            let (columns, values) = matrix.rows.row(row);
            let own = &grouped.is_strong[grouped.own_offsets[row]..grouped.own_offsets[row + 1]];
            let flags = &mut flags[begin_of(row) - begin..begin_of(row + 1) - begin];
            let (flags_of_own, others) = flags.split_at_mut(own.len());
            flags_of_own.copy_from_slice(own);
            let least = square * diagonal[row];
            for (at, flag) in (own.len()..).zip(others) {
                *flag = values[at] * values[at] > least * diagonal[columns[at] as usize];
            }
        }
    })
}

/// The prolongator with modes of slivers in the columns behind the rank's aggregates; those of other ranks have these places.
fn with_modes<H: Scalar>(p: Rows<H>, grouped: &Grouped<H>, others: &[u32]) -> Rows<H> {
    let Some(modes) = &grouped.modes else { return p };
    let dimensions = [p.n_rows(), p.n_cols];
    let scratch = || (Vec::new(), Vec::new(), Vec::new());
    let place = |&mode: &u32| match (mode as usize).checked_sub(modes.n) {
        None => grouped.n_aggregates as u32 + mode,
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
fn product<H: Scalar>(
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
