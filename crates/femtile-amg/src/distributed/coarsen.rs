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
use crate::setup::spectrum::Scaling;
use crate::setup::strength::{Strength, flags};
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgConfig, AmgError, check};

/// A level of ranks with the matrix below it.
pub struct RankCoarse<H: Scalar, D: RankKernels<H>> {
    pub(crate) level: RankLevel<H, D>,
    pub(crate) matrix: RankMatrix<H>,
    /// The near-nullspace of that.
    pub(crate) b: NearNullspace,
    pub(crate) n_aggregates: usize,
}

impl<H: Scalar, D: RankKernels<H>> RankCoarse<H, D> {
    /// Returns the matrix of the next level, and its near-nullspace.
    pub fn next(&self) -> (&RankMatrix<H>, &[f64]) {
        (&self.matrix, &self.b.values)
    }
}

/// The aggregates of a rank, with the tentative prolongator to its rows.
struct Grouped<H> {
    /// Unknowns of the next level that the rank owns: aggregates, then modes of slivers.
    n: usize,
    n_aggregates: usize,
    /// The aggregate of each node.
    of_node: Vec<u32>,
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
    /// Rows of a node.
    block: usize,
    diagonal: Vec<H>,
    /// The size of the diagonal block of the row's node: its Frobenius norm.
    sizes: Vec<H>,
    b: NearNullspace,
}

impl<H: Scalar> OwnedAndGhosts<H> {
    /// Gets the values of ghosts from their owners. Collective.
    fn new(
        (matrix, own): (&RankMatrix<H>, &Rows<H>),
        diagonal: Vec<H>,
        b: &NearNullspace,
        block: usize,
    ) -> Result<Self, LinalgError> {
        let halo = &matrix.halo;
        let b = NearNullspace {
            n_vectors: b.n_vectors,
            values: by_row_with_ghosts(halo, &b.values, b.n_vectors)?,
        };
        let sizes = match block {
            1 => Vec::new(),
            _ => with_ghosts(halo, node_sizes(own, block))?,
        };
        let diagonal = with_ghosts(halo, diagonal)?;
        Ok(Self { block, sizes, diagonal, b })
    }

    /// Returns whether nodes have one row and the near-nullspace one vector.
    fn is_scalar(&self) -> bool {
        self.block == 1 && self.b.n_vectors == 1
    }

    /// Returns the sizes of the diagonal blocks of the nodes, row by row.
    fn sizes(&self) -> &[H] {
        if self.block == 1 { &self.diagonal } else { &self.sizes }
    }

    /// Returns whether the near-nullspace is zero in a node.
    fn is_zero(&self, node: usize) -> bool {
        let n = self.block * self.b.n_vectors;
        self.b.values[node * n..][..n].iter().all(|&value| value == 0.0)
    }
}

