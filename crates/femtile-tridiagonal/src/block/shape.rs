use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use femtile_linalg::LinalgError;

/// Rows of the smallest blocks.
pub const MIN_BLOCK: usize = 2;
/// Rows of the largest blocks.
pub const MAX_BLOCK: usize = 10;
const BLOCKS: RangeInclusive<usize> = MIN_BLOCK..=MAX_BLOCK;

/// In which order the blocks of a batch stand in memory; inside a block entries are row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockOrder {
    /// The blocks of row 0 of all systems, then those of row 1: block `n` of system `p` is number
    /// `n * n_systems + p`. `[laszlo2016]`, Fig. 14 and 15.
    Interleaved,
    /// All blocks of system 0, then those of system 1: block `n` of system `p` is number `p * n_rows + n`.
    /// `[laszlo2016]`, Fig. 17.
    SystemMajor,
}

impl BlockOrder {
    /// Both orders.
    pub const ALL: [Self; 2] = [Self::Interleaved, Self::SystemMajor];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::SystemMajor => "system-major",
        }
    }
}

impl fmt::Display for BlockOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BlockOrder {
    type Err = LinalgError;

    fn from_str(name: &str) -> Result<Self, LinalgError> {
        Self::ALL.into_iter().find(|order| order.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            LinalgError::Setting { field: "order", message: format!("`{name}` is none of: {names}") }
        })
    }
}

/// The size and memory layout of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockShape {
    /// Rows and columns of a block, M.
    pub block: usize,
    /// Block rows of a system, N.
    pub n_rows: usize,
    /// Systems, P.
    pub n_systems: usize,
    /// Where blocks stand.
    pub order: BlockOrder,
}

impl BlockShape {
    /// Entries of each band: N P M².
    pub fn band_len(&self) -> usize {
        self.vector_len() * self.block
    }

    /// Entries of the right side and of the solution: N P M.
    pub fn vector_len(&self) -> usize {
        self.n_rows * self.n_systems * self.block
    }

    /// Number of the block of a row and a system, in memory.
    pub fn place(&self, row: usize, system: usize) -> usize {
        row * self.row_stride() + system * self.system_stride()
    }

    /// Blocks from a row to the next.
    pub(crate) fn row_stride(&self) -> usize {
        match self.order {
            BlockOrder::Interleaved => self.n_systems,
            BlockOrder::SystemMajor => 1,
        }
    }

    /// Blocks from a system to the next.
    pub(crate) fn system_stride(&self) -> usize {
        match self.order {
            BlockOrder::Interleaved => 1,
            BlockOrder::SystemMajor => self.n_rows,
        }
    }

    /// Refuses blocks that are too small or too large, and more entries than can be counted.
    pub(crate) fn check(&self) -> Result<(), LinalgError> {
        if !BLOCKS.contains(&self.block) {
            let message = format!("blocks of {} rows; choose {MIN_BLOCK} to {MAX_BLOCK}", self.block);
            return Err(LinalgError::Setting { field: "block", message });
        }
        let n_bytes = [self.n_rows, self.n_systems, self.block, self.block, size_of::<f64>()];
        let product = n_bytes.into_iter().try_fold(1usize, usize::checked_mul);
        if product.is_none_or(|bytes| bytes > isize::MAX as usize) {
            let message = format!(
                "{} systems of {} block rows are more than memory can hold",
                self.n_systems, self.n_rows
            );
            return Err(LinalgError::Setting { field: "n_systems", message });
        }
        Ok(())
    }
}
