//! Modes of slivers on distributed levels: those of one rank, also for clusters of nodes that cross borders.
//!
//! Every rank gathers the rows of clusters at borders and finds the same modes there. A mode belongs to the
//! rank of its first node. Clusters within a rank are local.

use femtile_comm::Comm;
use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use super::exchange::Id;
use super::gather::GatheredRows;
use crate::setup::local_modes::{are_few, has_opposed, joined_to_ghosts, modes_of_clusters};
use crate::setup::rank_matrix::{RankMatrix, totals};
use crate::setup::rows::{RowAccess, Rows};

/// The modes on the rows of a rank.
pub(crate) struct RankModes<H> {
    /// Columns of the rank's own modes, then of those of other ranks.
    pub rows: Rows<H>,
    /// Number of own modes.
    pub n: usize,
    /// The others: their owners, and their numbers among the modes of these.
    others: Vec<Id>,
}

impl<H: Scalar> RankModes<H> {
    /// Returns whether a mode of another rank is not zero in a row.
    pub fn reaches_others(&self, row: usize) -> bool {
        self.rows.row(row).0.last().is_some_and(|&last| last as usize >= self.n)
    }

    /// Returns the modes of other ranks as unknowns of the next level. Each rank numbers its modes after its
    /// aggregates. Collective.
    pub fn others_behind(&self, comm: &Comm, n_aggregates: usize) -> Result<Vec<Id>, LinalgError> {
        let n_aggregates = comm.all_gather(&[n_aggregates as u64])?;
        Ok(self.others.iter().map(|&(owner, mode)| (owner, n_aggregates[owner as usize][0] + mode)).collect())
    }
}

/// Returns further columns of the prolongator on the rows of a rank, see [`modes_of_clusters`], on all ranks or on none. The
/// diagonal and the near-nullspace b include ghosts. Collective.
///
/// # Cost
/// A pass over the non-zeros, and one sum. If there are slivers, two more passes, and each rank also has the rows of border
/// clusters of all ranks.
pub(crate) fn local_modes<H: Scalar>(
    matrix: &RankMatrix<H>,
    diagonal: &[H],
    b: &[f64],
) -> Result<Option<RankModes<H>>, LinalgError> {
    let (comm, n) = (matrix.halo.comm(), matrix.n_owned());
    let [is_opposed] = comm.any([has_opposed(&matrix.rows, diagonal, b)])?;
    if !is_opposed {
        return Ok(None);
    }
    let is_shared = match matrix.is_whole() {
        true => vec![false; n],
        false => joined_to_ghosts(&matrix.rows, diagonal, b),
    };
    let shared = GatheredRows::new(matrix, |row| is_shared[row])?;
    // Rows in which b is zero have no modes.
    let b_within = |row: usize| if is_shared[row] { 0.0 } else { b[row] };
    let b_within: Vec<f64> = (0..n).map(b_within).collect();
    let within = modes_of_clusters(&matrix.own(), &diagonal[..n], &b_within);
    let modes = joined(&shared, &within, [comm.rank(), comm.n_ranks()]);
    let [n_modes, n_rows] = totals(comm, [modes.n, n])?;
    Ok(are_few(n_modes, n_rows).then_some(modes))
}

/// The modes on the rows of a rank: those of clusters that ranks share, and those `within` it.
fn joined<H: Scalar>(
    shared: &GatheredRows<H>,
    within: &Rows<H>,
    [rank, n_ranks]: [usize; 2],
) -> RankModes<H> {
    let diagonal: Vec<H> = (0..shared.a.n_rows())
        .map(|row| {
            let (columns, values) = shared.a.row(row);
            columns.iter().position(|&column| column as usize == row).map_or(H::ONE, |at| values[at])
        })
        .collect();
    let modes = modes_of_clusters(&shared.a, &diagonal, &vec![1.0; diagonal.len()]);
    let none = || Rows { n_cols: within.n_cols, offsets: vec![0], columns: Vec::new(), values: Vec::new() };
    let (mut own, mut foreign, mut others) = (none(), none(), Vec::new());
    let mut counts = vec![0; n_ranks];
    for mode in 0..modes.n_rows() {
        let (nodes, values) = modes.row(mode);
        let ids: Vec<Id> = nodes.iter().map(|&node| shared.id(node)).collect();
        let entries = || ids.iter().zip(values).filter(|(id, _)| id.0 as usize == rank);
        let owner = ids[0].0;
        let number = counts[owner as usize];
        counts[owner as usize] += 1;
        if owner as usize == rank {
            append(&mut own, entries());
        } else if entries().next().is_some() {
            append(&mut foreign, entries());
            others.push((owner, number));
        }
    }
    for mode in 0..within.n_rows() {
        let (rows, values) = within.row(mode);
        own.columns.extend_from_slice(rows);
        own.values.extend_from_slice(values);
        own.offsets.push(own.columns.len());
    }
    let n = own.n_rows();
    foreign.offsets[1..].iter().for_each(|end| own.offsets.push(own.columns.len() + end));
    own.columns.append(&mut foreign.columns);
    own.values.append(&mut foreign.values);
    RankModes { rows: own.transpose(), n, others }
}

/// Appends a mode with these entries as a row.
fn append<'a, H: Scalar>(modes: &mut Rows<H>, entries: impl Iterator<Item = (&'a Id, &'a H)>) {
    for (id, &value) in entries {
        modes.columns.push(id.1 as u32);
        modes.values.push(value);
    }
    modes.offsets.push(modes.columns.len());
}