/// Returns the Frobenius norm of the diagonal block of each row's node.
fn node_sizes<H: Scalar>(own: &Rows<H>, block: usize) -> Vec<H> {
    let size = |row: usize| {
        let node = row / block;
        let of_row = |row: usize| {
            let (columns, values) = own.row(row);
            let within = columns.iter().zip(values).filter(|(column, _)| **column as usize / block == node);
            within.map(|(_, value)| value.to_f64().powi(2)).sum::<f64>()
        };
        H::from_f64((block * node..block * (node + 1)).map(of_row).sum::<f64>().sqrt())
    };
    parallel::map(own.n_rows(), PIECE, size)
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
    b: &NearNullspace,
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
    let block = if number == 0 { config.block_size } else { b.n_vectors };
    let scaling = scaling(&matrix, &own, &diagonal, block)?;
    let all = OwnedAndGhosts::new((&matrix, &own), diagonal, b, block)?;
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
    let b = grouped.tentative.coarse;
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

/// Appends the ghost values to the owned values of a rank, `k` for each row.
fn by_row_with_ghosts<E: Element>(halo: &Halo, own: &[E], k: usize) -> Result<Vec<E>, LinalgError> {
    let mut all = own.to_vec();
    all.resize((halo.n_owned() + halo.n_ghosts()) * k, E::zeroed());
    for v in 0..k {
        let of_vector = with_ghosts(halo, own.iter().skip(v).step_by(k).copied().collect())?;
        all.iter_mut().skip(v).step_by(k).zip(of_vector).for_each(|(to, value)| *to = value);
    }
    Ok(all)
}

/// The scaling of a level. The estimate of the largest eigenvalue is the maximum over the diagonal blocks of
/// the ranks, whose eigenvalues are no larger than those of the global matrix. Rows are raised by their full
/// absolute sums.
fn scaling<H: Scalar>(
    matrix: &RankMatrix<H>,
    own: &Rows<H>,
    diagonal: &[H],
    block: usize,
) -> Result<Scaling<H>, LinalgError> {
    let here = match diagonal {
        [] => [0.0; 2],
        _ => {
            let of_rank = Scaling::of_nodes(own, diagonal, block);
            [of_rank.largest, of_rank.most]
        }
    };
    let (largest, most) = (largest(&matrix.halo, here[0])?, largest(&matrix.halo, here[1])?);
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
    let (n, block, n_vectors) = (matrix.n_owned(), all.block, all.b.n_vectors);
    let (diagonal, (b, of_ghosts)) = (&all.diagonal[..n], all.b.values.split_at(n * n_vectors));
    let thresholds = thresholds_of(config.strength, number);
    let mut a = own;
    let (Strength { graph, is_strong, .. }, modes) = match all.is_scalar() {
        true => {
            let inherited = (number > 0).then_some(&[][..]);
            let modes = modes_of_ranks(matrix, &a, (&all.diagonal, &all.b.values))?;
            // Entries that reach others are on the diagonal, so that smooth vectors are smooth here too.
            matrix.lump(&mut a, b, of_ghosts);
            let rows = modes.as_ref().map(|modes| &modes.rows);
            (Strength::of_scalars(&a, diagonal, b, rows, inherited, thresholds), modes)
        }
        false => (Strength::new(&a, diagonal, block, thresholds), None),
    };
    let k = distance(graph.neighbours.len(), graph.n_nodes());
    let mut aggregates = aggregate(&graph, |_| 1, k, config.least_aggregate, Visit::ByNumber);
    add_single_nodes(matrix, all, thresholds[0], &mut aggregates);
    let numbers = inverse(&border_last(matrix, &aggregates, modes.as_ref(), block));
    let renumbered = aggregates.of_node.iter_mut().filter(|part| **part != NONE);
    renumbered.for_each(|part| *part = numbers[*part as usize]);
    let vectors = NearNullspace { n_vectors, values: b.to_vec() };
    let mut tentative = Tentative::new(&vectors, &aggregates, block);
    let n = aggregates.n * n_vectors + modes.as_ref().map_or(0, |modes| modes.n);
    tentative.coarse.values.resize(n * n_vectors, 0.0);
    let (n_aggregates, has_zero) = (aggregates.n, tentative.n_zero > 0);
    let (of_node, own_offsets) = (aggregates.of_node, a.offsets);
    Ok(Grouped { n, n_aggregates, of_node, tentative, modes, is_strong, own_offsets, has_zero })
}

/// Makes an aggregate of each node in none that has strong connections to ghosts: without one the next level would represent
/// no constant across the border.
fn add_single_nodes<H: Scalar>(
    matrix: &RankMatrix<H>,
    all: &OwnedAndGhosts<H>,
    threshold: f64,
    aggregates: &mut Aggregates,
) {
    let (block, sizes, square) = (all.block, all.sizes(), H::from_f64(threshold * threshold));
    let n = matrix.n_owned() / block;
    for node in 0..n {
        if aggregates.of_node[node] != NONE || all.is_zero(node) {
            continue;
        }
        let entries = (block * node..block * (node + 1)).flat_map(|row| {
            let (columns, values) = matrix.rows.row(row);
            columns.iter().map(|&column| column as usize / block).zip(values)
        });
        let of_ghosts = entries.filter(|(other, _)| *other >= n && !all.is_zero(*other));
        let mut squares: Vec<(usize, H)> = of_ghosts.map(|(other, &value)| (other, value * value)).collect();
        squares.sort_by_key(|(other, _)| *other);
        let is_strong = |entries: &[(usize, H)]| {
            let size = entries.iter().map(|(_, square)| *square).sum::<H>();
            size > square * sizes[block * node] * sizes[block * entries[0].0]
        };
        if squares.chunk_by(|a, b| a.0 == b.0).any(is_strong) {
            aggregates.of_node[node] = aggregates.n as u32;
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
    block: usize,
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
            let parts = near.map(|&column| aggregates.of_node[column as usize / block]);
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
    let (halo, block, n_vectors) = (&matrix.halo, all.block, all.b.n_vectors);
    let of_modes = match &grouped.modes {
        Some(modes) => modes.others_behind(halo.comm(), grouped.n_aggregates)?,
        None => Vec::new(),
    };
    let mut parts_of_ghosts = vec![0; halo.n_ghosts()];
    let of_rows: Vec<u32> =
        grouped.of_node.iter().flat_map(|&part| std::iter::repeat_n(part, block)).collect();
    halo.import(&mut parts_of_ghosts, &of_rows, &mut || ())?;
    let owners = halo.imports().iter().flat_map(|(owner, range)| range.clone().map(|_| *owner as u32));
    // The first unknown of the aggregate of each ghost node.
    let ids: Vec<Option<Id>> = owners
        .zip(&parts_of_ghosts)
        .step_by(block)
        .map(|(owner, &part)| (part != NONE).then_some((owner, u64::from(part) * n_vectors as u64)))
        .collect();
    let others = ids.iter().flatten().chain(&of_modes).copied();
    let places = Places::new(halo.comm(), [grouped.n, n_vectors], others);
    let values = by_row_with_ghosts(halo, &grouped.tentative.values, n_vectors)?;
    let of_ghosts = ids.iter().map(|id| id.map_or(NONE, |id| places.of(id) / n_vectors as u32));
    let aggregates = Aggregates {
        n: places.len() / n_vectors,
        of_node: grouped.of_node.iter().copied().chain(of_ghosts).collect(),
    };
    let coarse = NearNullspace { n_vectors, values: Vec::new() };
    let smoothing = Smoothing {
        a: &matrix.rows,
        is_strong: &is_strong(matrix, grouped, all, threshold),
        is_dense: &[],
        aggregates: &aggregates,
        tentative: &Tentative { n_vectors, values, coarse, n_zero: 0 },
        b: &all.b.values,
        block,
        largest: scaling.largest,
        most: scaling.most,
    };
    let of_modes: Vec<u32> = of_modes.into_iter().map(|id| places.of(id)).collect();
    Ok((with_modes(smoothing.prolongator(), grouped, &of_modes), places))
}

/// Whether each entry counts in smoothing: those of the rank's own block as there, those that reach ghosts by their size; with
/// several vectors all of them, as [`Smoothing::prolongator`] says.
fn is_strong<H: Scalar>(
    matrix: &RankMatrix<H>,
    grouped: &Grouped<H>,
    all: &OwnedAndGhosts<H>,
    threshold: f64,
) -> Vec<bool> {
    let (diagonal, is_scalar) = (&all.diagonal, all.is_scalar());
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
                *flag = !is_scalar || values[at] * values[at] > least * diagonal[columns[at] as usize];
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
