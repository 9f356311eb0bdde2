//! Exchange of rows of the next level between ranks.

use std::collections::BTreeMap;
use std::sync::Arc;

use femtile_comm::{Comm, Halo};
use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use crate::setup::rank_matrix::RankMatrix;
use crate::setup::rows::{Pieces, RowAccess, Rows};

/// An unknown of the next level: its owner, and its number there.
pub(crate) type Id = (u32, u64);

/// The local numbering of unknowns of the next level: owned ones, then ghosts, sorted. Ghosts are whole nodes.
pub(crate) struct Places {
    rank: u32,
    n: usize,
    /// Unknowns of a node.
    block: usize,
    pub ghosts: Vec<Id>,
}

impl Places {
    /// Creates the numbering from the number of owned unknowns, those of a node, and the identities of any unknowns. The
    /// nodes of other ranks become ghosts.
    pub fn new(comm: &Comm, [n, block]: [usize; 2], ids: impl Iterator<Item = Id>) -> Self {
        let (rank, of_node) = (comm.rank() as u32, block as u64);
        let mut nodes: Vec<Id> =
            ids.filter(|id| id.0 != rank).map(|(owner, number)| (owner, number / of_node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let unknowns = |(owner, node)| (0..of_node).map(move |row| (owner, node * of_node + row));
        Self { rank, n, block, ghosts: nodes.into_iter().flat_map(unknowns).collect() }
    }

    /// Returns the number of own unknowns and ghosts.
    pub fn len(&self) -> usize {
        self.n + self.ghosts.len()
    }

    /// Returns the local number of an owned or ghost unknown.
    pub fn of(&self, id: Id) -> u32 {
        match id.0 == self.rank {
            true => id.1 as u32,
            false => (self.n + self.ghosts.partition_point(|other| *other < id)) as u32,
        }
    }

    fn id(&self, place: u32) -> Id {
        match (place as usize).checked_sub(self.n) {
            None => (self.rank, u64::from(place)),
            Some(ghost) => self.ghosts[ghost],
        }
    }

    /// Returns these unknowns and those of rows of other ranks.
    pub fn with<'r, H: 'r>(&self, comm: &Comm, rows: impl Iterator<Item = &'r WideRow<H>>) -> Self {
        let ids = rows.flatten().map(|entry| entry.0);
        Self::new(comm, [self.n, self.block], ids.chain(self.ghosts.iter().copied()))
    }

    /// Writes the entries of a row by ascending local numbers. All of its unknowns are owned or ghosts.
    pub fn numbered<H: Copy>(&self, row: &WideRow<H>, entries: &mut Vec<(u32, H)>) {
        entries.clear();
        entries.extend(row.iter().map(|&(id, value)| (self.of(id), value)));
        entries.sort_unstable_by_key(|entry| entry.0);
    }

    /// Returns the local numbers in `others` of all unknowns. `others` has all ghosts of this numbering;
    /// owned unknowns keep their numbers.
    pub fn ghosts_in(&self, others: &Self) -> Vec<u32> {
        self.ghosts.iter().map(|&id| others.of(id)).collect()
    }

    /// Returns the halo of the ghosts. Collective.
    pub fn halo(&self, comm: &Comm) -> Result<Halo, LinalgError> {
        let own: Vec<u64> = (0..self.n as u64).collect();
        Halo::new(comm, &own, &self.ghosts)
    }
}

/// A row whose columns are unknowns of any rank.
pub(crate) type WideRow<H> = Vec<(Id, H)>;

pub(crate) fn wide<H: Scalar>(rows: &Rows<H>, row: usize, places: &Places) -> WideRow<H> {
    let (columns, values) = rows.row(row);
    columns.iter().map(|&column| places.id(column)).zip(values.iter().copied()).collect()
}

/// Rows for each rank, ready to be sent.
struct Letters<H> {
    /// Of each row its length, then the owner and the number of each unknown.
    numbers: Vec<Vec<u64>>,
    values: Vec<Vec<H>>,
}

impl<H: Scalar> Letters<H> {
    fn new(n_ranks: usize) -> Self {
        Self { numbers: vec![Vec::new(); n_ranks], values: vec![Vec::new(); n_ranks] }
    }

    fn push(&mut self, to: usize, row: &WideRow<H>) {
        self.numbers[to].push(row.len() as u64);
        self.numbers[to].extend(row.iter().flat_map(|&((owner, number), _)| [u64::from(owner), number]));
        self.values[to].extend(row.iter().map(|(_, value)| *value));
    }

    /// Exchanges the rows and returns those from each rank.
    fn exchanged(self, comm: &Comm) -> Result<Vec<Vec<WideRow<H>>>, LinalgError> {
        let (numbers, values) = (comm.all_to_all(&self.numbers)?, comm.all_to_all(&self.values)?);
        let of_rank = |(numbers, values): (Vec<u64>, Vec<H>)| {
            let (mut rest, mut values, mut rows) = (numbers.as_slice(), values.into_iter(), Vec::new());
            while let [length, more @ ..] = rest {
                let (ids, after) = more.split_at(2 * *length as usize);
                let ids = ids.chunks_exact(2).map(|id| (id[0] as u32, id[1]));
                rows.push(ids.zip(values.by_ref()).collect());
                rest = after;
            }
            rows
        };
        Ok(numbers.into_iter().zip(values).map(of_rank).collect())
    }
}

/// Returns the exported rows of every ghost's owner: `rows` are those that this rank exports, neighbour by neighbour.
/// Collective.
pub(crate) fn sent_to_ghosts<H: Scalar>(
    halo: &Halo,
    rows: impl Iterator<Item = WideRow<H>>,
) -> Result<Vec<WideRow<H>>, LinalgError> {
    let mut letters = Letters::new(halo.comm().n_ranks());
    let owners = halo.exports().iter().flat_map(|(to, places)| places.iter().map(|_| *to));
    owners.zip(rows).for_each(|(to, row)| letters.push(to, &row));
    let mut received = letters.exchanged(halo.comm())?;
    Ok(halo.imports().iter().flat_map(|(from, _)| std::mem::take(&mut received[*from])).collect())
}

/// Returns the entries that other ranks add to rows of this one: the row, and its entries. Collective.
pub(crate) fn sent_to_owners<H: Scalar>(
    halo: &Halo,
    local: &Rows<H>,
    places: &Places,
) -> Result<Vec<(u32, WideRow<H>)>, LinalgError> {
    let mut letters = Letters::new(halo.comm().n_ranks());
    for (to, range) in halo.imports() {
        range.clone().for_each(|ghost| letters.push(*to, &wide(local, halo.n_owned() + ghost, places)));
    }
    let mut received = letters.exchanged(halo.comm())?;
    let rows = halo
        .exports()
        .iter()
        .flat_map(|(from, rows)| rows.iter().copied().zip(std::mem::take(&mut received[*from])));
    Ok(rows.collect())
}

/// Returns the owned rows with the contributions of other ranks added. Collective.
pub(crate) fn summed<H: Scalar>(
    comm: &Comm,
    (local, before): (&Rows<H>, &Places),
    n: usize,
    received: Vec<(u32, WideRow<H>)>,
) -> Result<RankMatrix<H>, LinalgError> {
    let places = before.with(comm, received.iter().map(|(_, row)| row));
    let mut added: BTreeMap<u32, Vec<(u32, H)>> = BTreeMap::new();
    for (row, entries) in received {
        added.entry(row).or_default().extend(entries.into_iter().map(|(id, value)| (places.of(id), value)));
    }
    let numbers = before.ghosts_in(&places);
    let number = |column: u32| (column as usize).checked_sub(n).map_or(column, |ghost| numbers[ghost]);
    let pieces = Pieces::build([n, places.len()], Vec::new, |entries: &mut Vec<(u32, H)>, row, out| {
        let (columns, values) = local.row(row);
        entries.clear();
        entries.extend(columns.iter().zip(values).map(|(&column, &value)| (number(column), value)));
        entries.extend(added.get(&(row as u32)).into_iter().flatten());
        // Stable: sums are in the order of ranks.
        entries.sort_by_key(|entry| entry.0);
        for group in entries.chunk_by(|a, b| a.0 == b.0) {
            out.push(group[0].0, group.iter().map(|entry| entry.1).sum());
        }
    });
    Ok(RankMatrix { rows: pieces.join(), halo: Arc::new(places.halo(comm)?) })
}
