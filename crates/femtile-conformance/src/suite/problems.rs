//! Random numbers and matrices that every device is given alike.

use femtile::device::{Device, Scalar};
use femtile::linalg::sparse::csr::{Csr, HostOffsets};

/// A small generator of repeatable random numbers (xorshift64*).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Uniform in [−1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// Uniform entries in [−1, 1).
    pub fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::from_f64(self.unit())).collect()
    }
}

/// A matrix as its three arrays, so that every device can be given the same one.
#[derive(Debug, Clone)]
pub struct CsrArrays<T> {
    /// Number of columns.
    pub n_cols: usize,
    /// Offset of each row.
    pub offsets: Vec<u32>,
    /// Column of each entry.
    pub columns: Vec<u32>,
    /// Value of each entry.
    pub values: Vec<T>,
}

impl<T: Scalar> CsrArrays<T> {
    /// From (column, value) pairs by row.
    pub fn from_rows(n_cols: usize, rows: Vec<Vec<(usize, f64)>>) -> Self {
        let mut parts = Self { n_cols, offsets: vec![0], columns: vec![], values: vec![] };
        for row in rows {
            for (column, value) in row {
                parts.columns.push(column as u32);
                parts.values.push(T::from_f64(value));
            }
            parts.offsets.push(parts.columns.len() as u32);
        }
        parts
    }

    /// The matrix on a device.
    pub fn on<D: Device>(&self, device: &D) -> Csr<T, D> {
        let Self { n_cols, offsets, columns, values } = self.clone();
        Csr::from_parts(device, n_cols, offsets.into(), columns, values).expect("a sound matrix")
    }

    /// The same with 64-bit offsets.
    pub fn wide_on<D: Device>(&self, device: &D) -> Csr<T, D> {
        let Self { n_cols, offsets, columns, values } = self.clone();
        let offsets = HostOffsets::Wide(offsets.into_iter().map(u64::from).collect());
        Csr::from_parts(device, n_cols, offsets, columns, values).expect("a sound matrix")
    }
}

/// Rows of 0 to 40 random entries, every seventh row empty.
pub fn random_matrix<T: Scalar>(n_rows: usize, n_cols: usize, random: &mut Random) -> CsrArrays<T> {
    let row = |i: usize, random: &mut Random| {
        let n = if i % 7 == 3 || n_cols == 0 { 0 } else { random.below(41) };
        let mut columns: Vec<usize> = (0..n).map(|_| random.below(n_cols)).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| (column, random.unit())).collect()
    };
    CsrArrays::from_rows(n_cols, (0..n_rows).map(|i| row(i, random)).collect())
}

/// The five-point Laplacian on an n × n grid with random positive reaction: positive definite.
pub fn laplacian<T: Scalar>(n: usize, random: &mut Random) -> CsrArrays<T> {
    let row = |i: usize, random: &mut Random| {
        let (x, y) = (i % n, i / n);
        let mut row = vec![];
        if y > 0 {
            row.push((i - n, -1.0));
        }
        if x > 0 {
            row.push((i - 1, -1.0));
        }
        row.push((i, 4.0 + 0.01 * (random.unit() + 1.0)));
        if x + 1 < n {
            row.push((i + 1, -1.0));
        }
        if y + 1 < n {
            row.push((i + n, -1.0));
        }
        row
    };
    CsrArrays::from_rows(n * n, (0..n * n).map(|i| row(i, random)).collect())
}

/// Matrices whose rows are long in every way that formats trip over: uniform, with empty rows, with one full row,
/// long-tailed, empty, a single column filled.
pub fn profiles<T: Scalar>(n_rows: usize, n_cols: usize) -> Vec<CsrArrays<T>> {
    let mut random = Random::new((n_rows + 7 * n_cols) as u64);
    let mut matrix = |length: &dyn Fn(usize, &mut Random) -> usize| {
        let rows = (0..n_rows).map(|i| {
            let n = length(i, &mut random).min(n_cols);
            let mut columns: Vec<usize> = (0..n).map(|_| random.below(n_cols.max(1))).collect();
            columns.sort_unstable();
            columns.dedup();
            columns.into_iter().map(|column| (column, random.unit())).collect()
        });
        CsrArrays::from_rows(n_cols, rows.collect())
    };
    let uniform = matrix(&|_, _| 9);
    let gaps = matrix(&|i, random| if i % 7 == 3 { 0 } else { random.below(41) });
    let tailed = matrix(&|_, random| 1 + 3 * n_cols / (1 + random.below(n_cols.max(1))));
    let empty = matrix(&|_, _| 0);
    let mut rows: Vec<Vec<(usize, f64)>> = vec![vec![]; n_rows];
    if let Some(row) = rows.get_mut(n_rows / 2) {
        *row = (0..n_cols).map(|column| (column, random.unit())).collect();
    }
    let full_row = CsrArrays::from_rows(n_cols, rows);
    let column = n_cols.min(1);
    let full_column = CsrArrays::from_rows(n_cols, vec![vec![(0, 1.5); column]; n_rows]);
    vec![uniform, gaps, tailed, empty, full_row, full_column]
}
