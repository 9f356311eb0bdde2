//! Distributed sparse matrices, by rows.
//!
//! The last rows, which have entries in ghost columns, are completed after the messages have arrived. Hooks
//! see each block of rows once, those rows after the others.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Buffer, Cpu, Device, HostDevice, Scalar, parallel};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::csr::{Csr, HostOffsets};

use crate::{Comm, Halo, RankKernels};

/// The owned rows of a distributed matrix, split into owned columns and ghost columns.
///
/// # Shapes
/// `own: [n × n]`; `border: [n_border × n_ghosts]`, for the last rows, the only ones with entries in ghost
/// columns.
#[derive(Debug)]
pub struct OwnedRows<T: Scalar, D: Device = Cpu> {
    /// The owned columns.
    pub own: Csr<T, D>,
    /// The ghost columns, of the last rows.
    pub border: Csr<T, D>,
}

impl<T: Scalar, D: Device> OwnedRows<T, D> {
    /// Takes all rows of a matrix, on a rank without ghosts.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn whole(own: Csr<T, D>) -> Result<Self, LinalgError> {
        let border = of_rows(own.values().device(), 0..0, 0, |_| std::iter::empty())?;
        Ok(Self { own, border })
    }

    /// Makes the owned rows from the entries of each row, columns ascending: `n_owned` owned columns, then
    /// `n_ghosts` ghost columns. Zeros in ghost columns are dropped.
    ///
    /// # Errors
    /// [`LinalgError::Structure`] for columns that do not ascend or are out of range.
    pub fn new<I: Iterator<Item = (usize, T)>>(
        device: &D,
        [n_owned, n_ghosts]: [usize; 2],
        entries: impl Fn(usize) -> I + Sync,
    ) -> Result<Self, LinalgError> {
        let own = |row: usize| entries(row).filter(|(column, _)| *column < n_owned);
        let of_ghosts = |row: usize| {
            let entries = entries(row).filter(|(column, value)| *column >= n_owned && *value != T::ZERO);
            entries.map(|(column, value)| (column - n_owned, value))
        };
        let first = first_where(n_owned, |row| of_ghosts(row).next().is_some());
        Ok(Self {
            own: of_rows(device, 0..n_owned, n_owned, own)?,
            border: of_rows(device, first..n_owned, n_ghosts, of_ghosts)?,
        })
    }
}

impl<T: Scalar, D: Device> OwnedRows<T, D> {
    /// Takes the rows of a rank from a global matrix of `n` rows with these owners and entries, in any order. Owned unknowns
    /// whose rows reach other ranks come last. Returns the global numbers of owned unknowns first. Collective.
    ///
    /// # Errors
    /// As [`OwnedRows::new`] and [`Halo::new`].
    pub fn of_global(
        device: &D,
        comm: &Comm,
        n: usize,
        owner: impl Fn(usize) -> usize,
        entries: impl Fn(usize) -> Vec<(usize, T)>,
    ) -> Result<(Vec<usize>, Self, Arc<Halo>), LinalgError> {
        let is_foreign = |&(column, _): &(usize, T)| owner(column) != comm.rank();
        let rows = (0..n).filter(|&row| owner(row) == comm.rank()).map(|row| (row, entries(row)));
        let (inner, border): (Vec<_>, Vec<_>) =
            rows.partition(|(_, entries)| !entries.iter().any(is_foreign));
        let mut rows: Vec<(usize, Vec<(usize, T)>)> = inner.into_iter().chain(border).collect();
        let owned: Vec<usize> = rows.iter().map(|(row, _)| *row).collect();
        let foreign = rows.iter().flat_map(|(_, entries)| entries).filter(|entry| is_foreign(entry));
        let mut ghosts: Vec<(u32, u64)> =
            foreign.map(|&(column, _)| (owner(column) as u32, column as u64)).collect();
        ghosts.sort_unstable();
        ghosts.dedup();
        let ids: Vec<u64> = owned.iter().map(|&row| row as u64).collect();
        let halo = Arc::new(Halo::new(comm, &ids, &ghosts)?);
        let mut places = vec![0; n];
        let all = ids.iter().chain(ghosts.iter().map(|(_, id)| id));
        all.enumerate().for_each(|(place, &id)| places[id as usize] = place);
        for (_, entries) in &mut rows {
            entries.iter_mut().for_each(|(column, _)| *column = places[*column]);
            entries.sort_unstable_by_key(|(column, _)| *column);
        }
        let matrix = Self::new(device, [ids.len(), ghosts.len()], |row| rows[row].1.iter().copied())?;
        Ok((owned, matrix, halo))
    }
}

impl<T: Scalar, D: HostDevice> OwnedRows<T, D> {
    /// Splits the first `n_owned` rows of a part's matrix; columns from `n_owned` on are ghosts.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if it has fewer rows or columns.
    pub fn from_local_rows(device: &D, a: &Csr<T, D>, n_owned: usize) -> Result<Self, LinalgError> {
        need("rows", n_owned, a.n_rows().min(n_owned))?;
        need("columns", n_owned, a.n_cols().min(n_owned))?;
        Self::new(device, [n_owned, a.n_cols() - n_owned], |row| a.row(row))
    }
}

