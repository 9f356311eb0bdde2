//! Sparse matrices on the host during the setup.

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Device, Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::{Csr, HostOffsets, Offsets};

/// Rows of a piece, independent of the number of threads.
pub(crate) const PIECE: usize = 1024;

/// A matrix with access to its rows.
pub(crate) trait RowAccess<T>: Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Number of columns.
    fn n_cols(&self) -> usize;
    /// The columns and values of a row.
    fn row(&self, row: usize) -> (&[u32], &[T]);
}

/// A matrix by compressed rows.
#[derive(Debug, Clone)]
pub(crate) struct Rows<T> {
    pub n_cols: usize,
    pub offsets: Vec<usize>,
    pub columns: Vec<u32>,
    pub values: Vec<T>,
}

impl<T: Scalar> RowAccess<T> for Rows<T> {
    fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    #[inline(always)]
    fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// Rows in pieces, as threads produced them; columns of a row in any order.
#[derive(Debug)]
pub(crate) struct Pieces<T> {
    n_rows: usize,
    n_cols: usize,
    pieces: Vec<Piece<T>>,
}

/// Consecutive rows.
#[derive(Debug, Default)]
pub(crate) struct Piece<T> {
    /// The end of each row.
    ends: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Piece<T> {
    /// Appends an entry to the current row.
    pub fn push(&mut self, column: u32, value: T) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Appends entries to the current row.
    pub fn extend(&mut self, columns: &[u32], values: &[T]) {
        self.columns.extend_from_slice(columns);
        self.values.extend_from_slice(values);
    }

    fn end_row(&mut self) {
        self.ends.push(self.columns.len() as u32);
    }
}

impl<T: Scalar> RowAccess<T> for Pieces<T> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    #[inline(always)]
    fn row(&self, row: usize) -> (&[u32], &[T]) {
        let (piece, local) = (&self.pieces[row / PIECE], row % PIECE);
        let begin = if local == 0 { 0 } else { piece.ends[local - 1] as usize };
        let range = begin..piece.ends[local] as usize;
        (&piece.columns[range.clone()], &piece.values[range])
    }
}

impl<T: Scalar> Pieces<T> {
    /// Builds a matrix row by row, in parallel; `write` gets a scratch of its thread.
    pub fn build<S: Send>(
        [n_rows, n_cols]: [usize; 2],
        scratch: impl Fn() -> S + Sync,
        write: impl Fn(&mut S, usize, &mut Piece<T>) + Sync,
    ) -> Self {
        let piece = |scratch: &mut S, number: usize| {
            let mut piece = Piece::default();
            for row in number * PIECE..((number + 1) * PIECE).min(n_rows) {
                write(scratch, row, &mut piece);
                piece.end_row();
            }
            piece
        };
        let pieces = parallel::map_with(n_rows.div_ceil(PIECE), 1, scratch, piece);
        Self { n_rows, n_cols, pieces }
    }

    /// Concatenates the pieces.
    pub fn join(self) -> Rows<T> {
        let mut offsets = Vec::with_capacity(self.n_rows + 1);
        offsets.push(0);
        let mut base = 0;
        for piece in &self.pieces {
            offsets.extend(piece.ends.iter().map(|&end| base + end as usize));
            base += piece.columns.len();
        }
        let (mut columns, mut values) = (zeroed_vec(base), zeroed_vec(base));
        let mut rest = (columns.as_mut_slice(), values.as_mut_slice());
        let mut work = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces {
            let n = piece.columns.len();
            let ((columns, more_columns), (values, more_values)) =
                (rest.0.split_at_mut(n), rest.1.split_at_mut(n));
            rest = (more_columns, more_values);
            work.push((columns, values, piece));
        }
        parallel::for_each_item(work, 1, |(columns, values, piece)| {
            columns.copy_from_slice(&piece.columns);
            values.copy_from_slice(&piece.values);
        });
        Rows { n_cols: self.n_cols, offsets, columns, values }
    }
}

impl<T: Scalar> Rows<T> {
    /// Builds a matrix whose rows have known lengths, in parallel; `write` gets the room of a row.
    pub fn filled(
        [n_rows, n_cols]: [usize; 2],
        length: impl Fn(usize) -> usize + Sync,
        write: impl Fn(usize, &mut [u32], &mut [T]) + Sync,
    ) -> Self {
        let mut offsets = vec![0; n_rows + 1];
        parallel::for_chunks_mut(&mut offsets[1..], PIECE, |first, lengths| {
            lengths.iter_mut().zip(first..).for_each(|(to, row)| *to = length(row));
        });
        for row in 0..n_rows {
            offsets[row + 1] += offsets[row];
        }
        let (mut columns, mut values) = (zeroed_vec(offsets[n_rows]), zeroed_vec(offsets[n_rows]));
        let mut rest = (columns.as_mut_slice(), values.as_mut_slice());
        let mut work = Vec::with_capacity(n_rows.div_ceil(PIECE));
        for begin in (0..n_rows).step_by(PIECE) {
            let rows = begin..n_rows.min(begin + PIECE);
            let n = offsets[rows.end] - offsets[rows.start];
            let ((columns, more_columns), (values, more_values)) =
                (rest.0.split_at_mut(n), rest.1.split_at_mut(n));
            rest = (more_columns, more_values);
            work.push((rows, columns, values));
        }
        parallel::for_each_item(work, 1, |(rows, columns, values)| {
            let begin = offsets[rows.start];
            for row in rows {
                let room = offsets[row] - begin..offsets[row + 1] - begin;
                write(row, &mut columns[room.clone()], &mut values[room]);
            }
        });
        Self { n_cols, offsets, columns, values }
    }

