//! The matrix format patchSPM.

use femtile_device::{Buffer, Device, HostDevice, Scalar, parallel};
use femtile_linalg::{LinalgError, need};

use crate::setup::rows::{RowAccess, Rows};

/// Storage format of the matrices of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PatchFormat {
    /// ELL: all entries, rows padded to the longest row of the patch.
    #[default]
    FullRowEll,
    /// CSR: all entries, row by row.
    Csr,
    /// COO of the entries above the diagonal: the least memory, but a GPU adds them in any order, so that rounding differs
    /// from run to run.
    SymmetricCoo,
}

/// A symmetric matrix in three parts, $A = A_I + A_B + A_D$: entries within patches, entries between patches, and the
/// diagonal. Rows of a patch are contiguous, at most 400.
///
/// # Shapes
/// `starts: [n_patches + 1]`, `diagonal: [n_rows]`.
/// # Source
/// `[fu2014]`, section 5.2.2, patchSPM. Differs: columns within a patch have 16 bits; $A_B$ stores its
/// non-empty rows only.
#[derive(Debug)]
pub struct PatchMatrix<H: Scalar, D: Device> {
    /// The first row of each patch, and the end.
    pub(crate) starts: Buffer<u32, D>,
    /// Rows of the largest patch.
    pub(crate) most_rows: usize,
    /// $A_I$.
    pub(crate) inside: Inside<H, D>,
    /// $A_B$.
    pub(crate) outside: Outside<H, D>,
    /// $A_D$.
    pub(crate) diagonal: Buffer<H, D>,
}

/// The blocks of patches without their diagonals; rows and columns are counted from the first row of the patch.
#[derive(Debug)]
pub(crate) enum Inside<H: Scalar, D: Device> {
    /// ELL: the first entries of all rows of a patch, then the second ones, and so on; short rows are padded with zeros on
    /// the diagonal.
    FullRowEll {
        /// The first entry of each patch, and the end.
        starts: Buffer<u32, D>,
        /// Column of each entry.
        columns: Buffer<u16, D>,
        /// Value of each entry.
        values: Buffer<H, D>,
    },
    /// CSR: row by row.
    Csr {
        /// The first entry of each row, and the end.
        offsets: Buffer<u32, D>,
        /// Column of each entry.
        columns: Buffer<u16, D>,
        /// Value of each entry.
        values: Buffer<H, D>,
    },
    /// COO: the entries above the diagonal, by symmetry also those below it.
    SymmetricCoo {
        /// The first entry of each patch, and the end.
        starts: Buffer<u32, D>,
        /// Row of each entry.
        rows: Buffer<u16, D>,
        /// Column of each entry.
        columns: Buffer<u16, D>,
        /// Value of each entry.
        values: Buffer<H, D>,
    },
}

/// The entries that join two patches, by rows.
#[derive(Debug)]
pub(crate) struct Outside<H: Scalar, D: Device> {
    /// The rows with such entries, ascending.
    pub(crate) rows: Buffer<u32, D>,
    /// The first entry of each of these, and the end.
    pub(crate) offsets: Buffer<u32, D>,
    /// Column of each entry.
    pub(crate) columns: Buffer<u32, D>,
    /// Value of each entry.
    pub(crate) values: Buffer<H, D>,
}

impl<H: Scalar, D: Device> PatchMatrix<H, D> {
    /// Splits a matrix whose rows are in the order of patches.
    pub(crate) fn new(
        device: &D,
        a: &Rows<H>,
        diagonal: Vec<H>,
        starts: &[u32],
        format: PatchFormat,
    ) -> Result<Self, LinalgError> {
        let sizes = starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        Ok(Self {
            most_rows: sizes.max().unwrap_or(0),
            inside: inside(device, a, starts, format)?,
            outside: outside(device, a, starts)?,
            starts: Buffer::from_host(device, starts)?,
            diagonal: Buffer::from_vec(device, diagonal)?,
        })
    }

    /// Number of patches.
    pub fn n_patches(&self) -> usize {
        self.starts.len() - 1
    }

