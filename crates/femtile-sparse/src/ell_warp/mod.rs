//! ELL-WARP: rows in slices of as many lanes as a warp (or a vector of SIMD) has, each padded to its own longest
//! row and stored column by column.
//!
//! One layout gives the family of `[wong2015]`: K1 (rows sorted by length, a lane a row), K2 (long rows shared by
//! several lanes), both with the vectors renumbered (r) and the columns sorted again (rs); and SELL-C-σ, which is K1
//! sorted within windows. The same layout serves a CPU with the lanes of its SIMD unit.
//!
//! The number of lanes affects the bits, so slices of a solve have eight lanes on a CPU at every SIMD level. More:
//! `docs/developers/sparse-matrices.md`.

mod columns;
mod config;
mod convert;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod pack;
mod reference;
mod refill;
pub(crate) mod slices;

use std::marker::PhantomData;
use std::sync::Arc;

use femtile_device::{Buffer, BufferMut, Device, HostDevice, Reference, Scalar};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::{Convert, VectorKernels};
use femtile_linalg::{LinalgError, LinearOperator, need};

use super::csr::{Csr, HostOffsets};
use super::entry_positions::sealed::Sealed;
use super::{EntryPositions, StoredMatrix};
use columns::Columns;
pub use config::{EllWarpConfig, IndexKind, Numbering, Reduction};
pub use convert::cuda::narrow_program as cuda_conversion;
pub use kernels::EllWarpKernels;
use pack::Packed;
use slices::Slices;

/// A sparse matrix in slices of rows, with values of type `V` and vectors of type `T`.
///
/// # Shapes
/// Slice `s` has columns `starts[s]..starts[s + 1]` of `lanes` stored entries each. With [`Numbering::Sorted`] and
/// [`Numbering::SortedColumns`] x and y are in the order of the sorted rows: [`EllWarp::sort`] and
/// [`EllWarp::unsort`] go there and back.
///
/// # Notes
/// Padding multiplies 0 by an entry of x that its row reads anyway, so that NaN and infinity reach no other row; a
/// row without entries that shares a slice with others reads one of theirs.
#[derive(Debug)]
pub struct EllWarp<T: Scalar, D: Device, V: Scalar = T> {
    n_rows: usize,
    n_cols: usize,
    n_nonzeros: usize,
    config: EllWarpConfig,
    layout: Arc<Layout<D>>,
    columns: Arc<Columns<D>>,
    values: Buffer<V, D>,
    /// Entries of each row.
    lengths: Arc<Buffer<u32, D>>,
    /// For each stored entry its number in its row, where rows are not stored in their own order.
    entries: Option<Arc<Buffer<u32, D>>>,
    vectors: PhantomData<T>,
}

/// [`Slices`] on a device.
#[derive(Debug)]
pub(crate) struct Layout<D: Device> {
    starts: Buffer<u32, D>,
    /// First place and logarithm of the lanes of a row, of each slice; none where each lane has a row.
    shapes: Option<(Buffer<u32, D>, Buffer<u32, D>)>,
    rows: Option<Buffer<u32, D>>,
    longs: Option<Buffer<u32, D>>,
    of_blocks: Option<Vec<u32>>,
}

impl<D: Device> Layout<D> {
    fn new(device: &D, slices: Slices) -> Result<Self, LinalgError> {
        let shapes = if slices.firsts.is_empty() {
            None
        } else {
            Some((Buffer::from_vec(device, slices.firsts)?, Buffer::from_vec(device, slices.folds)?))
        };
        Ok(Self {
            starts: Buffer::from_vec(device, slices.starts)?,
            shapes,
            rows: slices.rows.map(|rows| Buffer::from_vec(device, rows)).transpose()?,
            longs: if slices.longs.is_empty() { None } else { Some(Buffer::from_vec(device, slices.longs)?) },
            of_blocks: slices.of_blocks,
        })
    }

    fn to_slices(&self, lanes: usize) -> Result<Slices, LinalgError> {
        let (firsts, folds) = match &self.shapes {
            Some((firsts, folds)) => (firsts.to_host()?, folds.to_host()?),
            None => (Vec::new(), Vec::new()),
        };
        let rows = self.rows.as_ref().map(Buffer::to_host).transpose()?;
        let longs = self.longs.as_ref().map(Buffer::to_host).transpose()?.unwrap_or_default();
        let of_blocks = self.of_blocks.clone();
        Ok(Slices { lanes, starts: self.starts.to_host()?, firsts, folds, rows, longs, of_blocks })
    }