    /// Copies a matrix from any device. It is scaled by a power of two such that its largest entry is between
    /// 1 and 2 and it fits f32. Returns that power as well.
    pub fn of<S: Scalar, D: Device>(a: &Csr<S, D>) -> Result<(Self, f64), LinalgError> {
        let given = a.values().host_view()?;
        let scale = to_unit(largest(&given));
        Ok((Self::scaled(a, &given, scale)?, scale))
    }

    /// Copies the pattern of a matrix from any device, and its `given` values times `scale`.
    pub fn scaled<S: Scalar, D: Device>(a: &Csr<S, D>, given: &[S], scale: f64) -> Result<Self, LinalgError> {
        let (offsets, columns) = pattern(a)?;
        let mut values: Vec<T> = zeroed_vec(given.len());
        parallel::for_chunks_mut(&mut values, PIECE, |begin, values| {
            let pairs = values.iter_mut().zip(&given[begin..]);
            pairs.for_each(|(value, given)| *value = T::from_f64(scale * given.to_f64()));
        });
        Ok(Self { n_cols: a.n_cols(), offsets, columns, values })
    }

    /// Copies a matrix from any device.
    pub fn as_is<D: Device>(a: &Csr<T, D>) -> Result<Self, LinalgError> {
        let (offsets, columns) = pattern(a)?;
        Ok(Self { n_cols: a.n_cols(), offsets, columns, values: a.values().to_host()? })
    }

