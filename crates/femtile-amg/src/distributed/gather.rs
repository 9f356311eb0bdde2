//! From levels that are divided among ranks to levels that every rank has whole.

use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use super::exchange::Id;
use crate::AmgError;
use crate::builder::Builder;
use crate::kernels::AmgKernels;
use crate::setup::rank_matrix::RankMatrix;
use crate::setup::rows::{Pieces, RowAccess, Rows};
use crate::setup::tentative::NearNullspace;
use crate::transfer::Gather;

impl<H: Scalar, D: AmgKernels<H>> Builder<'_, H, D> {
    /// Gathers the rows of the next level on every rank. Collective.
    pub fn gathered(
        &mut self,
        (matrix, b): (RankMatrix<H>, NearNullspace),
    ) -> Result<(Rows<H>, NearNullspace), AmgError> {
        self.close(None)?;
        let (comm, n) = (matrix.halo.comm().clone(), matrix.n_owned());
        if let Some(terms) = self.terms.take() {
            self.terms = Some(comm.all_gather(&terms)?.concat());
        }
        if comm.any([!self.inherited.is_empty()])? == [true] {
            self.inherited.resize(n, false);
            let flags: Vec<u8> = self.inherited.iter().map(|&flag| u8::from(flag)).collect();
            self.inherited = comm.all_gather(&flags)?.concat().into_iter().map(|flag| flag == 1).collect();
        }
        let GatheredRows { a, firsts, .. } = GatheredRows::new(&matrix, |_| true)?;
        let first = firsts[comm.rank()] as usize;
        let b = NearNullspace { n_vectors: b.n_vectors, values: comm.all_gather(&b.values)?.concat() };
        let gather = Gather { comm, first, n };
        match self.levels.last_mut().and_then(|level| level.transfer.exchange.as_mut()) {
            Some(exchange) => exchange.gather(gather)?,
            None => self.gather = Some(gather),
        }
        Ok((a, b))
    }
}

/// Rows of all ranks on every rank, one rank after the other.
pub(super) struct GatheredRows<H> {
    /// Without columns of other rows; columns ascend.
    pub a: Rows<H>,
    /// The global number of each row, ascending.
    numbers: Vec<u64>,
    /// The global number of the first row of each rank, and the end.
    firsts: Vec<u64>,
}

impl<H: Scalar> GatheredRows<H> {
    /// Gathers the rows of a rank that are taken, with those of their columns that are ghosts or taken as well. Collective.
    pub fn new(matrix: &RankMatrix<H>, is_taken: impl Fn(usize) -> bool) -> Result<Self, LinalgError> {
        let (comm, rows, n) = (matrix.halo.comm(), &matrix.rows, matrix.n_owned());
        let sizes = comm.all_gather(&[n as u64])?;
        let ends = sizes.iter().flatten().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        let firsts: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let own = firsts[comm.rank()]..firsts[comm.rank() + 1];
        let number_of = matrix.with_ghosts(own.collect(), 1)?;
        let (mut numbers, mut lengths) = (Vec::new(), Vec::new());
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for row in (0..n).filter(|&row| is_taken(row)) {
            let before = columns.len();
            for (&column, &value) in rows.row(row).0.iter().zip(rows.row(row).1) {
                let column = column as usize;
                if column >= n || is_taken(column) {
                    columns.push(number_of[column]);
                    values.push(value);
                }
            }
            numbers.push(number_of[row]);
            lengths.push((columns.len() - before) as u64);
        }
        let [numbers, lengths, columns] =
            [comm.all_gather(&numbers)?, comm.all_gather(&lengths)?, comm.all_gather(&columns)?]
                .map(|of_ranks| of_ranks.concat());
        let values = comm.all_gather(&values)?.concat();
        // All rows have their own numbers.
        let has_all = numbers.len() as u64 == firsts[comm.n_ranks()];
        let place = |column: u64| match has_all {
            true => Some(column as usize),
            false => numbers.binary_search(&column).ok(),
        };
        let ends: Vec<usize> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, &length| {
                *end += length as usize;
                Some(*end)
            }))
            .collect();
        let pieces = Pieces::build([numbers.len(); 2], Vec::new, |entries: &mut Vec<(u32, H)>, row, out| {
            let range = ends[row]..ends[row + 1];
            let pairs = columns[range.clone()].iter().zip(&values[range]);
            entries.clear();
            entries.extend(pairs.filter_map(|(&column, &value)| Some((place(column)? as u32, value))));
            entries.sort_unstable_by_key(|entry| entry.0);
            entries.iter().for_each(|&(column, value)| out.push(column, value));
        });
        Ok(Self { a: pieces.join(), numbers, firsts })
    }

    /// Returns the rank of a row, and its number there.
    pub fn id(&self, row: u32) -> Id {
        let number = self.numbers[row as usize];
        let rank = self.firsts.partition_point(|&first| first <= number) - 1;
        (rank as u32, number - self.firsts[rank])
    }
}
