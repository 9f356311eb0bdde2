//! A second level that is known before the setup.

use std::fmt;

use femtile_device::{Cpu, Scalar};
use femtile_linalg::need;
use femtile_sparse::csr::Csr;

use crate::AmgError;
use crate::setup::rows::Rows;
use crate::setup::tentative::NearNullspace;

/// The space of the second level where it is known, such as that of degree 1 below polynomials of higher degree.
///
/// The matrix of the level is $P^\mathsf{T} A P$; levels below it are found by aggregation, as if it were the first. Aggregates of nodes of
/// high degree, which have many neighbours, make coarse matrices with long rows.
#[derive(Clone)]
pub struct CoarseSpace {
    prolongation: Rows<f64>,
    rows: Vec<u32>,
}

impl CoarseSpace {
    /// Takes the prolongator P, and for each of its columns the row of the matrix whose unknown is the value of that column: entries of
    /// a near-nullspace are taken from these rows. Nodes of several rows are nodes of as many columns.
    ///
    /// # Errors
    /// [`LinalgError`](femtile_linalg::LinalgError) for another number of rows than columns, [`AmgError::Setting`] for rows that P does
    /// not have and entries that are not finite.
    pub fn new(prolongation: &Csr<f64, Cpu>, rows: Vec<u32>) -> Result<Self, AmgError> {
        need("rows", prolongation.n_cols(), rows.len())?;
        let wrong = |message: String| AmgError::Setting { field: "coarse_space", message };
        let n_rows = prolongation.n_rows();
        if let Some(row) = rows.iter().find(|row| **row as usize >= n_rows) {
            return Err(wrong(format!("row {row} is not one of the {n_rows} rows of the prolongator")));
        }
        let prolongation = Rows::as_is(prolongation)?;
        if let Some(value) = prolongation.values.iter().find(|value| !value.is_finite()) {
            return Err(wrong(format!("an entry of the prolongator is {value}, not a finite number")));
        }
        Ok(Self { prolongation, rows })
    }

    /// Returns the rows of the matrix and of the second level.
    pub(crate) fn n_rows(&self) -> [usize; 2] {
        [self.prolongation.offsets.len() - 1, self.rows.len()]
    }

    /// Returns the prolongator in the precision of levels.
    pub(crate) fn prolongation<H: Scalar>(&self) -> Rows<H> {
        let Rows { n_cols, offsets, columns, values } = &self.prolongation;
        let values = values.iter().map(|&value| H::from_f64(value)).collect();
        Rows { n_cols: *n_cols, offsets: offsets.clone(), columns: columns.clone(), values }
    }

    /// Returns the near-nullspace of the second level.
    pub(crate) fn near_nullspace(&self, b: &NearNullspace) -> NearNullspace {
        b.permuted(&self.rows)
    }
}

impl fmt::Debug for CoarseSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [n_rows, n_coarse] = self.n_rows();
        f.debug_struct("CoarseSpace")
            .field("n_rows", &n_rows)
            .field("n_coarse", &n_coarse)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CoarseSpace {
    fn eq(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|space| &space.prolongation);
        self.rows == other.rows
            && own.offsets == others.offsets
            && own.columns == others.columns
            && own.values == others.values
    }
}