/// The first of `n` rows for which a predicate holds, or `n`.
fn first_where(n: usize, is_so: impl Fn(usize) -> bool + Sync) -> usize {
    let of_piece = |piece: usize| (piece * ROWS..n.min((piece + 1) * ROWS)).find(|&row| is_so(row));
    parallel::map(n.div_ceil(ROWS), 1, of_piece).into_iter().flatten().next().unwrap_or(n)
}

/// Rows per parallel task.
const ROWS: usize = 1 << 12;

/// The matrix of these rows.
fn of_rows<T: Scalar, D: Device, I: Iterator<Item = (usize, T)>>(
    device: &D,
    rows: Range<usize>,
    n_cols: usize,
    entries: impl Fn(usize) -> I + Sync,
) -> Result<Csr<T, D>, LinalgError> {
    let lengths = parallel::map(rows.len(), ROWS, |row| entries(rows.start + row).count());
    let offsets = HostOffsets::from_row_lengths(lengths.into_iter());
    let n = offsets.get(rows.len());
    let (mut columns, mut values) = (zeroed_vec(n), zeroed_vec(n));
    let (mut rest, mut rest_of_values) = (&mut columns[..], &mut values[..]);
    let mut pieces = Vec::with_capacity(rows.len().div_ceil(ROWS));
    for first in (0..rows.len()).step_by(ROWS) {
        let end = rows.len().min(first + ROWS);
        let n = offsets.get(end) - offsets.get(first);
        let (to, others) = std::mem::take(&mut rest).split_at_mut(n);
        let (to_values, other_values) = std::mem::take(&mut rest_of_values).split_at_mut(n);
        pieces.push((rows.start + first..rows.start + end, to, to_values));
        (rest, rest_of_values) = (others, other_values);
    }
    parallel::for_each_item(pieces, 1, |(rows, to, to_values)| {
        let places = to.iter_mut().zip(to_values);
        for ((to, to_value), (column, value)) in places.zip(rows.flat_map(&entries)) {
            (*to, *to_value) = (column as u32, value);
        }
    });
    Csr::from_parts(device, n_cols, offsets, columns, values)
}

/// The ghost columns of the owned rows of a distributed matrix, and the exchange of their values.
pub struct Border<T: Scalar, D: RankKernels<T>> {
    /// The last rows.
    entries: Csr<T, D>,
    halo: Arc<Halo>,
    link: D::Link,
    work: Mutex<Work<T, D>>,
}

struct Work<T: Scalar, D: RankKernels<T>> {
    ghosts: Buffer<T, D>,
    /// Products with ghost columns, to be added to the last rows.
    sums: Buffer<T, D>,
}

impl<T: Scalar, D: RankKernels<T>> Border<T, D> {
    /// Takes the ghost columns of the last rows. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if sizes differ.
    pub fn new(entries: Csr<T, D>, halo: Arc<Halo>) -> Result<Self, LinalgError> {
        need("columns", halo.n_ghosts(), entries.n_cols())?;
        need("border", entries.n_rows().min(halo.n_owned()), entries.n_rows())?;
        let device = entries.values().device();
        let zeros = |n| Buffer::zeros(device, n);
        let work = Mutex::new(Work { ghosts: zeros(halo.n_ghosts())?, sums: zeros(entries.n_rows())? });
        let link = device.link(&halo)?;
        Ok(Self { entries, halo, link, work })
    }

    /// Returns the number of entries.
    pub fn n_nonzeros(&self) -> usize {
        self.entries.n_nonzeros()
    }

    /// Returns the halo of the rows.
    pub fn halo(&self) -> &Halo {
        &self.halo
    }

    /// Computes $y = A x$ with the operator on owned columns, in any format, and calls the hook. Collective.
    ///
    /// # Errors
    /// As [`LinearOperator::apply_with`]; [`LinalgError::Rank`].
    pub fn apply_with(
        &self,
        own: &dyn LinearOperator<T, D>,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        if self.halo.comm().n_ranks() == 1 {
            return own.apply_with(y, x, hook);
        }
        need("y", own.n_rows(), y.len())?;
        need("x", own.n_cols(), x.len())?;
        let (device, first) = (own.device(), own.n_rows() - self.entries.n_rows());
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { ghosts, sums } = &mut *work;
        let mut product = || device.own_product(own, y, x, (hook, first));
        device.import((&self.halo, &self.link), ghosts, x, &mut product)?;
        self.entries.apply(sums, ghosts)?;
        device.complete(y, x, sums, hook)
    }
}

impl<T: Scalar, D: RankKernels<T>> std::fmt::Debug for Border<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Border").field("halo", &self.halo).finish_non_exhaustive()
    }
}

