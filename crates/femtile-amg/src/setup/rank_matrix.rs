//! The matrix of a level during set-up, by the rows of a rank. A rank that is alone has all rows, and no ghosts.

use std::borrow::Cow;
use std::sync::Arc;

use femtile_comm::{Comm, Halo, OwnedRows};
use femtile_device::{Device, Element, Scalar, parallel};
use femtile_linalg::{LinalgError, need};

use super::rows::{PIECE, RowAccess, Rows, largest, to_unit};
use crate::kernels::AmgKernels;
use crate::level::LevelMatrix;

/// The rows of a rank during set-up: owned columns, then ghost columns.
#[derive(Debug)]
pub struct RankMatrix<H> {
    pub(crate) rows: Rows<H>,
    pub(crate) halo: Arc<Halo>,
}

impl<H: Scalar> RankMatrix<H> {
    /// A matrix of which the rank has all rows.
    pub(crate) fn whole(rows: Rows<H>) -> Result<Self, LinalgError> {
        let halo = Halo::of_known(&Comm::alone(), rows.n_rows(), Vec::new(), &[])?;
        Ok(Self { rows, halo: Arc::new(halo) })
    }

    /// Returns whether the rank has all rows.
    pub(crate) fn is_whole(&self) -> bool {
        self.halo.comm().n_ranks() == 1
    }

    /// Joins the two parts of a matrix from any device. It is scaled by a power of two so that the global
    /// largest entry is between 1 and 2. Returns that power as well. Collective.
    pub fn of<D: Device>(a: &OwnedRows<f64, D>, halo: &Arc<Halo>) -> Result<(Self, f64), LinalgError> {
        let (own, border) = (a.own.values().host_view()?, a.border.values().host_view()?);
        let [most] = maxima(halo.comm(), [largest(&own).max(largest(&border))])?;
        let scale = to_unit(most);
        let [own, border] = [Rows::scaled(&a.own, &own, scale)?, Rows::scaled(&a.border, &border, scale)?];
        let (n, first) = (halo.n_owned(), own.n_rows() - border.n_rows());
        let of_ghosts = |row: usize| row.checked_sub(first).map_or((&[][..], &[][..]), |row| border.row(row));
        let length = |row: usize| own.row(row).0.len() + of_ghosts(row).0.len();
        let rows = Rows::filled([n, n + halo.n_ghosts()], length, |row, columns, values| {
            let (parts, n_own) = ([own.row(row), of_ghosts(row)], own.row(row).0.len());
            values[..n_own].copy_from_slice(parts[0].1);
            values[n_own..].copy_from_slice(parts[1].1);
            columns[..n_own].copy_from_slice(parts[0].0);
            columns[n_own..].iter_mut().zip(parts[1].0).for_each(|(to, ghost)| *to = n as u32 + ghost);
        });
        Ok((Self { rows, halo: Arc::clone(halo) }, scale))
    }

    /// Returns the halo of the rows.
    pub fn halo(&self) -> &Arc<Halo> {
        &self.halo
    }

    /// Returns the number of rows.
    pub fn n_owned(&self) -> usize {
        self.halo.n_owned()
    }

    /// Returns the number of entries, those in columns of ghosts included.
    pub fn n_nonzeros(&self) -> usize {
        self.rows.columns.len()
    }

    /// Returns the number of entries of a row in columns of the rank itself, which come first.
    fn n_own(&self, row: usize) -> usize {
        self.rows.row(row).0.partition_point(|&column| (column as usize) < self.n_owned())
    }

