//! Nodes of a rank beside ghosts: connections to ghosts, and aggregates there.

use femtile_device::{Scalar, parallel};

use super::modes::RankModes;
use crate::coarsen::Fine;
use crate::setup::graph::{Aggregates, NONE};
use crate::setup::rank_matrix::RankMatrix;
use crate::setup::rows::{PIECE, RowAccess, Rows};
use crate::setup::strength::flags;

/// Returns the Frobenius norm of the diagonal block of each row's node.
pub(crate) fn node_sizes<H: Scalar>(matrix: &RankMatrix<H>, block: usize) -> Vec<H> {
    let size = |row: usize| {
        let node = row / block;
        let of_row = |row: usize| {
            let (columns, values) = matrix.rows.row(row);
            let within = columns.iter().zip(values).filter(|(column, _)| **column as usize / block == node);
            within.map(|(_, value)| value.to_f64().powi(2)).sum::<f64>()
        };
        H::from_f64((block * node..block * (node + 1)).map(of_row).sum::<f64>().sqrt())
    };
    parallel::map(matrix.n_owned(), PIECE, size)
}

/// Makes an aggregate of each node in none that has strong connections to ghosts: without one the next level would represent
/// no constant across the border.
pub(crate) fn add_single_nodes<H: Scalar>(fine: &Fine<H>, threshold: f64, aggregates: &mut Aggregates) {
    let Fine { matrix, block, .. } = fine;
    let (block, square) = (*block, H::from_f64(threshold * threshold));
    let sizes = if block == 1 { &fine.diagonal } else { &fine.sizes };
    let is_zero = |node: usize| {
        let n = block * fine.b.n_vectors;
        fine.b.values[node * n..][..n].iter().all(|&value| value == 0.0)
    };
    let n = matrix.n_owned() / block;
    for node in 0..n {
        if aggregates.of_node[node] != NONE || is_zero(node) {
            continue;
        }
        let entries = (block * node..block * (node + 1)).flat_map(|row| {
            let (columns, values) = matrix.rows.row(row);
            columns.iter().map(|&column| column as usize / block).zip(values)
        });
        let of_ghosts = entries.filter(|(other, _)| *other >= n && !is_zero(*other));
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
pub(crate) fn border_last<H: Scalar>(
    Fine { matrix, block, .. }: &Fine<H>,
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
            let parts = near.map(|&column| aggregates.of_node[column as usize / block]);
            parts.filter(|&part| part != NONE).for_each(|part| is_border[part as usize] = true);
        }
    }
    let all = || 0..aggregates.n as u32;
    let inner = all().filter(|&part| !is_border[part as usize]);
    inner.chain(all().filter(|&part| is_border[part as usize])).collect()
}

/// Returns whether each entry counts in smoothing, from the flags of entries in owned columns: those in ghost columns count by
/// their size; with several vectors all of them, as [`Smoothing::prolongator`] says; never those of dense nodes.
///
/// [`Smoothing::prolongator`]: crate::setup::prolong::Smoothing::prolongator
pub(crate) fn join_to_ghosts<H: Scalar>(
    fine: &Fine<H>,
    own: &Rows<H>,
    of_own: Vec<bool>,
    is_dense: &[bool],
    threshold: f64,
) -> Vec<bool> {
    let Fine { matrix, block, diagonal, .. } = fine;
    if matrix.halo.n_ghosts() == 0 {
        return of_own;
    }
    let (is_scalar, square) = (fine.is_scalar(), H::from_f64(threshold * threshold));
    let is_dense = |row: usize| !is_dense.is_empty() && is_dense[row / block];
    let begin_of = |row: usize| matrix.rows.offsets[row];
    flags(&matrix.rows, |rows, flags| {
        let begin = begin_of(rows.start);
        for row in rows {
            let (columns, values) = matrix.rows.row(row);
            let of_own = &of_own[own.offsets[row]..own.offsets[row + 1]];
            let flags = &mut flags[begin_of(row) - begin..begin_of(row + 1) - begin];
            let (flags_of_own, others) = flags.split_at_mut(of_own.len());
            flags_of_own.copy_from_slice(of_own);
            let least = square * diagonal[row];
            for (at, flag) in (of_own.len()..).zip(others) {
                let column = columns[at] as usize;
                let is_large = !is_scalar || values[at] * values[at] > least * diagonal[column];
                *flag = is_large && !is_dense(row) && !is_dense(column);
            }
        }
    })
}