    fn n_slices(&self) -> usize {
        self.starts.len() - 1
    }
}

impl<T: Scalar, D: Device, V: Scalar> EllWarp<T, D, V> {
    /// Lays the entries of `a` out in slices on `device`; values are rounded to `V`.
    ///
    /// # Cost
    /// Sorts rows by length, then moves each entry once, on the host.
    /// # Errors
    /// [`LinalgError::Setting`] naming a setting that cannot be, lanes other than [`EllWarpKernels::LANES`]
    /// among them; errors of the device.
    pub fn from_csr<S: Scalar, H: HostDevice>(
        device: &D,
        a: &Csr<S, H>,
        config: &EllWarpConfig,
    ) -> Result<Self, LinalgError>
    where
        D: EllWarpKernels<T, V>,
    {
        config.check(D::LANES, a.n_rows(), a.n_cols())?;
        let lengths = a.row_lengths();
        let slices = Slices::new(&lengths, config)?;
        let Packed { values, columns, entries } = pack::pack(a, &slices, config.numbering);
        let columns = match config.indices {
            IndexKind::Full => Columns::Full(Buffer::from_vec(device, columns)?),
            IndexKind::Delta => Columns::compressed(device, &slices, &columns)?,
        };
        Ok(Self {
            n_rows: a.n_rows(),
            n_cols: a.n_cols(),
            n_nonzeros: a.n_nonzeros(),
            config: *config,
            layout: Arc::new(Layout::new(device, slices)?),
            columns: Arc::new(columns),
            values: Buffer::from_vec(device, values)?,
            lengths: Arc::new(Buffer::from_vec(device, lengths)?),
            entries: entries.map(|entries| Buffer::from_vec(device, entries).map(Arc::new)).transpose()?,
            vectors: PhantomData,
        })
    }

    /// Lays the entries of a matrix out in slices on the device that has it, as [`EllWarp::from_csr`] does.
    ///
    /// A GPU sorts rows by length, finds the width of each slice $w_s = \max_{p \in s} |r_p|$ and its first
    /// column $b_s = \sum_{t < s} w_t$, and moves entry $k$ of a row to column $b_s + k$. It does so where
    /// each lane has a row, vectors keep their numbering and all rows or the window are up to 8,192; else the
    /// host does, for which all arrays are copied there and back.
    ///
    /// # Shapes
    /// `csr: [n_rows, n_cols]`, its columns ascending in each row; y has `n_rows` and x `n_cols` entries.
    /// # Cost
    /// On a GPU reads each offset four times, each column and value once, with [`IndexKind::Delta`] offsets
    /// and columns once more; writes what is stored twice, once to clear it. Beside the matrix it takes 4
    /// bytes a slice, with distances 8, and 8 bytes for 1,024 slices; it waits for the device once.
    /// # Errors
    /// Those of [`EllWarp::from_csr`].
    pub fn convert(csr: &Csr<V, D>, config: &EllWarpConfig) -> Result<Self, LinalgError>
    where
        D: EllWarpKernels<T, V>,
    {
        config.check(D::LANES, csr.n_rows(), csr.n_cols())?;
        csr.values().device().ell_warp_convert(csr, config)
    }

    /// Counts the entries that [`EllWarp::convert`] would store, padding included.
    ///
    /// # Cost
    /// Reads each offset twice; a GPU is waited for once.
    /// # Errors
    /// Those of [`EllWarp::from_csr`].
    pub fn stored(csr: &Csr<V, D>, config: &EllWarpConfig) -> Result<usize, LinalgError>
    where
        D: EllWarpKernels<T, V>,
    {
        config.check(D::LANES, csr.n_rows(), csr.n_cols())?;
        csr.values().device().ell_warp_stored(csr, config)
    }

