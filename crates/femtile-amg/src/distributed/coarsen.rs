//! From a level that is divided among ranks to the next one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use femtile_comm::{Comm, DistributedMatrix, Halo, RankKernels};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::Convert;
use femtile_sparse::ProductMatrix;

use super::level::{RankLevel, RankMatrix, RankTransfer, largest};
use super::totals;
use crate::builder::{LEAST_GAIN, fill_zero_rows, thresholds_of};
use crate::kernels::AmgKernels;
use crate::level::CYCLES;
use crate::relaxation::steps;
use crate::setup::aggregate::aggregate;
use crate::setup::galerkin::galerkin;
use crate::setup::graph::{Aggregates, NONE, distance};
use crate::setup::independent_set::Visit;
use crate::setup::local_modes::local_modes;
use crate::setup::prolong::Smoothing;
use crate::setup::rows::{Pieces, RowAccess, Rows, inverse, sort_row};
use crate::setup::spectrum::{HARMLESS, Scaling};
use crate::setup::strength::Strength;
use crate::setup::tentative::{NearNullspace, Tentative};
use crate::{AmgConfig, AmgError, check};

/// A level with the matrix below it.
pub(super) struct Coarse<H: Scalar, D: RankKernels<H>> {
    pub level: RankLevel<H, D>,
    pub matrix: RankMatrix<H>,
    /// The near-nullspace of that.
    pub b: Vec<f64>,
    pub n_aggregates: usize,
}

/// An unknown of the next level: its owner, and its number there.
type Id = (u32, u64);

/// The aggregates of a rank, with the tentative prolongator to its rows.
struct Grouped<H> {
    /// Unknowns of the next level that the rank owns: aggregates, then modes of slivers.
    n: usize,
    n_aggregates: usize,
    /// The aggregate of each row.
    of_row: Vec<u32>,
    tentative: Tentative<H>,
    modes: Option<Rows<H>>,
    /// As [`Strength::is_strong`] of the rank's own block.
    is_strong: Vec<bool>,
    has_zero: bool,
}

/// Makes the level with this number, and the next one; none where that would hardly be smaller.
pub(super) fn coarsen<H: Scalar, D>(
    device: &D,
    matrix: &RankMatrix<H>,
    b: &[f64],
    number: usize,
    config: &AmgConfig,
) -> Result<Option<Coarse<H, D>>, AmgError>
where
    D: AmgKernels<H> + Convert<H, H> + RankKernels<H>,
{
    let halo = &matrix.halo;
    let comm = halo.comm();
    let diagonal = check::diagonal(&matrix.rows, 1.0)?;
    if number == 0 {
        check::range(&diagonal)?;
    }
    let own = matrix.own();
    let scaling = scaling(matrix, &own, &diagonal)?;
    let mut of_ghosts = vec![0.0; halo.n_ghosts()];
    halo.import(&mut of_ghosts, b, &mut || ())?;
    let grouped = grouped(matrix, &own, &diagonal, (b, &of_ghosts), (number, config));
    let [n, n_coarse] = totals(comm, [matrix.n_owned(), grouped.n])?;
    if n_coarse as f64 > LEAST_GAIN * n as f64 || n_coarse == 0 {
        return Ok(None);
    }
    let threshold = thresholds_of(config.strength, number)[1];
    let (p, places) = prolongator(matrix, &grouped, (b, &of_ghosts), (&diagonal, &scaling), threshold)?;
    let coarse_halo = places.halo(comm)?;
    let mut next = product(matrix, &p, &places, &coarse_halo)?;
    if grouped.has_zero {
        fill_zero_rows(&mut next.rows);
    }
    let n_products = CYCLES * config.smoother.n_products();
    let split = matrix.split(device)?;
    let operator = ProductMatrix::new(split.own, config.format, n_products, &[])?.0;
    let level = RankLevel {
        a: DistributedMatrix::new(Box::new(operator), split.border, Arc::clone(halo))?,
        steps: steps(config.smoother, scaling.largest),
        inverse_diagonal: Buffer::from_vec(device, scaling.inverse_diagonal).map_err(LinalgError::from)?,
        transfer: RankTransfer::new(device, p, coarse_halo)?,
    };
    let b = grouped.tentative.coarse.values;
    Ok(Some(Coarse { level, matrix: next, b, n_aggregates: grouped.n_aggregates }))
}

/// The scaling of a level: the estimate of the largest eigenvalue is the largest of those of the ranks' own blocks, whose
/// eigenvalues are no larger than those of the whole; rows are raised by their whole absolute sums.
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
    Ok(Scaling { inverse_diagonal: (0..diagonal.len()).map(inverse).collect(), largest, most })
}

