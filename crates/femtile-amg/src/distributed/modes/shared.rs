//! The rows of clusters that several ranks share.

use femtile_comm::Comm;
use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use super::super::coarsen::with_ghosts;
use super::super::exchange::Id;
use super::super::level::RankMatrix;
use crate::setup::local_modes::modes_of_clusters;
use crate::setup::rows::{RowAccess, Rows};

/// The rows of clusters that reach ghosts, of all ranks, without columns of other rows.
pub(super) struct Shared<H> {
    a: Rows<H>,
    /// The global number of each row, ascending.
    numbers: Vec<u64>,
    /// The number of the first row of each rank, and the end.
    firsts: Vec<u64>,
}

impl<H: Scalar> Shared<H> {
    /// Gathers the rows that are marked. Collective.
    pub fn gathered(matrix: &RankMatrix<H>, is_shared: &[bool]) -> Result<Self, LinalgError> {
        let comm = matrix.halo.comm();
        let firsts = firsts(comm, matrix.n_owned())?;
        let own = firsts[comm.rank()]..firsts[comm.rank() + 1];
        let marked = Marked::new(&matrix.rows, &with_ghosts(&matrix.halo, own.collect())?, is_shared);
        let numbers = comm.all_gather(&marked.numbers)?.concat();
        let lengths = comm.all_gather(&marked.lengths)?.concat();
        let columns = comm.all_gather(&marked.columns)?.concat();
        let values = comm.all_gather(&marked.values)?.concat();
        Ok(Self { a: among(&numbers, &lengths, &columns, &values), numbers, firsts })
    }

    /// Returns the modes as rows.
    pub fn modes(&self) -> Rows<H> {
        let diagonal_of = |row: usize| {
            let (columns, values) = self.a.row(row);
            columns.iter().position(|&column| column as usize == row).map_or(H::ONE, |at| values[at])
        };
        let diagonal: Vec<H> = (0..self.numbers.len()).map(diagonal_of).collect();
        modes_of_clusters(&self.a, &diagonal, &vec![1.0; diagonal.len()])
    }

    /// Returns the rank of a row, and its number there.
    pub fn id(&self, row: u32) -> Id {
        let number = self.numbers[row as usize];
        let rank = self.firsts.partition_point(|&first| first <= number) - 1;
        (rank as u32, number - self.firsts[rank])
    }
}

/// Marked rows of a rank, with global numbers.
struct Marked<H> {
    numbers: Vec<u64>,
    lengths: Vec<u64>,
    columns: Vec<u64>,
    values: Vec<H>,
}

impl<H: Scalar> Marked<H> {
    /// Takes rows with the numbers of their columns; keeps the columns of marked rows and of ghosts.
    fn new(rows: &Rows<H>, numbers: &[u64], is_marked: &[bool]) -> Self {
        let mut marked =
            Self { numbers: Vec::new(), lengths: Vec::new(), columns: Vec::new(), values: Vec::new() };
        for row in (0..rows.n_rows()).filter(|&row| is_marked[row]) {
            let before = marked.columns.len();
            let (columns, values) = rows.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                if is_marked.get(column as usize).is_none_or(|is_marked| *is_marked) {
                    marked.columns.push(numbers[column as usize]);
                    marked.values.push(value);
                }
            }
            marked.numbers.push(numbers[row]);
            marked.lengths.push((marked.columns.len() - before) as u64);
        }
        marked
    }
}

/// The number of the first row of each rank, and the end.
fn firsts(comm: &Comm, n_owned: usize) -> Result<Vec<u64>, LinalgError> {
    let sizes = comm.all_gather(&[n_owned as u64])?;
    let ends = sizes.iter().flatten().scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    Ok(std::iter::once(0).chain(ends).collect())
}

/// The matrix of the rows with these ascending numbers; columns are numbers as well, and others are left out.
fn among<H: Scalar>(numbers: &[u64], lengths: &[u64], columns: &[u64], values: &[H]) -> Rows<H> {
    let mut a = Rows { n_cols: numbers.len(), offsets: vec![0], columns: Vec::new(), values: Vec::new() };
    let mut entries = columns.iter().zip(values);
    for &length in lengths {
        for (column, &value) in entries.by_ref().take(length as usize) {
            if let Ok(at) = numbers.binary_search(column) {
                a.columns.push(at as u32);
                a.values.push(value);
            }
        }
        a.offsets.push(a.columns.len());
    }
    a
}