    /// Returns the transpose; columns of its rows ascend.
    pub fn transpose(&self) -> Self {
        let mut offsets = vec![0; self.n_cols + 1];
        self.columns.iter().for_each(|&column| offsets[column as usize + 1] += 1);
        for i in 0..self.n_cols {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let (mut columns, mut values) = (zeroed_vec(self.columns.len()), zeroed_vec::<T>(self.columns.len()));
        for row in 0..self.n_rows() {
            let (row_columns, row_values) = self.row(row);
            for (&column, &value) in row_columns.iter().zip(row_values) {
                let at = &mut next[column as usize];
                (columns[*at], values[*at]) = (row as u32, value);
                *at += 1;
            }
        }
        Self { n_cols: self.n_rows(), offsets, columns, values }
    }

    /// Returns the matrix whose row i is row `rows[i]` of this one.
    pub fn with_rows(&self, rows: &[u32]) -> Self {
        let dimensions = [rows.len(), self.n_cols];
        let pieces = Pieces::build(
            dimensions,
            || (),
            |(), row, out| {
                let (columns, values) = self.row(rows[row] as usize);
                out.extend(columns, values);
            },
        );
        pieces.join()
    }

    /// Permutes rows and columns such that row i is row `order[i]` of this matrix; columns of its rows ascend.
    pub fn permuted(&self, order: &[u32]) -> Self {
        let numbers = inverse(order);
        let n = self.n_rows();
        let pieces = Pieces::build([n, n], Vec::new, |pairs: &mut Vec<(u32, T)>, row, out| {
            let (columns, values) = self.row(order[row] as usize);
            pairs.clear();
            pairs.extend(columns.iter().map(|&column| numbers[column as usize]).zip(values.iter().copied()));
            pairs.sort_unstable_by_key(|&(column, _)| column);
            pairs.iter().for_each(|&(column, value)| out.push(column, value));
        });
        pieces.join()
    }

    /// Copies the matrix to a device.
    pub fn into_device<D: Device>(self, device: &D) -> Result<Csr<T, D>, LinalgError> {
        let lengths = self.offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let offsets = HostOffsets::from_row_lengths(lengths);
        Csr::from_parts(device, self.n_cols, offsets, self.columns, self.values)
    }
}

/// Returns the largest magnitude.
pub(crate) fn largest<T: Scalar>(values: &[T]) -> f64 {
    let of_piece = |values: &[T]| values.iter().map(|value| value.to_f64().abs()).fold(0.0, f64::max);
    parallel::map_chunks(values, PIECE, |_, values| of_piece(values)).into_iter().fold(0.0, f64::max)
}

/// Returns the power of two that scales a magnitude to between 1 and 2; 1 if there is none.
pub(crate) fn to_unit(size: f64) -> f64 {
    if size.is_normal() { 2.0_f64.powi(-(size.log2().floor() as i32)) } else { 1.0 }
}

/// Copies offsets and columns of a matrix from any device.
fn pattern<T: Scalar, D: Device>(a: &Csr<T, D>) -> Result<(Vec<usize>, Vec<u32>), LinalgError> {
    let offsets = match a.offsets() {
        Offsets::Narrow(offsets) => offsets.host_view()?.iter().map(|&begin| begin as usize).collect(),
        Offsets::Wide(offsets) => offsets.host_view()?.iter().map(|&begin| begin as usize).collect(),
    };
    Ok((offsets, a.columns().host_view()?.into_owned()))
}

/// Returns the inverse of a permutation.
pub(crate) fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &number)| places[number as usize] = place as u32);
    places
}

/// An accumulator of a sparse row, with capacity for all its terms.
pub(crate) struct Row<T> {
    /// The place of each column among the entries; arbitrary for absent columns.
    slots: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
    n: usize,
}

impl<T: Scalar> Row<T> {
    /// Allocates an accumulator for rows of `n_cols` columns.
    pub fn new(n_cols: usize) -> Self {
        Self { slots: vec![0; n_cols], columns: Vec::new(), values: Vec::new(), n: 0 }
    }

    /// Begins a row of at most `most` terms.
    #[inline(always)]
    pub fn start(&mut self, most: usize) {
        self.n = 0;
        if self.columns.len() < most {
            self.columns.resize(2 * most, 0);
            self.values.resize(2 * most, T::ZERO);
        }
    }

    /// Adds `factor` times some entries.
    #[inline(always)]
    pub fn add(&mut self, columns: &[u32], values: &[T], factor: T) {
        let (mut n, own_columns, own_values) =
            (self.n, self.columns.as_mut_slice(), self.values.as_mut_slice());
        for (&column, &value) in columns.iter().zip(values) {
            let slot = &mut self.slots[column as usize];
            let at = *slot as usize;
            if at < n && own_columns[at] == column {
                own_values[at] += factor * value;
            } else {
                *slot = n as u32;
                (own_columns[n], own_values[n]) = (column, factor * value);
                n += 1;
            }
        }
        self.n = n;
    }

    /// Returns the sum in a column so far.
    #[inline(always)]
    pub fn get(&self, column: u32) -> T {
        let at = self.slots[column as usize] as usize;
        if at < self.n && self.columns[at] == column { self.values[at] } else { T::ZERO }
    }

    /// Returns the entries so far.
    #[inline(always)]
    pub fn entries(&mut self) -> (&mut [u32], &mut [T]) {
        (&mut self.columns[..self.n], &mut self.values[..self.n])
    }
}

/// Sorts the entries of a row by their columns.
pub(crate) fn sort_row<T: Scalar>(columns: &mut [u32], values: &mut [T], pairs: &mut Vec<(u32, T)>) {
    if columns.is_sorted() {
        return;
    }
    pairs.clear();
    pairs.extend(columns.iter().copied().zip(values.iter().copied()));
    pairs.sort_unstable_by_key(|&(column, _)| column);
    for ((column, value), &(c, v)) in columns.iter_mut().zip(values).zip(pairs.iter()) {
        (*column, *value) = (c, v);
    }
}