    /// The name of the first array that differs from that of another matrix, to the bit; none where all are
    /// equal.
    ///
    /// # Errors
    /// Errors of the device when its arrays are copied to the host.
    pub fn difference<E: Device>(
        &self,
        other: &EllWarp<T, E, V>,
    ) -> Result<Option<&'static str>, LinalgError> {
        let (slices, columns) =
            (self.layout.to_slices(self.config.lanes)?, self.columns.copy_to(&Reference)?);
        let entries = self.entries.as_deref().map(Buffer::to_host).transpose()?;
        let differences = [
            ("config", self.config != other.config),
            ("slices", slices != other.layout.to_slices(other.config.lanes)?),
            ("columns", !columns.is_same(&other.columns.copy_to(&Reference)?)),
            ("values", bytes_of(&self.values)? != bytes_of(&other.values)?),
            ("lengths", self.lengths.to_host()? != other.lengths.to_host()?),
            ("entries", entries != other.entries.as_deref().map(Buffer::to_host).transpose()?),
        ];
        Ok(differences.into_iter().find_map(|(name, differs)| differs.then_some(name)))
    }

    /// The same matrix on another device.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the other device has no product for slices with this number of lanes; when a
    /// device refuses a copy or has not the memory.
    pub fn copy_to<E: EllWarpKernels<T, V>>(&self, device: &E) -> Result<EllWarp<T, E, V>, LinalgError> {
        self.config.check(E::LANES, self.n_rows, self.n_cols)?;
        let entries = self.entries.as_deref().map(Buffer::to_host).transpose()?;
        Ok(EllWarp {
            n_rows: self.n_rows,
            n_cols: self.n_cols,
            n_nonzeros: self.n_nonzeros,
            config: self.config,
            layout: Arc::new(Layout::new(device, self.layout.to_slices(self.config.lanes)?)?),
            columns: Arc::new(self.columns.copy_to(device)?),
            values: Buffer::from_vec(device, self.values.to_host()?)?,
            lengths: Arc::new(Buffer::from_vec(device, self.lengths.to_host()?)?),
            entries: entries.map(|entries| Buffer::from_vec(device, entries).map(Arc::new)).transpose()?,
            vectors: PhantomData,
        })
    }

    /// Returns the matrix with its values rounded to `W`; both share the pattern.
    ///
    /// # Cost
    /// Reads each value once and writes the rounded one.
    /// # Errors
    /// Errors of the device.
    pub fn rounded<W: Scalar>(&self) -> Result<EllWarp<T, D, W>, LinalgError>
    where
        D: Convert<V, W>,
    {
        let device = self.values.device();
        let mut values = Buffer::zeros(device, self.values.len())?;
        device.convert(&mut values, 1.0, &self.values)?;
        Ok(EllWarp {
            n_rows: self.n_rows,
            n_cols: self.n_cols,
            n_nonzeros: self.n_nonzeros,
            config: self.config,
            layout: Arc::clone(&self.layout),
            columns: Arc::clone(&self.columns),
            values,
            lengths: Arc::clone(&self.lengths),
            entries: self.entries.clone(),
            vectors: PhantomData,
        })
    }

    /// The matrix in compressed sparse rows again, in its own numbering.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn to_csr(&self) -> Result<Csr<V, Reference>, LinalgError> {
        let slices = self.layout.to_slices(self.config.lanes)?;
        let columns = self.columns.to_numbers(&slices)?;
        let packed = Packed { values: self.values.to_host()?, columns, entries: None };
        let rows = pack::unpack(&packed, &slices, self.config.numbering, &self.lengths.to_host()?);
        let offsets = HostOffsets::from_row_lengths(rows.iter().map(Vec::len));
        let (columns, values) = rows.into_iter().flatten().unzip();
        Csr::from_parts(&Reference, self.n_cols, offsets, columns, values)
    }

    /// Takes new values from a matrix with the same pattern, and allocates nothing for it.
    ///
    /// # Cost
    /// Reads and writes each value once; reads the layout where it lies.
    /// # Errors
    /// [`LinalgError::Length`] when `csr` has another number of rows or non-zeros.
    pub fn refill(&mut self, csr: &Csr<V, D>) -> Result<(), LinalgError>
    where
        D: EllWarpKernels<T, V>,
    {
        csr.values().device().clone().ell_warp_refill(self, csr)
    }

    /// Refuses a matrix whose pattern has another size.
    fn need_pattern_of(&self, csr: &Csr<V, D>) -> Result<(), LinalgError> {
        need("rows of the new matrix", self.n_rows, csr.n_rows())?;
        need("non-zeros of the new matrix", self.n_nonzeros, csr.n_nonzeros())
    }

    /// Refuses vectors that have not an entry for each row.
    fn need_rows(&self, to: &Buffer<T, D>, from: &Buffer<T, D>) -> Result<(), LinalgError> {
        need("to", self.n_rows, to.len())?;
        need("from", self.n_rows, from.len())
    }

    /// Brings a vector into the numbering that the matrix is applied in.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector has not an entry for each row.
    pub fn sort(&self, to: &mut Buffer<T, D>, from: &Buffer<T, D>) -> Result<(), LinalgError>
    where
        D: EllWarpKernels<T, V>,
    {
        self.values.device().ell_warp_sort(to, from, self)
    }

    /// Brings a vector back into the numbering of the matrix that this one was made from.
    ///
    /// # Errors
    /// As [`EllWarp::sort`].
    pub fn unsort(&self, to: &mut Buffer<T, D>, from: &Buffer<T, D>) -> Result<(), LinalgError>
    where
        D: EllWarpKernels<T, V>,
    {
        self.values.device().ell_warp_unsort(to, from, self)
    }

    /// Returns the layout in slices.
    pub fn config(&self) -> &EllWarpConfig {
        &self.config
    }

    /// Number of entries of the matrix, without padding.
    pub fn n_nonzeros(&self) -> usize {
        self.n_nonzeros
    }

    /// Number of stored entries, with padding.
    pub fn n_stored(&self) -> usize {
        self.values.len()
    }

    /// The values as they are stored.
    pub fn values(&self) -> &Buffer<V, D> {
        &self.values
    }

    /// Bytes that a product must move: all that is stored, x and y once.
    pub fn product_bytes(&self) -> usize {
        let shapes = if self.layout.shapes.is_some() { 12 } else { 4 };
        let rows = if self.scatters().is_some() { 4 } else { 0 };
        self.values.len() * size_of::<V>()
            + self.columns.n_bytes()
            + self.layout.n_slices() * shapes
            + self.n_rows * (rows + size_of::<T>())
            + self.n_cols * size_of::<T>()
    }

    /// The row at each place, where vectors are in the order of the places.
    fn numbering(&self) -> Option<&Buffer<u32, D>> {
        self.layout.rows.as_ref().filter(|_| self.config.numbering != Numbering::Kept)
    }

    /// The row at each place, where y is not in the order of the places.
    fn scatters(&self) -> Option<&Buffer<u32, D>> {
        self.layout.rows.as_ref().filter(|_| self.config.numbering == Numbering::Kept)
    }
}

