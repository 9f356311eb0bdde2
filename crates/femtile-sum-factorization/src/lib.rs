//! Sum factorization: evaluation of tensor-product polynomials one axis after another.
//!
//! Values of a polynomial of degree p at the $(p+1)^3$ points of a cube cost $3 (p+1)^4$ multiplications instead of
//! $(p+1)^6$. SIMD lanes hold several tensors side by side, so that each instruction works on several cells.
//!
//! A symmetric table is split into an even and an odd half. Sizes up to degree ten are compiled in this crate,
//! behind the trait `SumFactorization`, so that its users do not compile them again. Other sizes, and processors
//! without SIMD, use plain loops.

#![deny(unsafe_code)]
// Loops over rows and columns carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

#[allow(unsafe_code)]
mod cpu;
mod gradient;
mod line;
mod lumped;
mod mapped;
mod reference;
mod separable;

use femtile_device::{Cpu, Scalar};
use femtile_element::tensor::Table;

pub use cpu::{SumFactorization, lanes};
pub use gradient::Metric;
pub use mapped::Mapped;
pub use reference::{
    contract as contract_reference, gradient as gradient_reference, separable as separable_reference,
};

/// Symmetry of a table about its centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parity {
    /// $s_{m-1-i,\,n-1-j} = s_{ij}$: values of symmetric shape functions at symmetric points.
    Even,
    /// $s_{m-1-i,\,n-1-j} = -s_{ij}$: slopes of symmetric shape functions at symmetric points.
    Odd,
    /// No symmetry.
    None,
}

/// A 1-D table that is applied along an axis of tensors.
///
/// A symmetric table is split into an even and an odd part of a quarter of its entries each. They act on sums and
/// differences of mirrored values, which halves the multiplications (even–odd decomposition).
///
/// # Source
/// `[solomonoff1992]`; `[kronbichler2022]`, section 2.1.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor<T> {
    n_rows: usize,
    n_cols: usize,
    /// `[n_rows][n_cols]`.
    entries: Vec<T>,
    /// Even and odd parts of a symmetric table, as [`halves`] returns them.
    halves: [Vec<T>; 2],
    parity: Parity,
    /// The diagonal of a square table without other entries, else empty.
    diagonal: Vec<T>,
}

/// Largest difference of mirrored entries, relative to the largest entry.
const ROUNDING: f64 = 1e-12;

impl<T: Scalar> Factor<T> {
    /// Converts a table and detects its parity.
    pub fn new(table: &Table) -> Self {
        let largest = table.entries.iter().fold(0.0_f64, |largest, entry| largest.max(entry.abs()));
        let is_mirrored = |sign: f64| {
            let pairs = table.entries.iter().zip(table.entries.iter().rev());
            pairs.into_iter().all(|(a, b)| (a - sign * b).abs() <= ROUNDING * largest)
        };
        let parity = match (is_mirrored(1.0), is_mirrored(-1.0)) {
            (true, _) => Parity::Even,
            (_, true) => Parity::Odd,
            _ => Parity::None,
        };
        Self::with_parity(table, parity)
    }

    /// Converts a table with a given parity; [`Parity::None`] is always right, and slower.
    pub fn with_parity(table: &Table, parity: Parity) -> Self {
        let rounded = |entries: &[f64]| entries.iter().map(|&entry| T::from_f64(entry)).collect();
        let halves = if parity == Parity::None { Default::default() } else { halves(table) };
        Self {
            diagonal: rounded(&diagonal(table).unwrap_or_default()),
            n_rows: table.n_points,
            n_cols: table.n_shapes,
            entries: rounded(&table.entries),
            halves: halves.map(|half| rounded(&half)),
            parity,
        }
    }

    /// Returns the length of a line after the product.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the length of a line before the product.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Returns the parity of the table.
    pub fn parity(&self) -> Parity {
        self.parity
    }

    fn is_square(&self, n: usize, parity: Parity) -> bool {
        self.n_rows == n && self.n_cols == n && self.parity == parity
    }

