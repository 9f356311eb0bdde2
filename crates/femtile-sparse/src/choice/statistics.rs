use femtile_device::{HostDevice, Scalar};

use crate::Csr;
use crate::rows::offset;

/// Rows of a sampled stretch.
pub(super) const STRETCH: usize = 4096;
/// Stretches that are sampled at most.
const MOST_STRETCHES: usize = 48;
/// Entries of x that come with one sector of 32 bytes, in f64.
const SECTOR: u32 = 4;
/// Rows whose entries of x are counted together, about what a multiprocessor has under way at once.
const NEIGHBOURS: usize = 256;

/// Statistics of a matrix for the cost model: the lengths of all rows, and columns of sampled stretches of rows.
#[derive(Debug, Clone)]
pub(super) struct Statistics {
    pub n_rows: usize,
    pub n_cols: usize,
    pub n_nonzeros: usize,
    /// Lengths with how many rows have them, the longest first.
    pub lengths: Vec<(u32, usize)>,
    pub stretches: Vec<Stretch>,
    /// Sectors of x that the rows of a neighbourhood touch, for each of their entries.
    pub sectors: f64,
}

/// Consecutive rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Stretch {
    pub lengths: Vec<u32>,
    /// First column of each row.
    pub firsts: Vec<u32>,
    /// The largest distance of neighbouring columns of each row.
    pub gaps: Vec<u32>,
}

impl Statistics {
    /// Cost: one pass over the offsets, and the entries of at most 200,000 rows.
    pub fn of<T: Scalar, H: HostDevice>(a: &Csr<T, H>) -> Self {
        let lengths = a.row_lengths();
        let n_stretches = lengths.len().div_ceil(STRETCH);
        let step = n_stretches.div_ceil(MOST_STRETCHES).max(1);
        let (mut touched, mut seen) = (0, 0);
        let stretches = (0..n_stretches)
            .step_by(step)
            .map(|i| {
                let rows = i * STRETCH..((i + 1) * STRETCH).min(lengths.len());
                let (sectors, entries) = sectors(a, rows.clone());
                touched += sectors;
                seen += entries;
                stretch(a, rows, &lengths)
            })
            .collect();
        Self {
            n_rows: a.n_rows(),
            n_cols: a.n_cols(),
            n_nonzeros: a.n_nonzeros(),
            lengths: histogram(lengths),
            stretches,
            sectors: if seen == 0 { 0.0 } else { touched as f64 / seen as f64 },
        }
    }

    /// The longest row.
    pub fn longest(&self) -> usize {
        self.lengths.first().map_or(0, |&(length, _)| length as usize)
    }

    /// Rows for each one that was sampled.
    pub fn scale(&self) -> f64 {
        let sampled: usize = self.stretches.iter().map(|stretch| stretch.lengths.len()).sum();
        if sampled == 0 { 1.0 } else { self.n_rows as f64 / sampled as f64 }
    }
}

fn histogram(mut lengths: Vec<u32>) -> Vec<(u32, usize)> {
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    lengths.chunk_by(|a, b| a == b).map(|rows| (rows[0], rows.len())).collect()
}

fn columns<T: Scalar, H: HostDevice>(a: &Csr<T, H>, rows: std::ops::Range<usize>) -> &[u32] {
    &a.columns().as_slice()[offset(a.offsets(), rows.start)..offset(a.offsets(), rows.end)]
}

fn stretch<T: Scalar, H: HostDevice>(
    a: &Csr<T, H>,
    rows: std::ops::Range<usize>,
    lengths: &[u32],
) -> Stretch {
    let mut stretch = Stretch { lengths: lengths[rows.clone()].to_vec(), ..Stretch::default() };
    for row in rows {
        let columns = columns(a, row..row + 1);
        stretch.firsts.push(columns.first().copied().unwrap_or(0));
        stretch.gaps.push(columns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0));
    }
    stretch
}

/// Sectors of x that neighbourhoods of some rows touch, and entries of these rows.
fn sectors<T: Scalar, H: HostDevice>(a: &Csr<T, H>, rows: std::ops::Range<usize>) -> (usize, usize) {
    let (mut touched, mut entries) = (0, 0);
    let mut sectors = Vec::new();
    for first in rows.clone().step_by(8 * NEIGHBOURS) {
        let columns = columns(a, first..(first + NEIGHBOURS).min(rows.end));
        sectors.clear();
        sectors.extend(columns.iter().map(|column| column / SECTOR));
        sectors.sort_unstable();
        sectors.dedup();
        touched += sectors.len();
        entries += columns.len();
    }
    (touched, entries)
}