fn bytes_of<V: Scalar, D: Device>(values: &Buffer<V, D>) -> Result<Vec<u8>, LinalgError> {
    Ok(bytemuck::cast_slice(&values.to_host()?).to_vec())
}

impl<T: Scalar, D: Device, V: Scalar> Sealed for EllWarp<T, D, V> {}

impl<T: Scalar, D: EllWarpKernels<T, V>, V: Scalar> StoredMatrix<D> for EllWarp<T, D, V> {
    type Value = V;
    type Config = EllWarpConfig;

    fn zeros(
        device: &D,
        offsets: &HostOffsets,
        columns: &[u32],
        config: &EllWarpConfig,
    ) -> Result<Self, LinalgError> {
        let pattern = Csr::<V, Reference>::zeros(&Reference, offsets, columns, &())?;
        Self::from_csr(device, &pattern, config)
    }

    fn entry_positions(&self) -> Result<EntryPositions, LinalgError> {
        let lanes = self.config.lanes;
        let slices = self.layout.to_slices(lanes)?;
        let (mut starts, mut of_rows) = (vec![0; self.n_rows], vec![[0; 2]; self.n_rows]);
        for slice in 0..slices.len() {
            let (places, fold) = (slices.places(slice, self.n_rows), slices.lanes_of_row(slice).ilog2());
            for place in places.clone() {
                let row = slices.row(place);
                starts[row] = (slices.columns(slice).start * lanes) as u64;
                of_rows[row] = [((place - places.start) << fold) as u8, fold as u8];
            }
        }
        let sorts_columns = self.config.numbering == Numbering::SortedColumns;
        let numbers = slices.rows.filter(|_| sorts_columns).map(|rows| {
            let mut numbers = vec![0; rows.len()];
            rows.iter().zip(0..).for_each(|(&row, place)| numbers[row as usize] = place);
            numbers
        });
        Ok(EntryPositions::slices(lanes, starts, of_rows, numbers))
    }

    fn values_mut(&mut self) -> BufferMut<'_, V, D> {
        BufferMut::new(&mut self.values)
    }

    fn combine_values(&mut self, alpha: V, x: &Buffer<V, D>, beta: V) -> Result<(), LinalgError>
    where
        D: VectorKernels<V>,
    {
        x.device().axpby(&mut self.values, alpha, x, beta)
    }
}

impl<T: Scalar, D: EllWarpKernels<T, V>, V: Scalar> LinearOperator<T, D> for EllWarp<T, D, V> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn device(&self) -> &D {
        self.values.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need("y", self.n_rows, y.len())?;
        need("x", self.n_cols, x.len())?;
        self.device().ell_warp_apply(y, self, x, hook)
    }
}