    /// Returns the numbers of additions or subtractions, and of multiplications with or without addition, per line.
    pub fn operations(&self) -> [usize; 2] {
        let (m, n) = (self.n_rows, self.n_cols);
        if self.parity == Parity::None {
            return [0, m * n];
        }
        let middle = if self.parity == Parity::Even { n.div_ceil(2) } else { n / 2 };
        let products = m / 2 * (n.div_ceil(2) + n / 2) + m % 2 * middle;
        [2 * (n / 2) + 2 * (m / 2), products]
    }
}

/// Returns the diagonal of a square table whose other entries are zero but for rounding.
fn diagonal(table: &Table) -> Option<Vec<f64>> {
    let n = table.n_shapes;
    let largest = table.entries.iter().fold(0.0_f64, |largest, entry| largest.max(entry.abs()));
    let is_kept = |(at, entry): (usize, &f64)| at / n == at % n || entry.abs() <= ROUNDING * largest;
    let is_diagonal = n == table.n_points && table.entries.iter().enumerate().all(is_kept);
    is_diagonal.then(|| (0..n).map(|i| table.row(i)[i]).collect())
}

/// Returns $\tfrac12 (s_{ij} + s_{i,\,n-1-j})$, the middle column unchanged, and $\tfrac12 (s_{ij} - s_{i,\,n-1-j})$;
/// only the first half of the rows and columns is used.
fn halves(table: &Table) -> [Vec<f64>; 2] {
    let n = table.n_shapes;
    let of = |sign: f64| {
        let entry = move |at: usize| {
            let (row, column) = (table.row(at / n), at % n);
            if 2 * column + 1 == n { row[column] } else { 0.5 * (row[column] + sign * row[n - 1 - column]) }
        };
        (0..table.entries.len()).map(entry).collect()
    };
    [of(1.0), of(-1.0)]
}

/// Applies the table to every line of tensors along an axis: $y_{o i k} = \sum_j s_{ij} x_{o j k}$.
///
/// # Shapes
/// `x: [outer][n_cols][inner][lanes]`, `y: [outer][n_rows][inner][lanes]` with [`lanes`] tensors side by side; `inner` is
/// the number of entries along the faster axes.
/// # Cost
/// [`Factor::operations`] per line; x is read and y written once. One thread.
/// # Panics
/// If lengths do not match.
pub fn contract<T: SumFactorization>(cpu: &Cpu, factor: &Factor<T>, inner: usize, x: &[T], y: &mut [T]) {
    fit_lines(factor, inner * lanes::<T>(cpu), x.len(), y.len());
    T::contract_lines(cpu, factor, inner, x, y);
}

/// Applies the table to every line of tensors along an axis and subtracts: $y_{o i k} \leftarrow y_{o i k} - \sum_j
/// s_{ij} x_{o j k}$.
///
/// # Shapes
/// As [`contract`].
/// # Cost
/// One product per entry of the table and line; x is read, y read and written once. One thread.
/// # Panics
/// If lengths do not match.
pub fn subtract_contraction<T: SumFactorization>(
    cpu: &Cpu,
    factor: &Factor<T>,
    inner: usize,
    x: &[T],
    y: &mut [T],
) {
    fit_lines(factor, inner * lanes::<T>(cpu), x.len(), y.len());
    T::subtract_lines(cpu, factor, inner, x, y);
}

/// Panics unless tensors have lines of the table's lengths, with `stripe` values between entries of a line.
fn fit_lines<T: Scalar>(factor: &Factor<T>, stripe: usize, x_len: usize, y_len: usize) {
    let fits = |n: usize, len: usize| stripe > 0 && len.is_multiple_of(n * stripe);
    let n_outer = x_len / (factor.n_cols * stripe).max(1);
    assert!(
        fits(factor.n_cols, x_len) && y_len == n_outer * factor.n_rows * stripe,
        "{x_len} and {y_len} entries do not form tensors with lines of {} and {} entries, {stripe} values apart",
        factor.n_cols,
        factor.n_rows
    );
}

