//! Where the entries of rows lie among the stored values of a matrix.

use femtile_device::{Buffer, BufferMut, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;

use super::ell_warp::slices::stored_lane;

/// Where the entries of each row lie among the stored values of a matrix, so that they can be written there.
#[derive(Debug, Clone)]
pub struct EntryPositions {
    /// Where each row begins, or its slice.
    starts: Vec<u64>,
    /// Lanes of a slice, and for each row its first lane and the logarithm of its lanes; none where the entries of a
    /// row follow each other.
    lanes: Option<(usize, Vec<[u8; 2]>)>,
    /// New number of each column, where the entries of a row are sorted by it.
    numbers: Option<Vec<u32>>,
}

impl EntryPositions {
    /// Entries of a row one after another from `starts` on.
    pub(super) fn rows(starts: Vec<u64>) -> Self {
        Self { starts, lanes: None, numbers: None }
    }

    /// Rows that share slices of `lanes` lanes: for each where its slice begins, its first lane, and the logarithm of
    /// the number of its lanes.
    pub(super) fn slices(
        lanes: usize,
        starts: Vec<u64>,
        of_rows: Vec<[u8; 2]>,
        numbers: Option<Vec<u32>>,
    ) -> Self {
        Self { starts, lanes: Some((lanes, of_rows)), numbers }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len()
    }

    /// Where a row begins, or the slice in which it is.
    pub fn start(&self, row: usize) -> u64 {
        self.starts[row]
    }

    /// Lanes of a slice; none where the entries of a row follow each other.
    pub fn lanes(&self) -> Option<usize> {
        self.lanes.as_ref().map(|(lanes, _)| *lanes)
    }

    /// First lane of a row, and the logarithm of the number of its lanes.
    pub fn lanes_of_row(&self, row: usize) -> [u8; 2] {
        self.lanes.as_ref().map_or([0, 0], |(_, of_rows)| of_rows[row])
    }

    /// Where entry `k` of a row lies.
    pub fn place(&self, row: usize, k: usize) -> usize {
        let start = self.starts[row] as usize;
        let Some((lanes, of_rows)) = &self.lanes else { return start + k };
        let [first, fold] = of_rows[row].map(usize::from);
        start + (k >> fold) * lanes + stored_lane(first + (k & ((1 << fold) - 1)), *lanes)
    }

    /// Brings ascending columns of a row into the order of its entries.
    pub fn order(&self, columns: &mut [u32]) {
        if let Some(numbers) = &self.numbers {
            columns.sort_unstable_by_key(|&column| numbers[column as usize]);
        }
    }

    /// Returns whether entries of a row ascend by column.
    pub fn keeps_columns_in_order(&self) -> bool {
        self.numbers.is_none()
    }
}

/// Seals [`super::StoredMatrix`] against implementations elsewhere.
pub(super) mod sealed {
    /// A format of this crate.
    pub trait Sealed {}
}

/// A matrix on a device whose values can be overwritten on a fixed sparsity pattern.
///
/// Those who write values trust its positions, so the formats of this crate alone are such matrices.
pub trait StoredMatrix<D: Device>: Sized + sealed::Sealed {
    /// Type of the values.
    type Value: Scalar;
    /// Parameters of the layout.
    type Config;

    /// A square matrix of zeros: row `i` has the columns `columns[offsets[i]..offsets[i + 1]]`, ascending.
    ///
    /// # Errors
    /// A layout that cannot be; errors of the device.
    fn zeros(
        device: &D,
        offsets: &super::csr::HostOffsets,
        columns: &[u32],
        config: &Self::Config,
    ) -> Result<Self, LinalgError>;

    /// Where its entries lie.
    ///
    /// # Errors
    /// Errors of the device.
    fn entry_positions(&self) -> Result<EntryPositions, LinalgError>;

    /// The values as they are stored, to be written in place; who writes them leaves padding zero.
    fn values_mut(&mut self) -> BufferMut<'_, Self::Value, D>;

    /// Sets the values to $\alpha x + \beta a$, with their former values $a$; x is in the order of [`StoredMatrix::entry_positions`], with
    /// zeros for padding.
    ///
    /// # Cost
    /// Reads two and writes one value for each stored one.
    /// # Errors
    /// [`LinalgError::Length`] where x has another length.
    fn combine_values(
        &mut self,
        alpha: Self::Value,
        x: &Buffer<Self::Value, D>,
        beta: Self::Value,
    ) -> Result<(), LinalgError>
    where
        D: VectorKernels<Self::Value>;
}