/// The product with the owned rows of a distributed matrix.
///
/// Vectors hold the owned unknowns. The product with owned columns runs while messages are in transit; then
/// the last rows are completed.
///
/// # Cost
/// The cost of the owned columns, plus 12 bytes per entry in a ghost column, and [`Halo::n_sent`] values
/// sent.
/// # Source
/// `[kronbichler2022]`, section 5.1: communication overlaps with computation on interior unknowns.
pub struct DistributedMatrix<T: Scalar, D: RankKernels<T>> {
    own: Box<dyn LinearOperator<T, D>>,
    border: Border<T, D>,
}

impl<T: Scalar, D: RankKernels<T>> DistributedMatrix<T, D> {
    /// Joins the operator on owned columns, in any format, with the matrix of ghost columns. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if sizes differ.
    pub fn new(
        own: Box<dyn LinearOperator<T, D>>,
        border: Csr<T, D>,
        halo: Arc<Halo>,
    ) -> Result<Self, LinalgError> {
        need("rows", halo.n_owned(), own.n_rows())?;
        need("columns", halo.n_owned(), own.n_cols())?;
        Ok(Self { own, border: Border::new(border, halo)? })
    }
}

impl<T: Scalar, D: RankKernels<T>> LinearOperator<T, D> for DistributedMatrix<T, D> {
    fn n_rows(&self) -> usize {
        self.own.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.own.n_cols()
    }

    fn device(&self) -> &D {
        self.own.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.border.apply_with(self.own.as_ref(), y, x, hook)
    }

    fn inverse_diagonal(&self) -> Result<Option<Buffer<T, D>>, LinalgError> {
        self.own.inverse_diagonal()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use femtile_linalg::hooks::DotHook;

    use super::*;
    use crate::{Comm, threads};

    /// Entries of row i of a symmetric band matrix of n rows.
    fn row(n: usize, i: usize) -> Vec<(usize, f64)> {
        let near = i.saturating_sub(3)..n.min(i + 4);
        near.map(|j| (j, if i == j { 9.0 + i as f64 % 5.0 } else { -1.0 / (1 + i.abs_diff(j)) as f64 }))
            .collect()
    }

    fn distributed(
        comm: &Comm,
        n: usize,
        owner: impl Fn(usize) -> usize,
    ) -> (Vec<usize>, DistributedMatrix<f64, Cpu>) {
        let cpu = Cpu::new(1).unwrap();
        let (owned, matrix, halo) = OwnedRows::of_global(&cpu, comm, n, owner, |i| row(n, i)).unwrap();
        assert!(matrix.border.n_rows() <= owned.len() - halo.first_export().min(owned.len()));
        (owned, DistributedMatrix::new(Box::new(matrix.own), matrix.border, halo).unwrap())
    }

    #[test]
    fn products_are_those_of_the_whole_matrix() {
        type Owner = fn(usize) -> usize;
        let owners: [Owner; 4] = [|_| 0, |i| i / 5000 % 3, |i| i * 7 % 3, |i| usize::from(i < 1)];
        for n in [1, 2, 17, 4095, 9001] {
            let x = |i: usize| ((i * 37 + 5) % 11) as f64 - 4.5;
            let expected: Vec<f64> =
                (0..n).map(|i| row(n, i).into_iter().map(|(j, value)| value * x(j)).sum()).collect();
            let dot: f64 = (0..n).map(|i| x(i) * expected[i]).sum();
            for owner in owners {
                let found = Mutex::new(vec![f64::NAN; n]);
                let work = |comm: Comm| -> Result<(), LinalgError> {
                    let (owned, a) = distributed(&comm, n, owner);
                    let cpu = a.device().clone();
                    let x = Buffer::from_vec(&cpu, owned.iter().map(|&i| x(i)).collect())?;
                    let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; owned.len()])?;
                    for _ in 0..2 {
                        let hook = DotHook::new(owned.len());
                        a.apply_with(&mut y, &x, &hook)?;
                        let mut sum = [hook.sum()];
                        comm.sum_values(&mut sum)?;
                        assert!((sum[0] - dot).abs() <= 1e-10 * dot.abs().max(1.0), "{} and {dot}", sum[0]);
                    }
                    let mut found = found.lock().unwrap();
                    owned.iter().zip(y.as_slice()).for_each(|(&i, &y)| found[i] = y);
                    Ok(())
                };
                threads::run(3, work, work).unwrap();
                for (found, expected) in found.lock().unwrap().iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                        "{found} and {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_unknown_that_its_rank_does_not_own_is_an_error() {
        let work = |comm: Comm| {
            let other = 1 - comm.rank() as u32;
            Halo::new(&comm, &[u64::from(1 - other)], &[(other, 5)]).map(drop)
        };
        let error = threads::run(2, work, work).unwrap_err().to_string();
        assert!(error.contains("for unknown 5, which that does not own"), "{error}");
    }
}