/// Applies a sum of tensor products of 1-D matrices to tensors with three axes, in place:
/// $$ x \leftarrow (c_0\, K_x M_y M_z + c_1\, M_x K_y M_z + c_2\, M_x M_y K_z + c_3\, M_x M_y M_z)\, x. $$
///
/// # Shapes
/// `matrices`: M and K; `coefficients: [4][lanes]`, `x: [n][n][n][lanes]`; `scratch` has at least twice the length of
/// `x`.
/// # Cost
/// Seven 1-D products for matrices that are symmetric about their centre; three where M is diagonal as well.
/// # Panics
/// If lengths do not match.
pub fn separable<T: SumFactorization>(
    cpu: &Cpu,
    matrices: [&Factor<T>; 2],
    coefficients: &[T],
    x: &mut [T],
    scratch: &mut [T],
) {
    let (n, n_lanes) = (matrices[0].n_rows, lanes::<T>(cpu));
    fit_cube(n, n_lanes, x.len());
    assert!(
        coefficients.len() == 4 * n_lanes && scratch.len() >= 2 * x.len(),
        "lengths of coefficients or scratch do not match"
    );
    if !T::separable_cubes(cpu, matrices, coefficients, x, scratch) {
        let lines =
            |factor: &Factor<T>, inner, x: &[T], y: &mut [T]| T::contract_lines(cpu, factor, inner, x, y);
        reference::separable_by(matrices, n_lanes, coefficients, x, lines);
    }
}

/// Applies gradients, a metric at every point, and transposed gradients to tensors with three axes, in place:
/// $$ u \leftarrow \sum_{a,b} D_a^\mathsf{T} G_{ab} D_b u + \mu u. $$
///
/// # Shapes
/// `slopes`: D and its transpose; `u: [n][n][n][lanes]`; `scratch` has at least twice the length of `u`, and
/// [`Mapped::workspace_len`] more for a mapped metric.
/// # Cost
/// Six 1-D products, and the metric; planes of slopes stay in the L1 cache.
/// # Panics
/// If lengths do not match.
pub fn gradient<T: SumFactorization>(
    cpu: &Cpu,
    slopes: [&Factor<T>; 2],
    metric: Metric<'_, T>,
    u: &mut [T],
    scratch: &mut [T],
) {
    let (n, n_lanes) = (slopes[0].n_rows, lanes::<T>(cpu));
    fit_cube(n, n_lanes, u.len());
    let needed = 2 * u.len() + metric.workspace_len(n_lanes);
    assert!(metric.fits(n, n_lanes) && scratch.len() >= needed, "the metric or scratch do not fit");
    if !T::gradient_cubes(cpu, slopes, metric, u, scratch) {
        let lines =
            |factor: &Factor<T>, inner, x: &[T], y: &mut [T]| T::contract_lines(cpu, factor, inner, x, y);
        reference::gradient_by(slopes, u, lines, |g, u| match metric {
            Metric::Mapped(metric) => T::act_mapped(cpu, metric, g, u, scratch),
            metric => reference::act((n, n_lanes), &metric, g, u),
        });
    }
}

/// Applies a mapped metric at the points of cubes, in place: $g \leftarrow G g$, $u \leftarrow \mu u$, which is zero
/// without λ.
///
/// # Shapes
/// `g`: slopes along each axis, or three empty slices without σ; these and `u: [n][n][n][lanes]`; `scratch` has at
/// least [`Mapped::workspace_len`] values.
/// # Cost
/// For polynomials of order k some $9 k$ multiplications and additions per point for J, $9 k^2$ per line, $6 k^3$ per
/// plane; 40 to 60 per point for the metric, and a division.
/// # Panics
/// If lengths do not match.
pub fn act_mapped<T: SumFactorization>(
    cpu: &Cpu,
    metric: Mapped<'_, T>,
    g: [&mut [T]; 3],
    u: &mut [T],
    scratch: &mut [T],
) {
    let (n, n_lanes) = (metric.weights.len(), lanes::<T>(cpu));
    fit_cube(n, n_lanes, u.len());
    let expected = if metric.sigma.is_empty() { 0 } else { u.len() };
    assert!(
        metric.fits(n, n_lanes)
            && scratch.len() >= metric.workspace_len(n_lanes)
            && g.iter().all(|g| g.len() == expected),
        "lengths of the metric, slopes or scratch do not match"
    );
    T::act_mapped(cpu, metric, g, u, scratch);
}

fn fit_cube(n: usize, n_lanes: usize, len: usize) {
    assert_eq!(len, n * n * n * n_lanes, "values of {n_lanes} cubes with {n} entries a side");
}
