//! A level that is divided among ranks.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use femtile_comm::{DistributedMatrix, Halo, OwnedRows, RankKernels};
use femtile_device::{Buffer, Device, Scalar, parallel};
use femtile_linalg::precondition::polynomial::Step;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sparse::ProductMatrix;
use femtile_sparse::csr::{Csr, Offsets};

use crate::AmgConfig;
use crate::kernels::AmgKernels;
use crate::level::CYCLES;
use crate::relaxation::steps;
use crate::setup::rows::{PIECE, RowAccess, Rows, to_unit};

/// A level that is smoothed, with the transfers to and from the next one.
pub(crate) struct RankLevel<H: Scalar, D: RankKernels<H>> {
    pub a: DistributedMatrix<H, D>,
    pub steps: Vec<Step<H>>,
    pub inverse_diagonal: Buffer<H, D>,
    pub transfer: RankTransfer<H, D>,
}

impl<H: Scalar, D: AmgKernels<H> + RankKernels<H>> RankLevel<H, D> {
    /// Creates the level from the rows of a rank, the largest eigenvalue of the scaled global matrix, and the
    /// reciprocals of the diagonal.
    pub fn new(
        (rows, halo): (OwnedRows<H, D>, &Arc<Halo>),
        config: &AmgConfig,
        (largest, inverse_diagonal): (f64, Buffer<H, D>),
        transfer: RankTransfer<H, D>,
    ) -> Result<Self, LinalgError> {
        let n_products = CYCLES * config.smoother.n_products();
        let operator = ProductMatrix::new(rows.own, config.format, n_products, &[])?.0;
        let a = DistributedMatrix::new(Box::new(operator), rows.border, Arc::clone(halo))?;
        Ok(Self { a, steps: steps(config.smoother, largest), inverse_diagonal, transfer })
    }
}

/// The transfers between the rows of a rank and the next level, including ghosts of the next level.
pub(crate) struct RankTransfer<H: Scalar, D: RankKernels<H>> {
    /// Columns of the rank's own unknowns, then of its ghosts.
    pub prolongation: Csr<H, D>,
    pub restriction: Csr<H, D>,
    /// Of the unknowns of the next level.
    pub halo: Halo,
    link: D::Link,
    work: Mutex<Work<H, D>>,
}

/// Vectors of all columns of a prolongator, and of its ghosts.
struct Work<H: Scalar, D: RankKernels<H>> {
    columns: Buffer<H, D>,
    ghosts: Buffer<H, D>,
}

impl<H: Scalar, D: RankKernels<H>> RankTransfer<H, D> {
    /// Takes a prolongator, its transpose, and the halo of its columns.
    pub fn new(
        device: &D,
        [prolongation, restriction]: [Csr<H, D>; 2],
        halo: Halo,
    ) -> Result<Self, LinalgError> {
        let zeros = |n| Buffer::zeros(device, n);
        let work =
            Mutex::new(Work { columns: zeros(prolongation.n_cols())?, ghosts: zeros(halo.n_ghosts())? });
        let link = device.link(&halo)?;
        Ok(Self { prolongation, restriction, halo, link, work })
    }

    /// $b_c = P^\mathsf{T} r$; entries of unknowns of others go to their owners.
    pub fn restrict(&self, b: &mut Buffer<H, D>, r: &Buffer<H, D>) -> Result<(), LinalgError> {
        let device = r.device();
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { columns, ghosts } = &mut *work;
        self.restriction.apply(columns, r)?;
        device.section(b, columns, 0)?;
        device.section(ghosts, columns, self.halo.n_owned())?;
        device.add_to_owners((&self.halo, &self.link), b, ghosts)
    }

    /// $x \leftarrow x + P e$; `product` is workspace.
    pub fn correct(
        &self,
        x: &mut Buffer<H, D>,
        product: &mut Buffer<H, D>,
        e: &Buffer<H, D>,
    ) -> Result<(), LinalgError>
    where
        D: AmgKernels<H>,
    {
        let device = e.device();
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { columns, ghosts } = &mut *work;
        device.import((&self.halo, &self.link), ghosts, e, &mut || Ok(()))?;
        device.join(columns, e, ghosts)?;
        device.amg_correct(x, product, &self.prolongation, columns)
    }
}

/// The rows of a rank during set-up: owned columns, then ghost columns.
pub struct RankMatrix<H> {
    pub(crate) rows: Rows<H>,
    pub(crate) halo: Arc<Halo>,
}