/// Aggregates of the rows of a rank. Those that rows beside ghosts, or their neighbours, belong to come last.
fn grouped<H: Scalar>(
    matrix: &RankMatrix<H>,
    own: &Rows<H>,
    diagonal: &[H],
    (b, of_ghosts): (&[f64], &[f64]),
    (number, config): (usize, &AmgConfig),
) -> Grouped<H> {
    // Entries that reach others are on the diagonal, so that smooth vectors are smooth here too.
    let a = matrix.lumped(b, of_ghosts);
    let inherited = (number > 0).then_some(&[][..]);
    let modes = local_modes(own, diagonal, b);
    let thresholds = thresholds_of(config.strength, number);
    let Strength { graph, is_strong, .. } =
        Strength::of_scalars(&a, diagonal, b, modes.as_ref(), inherited, thresholds);
    let k = distance(graph.neighbours.len(), graph.n_nodes());
    let mut aggregates = aggregate(&graph, |_| 1, k, config.least_aggregate, Visit::ByNumber);
    let numbers = inverse(&border_last(matrix, &aggregates));
    let renumbered = aggregates.of_node.iter_mut().filter(|part| **part != NONE);
    renumbered.for_each(|part| *part = numbers[*part as usize]);
    let vector = NearNullspace { n_vectors: 1, values: b.to_vec() };
    let mut tentative = Tentative::new(&vector, &aggregates, 1);
    let n = aggregates.n + modes.as_ref().map_or(0, |modes| modes.n_cols);
    tentative.coarse.values.resize(n, 0.0);
    let (n_aggregates, has_zero) = (aggregates.n, tentative.n_zero > 0);
    Grouped { n, n_aggregates, of_row: aggregates.of_node, tentative, modes, is_strong, has_zero }
}

/// The aggregates in an order in which those of rows beside ghosts, and of their neighbours, are the last.
fn border_last<H: Scalar>(matrix: &RankMatrix<H>, aggregates: &Aggregates) -> Vec<u32> {
    let n = matrix.n_owned();
    let mut is_border = vec![false; aggregates.n];
    for row in 0..n {
        let columns = matrix.rows.row(row).0;
        if columns.last().is_some_and(|&last| last as usize >= n) {
            let near = columns.iter().filter(|column| (**column as usize) < n);
            let parts = near.map(|&column| aggregates.of_node[column as usize]);
            parts.filter(|&part| part != NONE).for_each(|part| is_border[part as usize] = true);
        }
    }
    let all = || 0..aggregates.n as u32;
    let inner = all().filter(|&part| !is_border[part as usize]);
    inner.chain(all().filter(|&part| is_border[part as usize])).collect()
}

/// The unknowns of the next level that are seen from a rank: its own, then those of others, sorted.
struct Places {
    rank: u32,
    n: usize,
    ghosts: Vec<Id>,
}

impl Places {
    fn new(comm: &Comm, n: usize, ids: impl Iterator<Item = Id>) -> Self {
        let rank = comm.rank() as u32;
        let mut ghosts: Vec<Id> = ids.filter(|id| id.0 != rank).collect();
        ghosts.sort_unstable();
        ghosts.dedup();
        Self { rank, n, ghosts }
    }

    fn len(&self) -> usize {
        self.n + self.ghosts.len()
    }