    /// Refuses vectors without an entry for each row.
    ///
    /// # Errors
    /// [`LinalgError::Length`], with the name of the argument.
    pub(crate) fn need_vectors(&self, vectors: &[(&'static str, &Buffer<H, D>)]) -> Result<(), LinalgError> {
        vectors.iter().try_for_each(|(field, vector)| need(field, self.diagonal.len(), vector.len()))
    }
}

impl<H: Scalar, D: HostDevice> PatchMatrix<H, D> {
    /// The rows of a patch, on a device that shares the host's memory.
    pub fn rows(&self, patch: usize) -> std::ops::Range<usize> {
        let starts = self.starts.as_slice();
        starts[patch] as usize..starts[patch + 1] as usize
    }
}

/// The entries of one block.
struct Block<H> {
    /// The end of each row; none in formats without it.
    ends: Vec<usize>,
    /// The row of each entry; none in formats without it.
    rows: Vec<u16>,
    columns: Vec<u16>,
    values: Vec<H>,
}

fn block<H: Scalar>(a: &Rows<H>, range: std::ops::Range<usize>, format: PatchFormat) -> Block<H> {
    let mut block = Block { ends: vec![], rows: vec![], columns: vec![], values: vec![] };
    for row in range.clone() {
        let (columns, values) = a.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            let column = column as usize;
            let is_kept = if format == PatchFormat::SymmetricCoo { column > row } else { column != row };
            if is_kept && range.contains(&column) {
                block.rows.push((row - range.start) as u16);
                block.columns.push((column - range.start) as u16);
                block.values.push(value);
            }
        }
        block.ends.push(block.columns.len());
    }
    if format == PatchFormat::FullRowEll { by_columns(&block) } else { block }
}

/// Converts a block to ELL, first entries first.
fn by_columns<H: Scalar>(block: &Block<H>) -> Block<H> {
    let n = block.ends.len();
    let begin = |row: usize| if row == 0 { 0 } else { block.ends[row - 1] };
    let width = (0..n).map(|row| block.ends[row] - begin(row)).max().unwrap_or(0);
    let mut columns: Vec<u16> = (0..n * width).map(|at| (at % n) as u16).collect();
    let mut values = vec![H::ZERO; n * width];
    for row in 0..n {
        for (k, at) in (begin(row)..block.ends[row]).enumerate() {
            (columns[k * n + row], values[k * n + row]) = (block.columns[at], block.values[at]);
        }
    }
    Block { ends: vec![], rows: vec![], columns, values }
}

fn inside<H: Scalar, D: Device>(
    device: &D,
    a: &Rows<H>,
    starts: &[u32],
    format: PatchFormat,
) -> Result<Inside<H, D>, LinalgError> {
    let of_patch = |patch: usize| block(a, starts[patch] as usize..starts[patch + 1] as usize, format);
    let blocks = parallel::map(starts.len() - 1, 1, of_patch);
    let places = match format {
        PatchFormat::Csr => offsets(blocks.iter().flat_map(|block| lengths(&block.ends))),
        _ => offsets(blocks.iter().map(|block| block.columns.len())),
    }?;
    let places = Buffer::from_vec(device, places)?;
    let columns = Buffer::from_vec(device, joined(&blocks, |block| &block.columns))?;
    let values = Buffer::from_vec(device, joined(&blocks, |block| &block.values))?;
    Ok(match format {
        PatchFormat::FullRowEll => Inside::FullRowEll { starts: places, columns, values },
        PatchFormat::Csr => Inside::Csr { offsets: places, columns, values },
        PatchFormat::SymmetricCoo => {
            let rows = Buffer::from_vec(device, joined(&blocks, |block| &block.rows))?;
            Inside::SymmetricCoo { starts: places, rows, columns, values }
        }
    })
}

fn lengths(ends: &[usize]) -> impl Iterator<Item = usize> {
    ends.iter().scan(0, |begin, &end| Some(end - std::mem::replace(begin, end)))
}

fn joined<H, E: Copy>(blocks: &[Block<H>], of: impl Fn(&Block<H>) -> &[E]) -> Vec<E> {
    blocks.iter().flat_map(of).copied().collect()
}

/// Returns the offsets of consecutive lists of these lengths.
fn offsets(lengths: impl Iterator<Item = usize>) -> Result<Vec<u32>, LinalgError> {
    let (mut end, mut offsets) = (0_usize, vec![0]);
    for length in lengths {
        end += length;
        let Ok(narrow) = u32::try_from(end) else {
            let message = "2³² entries or more do not fit patches: choose Chebyshev".into();
            return Err(LinalgError::Setting { field: "smoother", message });
        };
        offsets.push(narrow);
    }
    Ok(offsets)
}

fn outside<H: Scalar, D: Device>(
    device: &D,
    a: &Rows<H>,
    starts: &[u32],
) -> Result<Outside<H, D>, LinalgError> {
    let (mut rows, mut ends, mut columns, mut values) = (vec![], vec![], vec![], vec![]);
    for patch in starts.windows(2).map(|ends| ends[0]..ends[1]) {
        for row in patch.clone() {
            let before = columns.len();
            let (of_row, of_row_values) = a.row(row as usize);
            let outer = of_row.iter().zip(of_row_values).filter(|(column, _)| !patch.contains(column));
            for (&column, &value) in outer {
                columns.push(column);
                values.push(value);
            }
            if columns.len() > before {
                rows.push(row);
                ends.push(columns.len());
            }
        }
    }
    Ok(Outside {
        rows: Buffer::from_vec(device, rows)?,
        offsets: Buffer::from_vec(device, offsets(lengths(&ends))?)?,
        columns: Buffer::from_vec(device, columns)?,
        values: Buffer::from_vec(device, values)?,
    })
}
