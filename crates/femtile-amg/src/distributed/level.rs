//! A level that is divided among ranks.

use std::sync::{Arc, Mutex, PoisonError};

use femtile_comm::{DistributedMatrix, GhostedMatrix, Halo, RankKernels};
use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::precondition::polynomial::Step;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;

use crate::kernels::AmgKernels;
use crate::setup::rows::{Pieces, RowAccess, Rows, to_unit};

/// A level that is smoothed, with the transfers to and from the next one.
pub(super) struct RankLevel<H: Scalar, D: RankKernels<H>> {
    pub a: DistributedMatrix<H, D>,
    pub steps: Vec<Step<H>>,
    pub inverse_diagonal: Buffer<H, D>,
    pub transfer: RankTransfer<H, D>,
}

/// The transfers between the rows of a rank and the next level, of which some unknowns are those of other ranks.
pub(super) struct RankTransfer<H: Scalar, D: RankKernels<H>> {
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
    /// Takes a prolongator, and the halo of its columns.
    pub fn new(device: &D, p: Rows<H>, halo: Halo) -> Result<Self, LinalgError> {
        let restriction = p.transpose().into_device(device)?;
        let zeros = |n| Buffer::zeros(device, n);
        let work = Mutex::new(Work { columns: zeros(p.n_cols)?, ghosts: zeros(halo.n_ghosts())? });
        let link = device.link(&halo)?;
        Ok(Self { prolongation: p.into_device(device)?, restriction, halo, link, work })
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

/// The rows of a rank during the setup: its own columns, then those of its ghosts.
pub(super) struct RankMatrix<H> {
    pub rows: Rows<H>,
    pub halo: Arc<Halo>,
}

impl<H: Scalar> RankMatrix<H> {
    /// Joins the two parts of a matrix, scaled by a power of two so that the largest entry of all ranks is between 1 and 2;
    /// returns that power as well.
    pub fn of(a: &GhostedMatrix<f64>, halo: &Arc<Halo>) -> Result<(Self, f64), LinalgError> {
        let largest_of = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| value.abs().max(most));
        let own = largest_of(a.own.values().as_slice()).max(largest_of(a.border.values().as_slice()));
        let scale = to_unit(largest(halo, own)?);
        let (n, first) = (halo.n_owned(), halo.n_owned() - a.border.n_rows());
        let pieces = Pieces::build(
            [n, n + halo.n_ghosts()],
            || (),
            |(), row, out| {
                let mut push =
                    |column: usize, value: f64| out.push(column as u32, H::from_f64(scale * value));
                a.own.row(row).for_each(|(column, value)| push(column, value));
                if row >= first {
                    a.border.row(row - first).for_each(|(column, value)| push(n + column, value));
                }
            },
        );
        Ok((Self { rows: pieces.join(), halo: Arc::clone(halo) }, scale))
    }

    /// Returns the number of rows.
    pub fn n_owned(&self) -> usize {
        self.halo.n_owned()
    }

    /// Returns the number of entries, those in columns of ghosts included.
    pub fn n_nonzeros(&self) -> usize {
        self.rows.columns.len()
    }

    /// Returns the rows without the columns of ghosts, whose entries, times the ratio of `b` there and in the row, are added to
    /// the diagonal: as in the whole matrix, the product with b is small.
    pub fn lumped(&self, b: &[f64], of_ghosts: &[f64]) -> Rows<H> {
        let n = self.n_owned();
        let pieces = Pieces::build(
            [n, n],
            || (),
            |(), row, out| {
                let (columns, values) = self.rows.row(row);
                let ratio = |column: usize| if b[row] == 0.0 { 0.0 } else { of_ghosts[column - n] / b[row] };
                let ghosts = columns.iter().zip(values).filter(|(column, _)| **column as usize >= n);
                let lump: H =
                    ghosts.map(|(&column, &value)| value * H::from_f64(ratio(column as usize))).sum();
                for (&column, &value) in
                    columns.iter().zip(values).filter(|(column, _)| (**column as usize) < n)
                {
                    out.push(column, if column as usize == row { value + lump } else { value });
                }
            },
        );
        pieces.join()
    }

    /// Returns the rows without the columns of ghosts.
    pub fn own(&self) -> Rows<H> {
        let n = self.n_owned();
        let pieces = Pieces::build(
            [n, n],
            || (),
            |(), row, out| {
                let (columns, values) = self.rows.row(row);
                let n_own = columns.partition_point(|&column| (column as usize) < n);
                out.extend(&columns[..n_own], &values[..n_own]);
            },
        );
        pieces.join()
    }

    /// Returns the matrix in two parts.
    pub fn split<D: Device>(&self, device: &D) -> Result<GhostedMatrix<H, D>, LinalgError> {
        let entries = |row: usize| {
            let (columns, values) = self.rows.row(row);
            columns.iter().map(|&column| column as usize).zip(values.iter().copied())
        };
        GhostedMatrix::new(device, [self.n_owned(), self.halo.n_ghosts()], entries)
    }
}

/// The largest of the values of all ranks.
pub(super) fn largest(halo: &Halo, own: f64) -> Result<f64, LinalgError> {
    Ok(halo.comm().all_gather(&[own])?.into_iter().flatten().fold(0.0, f64::max))
}