    fn of(&self, id: Id) -> u32 {
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

    fn halo(&self, comm: &Comm) -> Result<Halo, LinalgError> {
        let own: Vec<u64> = (0..self.n as u64).collect();
        Halo::new(comm, &own, &self.ghosts)
    }
}

/// The smoothed prolongator to the rows of a rank, from aggregates of its own rows and of those of its ghosts.
fn prolongator<H: Scalar>(
    matrix: &RankMatrix<H>,
    grouped: &Grouped<H>,
    (b, b_of_ghosts): (&[f64], &[f64]),
    (diagonal, scaling): (&[H], &Scaling<H>),
    threshold: f64,
) -> Result<(Rows<H>, Places), LinalgError> {
    let (halo, n) = (&matrix.halo, matrix.n_owned());
    let mut parts_of_ghosts = vec![0; halo.n_ghosts()];
    halo.import(&mut parts_of_ghosts, &grouped.of_row, &mut || ())?;
    let owners = halo.imports().iter().flat_map(|(owner, range)| range.clone().map(|_| *owner as u32));
    let ids: Vec<Option<Id>> = owners
        .zip(&parts_of_ghosts)
        .map(|(owner, &part)| (part != NONE).then_some((owner, u64::from(part))))
        .collect();
    let places = Places::new(halo.comm(), grouped.n, ids.iter().flatten().copied());
    let mut values = grouped.tentative.values.clone();
    values.resize(n + halo.n_ghosts(), H::ZERO);
    halo.import(&mut values[n..], &grouped.tentative.values, &mut || ())?;
    let of_ghosts = ids.iter().map(|id| id.map_or(NONE, |id| places.of(id)));
    let aggregates =
        Aggregates { n: places.len(), of_node: grouped.of_row.iter().copied().chain(of_ghosts).collect() };
    let coarse = NearNullspace { n_vectors: 1, values: Vec::new() };
    let smoothing = Smoothing {
        a: &matrix.rows,
        is_strong: &is_strong(matrix, grouped, diagonal, threshold)?,
        aggregates: &aggregates,
        tentative: &Tentative { n_vectors: 1, values, coarse, n_zero: 0 },
        b: &[b, b_of_ghosts].concat(),
        block: 1,
        largest: scaling.largest,
        most: scaling.most,
    };
    Ok((with_modes(smoothing.prolongator(), grouped), places))
}

/// Whether each entry counts in smoothing: those of the rank's own block as there, those that reach ghosts by their size.
fn is_strong<H: Scalar>(
    matrix: &RankMatrix<H>,
    grouped: &Grouped<H>,
    diagonal: &[H],
    threshold: f64,
) -> Result<Vec<bool>, LinalgError> {
    let (halo, n) = (&matrix.halo, matrix.n_owned());
    let mut of_ghosts = vec![H::ZERO; halo.n_ghosts()];
    halo.import(&mut of_ghosts, diagonal, &mut || ())?;
    let square = H::from_f64(threshold * threshold);
    let mut own = grouped.is_strong.iter();
    let mut all = Vec::with_capacity(matrix.n_nonzeros());
    for (row, &pivot) in diagonal.iter().enumerate() {
        let (columns, values) = matrix.rows.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            all.push(match (column as usize).checked_sub(n) {
                None => own.next() == Some(&true),
                Some(ghost) => value * value > square * pivot * of_ghosts[ghost],
            });
        }
    }
    Ok(all)
}

/// The prolongator with modes of slivers in the columns behind the rank's aggregates.
fn with_modes<H: Scalar>(p: Rows<H>, grouped: &Grouped<H>) -> Rows<H> {
    let Some(modes) = &grouped.modes else { return p };
    let dimensions = [p.n_rows(), p.n_cols];
    let scratch = || (Vec::new(), Vec::new(), Vec::new());
    let pieces = Pieces::build(dimensions, scratch, |(columns, values, pairs), row, out| {
        let (of_row, values_of_row) = p.row(row);
        let (of_modes, values_of_modes) = modes.row(row);
        (*columns, *values) = (of_row.to_vec(), values_of_row.to_vec());
        columns.extend(of_modes.iter().map(|mode| grouped.n_aggregates as u32 + mode));
        values.extend_from_slice(values_of_modes);
        sort_row(columns, values, pairs);
        out.extend(columns, values);
    });
    pieces.join()
}

/// A row whose columns are unknowns of any rank.
type WideRow<H> = Vec<(Id, H)>;

/// The Galerkin product $P^\mathsf{T} A P$. Rows of P that belong to ghosts come from their owners; entries of
/// rows of others go to theirs, and are added there in the order of ranks.
fn product<H: Scalar>(
    matrix: &RankMatrix<H>,
    p: &Rows<H>,
    seen: &Places,
    coarse_halo: &Halo,
) -> Result<RankMatrix<H>, LinalgError> {
    let (halo, comm) = (&matrix.halo, coarse_halo.comm());
    let (n, n_coarse) = (matrix.n_owned(), coarse_halo.n_owned());
    let of_p = |row: usize| wide(p, row, seen);
    let of_ghosts = sent_to_ghosts(halo, of_p)?;
    let known = seen.ghosts.iter().copied();
    let places = Places::new(comm, n_coarse, of_ghosts.iter().flatten().map(|entry| entry.0).chain(known));
    let all = Pieces::build([n + of_ghosts.len(), places.len()], Vec::new, |entries, row, out| {
        *entries = row.checked_sub(n).map_or_else(|| of_p(row), |ghost| of_ghosts[ghost].clone());
        let mut placed: Vec<(u32, H)> = entries.iter().map(|&(id, value)| (places.of(id), value)).collect();
        placed.sort_unstable_by_key(|entry| entry.0);
        placed.iter().for_each(|&(column, value)| out.push(column, value));
    });
    let local = galerkin(&matrix.rows, &all.join(), &p.transpose());
    let received = sent_to_owners(coarse_halo, &local, &places)?;
    summed(comm, (&local, &places), n_coarse, received)
}