    /// Returns the rows without the columns of ghosts.
    pub(crate) fn own(&self) -> Cow<'_, Rows<H>> {
        if self.halo.n_ghosts() == 0 {
            return Cow::Borrowed(&self.rows);
        }
        let n = self.n_owned();
        Cow::Owned(Rows::filled(
            [n, n],
            |row| self.n_own(row),
            |row, columns, values| {
                let (all, all_values) = self.rows.row(row);
                columns.copy_from_slice(&all[..columns.len()]);
                values.copy_from_slice(&all_values[..columns.len()]);
            },
        ))
    }

    /// Appends the values of ghosts, `k` for each, to those of the rows. Collective.
    pub(crate) fn with_ghosts<E: Element>(&self, mut all: Vec<E>, k: usize) -> Result<Vec<E>, LinalgError> {
        if self.is_whole() {
            return Ok(all);
        }
        let (n, n_ghosts) = (all.len(), self.halo.n_ghosts());
        all.resize(n + n_ghosts * k, E::zeroed());
        let (own, ghosts) = all.split_at_mut(n);
        let mut of_ghosts = vec![E::zeroed(); n_ghosts];
        for v in 0..k {
            let of_vector: Vec<E> = own.iter().skip(v).step_by(k).copied().collect();
            self.halo.import(&mut of_ghosts, &of_vector, &mut || ())?;
            ghosts.iter_mut().skip(v).step_by(k).zip(&of_ghosts).for_each(|(to, value)| *to = *value);
        }
        Ok(all)
    }

    /// Copies the matrix to a device. Collective.
    pub(crate) fn into_device<D: AmgKernels<H>>(self, device: &D) -> Result<LevelMatrix<H, D>, LinalgError> {
        if self.is_whole() {
            return Ok(LevelMatrix::whole(self.rows.into_device(device)?));
        }
        LevelMatrix::of_rank(self.split(device)?, &self.halo)
    }

    /// Adds the entries in columns of ghosts, times the ratio of `b` there and in the row, to the diagonal of the rows without
    /// them: as in the whole matrix, the product with b is small.
    pub(crate) fn lump(&self, own: &mut Cow<'_, Rows<H>>, b: &[f64]) {
        let n = self.n_owned();
        if self.halo.n_ghosts() == 0 {
            return;
        }
        let own = own.to_mut();
        let lump = |row: usize| {
            let (columns, values) = self.rows.row(row);
            let ghosts = self.n_own(row)..columns.len();
            let ratio = |column: u32| if b[row] == 0.0 { 0.0 } else { b[column as usize] / b[row] };
            let diagonal = own.offsets[row]..own.offsets[row + 1];
            let at = diagonal.into_iter().find(|&at| own.columns[at] as usize == row);
            let sum = || ghosts.clone().map(|at| values[at] * H::from_f64(ratio(columns[at]))).sum::<H>();
            at.filter(|_| !ghosts.is_empty()).map(|at| (at, sum()))
        };
        let of_piece = |piece: usize| -> Vec<(usize, H)> {
            (piece * PIECE..n.min((piece + 1) * PIECE)).filter_map(lump).collect()
        };
        let lumps = parallel::map(n.div_ceil(PIECE), 1, of_piece);
        lumps.into_iter().flatten().for_each(|(at, lump)| own.values[at] += lump);
    }

    /// Returns the global $b^\mathsf{T} A b$ for a distributed vector. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`]; [`LinalgError::Rank`].
    pub fn energy(&self, b: &[f64]) -> Result<f64, LinalgError> {
        need("b", self.n_owned(), b.len())?;
        let all = self.with_ghosts(b.to_vec(), 1)?;
        let product = |row: usize| {
            let (columns, values) = self.rows.row(row);
            columns
                .iter()
                .zip(values)
                .map(|(&column, value)| value.to_f64() * all[column as usize])
                .sum::<f64>()
        };
        let mut energy = [(0..b.len()).map(|row| b[row] * product(row)).sum()];
        self.halo.comm().sum_values(&mut energy)?;
        Ok(energy[0])
    }

    /// Returns the matrix in two parts.
    pub fn split<D: Device>(&self, device: &D) -> Result<OwnedRows<H, D>, LinalgError> {
        let entries = |row: usize| {
            let (columns, values) = self.rows.row(row);
            columns.iter().map(|&column| column as usize).zip(values.iter().copied())
        };
        OwnedRows::new(device, [self.n_owned(), self.halo.n_ghosts()], entries)
    }
}

/// Returns the global maxima of magnitudes. Collective.
pub(crate) fn maxima<const N: usize>(comm: &Comm, own: [f64; N]) -> Result<[f64; N], LinalgError> {
    if comm.n_ranks() == 1 {
        return Ok(own);
    }
    let all = comm.all_gather(&own)?;
    Ok(std::array::from_fn(|i| all.iter().map(|of_rank| of_rank[i]).fold(0.0, f64::max)))
}

/// Returns whether something is true on all ranks. Collective.
pub(crate) fn on_all(comm: &Comm, is_so: bool) -> Result<bool, LinalgError> {
    Ok(comm.any([!is_so])? == [false])
}

/// Returns the global sums of counts. Collective.
pub(crate) fn totals<const N: usize>(comm: &Comm, counts: [usize; N]) -> Result<[usize; N], LinalgError> {
    let all = comm.all_gather(&counts.map(|n| n as u64))?;
    Ok(std::array::from_fn(|i| all.iter().map(|of_rank| of_rank[i] as usize).sum()))
}