impl<H: Scalar> RankMatrix<H> {
    /// Joins the two parts of a matrix from any device. It is scaled by a power of two so that the global
    /// largest entry is between 1 and 2. Returns that power as well.
    pub fn of<D: Device>(a: &OwnedRows<f64, D>, halo: &Arc<Halo>) -> Result<(Self, f64), LinalgError> {
        let (own, border) = (Entries::of(&a.own)?, Entries::of(&a.border)?);
        let scale = to_unit(largest(halo, own.largest().max(border.largest()))?);
        let (n, first) = (halo.n_owned(), halo.n_owned() - a.border.n_rows());
        let of_ghosts = |row: usize| row.checked_sub(first);
        let length = |row: usize| own.length(row) + of_ghosts(row).map_or(0, |row| border.length(row));
        let rows = Rows::filled([n, n + halo.n_ghosts()], length, |row, columns, values| {
            let others = of_ghosts(row).into_iter().flat_map(|row| border.row(row));
            let entries = own.row(row).chain(others.map(|(column, value)| (n + column, value)));
            for ((to, to_value), (column, value)) in columns.iter_mut().zip(values).zip(entries) {
                (*to, *to_value) = (column as u32, H::from_f64(scale * value));
            }
        });
        Ok((Self { rows, halo: Arc::clone(halo) }, scale))
    }

    /// Moves the rows out and leaves none.
    pub(super) fn take(&mut self) -> Self {
        let none = Rows { offsets: vec![0], columns: Vec::new(), values: Vec::new(), n_cols: 0 };
        Self { rows: std::mem::replace(&mut self.rows, none), halo: Arc::clone(&self.halo) }
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
    pub(crate) fn own(&self) -> Rows<H> {
        let n = self.n_owned();
        Rows::filled(
            [n, n],
            |row| self.n_own(row),
            |row, columns, values| {
                let (all, all_values) = self.rows.row(row);
                columns.copy_from_slice(&all[..columns.len()]);
                values.copy_from_slice(&all_values[..columns.len()]);
            },
        )
    }

    /// Adds the entries in columns of ghosts, times the ratio of `b` there and in the row, to the diagonal of the rows without
    /// them: as in the whole matrix, the product with b is small.
    pub(crate) fn lump(&self, own: &mut Rows<H>, b: &[f64], of_ghosts: &[f64]) {
        let n = self.n_owned();
        let lump = |row: usize| {
            let (columns, values) = self.rows.row(row);
            let ghosts = self.n_own(row)..columns.len();
            let ratio =
                |column: u32| if b[row] == 0.0 { 0.0 } else { of_ghosts[column as usize - n] / b[row] };
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
        let mut all = b.to_vec();
        let mut of_ghosts = vec![0.0; self.halo.n_ghosts()];
        self.halo.import(&mut of_ghosts, b, &mut || ())?;
        all.append(&mut of_ghosts);
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

/// The entries of a matrix on the host, without a copy if the host has the memory of the device.
struct Entries<'a> {
    offsets: HostOffsets<'a>,
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [f64]>,
}

enum HostOffsets<'a> {
    Narrow(Cow<'a, [u32]>),
    Wide(Cow<'a, [u64]>),
}

impl<'a> Entries<'a> {
    fn of<D: Device>(a: &'a Csr<f64, D>) -> Result<Self, LinalgError> {
        let offsets = match a.offsets() {
            Offsets::Narrow(offsets) => HostOffsets::Narrow(offsets.host_view()?),
            Offsets::Wide(offsets) => HostOffsets::Wide(offsets.host_view()?),
        };
        Ok(Self { offsets, columns: a.columns().host_view()?, values: a.values().host_view()? })
    }

    fn largest(&self) -> f64 {
        let of_piece = |_, values: &[f64]| values.iter().fold(0.0, |most: f64, value| value.abs().max(most));
        parallel::map_chunks(&self.values, PIECE, of_piece).into_iter().fold(0.0, f64::max)
    }

    fn range(&self, row: usize) -> Range<usize> {
        match &self.offsets {
            HostOffsets::Narrow(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            HostOffsets::Wide(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
        }
    }

    fn length(&self, row: usize) -> usize {
        self.range(row).len()
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.range(row);
        let columns = self.columns[range.clone()].iter().map(|&column| column as usize);
        columns.zip(self.values[range].iter().copied())
    }
}

/// Returns the global maximum.
pub(crate) fn largest(halo: &Halo, own: f64) -> Result<f64, LinalgError> {
    Ok(halo.comm().all_gather(&[own])?.into_iter().flatten().fold(0.0, f64::max))
}