fn wide<H: Scalar>(rows: &Rows<H>, row: usize, places: &Places) -> WideRow<H> {
    let (columns, values) = rows.row(row);
    columns.iter().map(|&column| places.id(column)).zip(values.iter().copied()).collect()
}

/// Rows for each rank, ready to be sent.
struct Letters<H> {
    lengths: Vec<Vec<u32>>,
    owners: Vec<Vec<u32>>,
    numbers: Vec<Vec<u64>>,
    values: Vec<Vec<H>>,
}

impl<H: Scalar> Letters<H> {
    fn new(n_ranks: usize) -> Self {
        let (lengths, owners) = (vec![Vec::new(); n_ranks], vec![Vec::new(); n_ranks]);
        Self { lengths, owners, numbers: vec![Vec::new(); n_ranks], values: vec![Vec::new(); n_ranks] }
    }

    fn push(&mut self, to: usize, row: &WideRow<H>) {
        self.lengths[to].push(row.len() as u32);
        for &((owner, number), value) in row {
            self.owners[to].push(owner);
            self.numbers[to].push(number);
            self.values[to].push(value);
        }
    }

    /// The rows from each rank.
    fn exchanged(self, comm: &Comm) -> Result<Vec<Vec<WideRow<H>>>, LinalgError> {
        let (lengths, owners) = (comm.all_to_all(&self.lengths)?, comm.all_to_all(&self.owners)?);
        let (numbers, values) = (comm.all_to_all(&self.numbers)?, comm.all_to_all(&self.values)?);
        let of_rank = |rank: usize| {
            let mut next = 0;
            let row = |&length: &u32| {
                let range: Range<usize> = next..next + length as usize;
                next = range.end;
                range.map(|i| ((owners[rank][i], numbers[rank][i]), values[rank][i])).collect()
            };
            lengths[rank].iter().map(row).collect()
        };
        Ok((0..lengths.len()).map(of_rank).collect())
    }
}

/// The rows of each ghost, from its owner.
fn sent_to_ghosts<H: Scalar>(
    halo: &Halo,
    row: impl Fn(usize) -> WideRow<H>,
) -> Result<Vec<WideRow<H>>, LinalgError> {
    let mut letters = Letters::new(halo.comm().n_ranks());
    for (to, places) in halo.exports() {
        places.iter().for_each(|&place| letters.push(*to, &row(place as usize)));
    }
    let mut received = letters.exchanged(halo.comm())?;
    Ok(halo.imports().iter().flat_map(|(from, _)| std::mem::take(&mut received[*from])).collect())
}

/// The entries that other ranks add to rows of this one: the row, and its entries.
fn sent_to_owners<H: Scalar>(
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

/// The rows of a rank with what others add to them.
fn summed<H: Scalar>(
    comm: &Comm,
    (local, before): (&Rows<H>, &Places),
    n: usize,
    received: Vec<(u32, WideRow<H>)>,
) -> Result<RankMatrix<H>, LinalgError> {
    let ids = received.iter().flat_map(|(_, row)| row.iter().map(|entry| entry.0));
    let places = Places::new(comm, n, ids.chain(before.ghosts.iter().copied()));
    let mut added: BTreeMap<u32, Vec<(u32, H)>> = BTreeMap::new();
    for (row, entries) in received {
        added.entry(row).or_default().extend(entries.into_iter().map(|(id, value)| (places.of(id), value)));
    }
    let pieces = Pieces::build(
        [n, places.len()],
        || (),
        |(), row, out| {
            let own = wide(local, row, before).into_iter().map(|(id, value)| (places.of(id), value));
            let more = added.get(&(row as u32)).into_iter().flatten().copied();
            let mut entries: Vec<(u32, H)> = own.chain(more).collect();
            // Stable: sums are in the order of ranks.
            entries.sort_by_key(|entry| entry.0);
            for group in entries.chunk_by(|a, b| a.0 == b.0) {
                out.push(group[0].0, group.iter().map(|entry| entry.1).sum());
            }
        },
    );
    Ok(RankMatrix { rows: pieces.join(), halo: Arc::new(places.halo(comm)?) })
}
